//! The iterators of [`HandleMap`], and the walk of its drop.

use alloc::vec;
use core::marker::PhantomData;
use core::ops::BitOr;
use core::sync::atomic::{AtomicU64, Ordering};

use super::guard::Ref;
use super::key::{Key, RawKey};
use super::map::HandleMap;
use super::word::{self, Pinning, Release};
use crate::raw::handle::{Cache, DYING, PINS, STATE};

/// Walks the ordinals of the slabs that a cache had at one moment, without groups that have no
/// value. If values move (`MOVE`), it walks those of blocks, among which are words that are never
/// live.
struct Ordinals<const MOVE: bool = false> {
    firsts: vec::IntoIter<u32>,
    slots: u32,
    next: u32,
    /// Ordinals of the current group that are left, starting at `next`.
    left: u32,
    /// Ordinals of the current slab behind the group.
    behind: u32,
}

/// The most passes of [`HandleMap::clear`] and of a map's drop, in case the drop of a value always
/// inserts another one.
pub(super) const PASSES_MAX: u32 = 1000;

/// The number of ordinals in a group.
const GROUP: u32 = 8;

impl<const MOVE: bool> Ordinals<MOVE> {
    fn of(cache: &Cache) -> Self {
        let (firsts, slots) = cache.slabs();
        Self {
            firsts: firsts.into_iter(),
            slots,
            next: 0,
            left: 0,
            behind: 0,
        }
    }

    /// Moves to the next group that has a live or dying word, of any cache, or to the short last
    /// group of a slab. For a slab with few values this costs three instructions a word.
    #[inline]
    fn next_group(&mut self, cache: &Cache) -> Option<()> {
        loop {
            if self.behind == 0 {
                self.next = self.firsts.next()?;
                self.behind = self.slots;
            }
            if self.behind < GROUP {
                self.left = self.behind;
                self.behind = 0;
                return Some(());
            }
            self.behind -= GROUP;
            // SAFETY: the cache gave these ordinals, all of one slab. They may belong to another
            // cache by now.
            let words = unsafe { cache.words_of(self.next, GROUP) };
            let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
            let bits = unfolded::<MOVE>(cache, self.next, || {
                words.iter().map(read).fold(0, BitOr::bitor)
            });
            if bits & STATE != 0 {
                self.left = GROUP;
                return Some(());
            }
            self.next = self.next.wrapping_add(GROUP);
        }
    }

    /// The next ordinal, with its word.
    #[inline]
    fn next(&mut self, cache: &Cache) -> Option<(u32, u64)> {
        if self.left == 0 {
            self.next_group(cache)?;
        }
        let ordinal = self.next;
        self.next = self.next.wrapping_add(1);
        self.left -= 1;
        // SAFETY: the cache gave the ordinal. It may belong to another cache by now; the word
        // tells.
        let word = unsafe { cache.word_of(ordinal) };
        let read = || word.load(Ordering::Relaxed);
        Some((ordinal, unfolded::<MOVE>(cache, ordinal, read)))
    }

    /// The next ordinal that has a live value, with its word.
    #[inline]
    fn next_live(&mut self, cache: &Cache) -> Option<(RawKey, u64)> {
        loop {
            let (ordinal, word) = self.next(cache)?;
            if word::is_live(cache, word) {
                return Some((RawKey::of_parts(ordinal, (word >> 32) as u32), word & !PINS));
            }
        }
    }
}

/// What `read` reads of words. If it is 0, and values move, the words may be folded: then they are
/// unfolded first. A look-up does that, of any handle of the ordinal.
#[inline]
fn unfolded<const MOVE: bool>(cache: &Cache, ordinal: u32, read: impl Fn() -> u64) -> u64 {
    let bits = read();
    if !MOVE || bits != 0 {
        return bits;
    }
    cache.settled(ordinal.into(), |_| read())
}

/// Walks the keys of all values of a map whose values may move, without guards.
#[cfg(not(miri))]
pub(super) struct KeysOfAny<'a> {
    cache: &'a Cache,
    ordinals: Ordinals<true>,
}

