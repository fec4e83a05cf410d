//! [`HandleMap`]: a map for all threads that gives out keys.

use alloc::sync::Arc;
use core::any::type_name;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use super::builder::HandleMapBuilder;
use super::entry::VacantEntry;
use super::guard::{drop_value, OwnedRef, Ref};
use super::key::{DefaultKey, Key, RawKey};
use super::walk::{Drain, Iter, IterMut, RawKeys, Remains, PASSES_MAX};
use super::word::{self, Pinning, Release, Removal};
use crate::raw::handle::{Cache, PINS};
use crate::Full;

/// A map for all threads, which gives out a key for each value.
///
/// A look-up by key returns a guard ([`Ref`]) that keeps the value while other threads may remove
/// it. When a value is removed, its key becomes stale at once, and the last guard drops the value.
/// A stale key never becomes valid again. Keys of other maps and arbitrary numbers are refused.
///
/// `get` costs a compare-exchange, dropping a guard a subtraction. Insertion and removal usually
/// use free places that the thread holds, without a lock. Values do not move. The memory of removed
/// values is returned to the system ([`trim`](Self::trim), or automatically, as for all caches).
///
/// Thread rule: if `T` is `Send + Sync`, all functions may be called from any thread. A value is
/// dropped by the thread that removes it or that drops its last guard. Methods may be called while
/// guards exist, and in the drop of a value.
///
/// ```
/// use slabyard::HandleMap;
/// let sessions = HandleMap::new();
/// let key = sessions.insert(String::from("alice"));
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert_eq!(*sessions.get(key).unwrap(), "alice"));
/// });
/// assert!(sessions.remove(key));
/// assert!(!sessions.remove(key));
/// assert!(sessions.get(key).is_none());
/// ```
///
/// A guard borrows the map, so it cannot outlive it:
///
/// ```compile_fail
/// let map = slabyard::HandleMap::new();
/// let key = map.insert(1);
/// let guard = map.get(key);
/// drop(map);
/// drop(guard);
/// ```
pub struct HandleMap<T, K: Key = DefaultKey> {
    cache: Cache,
    _values: PhantomData<(T, InAndOut<T, K>)>,
}

/// Values go in and out by shared reference to the map, so the map is invariant in `T` and `K`.
pub(super) type InAndOut<T, K> = fn(T, K) -> (T, K);

// SAFETY: any thread may use the cache; the values are sent with the map.
unsafe impl<T: Send, K: Key> Send for HandleMap<T, K> {}
// SAFETY: with a shared map, any thread may read values, and move or drop those of other threads.
unsafe impl<T: Send + Sync, K: Key> Sync for HandleMap<T, K> {}

/// Why [`HandleMap::take`] gave no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TakeError {
    /// There is no value with this key.
    Stale,
    /// There are guards of the value, which stays in the map.
    Held,
}

impl fmt::Display for TakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stale => "there is no value with this key",
            Self::Held => "the value has guards",
        })
    }
}

impl core::error::Error for TakeError {}

/// Why [`HandleMap::try_get`] gave no guard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum GetError {
    /// There is no value with this key.
    Stale,
    /// The value has as many guards as it can have.
    TooManyGuards,
}

impl fmt::Display for GetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stale => "there is no value with this key",
            Self::TooManyGuards => "the value has too many guards",
        })
    }
}

impl core::error::Error for GetError {}

#[cold]
#[inline(never)]
#[track_caller]
pub(super) fn no_room<T>() -> ! {
    panic!(
        "there is no room in the map of {}: its limit is reached, or there is no memory",
        type_name::<T>()
    )
}

#[cold]
#[inline(never)]
#[track_caller]
pub(super) fn too_many_guards<T>() -> ! {
    panic!(
        "a value of {} cannot have more than {} guards at a time",
        type_name::<T>(),
        word::GUARDS_MAX
    )
}

impl<T> HandleMap<T> {
    /// Creates an empty map without a limit, with keys of the type [`DefaultKey`].
    ///
    /// # Panics
    /// If the map cannot be created ([`CreateError`](crate::CreateError)).
    #[track_caller]
    pub fn new() -> Self {
        Self::with_key()
    }
}

