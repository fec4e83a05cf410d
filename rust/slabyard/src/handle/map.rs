//! The map of all threads.

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
use super::walk::{Drain, Iter, IterMut, Remains};
use super::word::{self, Pinning, Release, Removal};
use crate::raw::handle::{Cache, PINS};
use crate::Full;

/// A map that gives out keys, for all threads at once.
///
/// Values are got by key, as a guard ([`Ref`]) that keeps the value while others may remove it: then
/// its key is stale at once, and the last guard drops it. A stale key stays stale for ever. Keys of
/// other maps are refused, and so are numbers that never were keys.
///
/// `get` is a compare-exchange and the end of a guard a subtraction; insertion and removal take what
/// this thread has at hand, without a lock. Values stay where they are. Memory that values leave is
/// given back to the system ([`trim`](Self::trim), and what the process does for all caches).
///
/// Any thread may call anything, if `T` is `Send + Sync`; a value is dropped by the thread that
/// removes it or that lets its last guard go. A method may be called while guards exist, in the drop
/// of a value too.
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

/// Values come in, and go out, by shared reference to the map: so it is invariant.
type InAndOut<T, K> = fn(T, K) -> (T, K);

// SAFETY: the cache is for all threads; with the map go its values.
unsafe impl<T: Send, K: Key> Send for HandleMap<T, K> {}
// SAFETY: by a shared map any thread may look at values, and drop and move those of others.
unsafe impl<T: Send + Sync, K: Key> Sync for HandleMap<T, K> {}

/// Why [`HandleMap::take`] gave no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TakeError {
    /// There is no value with this key.
    Stale,
    /// There are guards of the value, which is in the map as before.
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

#[cold]
#[inline(never)]
#[track_caller]
fn no_room<T>() -> ! {
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
        "a value of {} cannot have more than 65,535 guards at a time",
        type_name::<T>()
    )
}

impl<T> HandleMap<T> {
    /// An empty map without a limit, with keys of the type [`DefaultKey`].
    ///
    /// # Panics
    /// If the map cannot be made ([`CreateError`](crate::CreateError)).
    #[track_caller]
    pub fn new() -> Self {
        Self::with_key()
    }
}

impl<T, K: Key> HandleMap<T, K> {
    /// An empty map without a limit, with keys of a type of its own.
    ///
    /// # Panics
    /// If the map cannot be made ([`CreateError`](crate::CreateError)).
    #[track_caller]
    pub fn with_key() -> Self {
        match Self::builder().build() {
            Ok(map) => map,
            Err(error) => panic!("map of {}: {error}", type_name::<T>()),
        }
    }

    /// For a map with a name or a limit.
    pub fn builder() -> HandleMapBuilder<T, K> {
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

    /// Puts a value in; its key.
    ///
    /// # Panics
    /// If there is no room: the limit is reached, or there is no memory.
    #[inline]
    #[track_caller]
    pub fn insert(&self, value: T) -> K {
        // The place first: a value that is passed on to a function would have to lie in memory.
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

    /// Puts a value in, if there is room for it.
    ///
    /// # Errors
    /// The limit is reached, or there is no memory: the value comes back.
    #[inline]
    pub fn try_insert(&self, value: T) -> Result<K, Full<T>> {
        match VacantEntry::of(self) {
            Some(entry) => Ok(entry.insert(value)),
            None => Err(Full(value)),
        }
    }

    /// Puts in a value that is made from its own key. If `make` panics, the map is as before, and
    /// the key is stale for ever.
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

    /// A place whose key is known before its value.
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

    /// A place whose key is known before its value; `None` if there is no room.
    #[inline]
    pub fn try_vacant_entry(&self) -> Option<VacantEntry<'_, T, K>> {
        VacantEntry::of(self)
    }

    /// The word of a key, and what is in it while its value is live and has no guards.
    #[inline(always)]
    fn word(&self, key: RawKey) -> Option<(&AtomicU64, u64)> {
        let handle = key.to_bits();
        let word = self.cache.word(handle)?;
        Some((word, word::live_word(&self.cache, handle)))
    }

    /// # Safety
    /// The value of the key is live, or dying with guards or as the caller's.
    #[inline(always)]
    pub(super) unsafe fn value(&self, ordinal: u32) -> NonNull<T> {
        // SAFETY: its ordinal is taken; places are not null.
        unsafe { NonNull::new_unchecked(self.cache.place(ordinal).cast()) }
    }

    /// A guard of the value with this key; `None` if the key is stale.
    ///
    /// # Panics
    /// If the value has 65,535 guards already (those that were leaked count).
    #[inline]
    #[track_caller]
    pub fn get(&self, key: K) -> Option<Ref<'_, T, K>> {
        let key = key.into();
        let (word, live) = self.word(key)?;
        match word::pin(word, live) {
            // SAFETY: it is pinned, so the value is there and stays.
            Pinning::Pinned => Some(unsafe { Ref::new(self, word, self.value(key.ordinal())) }),
            Pinning::Stale => None,
            Pinning::TooMany => too_many_guards::<T>(),
        }
    }

