//! Divides the memory for objects into segments: neighbouring slots of one slab with the same state.

use super::heap::{Area, Content, Heap, Holder, Run, Slab, Waiting};
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Objects that the program has.
    Live,
    /// Free objects in a magazine.
    Waiting(Holder),
    /// Free slots of a slab, or holes between objects.
    Free,
    /// Slots that were never used.
    NeverUsed,
    /// Of a slab: before the first slot and behind the last.
    Tail,
    /// A large object.
    Large,
    /// In no run.
    Units,
    /// A large span that was freed, and is kept for reuse.
    Kept,
    /// In a run whose owner is changing.
    Changing,
}

#[derive(Debug, Clone)]
pub struct Segment {
    pub range: Range<u64>,
    pub state: State,
    /// The index of the cache; `None`: it belongs to no cache.
    pub cache: Option<usize>,
    /// Objects in it.
    pub count: u64,
    /// Bytes from one object to the next.
    pub slot: u64,
}

/// Calls `visit` for all segments, in order of address.
pub fn each(heap: &Heap, visit: &mut dyn FnMut(&Segment)) {
    each_of(heap, &heap.areas, visit);
}

/// The same for some of the heap's areas.
pub fn each_of(heap: &Heap, areas: &[Area], visit: &mut dyn FnMut(&Segment)) {
    let sizes = sizes(heap);
    let mut waits = Waits::of(heap);
    for area in areas {
        each_of_area(heap, &sizes, &mut waits, area, visit);
    }
}

/// The size classes of malloc by the bytes of their objects.
fn sizes(heap: &Heap) -> Vec<(u64, usize)> {
    let classes = heap.caches.iter().enumerate();
    let mut sizes: Vec<_> = classes
        .filter(|(_, cache)| cache.kind == super::heap::Kind::Size)
        .map(|(index, cache)| (cache.slot, index))
        .collect();
    sizes.sort_unstable();
    sizes
}

fn plain(range: Range<u64>, state: State) -> Segment {
    Segment {
        range,
        state,
        cache: None,
        count: 0,
        slot: 0,
    }
}

fn each_of_area(
    heap: &Heap,
    sizes: &[(u64, usize)],
    waits: &mut Waits,
    area: &Area,
    visit: &mut dyn FnMut(&Segment),
) {
    let rest = if area.kept { State::Kept } else { State::Units };
    let mut at = area.range.start;
    for run in &area.runs {
        if at < run.range.start {
            visit(&plain(at..run.range.start, rest));
        }
        match &run.content {
            _ if area.kept => visit(&plain(run.range.clone(), State::Kept)),
            Content::Span => visit(&Segment {
                count: 1,
                slot: run.range.end - run.range.start,
                ..plain(run.range.clone(), State::Large)
            }),
            Content::Unknown => visit(&plain(run.range.clone(), State::Changing)),
            Content::Slab(slab) => {
                each_of_slab(heap, run, slab, waits.within(&run.range), visit);
            }
            Content::Mixed(_) => {
                each_of_mixed(sizes, run, waits.within(&run.range), visit);
            }
        }
        at = run.range.end;
    }
    if at < area.range.end {
        visit(&plain(at..area.range.end, rest));
    }
}

/// The free objects in magazines. Runs are asked for in order, so the objects of one are near those of
/// the run before: to look there is faster than to search among millions.
struct Waits<'a> {
    all: &'a [Waiting],
    /// Behind the objects of the last range.
    next: usize,
}

impl<'a> Waits<'a> {
    fn of(heap: &'a Heap) -> Self {
        Waits {
            all: &heap.waiting,
            next: 0,
        }
    }

    fn within(&mut self, range: &Range<u64>) -> &'a [Waiting] {
        let before = self.next.checked_sub(1).map(|at| self.all[at].address);
        if before.is_some_and(|address| address >= range.start) {
            self.next = 0;
        }
        let from = self.next + ahead(&self.all[self.next..], range.start);
        self.next = from + ahead(&self.all[from..], range.end);
        &self.all[from..self.next]
    }
}

