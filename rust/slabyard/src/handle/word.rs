//! The transitions of a word that other threads may change at the same time (rules 1 to 5 of
//! [`super`]).

use core::sync::atomic::{AtomicU64, Ordering};

use super::key::RawKey;
use crate::raw::handle::{Cache, DYING, LIVE, PIN, PINS, STATE};

const GENERATION: u64 = 1 << 32;

/// The most guards of a value that the program can get. The last ones are for walks, which hold one
/// guard at a time: they still visit a value that has as many.
pub(super) const GUARDS_MAX: u64 = PINS / PIN - 1023;

/// The most guards that walks can get.
pub(super) const GUARDS_OF_WALKS_MAX: u64 = PINS / PIN;

/// The result of an attempt to end a value's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Removal {
    /// The caller is the only owner of the value now.
    Ours,
    /// The value has guards.
    Held,
    /// The key was stale already.
    Stale,
}

/// The result of an attempt to make a guard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pinning {
    Pinned,
    Stale,
    TooMany,
}

/// The word that a live value of the cache without guards has, by its handle.
#[inline(always)]
pub(super) fn live_word(cache: &Cache, handle: u64) -> u64 {
    (handle >> 32 << 32) | cache.live()
}

/// Whether this is a live word of the cache, with or without guards.
#[inline(always)]
pub(super) fn is_live(cache: &Cache, word: u64) -> bool {
    (word & !PINS) as u32 == cache.live() as u32
}

/// Whether this is a live word of a cache whose values may move, with or without guards.
#[cfg(not(miri))]
pub(super) fn is_live_or_moving(cache: &Cache, word: u64) -> bool {
    (word & !(PINS | DYING)) as u32 == cache.live_of_any() as u32
}

/// Adds a guard, if the word is `live` apart from the number of guards, and if there are fewer than
/// `most`.
#[inline(always)]
pub(super) fn pin(word: &AtomicU64, live: u64, most: u64) -> Pinning {
    let mut seen = word.load(Ordering::Relaxed);
    loop {
        if seen & !PINS != live {
            return Pinning::Stale;
        }
        if seen & PINS >= most * PIN {
            return Pinning::TooMany;
        }
        match word.compare_exchange_weak(seen, seen + PIN, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return Pinning::Pinned,
            Err(other) => seen = other,
        }
    }
}

/// Adds a guard to a word that has one, which the caller keeps meanwhile. False: there are too many.
///
/// Relaxed: the value was published to the guard that there is.
#[inline]
pub(super) fn pin_again(word: &AtomicU64) -> bool {
    let more = |seen| (seen & PINS < GUARDS_MAX * PIN).then_some(seen + PIN);
    word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
        .is_ok()
}

/// Removes a guard. True: it was the last of a dying word, and the caller owns the value now.
#[inline(always)]
pub(super) fn unpin(word: &AtomicU64) -> bool {
    let before = word.fetch_sub(PIN, Ordering::AcqRel);
    debug_assert!(before & PINS != 0, "the guard was counted");
    before & (PINS | STATE) == PIN | DYING
}

/// Makes the word dying, with or without guards.
pub(super) fn remove(word: &AtomicU64, live: u64) -> Removal {
    let mut seen = word.load(Ordering::Relaxed);
    loop {
        if seen & !PINS != live {
            return Removal::Stale;
        }
        let dying = seen ^ (LIVE | DYING);
        match word.compare_exchange_weak(seen, dying, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) if seen & PINS == 0 => return Removal::Ours,
            Ok(_) => return Removal::Held,
            Err(other) => seen = other,
        }
    }
}

/// Makes the word dying if there are no guards; otherwise does nothing.
#[inline(always)]
pub(super) fn remove_unheld(word: &AtomicU64, live: u64) -> Removal {
    let dying = live ^ (LIVE | DYING);
    match word.compare_exchange(live, dying, Ordering::Acquire, Ordering::Relaxed) {
        Ok(_) => Removal::Ours,
        Err(seen) if seen & !PINS == live => Removal::Held,
        Err(_) => Removal::Stale,
    }
}

/// The generation that the next value of a free word will have.
#[inline(always)]
pub(super) fn next_generation(word: &AtomicU64) -> u32 {
    ((word.load(Ordering::Relaxed) + GENERATION) >> 32) as u32
}

/// Makes the word of a taken ordinal live, after its value was written.
#[inline(always)]
pub(super) fn enliven(word: &AtomicU64, live: u64) {
    word.store(live, Ordering::Release);
}

/// Owns an ordinal and its value. When this is dropped, the word becomes free and the ordinal goes
/// back to the cache (rule 5). The generation is used up. `ANY`: the values of the cache may move.
pub(super) struct Release<'a, const ANY: bool = false> {
    pub cache: &'a Cache,
    pub word: &'a AtomicU64,
    pub ordinal: u32,
    pub generation: u32,
}

impl<'a> Release<'a> {
    /// # Safety
    /// The ordinal is taken from the cache, whose values do not move. Its value is owned by the
    /// caller, or there is none. When this is dropped, the value is gone, or is a copy that is not
    /// used.
    #[inline(always)]
    pub unsafe fn new(
        cache: &'a Cache,
        word: &'a AtomicU64,
        ordinal: u32,
        generation: u32,
    ) -> Self {
        Self {
            cache,
            word,
            ordinal,
            generation,
        }
    }
}

impl<'a> Release<'a, true> {
    /// # Safety
    /// As [`new`](Release::new), but the values of the cache may move.
    pub unsafe fn of_any(cache: &'a Cache, word: &'a AtomicU64, key: RawKey) -> Self {
        Self {
            cache,
            word,
            ordinal: key.ordinal(),
            generation: key.generation(),
        }
    }
}

impl<const ANY: bool> Drop for Release<'_, ANY> {
    #[inline(always)]
    fn drop(&mut self) {
        let live = if ANY {
            self.cache.live_of_any()
        } else {
            self.cache.live()
        };
        let free = (u64::from(self.generation) << 32) | (live & !STATE);
        if self.generation == u32::MAX {
            return retire(*self.cache, self.word, free, self.ordinal);
        }
        self.word.store(free, Ordering::Release);
        // SAFETY: as new says; the word is free, and its generation is not the last.
        unsafe { self.cache.put(self.ordinal) }
    }
}

/// Stops the use of an ordinal whose last generation is used up.
#[cold]
#[inline(never)]
fn retire(cache: Cache, word: &AtomicU64, free: u64, ordinal: u32) {
    word.store(free | DYING | PIN, Ordering::Release);
    // SAFETY: the word is dying, and its one pin was just written.
    unsafe { cache.put_dying((free >> 32 << 32) | u64::from(ordinal)) }
}