impl<T, K: Key> HandleMap<T, K> {
    /// Creates an empty map without a limit, with keys of the type `K`.
    ///
    /// # Panics
    /// If the map cannot be created ([`CreateError`](crate::CreateError)).
    #[track_caller]
    pub fn with_key() -> Self {
        match Self::builder().build() {
            Ok(map) => map,
            Err(error) => panic!("map of {}: {error}", type_name::<T>()),
        }
    }

    /// Starts the settings of a map with a name or a limit.
    pub const fn builder() -> HandleMapBuilder<T, K> {
        HandleMapBuilder::new()
    }

    pub(super) fn of_cache(cache: Cache) -> Self {
        Self {
            cache,
            _values: PhantomData,
        }
    }

    #[cfg(not(miri))]
    pub(crate) fn as_sys(&self) -> *mut slabyard_sys::sy_cache {
        self.cache.as_sys()
    }

    #[inline(always)]
    pub(super) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Inserts a value and returns its key.
    ///
    /// # Panics
    /// If there is no room: the limit is reached, or there is no memory.
    #[inline]
    #[track_caller]
    pub fn insert(&self, value: T) -> K {
        // The place is claimed first: a value that is passed on to a function would have to lie in
        // memory.
        let entry = match VacantEntry::at_hand(self) {
            Some(entry) => entry,
            None => self.entry_slow(),
        };
        entry.insert(value)
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn entry_slow(&self) -> VacantEntry<'_, T, K> {
        match VacantEntry::slow(self) {
            Some(entry) => entry,
            None => no_room::<T>(),
        }
    }

    /// Inserts a value if there is room, and returns its key.
    ///
    /// # Errors
    /// [`Full`], with the value: the limit is reached, or there is no memory.
    #[inline]
    pub fn try_insert(&self, value: T) -> Result<K, Full<T>> {
        match VacantEntry::of(self) {
            Some(entry) => Ok(entry.insert(value)),
            None => Err(Full(value)),
        }
    }

    /// Inserts the value that `make` makes from its own key. If `make` panics, the map stays
    /// unchanged, and the key stays invalid. For a value that is larger than the stack, use
    /// [`vacant_entry`](Self::vacant_entry) and [`VacantEntry::fill_with`] or
    /// [`VacantEntry::zeroed`].
    ///
    /// # Panics
    /// If there is no room.
    #[inline]
    #[track_caller]
    pub fn insert_with_key(&self, make: impl FnOnce(K) -> T) -> K {
        let entry = self.vacant_entry();
        let value = make(entry.key());
        entry.insert(value)
    }

