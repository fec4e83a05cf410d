//! Guards of values: [`Ref`] and [`OwnedRef`]. A guard keeps its value, even when the value is
//! removed.

use alloc::sync::Arc;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use super::key::{Key, RawKey};
use super::map::{too_many_guards, HandleMap};
use super::word::{self, Release};
use crate::raw::handle::Cache;

/// A guard of a value of a [`HandleMap`] or [`MovableMap`](crate::MovableMap). The value stays as long as the guard exists, even if its
/// key becomes stale meanwhile. If the value was removed, the thread that drops the last guard
/// drops the value.
///
/// The borrow of a value of an [`RcPool`](crate::RcPool) is a [`slabyard::Ref`](crate::Ref).
///
/// At most 64,512 guards of one value may exist at a time; walks of the map can get 1,023 more.
/// [`HandleMap::get`] and `clone` panic if there are as many, [`HandleMap::try_get`] does not.
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
    cache: &'a Cache,
    _map: PhantomData<&'a HandleMap<T, K>>,
}

// SAFETY: a guard is a shared reference to the value, and dropping it may drop the value. A shared
// map is Send and Sync under the same conditions.
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
        let _release = Release::of_any(cache, word, key);
        value.drop_in_place();
    }
}

impl<'a, T, K: Key> Ref<'a, T, K> {
    /// # Safety
    /// The word has been pinned for this guard, and its value exists.
    #[inline(always)]
    pub(super) unsafe fn new(cache: &'a Cache, word: &'a AtomicU64, value: NonNull<T>) -> Self {
        Self {
            value,
            word,
            cache,
            _map: PhantomData,
        }
    }

    /// The key of the value; it may be stale already.
    pub fn key(this: &Self) -> K {
        raw_key(this.cache, this.word).into()
    }

    /// Another guard of the value, also if it was removed. It is called as `Ref::clone(&guard)`,
    /// because `guard.clone()` clones the value.
    ///
    /// # Panics
    /// As [`HandleMap::get`].
    #[allow(clippy::should_implement_trait)]
    #[track_caller]
    pub fn clone(this: &Self) -> Self {
        if !word::pin_again(this.word) {
            too_many_guards::<T>();
        }
        Self { ..*this }
    }

    /// A guard of a part of the value.
    ///
    /// ```
    /// use slabyard::{handle::Ref, HandleMap};
    /// let map = HandleMap::new();
    /// let key = map.insert((7, String::from("alice")));
    /// let name = Ref::map(map.get(key).unwrap(), |it| it.1.as_str());
    /// map.remove(key);
    /// assert_eq!(&*name, "alice");
    /// ```
    #[inline]
    pub fn map<U: ?Sized>(this: Self, part: impl FnOnce(&T) -> &U) -> MappedRef<U, Self> {
        MappedRef::new(part(&this).into(), this)
    }

    /// A guard of a part of the value that may not be there.
    ///
    /// # Errors
    /// The guard of the whole value, if `part` returns `None`.
    #[inline]
    pub fn filter_map<U: ?Sized>(
        this: Self,
        part: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<MappedRef<U, Self>, Self> {
        match part(&this).map(NonNull::from) {
            Some(part) => Ok(MappedRef::new(part, this)),
            None => Err(this),
        }
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
            unsafe { drop_value(self.cache, self.word, self.value) }
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
    /// The guard is of a value of the map.
    #[inline]
    pub(super) fn of(guard: Ref<'_, T, K>, map: &Arc<HandleMap<T, K>>) -> Self {
        let guard = core::mem::ManuallyDrop::new(guard);
        Self {
            value: guard.value,
            word: NonNull::from(guard.word),
            map: Arc::clone(map),
        }
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

    /// Another guard of the value, also if it was removed. It is called as
    /// `OwnedRef::clone(&guard)`, because `guard.clone()` clones the value.
    ///
    /// # Panics
    /// As [`HandleMap::get`].
    #[allow(clippy::should_implement_trait)]
    #[track_caller]
    pub fn clone(this: &Self) -> Self {
        if !word::pin_again(this.word()) {
            too_many_guards::<T>();
        }
        Self {
            map: Arc::clone(&this.map),
            ..*this
        }
    }

    /// The map of the value.
    pub fn owner(this: &Self) -> &Arc<HandleMap<T, K>> {
        &this.map
    }

    /// A guard of a part of the value, as [`Ref::map`] makes it.
    #[inline]
    pub fn map<U: ?Sized>(this: Self, part: impl FnOnce(&T) -> &U) -> MappedRef<U, Self> {
        MappedRef::new(part(&this).into(), this)
    }

    /// A guard of a part of the value that may not be there.
    ///
    /// # Errors
    /// The guard of the whole value, if `part` returns `None`.
    #[inline]
    pub fn filter_map<U: ?Sized>(
        this: Self,
        part: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<MappedRef<U, Self>, Self> {
        match part(&this).map(NonNull::from) {
            Some(part) => Ok(MappedRef::new(part, this)),
            None => Err(this),
        }
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

/// A guard of a part of a value: [`Ref::map`] and [`OwnedRef::map`] make it of a guard `G` of the
/// whole value.
pub struct MappedRef<U: ?Sized, G> {
    part: NonNull<U>,
    whole: G,
}

// SAFETY: a shared reference to the part, and the guard.
unsafe impl<U: ?Sized + Sync, G: Send> Send for MappedRef<U, G> {}
// SAFETY: as above.
unsafe impl<U: ?Sized + Sync, G: Sync> Sync for MappedRef<U, G> {}

impl<U: ?Sized, G> MappedRef<U, G> {
    /// The part is reached from the value of the guard.
    #[inline]
    fn new(part: NonNull<U>, whole: G) -> Self {
        Self { part, whole }
    }

    /// The guard of the whole value.
    pub fn whole(this: &Self) -> &G {
        &this.whole
    }

    /// A guard of a part of the part.
    #[inline]
    pub fn map<V: ?Sized>(this: Self, part: impl FnOnce(&U) -> &V) -> MappedRef<V, G> {
        MappedRef::new(part(&this).into(), this.whole)
    }
}

impl<U: ?Sized, G> Deref for MappedRef<U, G> {
    type Target = U;

    #[inline(always)]
    fn deref(&self) -> &U {
        // SAFETY: the part lives as long as the value, which the guard keeps in its place.
        unsafe { self.part.as_ref() }
    }
}

impl<U: ?Sized + fmt::Debug, G> fmt::Debug for MappedRef<U, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
