//! Divides the memory for objects into segments: neighbouring slots of one slab with the same state.

use super::heap::{Area, Content, Heap, Holder, Run, Slab, Waiting};
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    each_of(heap, &heap.areas, &mut |_| false, visit);
}

/// The same for some of the heap's areas. `alike`: whether all memory of the slab in this range is
/// resident, with the same share, so that the place of a slot in it does not matter. Then the slots are
/// counted by state, which is faster: the segments have the right bytes, but are not where the slots
/// are.
pub fn each_of(
    heap: &Heap,
    areas: &[Area],
    alike: &mut dyn FnMut(&Range<u64>) -> bool,
    visit: &mut dyn FnMut(&Segment),
) {
    let mut walk = Walk {
        heap,
        sizes: sizes(heap),
        waits: Waits::of(heap),
        alike,
        visit,
    };
    for area in areas {
        walk.area(area);
    }
}

struct Walk<'a> {
    heap: &'a Heap,
    sizes: Vec<(u64, usize)>,
    waits: Waits<'a>,
    alike: &'a mut dyn FnMut(&Range<u64>) -> bool,
    visit: &'a mut dyn FnMut(&Segment),
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

impl Walk<'_> {
    fn area(&mut self, area: &Area) {
        let rest = if area.kept { State::Kept } else { State::Units };
        let mut at = area.range.start;
        for run in &area.runs {
            if at < run.range.start {
                (self.visit)(&plain(at..run.range.start, rest));
            }
            match &run.content {
                _ if area.kept => (self.visit)(&plain(run.range.clone(), State::Kept)),
                Content::Span => (self.visit)(&Segment {
                    count: 1,
                    slot: run.range.end - run.range.start,
                    ..plain(run.range.clone(), State::Large)
                }),
                Content::Unknown => (self.visit)(&plain(run.range.clone(), State::Changing)),
                Content::Slab(slab) => self.slab(run, slab),
                Content::Mixed(_) => {
                    each_of_mixed(&self.sizes, run, self.waits.within(&run.range), self.visit);
                }
            }
            at = run.range.end;
        }
        if at < area.range.end {
            (self.visit)(&plain(at..area.range.end, rest));
        }
    }

    fn slab(&mut self, run: &Run, slab: &Slab) {
        let cache = &self.heap.caches[slab.cache];
        let slot = cache.slot.max(1);
        let first = slab.first.saturating_sub(cache.zone);
        let end = slab.slots.checked_mul(slot);
        let end = end.and_then(|bytes| first.checked_add(bytes));
        let fits = |end: &u64| first >= run.range.start && *end <= run.range.end;
        let Some(end) = end.filter(fits) else {
            return (self.visit)(&plain(run.range.clone(), State::Changing));
        };
        let tail = |range: Range<u64>| Segment {
            cache: Some(slab.cache),
            ..plain(range, State::Tail)
        };
        if run.range.start < first {
            (self.visit)(&tail(run.range.start..first));
        }
        let waiting = self.waits.within(&run.range);
        let slots = Slots { slab, first, slot };
        match (self.alike)(&run.range) {
            true => slots.sums(waiting, self.visit),
            false => slots.each(waiting, self.visit),
        }
        if end < run.range.end {
            (self.visit)(&tail(end..run.range.end));
        }
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

/// The slots of a slab.
struct Slots<'a> {
    slab: &'a Slab,
    first: u64,
    slot: u64,
}

impl Slots<'_> {
    fn segment(&self, number: u64, count: u64, state: State) -> Segment {
        let at = self.first + number * self.slot;
        Segment {
            range: at..at + count * self.slot,
            state,
            cache: Some(self.slab.cache),
            count,
            slot: self.slot,
        }
    }

    /// One segment for each state; for objects in magazines, one for neighbours with one holder.
    fn sums(&self, waiting: &[Waiting], visit: &mut dyn FnMut(&Segment)) {
        let slab = self.slab;
        let mut done = 0;
        let mut add = |count, state| {
            if count > 0 {
                visit(&self.segment(done, count, state));
            }
            done += count;
        };
        let number = |one: &Waiting| one.address.saturating_sub(self.first) / self.slot;
        let in_slots = waiting.iter().map(|one| (number(one), one.holder));
        let mut in_slots = in_slots
            .take_while(|&(number, _)| number < slab.slots)
            .filter(|&(number, _)| !slab.is_free(number))
            .peekable();
        let (mut held, mut of) = (0, Holder::Depot);
        let mut all_held = 0;
        while let Some((number, holder)) = in_slots.next() {
            if in_slots.peek().is_some_and(|&(next, _)| next == number) {
                continue; // the last one of a slot counts
            }
            if holder != of {
                add(held, State::Waiting(of));
                (held, of) = (0, holder);
            }
            held += 1;
            all_held += 1;
        }
        add(held, State::Waiting(of));
        let free = slab.free_below(slab.slots.min(slab.watermark));
        let never_used = slab.free_below(slab.slots) - free;
        add(free, State::Free);
        add(never_used, State::NeverUsed);
        add(slab.slots - free - never_used - all_held, State::Live);
    }

    fn each(&self, waiting: &[Waiting], visit: &mut dyn FnMut(&Segment)) {
        let Slots { slab, first, slot } = *self;
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
                // A bit that is set is newer than the magazine, or the other way round; a slot that
                // was just flushed is free.
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
            match &mut open {
                Some(segment) if segment.state == state => {
                    segment.range.end += count * slot;
                    segment.count += count;
                }
                _ => {
                    if let Some(done) = open.take() {
                        visit(&done);
                    }
                    open = Some(self.segment(number, count, state));
                }
            }
            number += count;
        }
        if let Some(done) = open {
            visit(&done);
        }
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
    use std::collections::HashMap;

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

        /// With few segments there are as many slots in each state.
        #[test]
        fn sums_are_those_of_the_segments(
            slots in 1_u64..300,
            watermark in 0_u64..310,
            free in proptest::collection::vec(prop_oneof![Just(0), Just(u64::MAX), any::<u64>()], 0..6),
            waiting in proptest::collection::btree_map(0_u64..310 * SLOT, 0_u32..3, 0..60),
        ) {
            let mut heap = heap(slots, watermark, free, &[]);
            let waits = |(&at, &thread): (&u64, &u32)| Waiting {
                address: START + at,
                client: 0,
                holder: Holder::Thread(thread),
            };
            heap.waiting = waiting.iter().map(waits).collect();
            let sums = |is_alike: bool| {
                let mut sums: HashMap<State, (u64, u64)> = HashMap::new();
                each_of(&heap, &heap.areas, &mut |_| is_alike, &mut |segment| {
                    let sum = sums.entry(segment.state).or_default();
                    sum.0 += segment.count;
                    sum.1 += segment.range.end - segment.range.start;
                });
                sums
            };
            prop_assert_eq!(sums(true), sums(false));
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