    /// Claims a place whose key is known before its value exists.
    ///
    /// # Panics
    /// If there is no room.
    #[inline]
    #[track_caller]
    pub fn vacant_entry(&self) -> VacantEntry<'_, T, K> {
        match VacantEntry::of(self) {
            Some(entry) => entry,
            None => no_room::<T>(),
        }
    }

    /// Claims a place whose key is known before its value exists. `None`: there is no room.
    #[inline]
    pub fn try_vacant_entry(&self) -> Option<VacantEntry<'_, T, K>> {
        VacantEntry::of(self)
    }

    /// The word of a key, and the content that the word has while the value is live without guards.
    #[inline(always)]
    fn word(&self, key: RawKey) -> Option<(&AtomicU64, u64)> {
        let handle = key.to_bits();
        let word = self.cache.word(handle)?;
        Some((word, word::live_word(&self.cache, handle)))
    }

    /// # Safety
    /// The value of the key is live, or dying with guards, or dying and owned by the caller.
    #[inline(always)]
    pub(super) unsafe fn value(&self, ordinal: u32) -> NonNull<T> {
        // SAFETY: the ordinal is taken, and places are not null.
        unsafe { NonNull::new_unchecked(self.cache.place(ordinal).cast()) }
    }

    /// A guard of the value with this key. `None`: the key is stale.
    ///
    /// # Panics
    /// If the value has 64,512 guards already. Leaked guards count. [`try_get`](Self::try_get)
    /// returns an error instead.
    #[inline]
    #[track_caller]
    pub fn get(&self, key: K) -> Option<Ref<'_, T, K>> {
        match self.try_get(key) {
            Ok(guard) => Some(guard),
            Err(GetError::Stale) => None,
            Err(GetError::TooManyGuards) => too_many_guards::<T>(),
        }
    }

    /// A guard of the value with this key. Never panics: for values that as many tasks may hold as
    /// there are connections.
    ///
    /// # Errors
    /// [`GetError`]: the key is stale, or the value has 64,512 guards.
    ///
    /// ```
    /// use slabyard::{GetError, HandleMap};
    /// let map = HandleMap::new();
    /// let key = map.insert(1);
    /// let mut readers = Vec::new();
    /// while let Ok(guard) = map.try_get(key) {
    ///     readers.push(guard);
    /// }
    /// assert_eq!(map.try_get(key).unwrap_err(), GetError::TooManyGuards);
    /// map.for_each(|_, value| assert_eq!(*value, 1)); // walks still get one
    /// ```
    #[inline]
    pub fn try_get(&self, key: K) -> Result<Ref<'_, T, K>, GetError> {
        let key = key.into();
        let (word, live) = self.word(key).ok_or(GetError::Stale)?;
        match word::pin(word, live, word::GUARDS_MAX) {
            // SAFETY: the word is pinned, so the value exists and stays.
            Pinning::Pinned => {
                Ok(unsafe { Ref::new(&self.cache, word, self.value(key.ordinal())) })
            }
            Pinning::Stale => Err(GetError::Stale),
            Pinning::TooMany => Err(GetError::TooManyGuards),
        }
    }

    /// A guard that owns a reference to the map instead of borrowing it. `None`: the key is stale.
    ///
    /// # Panics
    /// As [`get`](Self::get).
    #[inline]
    #[track_caller]
    pub fn get_owned(this: &Arc<Self>, key: K) -> Option<OwnedRef<T, K>> {
        Some(OwnedRef::of(this.get(key)?, this))
    }

    /// A guard that owns a reference to the map instead of borrowing it.
    ///
    /// # Errors
    /// As [`try_get`](Self::try_get).
    #[inline]
    pub fn try_get_owned(this: &Arc<Self>, key: K) -> Result<OwnedRef<T, K>, GetError> {
        Ok(OwnedRef::of(this.try_get(key)?, this))
    }

    /// The value with this key. `None`: the key is stale. The exclusive borrow makes a guard
    /// unnecessary, so this costs a few loads.
    ///
    /// ```compile_fail
    /// let mut map = slabyard::HandleMap::new();
    /// let key = map.insert(1);
    /// let guard = map.get(key);
    /// *map.get_mut(key).unwrap() = 2; // while there is a guard
    /// drop(guard);
    /// ```
    #[inline]
    pub fn get_mut(&mut self, key: K) -> Option<&mut T> {
        let key = key.into();
        let (word, live) = self.word(key)?;
        if word.load(Ordering::Relaxed) & !PINS != live {
            return None;
        }
        // SAFETY: the value is live, and the map is borrowed exclusively, so no guard is in use.
        unsafe { Some(self.value(key.ordinal()).as_mut()) }
    }

    /// Whether there is a value with this key, at this moment.
    #[inline]
    pub fn contains(&self, key: K) -> bool {
        self.word(key.into())
            .is_some_and(|(word, live)| word.load(Ordering::Relaxed) & !PINS == live)
    }

    /// Removes the value with this key. True exactly once for each key; false if the key is stale.
    /// The key is stale from now on. The value is dropped here, or with its last guard.
    #[inline]
    pub fn remove(&self, key: K) -> bool {
        self.remove_raw(key.into())
    }

    #[inline]
    fn remove_raw(&self, key: RawKey) -> bool {
        let Some((word, live)) = self.word(key) else {
            return false;
        };
        if word::remove_unheld(word, live) != Removal::Ours {
            return self.remove_held(key);
        }
        // SAFETY: this call is the only owner of the value (rule 1).
        unsafe {
            let (ordinal, generation) = (key.ordinal(), key.generation());
            let _release = Release::new(&self.cache, word, ordinal, generation);
            self.value(ordinal).drop_in_place();
        }
        true
    }

    /// Removes a value that has guards; returns false if the key is stale.
    #[cold]
    #[inline(never)]
    fn remove_held(&self, key: RawKey) -> bool {
        let Some((word, live)) = self.word(key) else {
            return false;
        };
        let removal = word::remove(word, live);
        if removal == Removal::Ours {
            // SAFETY: this call is the only owner of the value (rule 1).
            unsafe { drop_value(&self.cache, word, self.value(key.ordinal())) }
        }
        removal != Removal::Stale
    }

    /// Removes the value with this key and returns it, if it has no guards.
    ///
    /// # Errors
    /// [`TakeError`]: the key is stale, or there are guards. Then the value stays in the map.
    ///
    /// ```
    /// use slabyard::{HandleMap, TakeError};
    /// let map = HandleMap::new();
    /// let key = map.insert(Box::new(1));
    /// let guard = map.get(key);
    /// assert_eq!(map.take(key), Err(TakeError::Held));
    /// drop(guard);
    /// assert_eq!(map.take(key), Ok(Box::new(1)));
    /// assert_eq!(map.take(key), Err(TakeError::Stale));
    /// ```
    #[inline]
    pub fn take(&self, key: K) -> Result<T, TakeError> {
        let key = key.into();
        let (word, live) = self.word(key).ok_or(TakeError::Stale)?;
        match word::remove_unheld(word, live) {
            Removal::Stale => Err(TakeError::Stale),
            Removal::Held => Err(TakeError::Held),
            Removal::Ours => {
                // SAFETY: this call is the only owner of the value (rule 1), and moves it out.
                unsafe {
                    let (ordinal, generation) = (key.ordinal(), key.generation());
                    let _release = Release::new(&self.cache, word, ordinal, generation);
                    Ok(self.value(ordinal).read())
                }
            }
        }
    }

    /// The number of values. Removed values that still have guards and vacant entries count. It is
    /// exact while no other thread changes the map. This reads the counts of each thread.
    pub fn len(&self) -> usize {
        self.cache.in_use()
    }

    /// Whether [`len`](Self::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Provides memory for `count` more values. False: there is not enough memory.
    pub fn reserve(&self, count: usize) -> bool {
        self.cache.reserve(count)
    }

    /// Returns free memory to the system; the result is the number of bytes. This walks through all
    /// slabs.
    pub fn trim(&self) -> usize {
        self.cache.trim()
    }

    /// Iterates over guards of all values, in no order. It visits all values that exist from its
    /// beginning to its end. Values that are inserted or removed meanwhile may be visited or not.
    ///
    /// Walks can get the last 1,023 of the 65,535 guards that a value can have: so a walk that drops
    /// each guard before the next one visits every value, however many guards [`get`](Self::get)
    /// gave out. Only a value with 65,535 guards is left out, here and in the other walks.
    pub fn iter(&self) -> Iter<'_, T, K> {
        Iter::new(self)
    }

    /// Iterates over the keys of all values, in no order, without guards. Which values it visits is
    /// as for [`iter`](Self::iter).
    pub fn keys(&self) -> impl Iterator<Item = K> + '_ {
        RawKeys::new(self).map(Into::into)
    }

    /// Iterates over guards of all values, as [`iter`](Self::iter) does.
    pub fn values(&self) -> impl Iterator<Item = Ref<'_, T, K>> {
        self.iter().map(|(_, guard)| guard)
    }

    /// Iterates over all values, in no order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.iter_mut().map(|(_, value)| value)
    }

    /// Iterates over all values, in no order.
    pub fn iter_mut(&mut self) -> IterMut<'_, T, K> {
        IterMut::new(self)
    }

    /// Calls `visit` for each value that [`iter`](Self::iter) visits, under a guard.
    pub fn for_each(&self, mut visit: impl FnMut(K, &T)) {
        let mut all = self.iter();
        while let Some((key, guard)) = all.next_held() {
            visit(key.into(), &guard);
        }
    }

    /// Removes each value that [`iter`](Self::iter) visits and for which `keep` returns false.
    pub fn retain(&self, mut keep: impl FnMut(K, &T) -> bool) {
        let mut all = self.iter();
        while let Some((key, guard)) = all.next_held() {
            if !keep(key.into(), &guard) {
                self.remove_raw(key);
            }
        }
    }

    /// Removes all values, in passes over the map until a pass finds none. So values that the drop
    /// of a value inserts are removed too. It stops after 1,000 passes, in case a drop always inserts
    /// another value, or other threads do. The drop of the map does the same.
    ///
    /// ```
    /// use slabyard::HandleMap;
    /// use std::sync::{Arc, Weak};
    /// struct Parent(Weak<HandleMap<Parent>>, u32);
    /// impl Drop for Parent {
    ///     fn drop(&mut self) {
    ///         if let (Some(map), 1..) = (self.0.upgrade(), self.1) {
    ///             map.insert(Parent(self.0.clone(), self.1 - 1));
    ///         }
    ///     }
    /// }
    /// let map = Arc::new(HandleMap::new());
    /// map.insert(Parent(Arc::downgrade(&map), 3));
    /// map.clear();
    /// assert!(map.is_empty());
    /// ```
    pub fn clear(&self) {
        for _ in 0..PASSES_MAX {
            let mut found = false;
            for key in RawKeys::new(self) {
                found |= self.remove_raw(key);
            }
            if !found {
                return;
            }
        }
    }

    /// Moves all values out. When the iterator is dropped, it drops the remaining values. If the
    /// iterator is leaked, they stay in the map.
    pub fn drain(&mut self) -> Drain<'_, T, K> {
        Drain::new(self)
    }
}