/// How many objects lie below an address; it is found faster if they are few.
fn ahead(waiting: &[Waiting], address: u64) -> usize {
    let mut end = 1;
    while waiting.get(end).is_some_and(|one| one.address < address) {
        end *= 2;
    }
    let near = &waiting[..waiting.len().min(end + 1)];
    near.partition_point(|one| one.address < address)
}

fn each_of_slab(
    heap: &Heap,
    run: &Run,
    slab: &Slab,
    waiting: &[Waiting],
    visit: &mut dyn FnMut(&Segment),
) {
    let cache = &heap.caches[slab.cache];
    let slot = cache.slot.max(1);
    let first = slab.first.saturating_sub(cache.zone);
    let end = slab.slots.checked_mul(slot);
    let end = end.and_then(|bytes| first.checked_add(bytes));
    let fits = |end: &u64| first >= run.range.start && *end <= run.range.end;
    let Some(end) = end.filter(fits) else {
        visit(&plain(run.range.clone(), State::Changing));
        return;
    };
    let tail = |range: Range<u64>| Segment {
        cache: Some(slab.cache),
        ..plain(range, State::Tail)
    };
    if run.range.start < first {
        visit(&tail(run.range.start..first));
    }
    let mut waiting = waiting.iter().peekable();
    let mut open: Option<Segment> = None;
    let mut number = 0;
    while number < slab.slots {
        let at = first + number * slot;
        let mut holder = None;
        while let Some(one) = waiting.next_if(|one| one.address < at + slot) {
            holder = Some(one.holder);
        }
        let state = match holder {
            // A bit that is set is newer than the magazine, or the other way round; a slot that was
            // just flushed is free.
            _ if slab.is_free(number) && number >= slab.watermark => State::NeverUsed,
            _ if slab.is_free(number) => State::Free,
            Some(holder) => State::Waiting(holder),
            None => State::Live,
        };
        let count = match holder {
            Some(_) => 1,
            None => alike(
                slab,
                number,
                waiting.peek().map(|one| (one.address - first) / slot),
            ),
        };
        number += count;
        let range = at..at + count * slot;
        match &mut open {
            Some(segment) if segment.state == state => {
                segment.range.end = range.end;
                segment.count += count;
            }
            _ => {
                if let Some(done) = open.take() {
                    visit(&done);
                }
                open = Some(Segment {
                    range,
                    state,
                    cache: Some(slab.cache),
                    count,
                    slot,
                });
            }
        }
    }
    if let Some(done) = open {
        visit(&done);
    }
    if end < run.range.end {
        visit(&tail(end..run.range.end));
    }
}

/// How many slots from this one on are free or live as it is. `waiting`: the next slot whose object
/// waits in a magazine.
fn alike(slab: &Slab, slot: u64, waiting: Option<u64>) -> u64 {
    let mut end = slab.same_until(slot).min(slab.slots);
    if slot < slab.watermark {
        end = end.min(slab.watermark);
    }
    waiting.map_or(end, |waiting| end.min(waiting)) - slot
}

fn each_of_mixed(
    sizes: &[(u64, usize)],
    run: &Run,
    waiting: &[Waiting],
    visit: &mut dyn FnMut(&Segment),
) {
    let Content::Mixed(pieces) = &run.content else {
        return;
    };
    let mut at = run.range.start;
    for piece in pieces {
        let range = piece.start.max(at)..(piece.start + piece.bytes).min(run.range.end);
        if range.start >= range.end {
            continue;
        }
        if at < range.start {
            visit(&plain(at..range.start, State::Changing));
        }
        at = range.end;
        let found = waiting.binary_search_by_key(&piece.start, |one| one.address);
        let state = match (piece.out, found) {
            (false, _) => State::Free,
            (true, Ok(found)) => State::Waiting(waiting[found].holder),
            (true, Err(_)) => State::Live,
        };
        let class = sizes.binary_search_by_key(&piece.bytes, |&(size, _)| size);
        visit(&Segment {
            range,
            state,
            cache: class.ok().filter(|_| piece.out).map(|at| sizes[at].1),
            count: piece.out.into(),
            slot: piece.bytes,
        });
    }
    if at < run.range.end {
        visit(&plain(at..run.range.end, State::Changing));
    }
}

