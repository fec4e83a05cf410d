//! Shards of the depot: a stack of magazines each, in one word: the number of the top one and a tag.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const NUMBER_BITS: u32 = 20;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

/// What the C code does, and what a test may take away from it.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Bits of the tag that count: 44 in C, where no test can wrap them.
    pub tag_bits: u32,
    /// Order of the exchange that puts a magazine on the stack.
    pub push: Ordering,
    /// Order of the loads of the word before a pop.
    pub pop_load: Ordering,
    /// Order of the exchange that takes a magazine off the stack.
    pub pop: Ordering,
    /// Order in which a push writes how many items there are from its magazine down.
    pub items_down: Ordering,
    /// Whether the count of items looks at the word again before it believes what it read.
    pub recheck: bool,
}

/// As in `depot.c`.
pub const RULES: Rules = Rules {
    tag_bits: 64 - NUMBER_BITS,
    push: Ordering::AcqRel,
    pop_load: Ordering::Acquire,
    pop: Ordering::AcqRel,
    items_down: Ordering::Release,
    recheck: true,
};

/// `sy_magazine`: the header is read by threads that lose the race for it, the items are not.
#[derive(Default)]
pub struct Magazine {
    next: AtomicU32,
    items_down: AtomicU64,
    count: AtomicU32,
    items: UnsafeCell<u64>,
}

/// Two of `sy_depot_shard`, and the store's headers, of which number 0 names none.
pub struct Depot<const MAGAZINES: usize> {
    rules: Rules,
    tops: [AtomicU64; 2],
    magazines: [Magazine; MAGAZINES],
}

// SAFETY: the items of a magazine are its holder's alone; loom sees it if that is not so.
unsafe impl<const MAGAZINES: usize> Sync for Depot<MAGAZINES> {}

/// A magazine that was popped: nobody else has it.
#[derive(Debug, PartialEq, Eq)]
pub struct Popped {
    pub number: u32,
    pub items: u64,
}

impl<const MAGAZINES: usize> Depot<MAGAZINES> {
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            tops: [AtomicU64::new(0), AtomicU64::new(0)],
            magazines: std::array::from_fn(|_| Magazine::default()),
        }
    }

    fn of(&self, number: u32) -> &Magazine {
        &self.magazines[number as usize - 1]
    }

    fn with_next_tag(&self, top: u64, number: u32) -> u64 {
        let next = (top | NUMBER_MASK).wrapping_add(1);
        let kept = ((1u128 << (NUMBER_BITS + self.rules.tag_bits)) - 1) as u64;
        (next & kept) | u64::from(number)
    }

    /// Fills a magazine that the caller alone has, with `count` items: plain stores.
    pub fn fill(&self, number: u32, count: u32, items: u64) {
        let magazine = self.of(number);
        magazine.items.with_mut(|it| {
            // SAFETY: the caller holds the magazine alone; loom sees it if that is not so.
            unsafe { *it = items }
        });
        magazine.count.store(count, Ordering::Relaxed);
    }

    /// `sy_depot_push`
    pub fn push(&self, shard: usize, number: u32) {
        let word = &self.tops[shard];
        let magazine = self.of(number);
        let items = u64::from(magazine.count.load(Ordering::Relaxed));
        let mut top = word.load(Ordering::Acquire);
        loop {
            let below = (top & NUMBER_MASK) as u32;
            let items_below = match below {
                0 => 0,
                _ => self.of(below).items_down.load(Ordering::Relaxed),
            };
            magazine.next.store(below, Ordering::Relaxed);
            magazine
                .items_down
                .store(items_below + items, self.rules.items_down);
            let new = self.with_next_tag(top, number);
            match word.compare_exchange_weak(top, new, self.rules.push, Ordering::Acquire) {
                Ok(_) => return,
                Err(seen) => top = seen,
            }
        }
    }

    /// `sy_depot_pop`, and a look at the items, as whoever pops a magazine has.
    pub fn pop(&self, shard: usize) -> Option<Popped> {
        let word = &self.tops[shard];
        let mut top = word.load(self.rules.pop_load);
        loop {
            let number = (top & NUMBER_MASK) as u32;
            if number == 0 {
                return None;
            }
            let magazine = self.of(number);
            let next = magazine.next.load(Ordering::Relaxed);
            let new = self.with_next_tag(top, next);
            match word.compare_exchange_weak(top, new, self.rules.pop, self.rules.pop_load) {
                Ok(_) => return Some(self.look(number)),
                Err(seen) => top = seen,
            }
        }
    }

    /// The owner of a magazine may write its items, so looking claims as much.
    fn look(&self, number: u32) -> Popped {
        let items = self.of(number).items.with_mut(|it| {
            // SAFETY: a popped magazine is the popper's alone; loom sees it if that is not so.
            unsafe { *it }
        });
        Popped { number, items }
    }

    /// `sy_depot_items`
    pub fn items(&self, shard: usize) -> u64 {
        let word = &self.tops[shard];
        let mut top = word.load(Ordering::Acquire);
        loop {
            let number = (top & NUMBER_MASK) as u32;
            if number == 0 {
                return 0;
            }
            let items = self.of(number).items_down.load(Ordering::Acquire);
            let again = word.load(Ordering::Relaxed);
            if again == top || !self.rules.recheck {
                return items;
            }
            top = word.load(Ordering::Acquire);
        }
    }
}