impl<T, K: Key> Default for HandleMap<T, K> {
    fn default() -> Self {
        Self::with_key()
    }
}

/// Inserts all values. Their keys are found by walking the map.
impl<T, K: Key> Extend<T> for HandleMap<T, K> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, all: I) {
        for value in all {
            self.insert(value);
        }
    }
}

/// A new map of these values. Their keys are found by walking the map.
impl<T, K: Key> FromIterator<T> for HandleMap<T, K> {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        let mut map = Self::with_key();
        map.extend(all);
        map
    }
}

impl<'a, T, K: Key> IntoIterator for &'a HandleMap<T, K> {
    type Item = (K, Ref<'a, T, K>);
    type IntoIter = Iter<'a, T, K>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T, K: Key> IntoIterator for &'a mut HandleMap<T, K> {
    type Item = (K, &'a mut T);
    type IntoIter = IterMut<'a, T, K>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T: fmt::Debug, K: Key> fmt::Debug for HandleMap<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Formats the values of the map.
        struct Values<'a, T, K: Key>(&'a HandleMap<T, K>);
        impl<T: fmt::Debug, K: Key> fmt::Debug for Values<'_, T, K> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_map().entries(self.0.iter()).finish()
            }
        }
        f.debug_struct(&alloc::format!("HandleMap<{}>", type_name::<T>()))
            .field("name", &self.cache.name())
            .field("values", &Values(self))
            .finish()
    }
}

impl<T, K: Key> Drop for HandleMap<T, K> {
    fn drop(&mut self) {
        /// Destroys the cache, even if the drop of a value panics.
        struct Destroy(Cache);
        impl Drop for Destroy {
            fn drop(&mut self) {
                // SAFETY: the map is being dropped, and no guard outlives it.
                unsafe { self.0.destroy() }
            }
        }
        let _destroy = Destroy(self.cache);
        if core::mem::needs_drop::<T>() {
            // SAFETY: no code reads a value any more.
            unsafe { Remains::drop_all(self) }
        }
    }
}
