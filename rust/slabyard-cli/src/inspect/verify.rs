//! Checks what was read for what must not be: a free object in two places, or in the wrong one. Most
//! such faults come from double frees and from writes into memory that is not the writer's.

use super::heap::{Cache, Content, Heap, Piece, Run, Slab, Waiting};
use crate::ui::grouped;
use std::collections::BTreeMap;

/// What was looked at, and what is wrong.
#[derive(Debug, Default)]
pub struct Report {
    pub slabs: u64,
    pub mixed_units: u64,
    /// Free objects in magazines.
    pub waiting: u64,
    /// By address: of an object, or of a slab.
    pub faults: BTreeMap<u64, String>,
}

impl Report {
    /// What was looked at, in words.
    pub fn extent(&self) -> String {
        let counted = |count: u64, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{} {what}s", grouped(count)),
        };
        format!(
            "{}, {}, {} in magazines",
            counted(self.slabs, "slab"),
            counted(self.mixed_units, "mixed unit"),
            counted(self.waiting, "free object")
        )
    }

    /// Keeps the faults that another look has found too. A process changes its structures while they
    /// are read, so that a single look finds things that are not so.
    pub fn keep_common(&mut self, other: &Report) {
        self.faults
            .retain(|address, what| other.faults.get(address) == Some(what));
    }
}

/// Looks at all slabs, mixed units and magazines.
pub fn check(heap: &Heap, report: &mut Report) {
    report.waiting += heap.waiting.len() as u64;
    for (one, other) in &heap.twice {
        let (place, other) = (heap.place_of(one.holder), heap.place_of(other.holder));
        let what = match place == other {
            true => format!("a free object waits twice: {place}"),
            false => format!("a free object waits twice: {place}, and {other}"),
        };
        report.faults.insert(one.address, what);
    }
    let runs = heap.areas.iter().filter(|area| !area.kept);
    for run in runs.flat_map(|area| &area.runs) {
        let from = heap
            .waiting
            .partition_point(|one| one.address < run.range.start);
        let to = heap
            .waiting
            .partition_point(|one| one.address < run.range.end);
        let waiting = &heap.waiting[from..to];
        match &run.content {
            Content::Slab(slab) => check_slab(heap, run, slab, waiting, report),
            Content::Mixed(pieces) => check_mixed(heap, pieces, waiting, report),
            Content::Span | Content::Unknown => {}
        }
    }
}

fn check_slab(heap: &Heap, run: &Run, slab: &Slab, waiting: &[Waiting], report: &mut Report) {
    report.slabs += 1;
    let cache = &heap.caches[slab.cache];
    let free: u64 = slab
        .free
        .iter()
        .map(|word| u64::from(word.count_ones()))
        .sum();
    if free != slab.free_count {
        let what = format!(
            "a slab of {} has {free} free slots, and counts {}",
            cache.name, slab.free_count
        );
        report.faults.insert(run.range.start, what);
    }
    for one in waiting {
        let slot = cache.slot.max(1);
        let distance = one.address.wrapping_sub(slab.first);
        let number = distance / slot;
        let what = if distance % slot != 0 || number >= slab.slots {
            format!(
                "a free object {} begins where no slot of {} does",
                heap.place_of(one.holder),
                cache.name
            )
        } else if one.client != cache.client {
            let other = name_of_client(heap, one.client);
            format!(
                "an object of {} waits {}, which is one of {other}",
                cache.name,
                heap.place_of(one.holder)
            )
        } else if slab.is_free(number) {
            format!(
                "a free object of {} is {}, and in its slab too",
                cache.name,
                heap.place_of(one.holder)
            )
        } else {
            continue;
        };
        report.faults.insert(one.address, what);
    }
}

fn name_of_client(heap: &Heap, client: u32) -> &str {
    let named = |cache: &&Cache| cache.client == client;
    heap.caches
        .iter()
        .find(named)
        .map_or("mixed units", |cache| &cache.name)
}

fn check_mixed(heap: &Heap, pieces: &[Piece], waiting: &[Waiting], report: &mut Report) {
    report.mixed_units += 1;
    for (piece, next) in pieces.iter().zip(pieces.iter().skip(1)) {
        if !piece.out && !next.out {
            report.faults.insert(
                next.start,
                "two holes of a mixed unit are neighbours".into(),
            );
        }
    }
    for one in waiting {
        let found = pieces.binary_search_by_key(&one.address, |piece| piece.start);
        let what = match found.map(|at| pieces[at]) {
            Ok(piece) if piece.out => continue,
            Ok(_) => format!(
                "a free object is {}, and a hole of a mixed unit too",
                heap.place_of(one.holder)
            ),
            Err(_) => format!(
                "a free object {} begins where no object of a mixed unit does",
                heap.place_of(one.holder)
            ),
        };
        report.faults.insert(one.address, what);
    }
}

#[cfg(test)]
mod tests {
    use super::super::heap::{Area, Holder, Kind};
    use super::super::tests::{tell_ready, Stage};
    use super::super::{Depth, Look};
    use super::*;
    use slabyard_sys::*;

