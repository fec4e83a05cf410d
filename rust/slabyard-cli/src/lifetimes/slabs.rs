//! A model of slabs: which pages have a live object at a time.
//!
//! As in Slabyard's heap, the objects of one slot size lie in slabs of 64 KiB, the fullest slab that
//! has a free slot is taken first, and a page without a live object is free at once. The model has no
//! magazines and no delays, so a real allocator keeps more pages.

use super::Lives;
use std::collections::BTreeSet;

pub const PAGE: usize = 4096;
const SLAB: usize = 64 << 10;
/// Sizes are rounded up to multiples of this.
const STEP: usize = 16;
const POOLS: usize = PAGE / STEP + 1;
/// The number of times at which two placements are compared.
const LOOKS: u128 = 200;

/// The slot size of an object of `size` bytes: multiples of 16 up to 128, then 8 to a doubling.
pub fn slot_size(size: u64) -> usize {
    let size = (size as usize).max(1);
    let step = match size {
        0..=128 => STEP,
        _ => 1 << ((size - 1).ilog2() - 3),
    };
    size.next_multiple_of(step)
}

struct Slab {
    /// A bit for each free slot. The lowest is taken first, so bits beyond the last slot are never
    /// reached.
    free: Vec<u64>,
    free_slots: usize,
    /// The number of live objects on each page.
    on_page: [u16; SLAB / PAGE],
}

impl Slab {
    fn new(slots: usize) -> Self {
        Slab {
            free: vec![u64::MAX; slots.div_ceil(64)],
            free_slots: slots,
            on_page: [0; SLAB / PAGE],
        }
    }

    fn take(&mut self) -> usize {
        let word = self.free.iter().position(|&word| word != 0);
        let word = word.expect("a listed slab has a free slot");
        let slot = word * 64 + self.free[word].trailing_zeros() as usize;
        self.free[word] &= self.free[word] - 1;
        self.free_slots -= 1;
        slot
    }

    fn give(&mut self, slot: usize) {
        self.free[slot / 64] |= 1 << (slot % 64);
        self.free_slots += 1;
    }
}

/// All slabs of one slot size.
struct Pool {
    slot: usize,
    slabs: Vec<Slab>,
    /// The slabs with a free slot: the number of free slots, and the slab's index.
    open: BTreeSet<(usize, usize)>,
    pages: usize,
}

impl Pool {
    fn new(slot: usize) -> Self {
        Pool {
            slot,
            slabs: Vec::new(),
            open: BTreeSet::new(),
            pages: 0,
        }
    }

    fn pages_of(&self, slot: usize) -> std::ops::RangeInclusive<usize> {
        let first = slot * self.slot;
        first / PAGE..=(first + self.slot - 1) / PAGE
    }

    /// The slab and the slot of a new object.
    fn take(&mut self) -> (usize, usize) {
        let index = match self.open.pop_first() {
            Some((_, index)) => index,
            None => {
                self.slabs.push(Slab::new(SLAB / self.slot));
                self.slabs.len() - 1
            }
        };
        let slot = self.slabs[index].take();
        for page in self.pages_of(slot) {
            let on_page = &mut self.slabs[index].on_page[page];
            self.pages += usize::from(*on_page == 0);
            *on_page += 1;
        }
        self.list(index);
        (index, slot)
    }

    fn give(&mut self, (index, slot): (usize, usize)) {
        self.open.remove(&(self.slabs[index].free_slots, index));
        self.slabs[index].give(slot);
        for page in self.pages_of(slot) {
            let on_page = &mut self.slabs[index].on_page[page];
            *on_page -= 1;
            self.pages -= usize::from(*on_page == 0);
        }
        self.list(index);
    }

    fn list(&mut self, index: usize) {
        let free = self.slabs[index].free_slots;
        if free > 0 {
            self.open.insert((free, index));
        }
    }
}

/// A sum over time: of a number that changes at times.
#[derive(Clone, Copy, Default)]
struct Sum {
    now: f64,
    most: f64,
    since: u64,
    sum: f64,
}

impl Sum {
    fn set(&mut self, stamp: u64, value: f64) {
        self.sum += self.now * (stamp - self.since) as f64;
        self.since = stamp;
        self.now = value;
        self.most = self.most.max(value);
    }
}

/// The bytes of pages with a live object, while the program ran.
pub struct Placed {
    /// For each slot size, by its multiple of [`STEP`].
    slots: Vec<Sum>,
    all: Sum,
    live: Sum,
    looks: Vec<f64>,
    span: f64,
}

impl Placed {
    pub fn mean(&self) -> f64 {
        self.all.sum / self.span
    }

    pub fn peak(&self) -> f64 {
        self.all.most
    }

    pub fn live_mean(&self) -> f64 {
        self.live.sum / self.span
    }

    pub fn live_peak(&self) -> f64 {
        self.live.most
    }

    /// The mean of a slot size.
    pub fn of_slot(&self, slot: usize) -> f64 {
        self.slots[slot / STEP].sum / self.span
    }

    /// The slot sizes that have pages, and their means.
    pub fn by_slot(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let slots = (0..POOLS).map(|index| index * STEP);
        let all = slots.map(|slot| (slot, self.of_slot(slot)));
        all.filter(|&(_, bytes)| bytes > 0.0)
    }

    /// The most bytes that this placement has more than the other at one time, and the share of the
    /// run that was over then.
    pub fn most_more_than(&self, other: &Placed) -> (f64, f64) {
        let looks = self.looks.iter().zip(&other.looks).enumerate();
        let more = looks.map(|(at, (mine, theirs))| (mine - theirs, at as f64 / LOOKS as f64));
        // Of equal ones max_by takes the last: the first in time.
        more.rev()
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or((0.0, 0.0))
    }
}

/// Places all objects; those that live `long_from` ticks or longer in slabs of their own, except if
/// `long_from` is `u64::MAX`: then all lie together.
pub fn place(lives: &Lives, long_from: u64) -> Placed {
    let (first, span) = (lives.changes[0].stamp, lives.span());
    let start = Sum {
        since: first,
        ..Sum::default()
    };
    let mut placed = Placed {
        slots: vec![start; POOLS],
        all: start,
        live: start,
        looks: Vec::new(),
        span: span as f64,
    };
    let mut pools: Vec<[Pool; 2]> = (0..POOLS)
        .map(|index| [index * STEP; 2].map(Pool::new))
        .collect();
    let mut places = vec![(0, 0); lives.objects.len()];
    for change in &lives.changes {
        let passed = u128::from(change.stamp - first) * LOOKS;
        while placed.looks.len() as u128 * u128::from(span) <= passed {
            placed.looks.push(placed.all.now);
        }
        let object = &lives.objects[change.object];
        let both = &mut pools[object.slot / STEP];
        let before = both[0].pages + both[1].pages;
        let pool = &mut both[usize::from(long_from != u64::MAX && object.lifetime >= long_from)];
        let mut live = placed.live.now;
        if change.begins {
            places[change.object] = pool.take();
            live += object.slot as f64;
        } else {
            pool.give(places[change.object]);
            live -= object.slot as f64;
        }
        let pages = both[0].pages + both[1].pages;
        let all = placed.all.now + (pages as f64 - before as f64) * PAGE as f64;
        placed.slots[object.slot / STEP].set(change.stamp, (pages * PAGE) as f64);
        placed.all.set(change.stamp, all);
        placed.live.set(change.stamp, live);
    }
    let end = first + span;
    for sum in placed.slots.iter_mut() {
        sum.set(end, sum.now);
    }
    placed
}