    /// A guard that holds the map too, instead of borrowing it; `None` if the key is stale.
    ///
    /// # Panics
    /// As [`get`](Self::get).
    #[inline]
    #[track_caller]
    pub fn get_owned(this: &Arc<Self>, key: K) -> Option<OwnedRef<T, K>> {
        OwnedRef::get(this, key)
    }

    /// The value with this key, for whoever has the map alone: a few loads, nothing is counted.
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
        // SAFETY: the value is live, and nobody else has the map, so nobody has a guard.
        unsafe { Some(self.value(key.ordinal()).as_mut()) }
    }

    /// Whether there is a value with this key, at this moment.
    #[inline]
    pub fn contains(&self, key: K) -> bool {
        self.word(key.into())
            .is_some_and(|(word, live)| word.load(Ordering::Relaxed) & !PINS == live)
    }

    /// Removes the value with this key. True once for each key; false if it is stale. The key is
    /// stale from now on; the value is dropped here, or by its last guard.
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
        // SAFETY: the value is ours alone (rule 1).
        unsafe {
            let (ordinal, generation) = (key.ordinal(), key.generation());
            let _release = Release::new(&self.cache, word, ordinal, generation);
            self.value(ordinal).drop_in_place();
        }
        true
    }

    /// Where there are guards, or the key is stale.
    #[cold]
    #[inline(never)]
    fn remove_held(&self, key: RawKey) -> bool {
        let Some((word, live)) = self.word(key) else {
            return false;
        };
        let removal = word::remove(word, live);
        if removal == Removal::Ours {
            // SAFETY: the value is ours alone (rule 1).
            unsafe { drop_value(&self.cache, word, self.value(key.ordinal())) }
        }
        removal != Removal::Stale
    }

    /// Removes the value with this key and returns it, if nobody has a guard of it.
    ///
    /// # Errors
    /// The key is stale; or there are guards, and the value is in the map as before.
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
                // SAFETY: the value is ours alone (rule 1), and moves out.
                unsafe {
                    let (ordinal, generation) = (key.ordinal(), key.generation());
                    let _release = Release::new(&self.cache, word, ordinal, generation);
                    Ok(self.value(ordinal).read())
                }
            }
        }
    }

    /// How many values there are; those that are removed and have guards still count, and so do
    /// vacant entries. Exact while no other thread changes the map. Costs a look at what all threads
    /// have at hand.
    pub fn len(&self) -> usize {
        self.cache.in_use()
    }

    /// Whether [`len`](Self::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Provides memory for so many more values; whether it could be had.
    pub fn reserve(&self, count: usize) -> bool {
        self.cache.reserve(count)
    }

    /// Gives free memory back to the system; how many bytes. Costs a walk through it.
    pub fn trim(&self) -> usize {
        self.cache.trim()
    }

    /// Guards of all values, one after the other, in no order. All that are there from the beginning
    /// to the end are visited; some of those that come or go meanwhile.
    ///
    /// # Panics
    /// Its `next` as [`get`](Self::get).
    pub fn iter(&self) -> Iter<'_, T, K> {
        Iter::new(self)
    }

    /// All values, in no order.
    pub fn iter_mut(&mut self) -> IterMut<'_, T, K> {
        IterMut::new(self)
    }

    /// Calls `visit` for each value, under a guard, as [`iter`](Self::iter) finds them.
    #[track_caller]
    pub fn for_each(&self, mut visit: impl FnMut(K, &T)) {
        let mut all = self.iter();
        while let Some((key, guard)) = all.next_held() {
            visit(key.into(), &guard);
        }
    }

    /// Removes the values for which `keep` says no, as [`iter`](Self::iter) finds them.
    #[track_caller]
    pub fn retain(&self, mut keep: impl FnMut(K, &T) -> bool) {
        let mut all = self.iter();
        while let Some((key, guard)) = all.next_held() {
            if !keep(key.into(), &guard) {
                self.remove_raw(key);
            }
        }
    }

    /// Removes all values that are there, as [`iter`](Self::iter) finds them.
    #[track_caller]
    pub fn clear(&self) {
        self.retain(|_, _| false);
    }

    /// Moves all values out, one after the other. What is not moved out when the iterator goes is
    /// dropped then; if it is leaked, the rest stays in the map.
    pub fn drain(&mut self) -> Drain<'_, T, K> {
        Drain::new(self)
    }
}

impl<T> Default for HandleMap<T> {
    fn default() -> Self {
        Self::new()
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
        /// The values alone.
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
        /// Also if a drop panics.
        struct Destroy(Cache);
        impl Drop for Destroy {
            fn drop(&mut self) {
                // SAFETY: the map is at its end, and no guard outlives it.
                unsafe { self.0.destroy() }
            }
        }
        let _destroy = Destroy(self.cache);
        if core::mem::needs_drop::<T>() {
            // SAFETY: nobody looks at a value any more.
            unsafe { Remains::drop_all(self) }
        }
    }
}