#[cfg(not(miri))]
impl<'a> KeysOfAny<'a> {
    pub(super) fn new(cache: &'a Cache) -> Self {
        Self {
            cache,
            ordinals: Ordinals::of(cache),
        }
    }
}

#[cfg(not(miri))]
impl Iterator for KeysOfAny<'_> {
    type Item = RawKey;

    fn next(&mut self) -> Option<RawKey> {
        loop {
            let (ordinal, word) = self.ordinals.next(self.cache)?;
            if word::is_live_or_moving(self.cache, word) {
                return Some(RawKey::of_parts(ordinal, (word >> 32) as u32));
            }
        }
    }
}

/// Iterates over guards of all values: see [`HandleMap::iter`].
pub struct Iter<'a, T, K: Key> {
    map: &'a HandleMap<T, K>,
    ordinals: Ordinals,
}

impl<'a, T, K: Key> Iter<'a, T, K> {
    pub(super) fn new(map: &'a HandleMap<T, K>) -> Self {
        Self {
            map,
            ordinals: Ordinals::of(map.cache()),
        }
    }

    /// The next guard, with its key. A value that cannot have another guard is left out.
    pub(super) fn next_held(&mut self) -> Option<(RawKey, Ref<'a, T, K>)> {
        loop {
            let (key, live) = self.ordinals.next_live(self.map.cache())?;
            // SAFETY: the cache gave the ordinal.
            let word = unsafe { self.map.cache().word_of(key.ordinal()) };
            if word::pin(word, live, word::GUARDS_OF_WALKS_MAX) == Pinning::Pinned {
                // SAFETY: the word is pinned, so the value exists and stays.
                let guard =
                    unsafe { Ref::new(self.map.cache(), word, self.map.value(key.ordinal())) };
                return Some((key, guard));
            }
        }
    }
}

impl<'a, T, K: Key> Iterator for Iter<'a, T, K> {
    type Item = (K, Ref<'a, T, K>);

    fn next(&mut self) -> Option<Self::Item> {
        // The guard is made first, so that it is dropped if the key's conversion panics.
        let (key, guard) = self.next_held()?;
        Some((key.into(), guard))
    }
}

/// Walks the keys of all values, without guards.
pub(super) struct RawKeys<'a, T, K: Key> {
    map: &'a HandleMap<T, K>,
    ordinals: Ordinals,
}

impl<'a, T, K: Key> RawKeys<'a, T, K> {
    pub(super) fn new(map: &'a HandleMap<T, K>) -> Self {
        Self {
            map,
            ordinals: Ordinals::of(map.cache()),
        }
    }
}

impl<T, K: Key> Iterator for RawKeys<'_, T, K> {
    type Item = RawKey;

    fn next(&mut self) -> Option<RawKey> {
        let (key, _) = self.ordinals.next_live(self.map.cache())?;
        Some(key)
    }
}

/// Iterates over all values: see [`HandleMap::iter_mut`].
pub struct IterMut<'a, T, K: Key> {
    map: &'a HandleMap<T, K>,
    ordinals: Ordinals,
    _alone: PhantomData<&'a mut T>,
}

impl<'a, T, K: Key> IterMut<'a, T, K> {
    pub(super) fn new(map: &'a mut HandleMap<T, K>) -> Self {
        Self {
            ordinals: Ordinals::of(map.cache()),
            map,
            _alone: PhantomData,
        }
    }
}

impl<'a, T, K: Key> Iterator for IterMut<'a, T, K> {
    type Item = (K, &'a mut T);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, _) = self.ordinals.next_live(self.map.cache())?;
        // SAFETY: the value is live, the map is borrowed exclusively, and each ordinal comes once.
        unsafe { Some((key.into(), self.map.value(key.ordinal()).as_mut())) }
    }
}

/// Moves all values out: see [`HandleMap::drain`].
pub struct Drain<'a, T, K: Key> {
    map: &'a HandleMap<T, K>,
    ordinals: Ordinals,
    _alone: PhantomData<&'a mut T>,
}