#[cfg(test)]
mod tests {
    use super::super::heap::{Cache, Kind};
    use super::*;
    use proptest::prelude::*;

    const START: u64 = 1 << 20;
    const SLOT: u64 = 48;

    fn heap(slots: u64, watermark: u64, free: Vec<u64>, waiting: &[u64]) -> Heap {
        let range = START..START + (slots * SLOT).next_multiple_of(4096).max(4096);
        let slab = Slab {
            cache: 0,
            first: START,
            slots,
            free_count: free.iter().map(|word| u64::from(word.count_ones())).sum(),
            watermark,
            free: free.into(),
        };
        let content = Content::Slab(slab);
        let run = Run {
            range: range.clone(),
            content,
        };
        let waits = |&slot: &u64| Waiting {
            address: START + slot * SLOT,
            client: 0,
            holder: Holder::Depot,
        };
        Heap {
            caches: vec![Cache::of("x", Kind::Program, SLOT)],
            areas: vec![Area {
                range,
                runs: vec![run],
                kept: false,
            }],
            waiting: waiting.iter().map(waits).collect(),
            ..Heap::default()
        }
    }

    proptest! {
        /// Slots are taken in groups; the states are those of each slot alone.
        #[test]
        fn each_slot_has_its_own_state(
            slots in 1_u64..300,
            watermark in 0_u64..310,
            free in proptest::collection::vec(prop_oneof![Just(0), Just(u64::MAX), any::<u64>()], 0..6),
            waiting in proptest::collection::btree_set(0_u64..300, 0..20),
        ) {
            let waiting: Vec<u64> = waiting.into_iter().filter(|&slot| slot < slots).collect();
            let is_free = |slot: u64| {
                free.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
            };
            let state = |slot: u64| match (is_free(slot), waiting.contains(&slot)) {
                (true, _) if slot >= watermark => State::NeverUsed,
                (true, _) => State::Free,
                (_, true) => State::Waiting(Holder::Depot),
                _ => State::Live,
            };
            let expected: Vec<State> = (0..slots).map(state).collect();
            let mut found = Vec::new();
            each(&heap(slots, watermark, free.clone(), &waiting), &mut |segment| {
                if segment.state != State::Tail {
                    let bytes = segment.range.end - segment.range.start;
                    assert_eq!(bytes, segment.count * SLOT);
                    found.extend((0..segment.count).map(|_| segment.state));
                }
            });
            prop_assert_eq!(found, expected);
        }

        /// Ranges in any order have the objects that lie in them.
        #[test]
        fn objects_are_found_near_the_last_ones(
            addresses in proptest::collection::btree_set(0_u64..1000, 0..60),
            ranges in proptest::collection::vec((0_u64..1010, 0_u64..300), 1..20),
        ) {
            let waits = |address: u64| Waiting { address, client: 0, holder: Holder::Depot };
            let heap = Heap {
                waiting: addresses.iter().copied().map(waits).collect(),
                ..Heap::default()
            };
            let mut waits = Waits::of(&heap);
            for (start, bytes) in ranges {
                let range = start..start + bytes;
                let found = waits.within(&range).iter().map(|one| one.address);
                let expected: Vec<u64> = addresses.range(range.clone()).copied().collect();
                prop_assert_eq!(found.collect::<Vec<_>>(), expected);
            }
        }
    }
}