    /// Runs in a process of its own: frees an object of an unchecked cache twice.
    #[test]
    #[ignore = "a part of another test, which starts it"]
    fn stage() {
        let config = sy_cache_config {
            name: c"twice".as_ptr(),
            size: 64,
            ..sy_cache_config::default()
        };
        // SAFETY: the second free of the first object is the fault; nothing is allocated afterwards.
        unsafe {
            let cache = sy_cache_create(&config);
            let (first, second) = (sy_cache_alloc(cache), sy_cache_alloc(cache));
            sy_cache_free(cache, first);
            sy_cache_free(cache, second);
            sy_cache_free(cache, first);
            println!("twice {:#x}", first as usize);
        }
        tell_ready();
    }

    #[test]
    fn a_double_free_is_found_in_a_process() {
        let stage = Stage::of("inspect::verify::tests::stage");
        let look = Look::at(stage.pid(), Depth::Quick).unwrap();
        let report = look.verify();
        assert!(report.slabs > 0 && report.waiting > 1, "{report:?}");
        let address = &stage.lines("twice").next().unwrap()[0];
        let faults: Vec<_> = report.faults.iter().collect();
        let [(at, what)] = faults[..] else {
            panic!("{faults:?}");
        };
        assert_eq!(&format!("{at:#x}"), address);
        assert!(
            what.contains("waits twice: in a magazine of thread"),
            "{what}"
        );
    }

    const START: u64 = 1 << 20;

    fn waiting(address: u64, client: u32) -> Waiting {
        Waiting {
            address,
            client,
            holder: Holder::Depot,
        }
    }

    fn heap(content: Content, waiting: Vec<Waiting>) -> Heap {
        let range = START..START + 4096;
        let cache = |name, client| Cache {
            client,
            ..Cache::of(name, Kind::Program, 48)
        };
        Heap {
            caches: vec![cache("a", 1), cache("b", 2)],
            areas: vec![Area {
                range: range.clone(),
                runs: vec![Run { range, content }],
                kept: false,
            }],
            waiting,
            ..Heap::default()
        }
    }

    fn faults(content: Content, waiting: Vec<Waiting>) -> Vec<(u64, String)> {
        let mut report = Report::default();
        check(&heap(content, waiting), &mut report);
        report.faults.into_iter().collect()
    }

    fn slab(free: u64, free_count: u64) -> Content {
        Content::Slab(Slab {
            cache: 0,
            first: START,
            slots: 10,
            free_count,
            watermark: 10,
            free: [free].into(),
        })
    }

    #[test]
    fn what_must_not_be_in_a_slab_is_said() {
        let at = |slot: u64| START + slot * 48;
        assert_eq!(faults(slab(0b101, 2), vec![waiting(at(1), 1)]), []);
        for (free, count, object, client, address, said) in [
            (
                0b101,
                3,
                at(1),
                1,
                START,
                "a slab of a has 2 free slots, and counts 3",
            ),
            (
                0b10,
                1,
                at(1),
                1,
                at(1),
                "a free object of a is in the depot, and in its slab too",
            ),
            (
                0,
                0,
                at(1),
                2,
                at(1),
                "an object of a waits in the depot, which is one of b",
            ),
            (
                0,
                0,
                at(1) + 8,
                1,
                at(1) + 8,
                "begins where no slot of a does",
            ),
            (0, 0, at(10), 1, at(10), "begins where no slot of a does"),
        ] {
            let found = faults(slab(free, count), vec![waiting(object, client)]);
            let [(place, what)] = &found[..] else {
                panic!("{said}: {found:?}");
            };
            assert!(
                *place == address && what.contains(said),
                "{place:#x}: {what}"
            );
        }
    }

    #[test]
    fn what_must_not_be_in_a_mixed_unit_is_said() {
        let piece = |start: u64, bytes, out| Piece {
            start: START + start,
            bytes,
            out,
        };
        let sound = || {
            vec![
                piece(0, 64, true),
                piece(64, 64, false),
                piece(128, 3968, true),
            ]
        };
        let of = |pieces: Vec<Piece>, at: u64| {
            faults(Content::Mixed(pieces), vec![waiting(START + at, 7)])
        };
        assert_eq!(of(sound(), 128), []);
        assert!(of(sound(), 64)[0].1.contains("a hole of a mixed unit too"));
        assert!(of(sound(), 16)[0]
            .1
            .contains("begins where no object of a mixed unit does"));
        let mut holes = sound();
        holes[0].out = false;
        let found = of(holes, 128);
        assert_eq!(found[0].0, START + 64);
        assert!(found[0].1.contains("neighbours"));
    }

    #[test]
    fn a_fault_that_another_look_does_not_find_is_none() {
        let report = |faults: &[(u64, &str)]| Report {
            faults: faults
                .iter()
                .map(|&(at, what)| (at, what.to_string()))
                .collect(),
            ..Report::default()
        };
        let mut first = report(&[(1, "x"), (2, "x"), (3, "x")]);
        first.keep_common(&report(&[(1, "x"), (2, "y")]));
        assert_eq!(first.faults, report(&[(1, "x")]).faults);
    }
}