impl<'a, T, K: Key> Drain<'a, T, K> {
    pub(super) fn new(map: &'a mut HandleMap<T, K>) -> Self {
        Self {
            ordinals: Ordinals::of(map.cache()),
            map,
            _alone: PhantomData,
        }
    }
}

impl<T, K: Key> Drain<'_, T, K> {
    fn next_value(&mut self) -> Option<(RawKey, T)> {
        let cache = self.map.cache();
        let (key, _) = self.ordinals.next_live(cache)?;
        let (ordinal, generation) = (key.ordinal(), key.generation());
        // SAFETY: the value is live, and the map is borrowed exclusively, so this call owns the
        // value. Guards that are counted were leaked, and their borrow of the map has ended.
        unsafe {
            let _release = Release::new(cache, cache.word_of(ordinal), ordinal, generation);
            Some((key, self.map.value(ordinal).read()))
        }
    }
}

impl<T, K: Key> Iterator for Drain<'_, T, K> {
    type Item = (K, T);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.next_value()?;
        Some((key.into(), value))
    }
}

impl<T, K: Key> Drop for Drain<'_, T, K> {
    fn drop(&mut self) {
        /// Continues if the drop of a value panics.
        struct Rest<'r, 'a, T, K: Key>(&'r mut Drain<'a, T, K>);
        impl<T, K: Key> Drop for Rest<'_, '_, T, K> {
            fn drop(&mut self) {
                while self.0.next_value().is_some() {}
            }
        }
        let rest = Rest(self);
        while rest.0.next_value().is_some() {}
    }
}

/// Walks the values of a map that is being dropped: live values, and removed ones whose guards were
/// leaked.
pub(super) struct Remains<'a, T, K: Key> {
    map: &'a HandleMap<T, K>,
    ordinals: Ordinals,
    /// The number of passes that may still follow.
    passes: u32,
    found: bool,
}

impl<'a, T, K: Key> Remains<'a, T, K> {
    /// Drops all values in place, in passes as [`HandleMap::clear`] does; continues if the drop of a
    /// value panics.
    ///
    /// # Safety
    /// No code reads a value of the map again, except for values that it inserts meanwhile.
    pub unsafe fn drop_all(map: &'a mut HandleMap<T, K>) {
        let mut remains = Self {
            ordinals: Ordinals::of(map.cache()),
            map,
            passes: PASSES_MAX - 1,
            found: false,
        };
        // SAFETY: as the caller says.
        unsafe { remains.drop_rest() }
    }

    /// # Safety
    /// As `drop_all`.
    unsafe fn drop_rest(&mut self) {
        loop {
            // SAFETY: as the caller says.
            unsafe { self.drop_pass() }
            if !core::mem::take(&mut self.found) || self.passes == 0 {
                return;
            }
            self.passes -= 1;
            self.ordinals = Ordinals::of(self.map.cache());
        }
    }

    /// # Safety
    /// As `drop_all`.
    unsafe fn drop_pass(&mut self) {
        let cache = self.map.cache();
        while let Some((ordinal, word)) = self.ordinals.next(cache) {
            let dying = (word & !(PINS | STATE)) | (cache.live() & STATE);
            let held = word & STATE == DYING && word & PINS != 0;
            if word::is_live(cache, word) || held && word::is_live(cache, dying) {
                self.found = true;
                // SAFETY: the cache gave the ordinal, which still belongs to it, because the map is
                // borrowed exclusively. A word with the cache's number and such a state has a value.
                // No other pass finds it again, and nothing else takes its ordinal.
                unsafe {
                    let free = word & !(PINS | STATE);
                    cache.word_of(ordinal).store(free, Ordering::Relaxed);
                    self.map.value(ordinal).drop_in_place();
                }
            }
        }
    }
}

impl<T, K: Key> Drop for Remains<'_, T, K> {
    fn drop(&mut self) {
        // SAFETY: as drop_all; values are left only if a drop panicked.
        unsafe { self.drop_rest() }
    }
}
