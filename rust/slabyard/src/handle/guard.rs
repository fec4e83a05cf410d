//! Guards of values: [`Ref`] and [`OwnedRef`]. A guard keeps its value, even when the value is
//! removed.

use alloc::sync::Arc;
use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use super::key::{Key, RawKey};
use super::map::HandleMap;
use super::word::{self, Release};
use crate::raw::handle::Cache;

/// A guard of a value of a [`HandleMap`]. The value stays as long as the guard exists, even if its
/// key becomes stale meanwhile. If the value was removed, the thread that drops the last guard
/// drops the value.
///
/// At most 65,535 guards of one value may exist at a time.
///
/// ```
/// use slabyard::HandleMap;
/// let map = HandleMap::new();
/// let key = map.insert(String::from("a session"));
/// let session = map.get(key).unwrap();
/// assert!(map.remove(key));
/// assert!(map.get(key).is_none());
/// assert_eq!(*session, "a session");
/// drop(session); // and with it the string
/// ```
pub struct Ref<'a, T, K: Key> {
    value: NonNull<T>,
    word: &'a AtomicU64,
    map: &'a HandleMap<T, K>,
}

// SAFETY: a guard is a shared reference to the value, and dropping it may drop the value. The
// reference to the map is Send and Sync under the same conditions.
unsafe impl<T: Send + Sync, K: Key> Send for Ref<'_, T, K> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync, K: Key> Sync for Ref<'_, T, K> {}

/// The key of a word that is pinned or owned: its generation does not change.
fn raw_key(cache: &Cache, word: &AtomicU64) -> RawKey {
    let generation = (word.load(Ordering::Relaxed) >> 32) as u32;
    RawKey::of_parts(cache.ordinal_of(word), generation)
}

/// Drops the value of a dying word without guards, and frees its place.
///
/// # Safety
/// The caller made the word so, or found it so. The value is not used again.
#[cold]
#[inline(never)]
pub(super) unsafe fn drop_value<T>(cache: &Cache, word: &AtomicU64, value: NonNull<T>) {
    let key = raw_key(cache, word);
    // SAFETY: the caller is the only owner of the value (rule 1). It is dropped before the ordinal
    // is freed.
    unsafe {
        let _release = Release::new(cache, word, key.ordinal(), key.generation());
        value.drop_in_place();
    }
}

impl<'a, T, K: Key> Ref<'a, T, K> {
    /// # Safety
    /// The word has been pinned for this guard, and its value exists.
    #[inline(always)]
    pub(super) unsafe fn new(
        map: &'a HandleMap<T, K>,
        word: &'a AtomicU64,
        value: NonNull<T>,
    ) -> Self {
        Self { value, word, map }
    }

    /// The key of the value; it may be stale already.
    pub fn key(this: &Self) -> K {
        raw_key(this.map.cache(), this.word).into()
    }
}

impl<T, K: Key> Deref for Ref<'_, T, K> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the value stays while the word is pinned.
        unsafe { self.value.as_ref() }
    }
}

impl<T, K: Key> Drop for Ref<'_, T, K> {
    #[inline(always)]
    fn drop(&mut self) {
        if word::unpin(self.word) {
            // SAFETY: it was the last guard of a dying word.
            unsafe { drop_value(self.map.cache(), self.word, self.value) }
        }
    }
}

impl<T: fmt::Debug, K: Key> fmt::Debug for Ref<'_, T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A [`Ref`] that owns a reference to the map instead of borrowing it: for tasks and threads that
/// outlive the function that started them. [`HandleMap::get_owned`] makes it. It costs one count of
/// the [`Arc`] more than a `Ref`.
///
/// ```
/// use slabyard::HandleMap;
/// use std::sync::Arc;
/// let map = Arc::new(HandleMap::new());
/// let key = map.insert(vec![1, 2, 3]);
/// let list = HandleMap::get_owned(&map, key).unwrap();
/// let sum = std::thread::spawn(move || list.iter().sum::<i32>());
/// map.remove(key);
/// assert_eq!(sum.join().unwrap(), 6);
/// ```
pub struct OwnedRef<T, K: Key> {
    value: NonNull<T>,
    word: NonNull<AtomicU64>,
    map: Arc<HandleMap<T, K>>,
}

// SAFETY: as for Ref; the Arc is Send and Sync if the map is both.
unsafe impl<T: Send + Sync, K: Key> Send for OwnedRef<T, K> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync, K: Key> Sync for OwnedRef<T, K> {}

impl<T, K: Key> OwnedRef<T, K> {
    #[inline]
    #[track_caller]
    pub(super) fn get(map: &Arc<HandleMap<T, K>>, key: K) -> Option<Self> {
        let guard = core::mem::ManuallyDrop::new(map.get(key)?);
        Some(Self {
            value: guard.value,
            word: NonNull::from(guard.word),
            map: Arc::clone(map),
        })
    }

    #[inline(always)]
    fn word(&self) -> &AtomicU64 {
        // SAFETY: words exist as long as the map.
        unsafe { self.word.as_ref() }
    }

    /// The key of the value; it may be stale already.
    pub fn key(this: &Self) -> K {
        raw_key(this.map.cache(), this.word()).into()
    }

    /// The map of the value.
    pub fn map(this: &Self) -> &Arc<HandleMap<T, K>> {
        &this.map
    }
}

impl<T, K: Key> Deref for OwnedRef<T, K> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the value stays while the word is pinned.
        unsafe { self.value.as_ref() }
    }
}

impl<T, K: Key> Drop for OwnedRef<T, K> {
    #[inline(always)]
    fn drop(&mut self) {
        if word::unpin(self.word()) {
            // SAFETY: it was the last guard of a dying word. The map is released after this.
            unsafe { drop_value(self.map.cache(), self.word(), self.value) }
        }
    }
}

impl<T: fmt::Debug, K: Key> fmt::Debug for OwnedRef<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
