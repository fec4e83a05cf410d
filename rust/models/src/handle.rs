//! Handles: the word of an ordinal, which alloc, free, pin and unpin change by one exchange each.
//!
//! Magazines and depot are a list under a lock here: what they promise, that an ordinal which one
//! thread put away is got by one other, after all that the first did, is the affair of
//! [`crate::depot`]. A slab is one ordinal.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::Mutex;

const LIVE: u64 = 1;
const DYING: u64 = 2;
const STATE: u64 = 3;
const PIN: u64 = 4;
const PINS: u64 = 0xffff << 2;
const GENERATION: u64 = 1 << 32;

/// What the C code does, and what a test may take away from it.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Order of the exchange in free.
    pub free: Ordering,
    /// Order of the exchange in unpin.
    pub unpin: Ordering,
    /// Whether free looks for pins, and leaves the object to the last of them.
    pub pins_delay: bool,
    /// Whether a slab that is made again goes on from the highest generation.
    pub above_highest: bool,
    /// Whether free is one exchange, not a load and a store.
    pub free_exchanges: bool,
}

/// As in `handle.h` and `handle.c`.
pub const RULES: Rules = Rules {
    free: Ordering::AcqRel,
    unpin: Ordering::AcqRel,
    pins_delay: true,
    above_highest: true,
    free_exchanges: true,
};

/// The generation; the ordinal is the only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(pub u64);

/// One slot, its word, and whether its ordinal waits in a magazine.
pub struct Slot {
    rules: Rules,
    word: AtomicU64,
    highest: AtomicU64,
    waiting: Mutex<bool>,
    object: UnsafeCell<u64>,
}

// SAFETY: the object is its owner's or, for reading, a pinner's; loom sees it if that is not so.
unsafe impl Sync for Slot {}

impl Slot {
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            word: AtomicU64::new(0),
            highest: AtomicU64::new(0),
            waiting: Mutex::new(true),
            object: UnsafeCell::new(0),
        }
    }

    fn put(&self) {
        let mut waiting = self.waiting.lock().unwrap();
        assert!(!*waiting, "the ordinal is in two places");
        *waiting = true;
    }

    /// `sy_handle_enliven` of what a magazine gave, and the owner's first write.
    pub fn alloc(&self, content: u64) -> Option<Handle> {
        if !std::mem::take(&mut *self.waiting.lock().unwrap()) {
            return None;
        }
        let live = (self.word.load(Ordering::Relaxed) + GENERATION) | LIVE;
        self.word.store(live, Ordering::Release);
        self.object.with_mut(|it| {
            // SAFETY: the object is new, and the caller's; loom sees it if that is not so.
            unsafe { *it = content }
        });
        Some(Handle(live / GENERATION))
    }

    fn expected(handle: Handle) -> u64 {
        (handle.0 * GENERATION) | LIVE
    }

    fn exchange(&self, word: u64, next: u64, order: Ordering) -> Result<u64, u64> {
        self.word
            .compare_exchange(word, next, order, Ordering::Relaxed)
    }

    /// `sy_handle_free`
    pub fn free(&self, handle: Handle) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & !PINS == Self::expected(handle) {
            let pinned = word & PINS != 0;
            let next = match pinned && self.rules.pins_delay {
                true => (word & !STATE) | DYING,
                false => word & !STATE,
            };
            if !self.rules.free_exchanges {
                self.word.store(next, Ordering::Release);
            } else if let Err(seen) = self.exchange(word, next, self.rules.free) {
                word = seen;
                continue;
            }
            if next & STATE == 0 {
                self.put();
            }
            return true;
        }
        false
    }

    /// `sy_handle_pin`
    pub fn pin(&self, handle: Handle) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & !PINS == Self::expected(handle) {
            match self.exchange(word, word + PIN, Ordering::AcqRel) {
                Ok(_) => return true,
                Err(seen) => word = seen,
            }
        }
        false
    }

    /// What a pinner reads.
    pub fn read(&self) -> u64 {
        self.object.with(|it| {
            // SAFETY: it is pinned; loom sees it if that is not enough.
            unsafe { *it }
        })
    }

    /// What the owner writes.
    pub fn write(&self, content: u64) {
        self.object.with_mut(|it| {
            // SAFETY: the caller owns it, and nobody looks; loom sees it if that is not so.
            unsafe { *it = content }
        });
    }

    /// `sy_handle_unpin`
    pub fn unpin(&self, handle: Handle) {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            assert_eq!(word / GENERATION, handle.0, "a pin keeps the generation");
            assert_ne!(word & PINS, 0, "a pin stays");
            let mut next = word - PIN;
            let last = word & STATE == DYING && next & PINS == 0;
            if last {
                next &= !STATE;
            }
            match self.exchange(word, next, self.rules.unpin) {
                Ok(_) if last => return self.put(),
                Ok(_) => return,
                Err(seen) => word = seen,
            }
        }
    }

    /// The slab goes, if nothing is out, and another is made in its place: `sy_ordinals_give`,
    /// `sy_ordinal_prepare`. Whether it went.
    pub fn recycle(&self) -> bool {
        let waiting = self.waiting.lock().unwrap();
        if !*waiting {
            return false;
        }
        let word = self.word.load(Ordering::Relaxed);
        let highest = self.highest.load(Ordering::Relaxed).max(word / GENERATION);
        self.highest.store(highest, Ordering::Relaxed);
        self.word.store(0, Ordering::Release);
        let start = if self.rules.above_highest { highest } else { 0 };
        self.word.store(start * GENERATION, Ordering::Relaxed);
        true
    }
}
