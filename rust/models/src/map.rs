//! A map of one value with the words of the crate `slabyard`: a value must be dropped after its
//! last guard, and before its slot is free.
//!
//! Magazines are replaced by a list under a lock, and there is one ordinal. The rules are numbered
//! as in `slabyard/src/handle/mod.rs`.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use loom::sync::Mutex;

const LIVE: u64 = 1;
const DYING: u64 = 2;
const STATE: u64 = 3;
const PIN: u64 = 4;
const PINS: u64 = 0xffff << 2;
const GENERATION: u64 = 1 << 32;
const NOTHING: u64 = 0;

/// The rules of the crate, each of which a test can weaken.
#[derive(Clone, Copy)]
pub struct Rules {
    /// 1: whether remove leaves the value to existing guards.
    pub one_owner: bool,
    /// 2: whether a guard is made of a live word only.
    pub no_way_back: bool,
    /// 3: whether the value is written before the word is live.
    pub value_first: bool,
    /// 3: the order of the store that makes a word live.
    pub enliven: Ordering,
    /// 3: the order of the exchange that makes a guard.
    pub pin: Ordering,
    /// 4: the order of the subtraction that drops a guard.
    pub unpin: Ordering,
    /// 4: the order of the exchange in remove.
    pub remove: Ordering,
    /// 5: whether the value is dropped before the word becomes free and the ordinal goes back.
    pub value_last: bool,
}

/// The rules of `word.rs`.
pub const RULES: Rules = Rules {
    one_owner: true,
    no_way_back: true,
    value_first: true,
    enliven: Ordering::Release,
    pin: Ordering::Acquire,
    unpin: Ordering::AcqRel,
    remove: Ordering::Acquire,
    value_last: true,
};

/// The result of remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    Ours,
    Held,
    Stale,
}

/// A map with one slot.
pub struct Map {
    rules: Rules,
    word: AtomicU64,
    waiting: Mutex<bool>,
    value: UnsafeCell<u64>,
    pub drops: AtomicUsize,
}

// SAFETY: the value is accessed by its owner, or read by a guard; loom reports any other access.
unsafe impl Sync for Map {}

impl Map {
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            word: AtomicU64::new(0),
            waiting: Mutex::new(true),
            value: UnsafeCell::new(NOTHING),
            drops: AtomicUsize::new(0),
        }
    }

    fn write(&self, value: u64) {
        self.value.with_mut(|it| {
            // SAFETY: the caller owns the slot; loom would report another access.
            unsafe { *it = value }
        });
    }

    /// `VacantEntry::insert`; the key is the generation. `None`: the slot is not free.
    pub fn insert(&self, value: u64) -> Option<u64> {
        if !std::mem::take(&mut *self.waiting.lock().unwrap()) {
            return None;
        }
        if self.rules.value_first {
            self.write(value);
        }
        let live = (self.word.load(Ordering::Relaxed) + GENERATION) | LIVE;
        self.word.store(live, self.rules.enliven);
        if !self.rules.value_first {
            self.write(value);
        }
        Some(live / GENERATION)
    }

    fn live(key: u64) -> u64 {
        (key * GENERATION) | LIVE
    }

    /// As `word::pin`.
    pub fn pin(&self, key: u64) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            let dying = seen & !PINS == Self::live(key) ^ (LIVE | DYING) && seen & PINS != 0;
            if seen & !PINS != Self::live(key) && (self.rules.no_way_back || !dying) {
                return false;
            }
            match self
                .word
                .compare_exchange(seen, seen + PIN, self.rules.pin, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(other) => seen = other,
            }
        }
    }

    /// As `word::pin_again`; the number of guards has no limit here.
    pub fn pin_again(&self) {
        let before = self.word.fetch_add(PIN, Ordering::Relaxed);
        assert_ne!(before & PINS, 0, "a guard is cloned");
    }

    /// Reads the value through a guard.
    pub fn read(&self) -> u64 {
        self.value.with(|it| {
            // SAFETY: there is a guard; loom would report a conflicting access.
            unsafe { *it }
        })
    }

    /// Drops a guard.
    pub fn unpin(&self) {
        let before = self.word.fetch_sub(PIN, self.rules.unpin);
        assert_ne!(before & PINS, 0, "a guard is counted");
        if before & (PINS | STATE) == PIN | DYING {
            self.end();
        }
    }

    /// As `word::remove`; drops the value if there is no guard.
    pub fn remove(&self, key: u64) -> Removal {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen & !PINS == Self::live(key) {
            let dying = seen ^ (LIVE | DYING);
            match self
                .word
                .compare_exchange(seen, dying, self.rules.remove, Ordering::Relaxed)
            {
                Ok(_) if seen & PINS == 0 || !self.rules.one_owner => {
                    self.end();
                    return Removal::Ours;
                }
                Ok(_) => return Removal::Held,
                Err(other) => seen = other,
            }
        }
        Removal::Stale
    }

    /// The end of a value: drops it, frees the word, and puts the ordinal back.
    fn end(&self) {
        if self.rules.value_last {
            self.drop_value();
            self.release();
        } else {
            self.release();
            self.drop_value();
        }
    }

    fn drop_value(&self) {
        assert_ne!(self.read(), NOTHING, "dropped twice");
        self.write(NOTHING);
        self.drops.fetch_add(1, Ordering::Relaxed);
    }

    fn release(&self) {
        let word = self.word.load(Ordering::Relaxed);
        self.word
            .store(word / GENERATION * GENERATION, Ordering::Release);
        let mut waiting = self.waiting.lock().unwrap();
        assert!(!*waiting, "the ordinal is in two places");
        *waiting = true;
    }
}
