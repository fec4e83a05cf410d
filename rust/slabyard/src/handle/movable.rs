//! [`MovableMap`]: a map for all threads whose values move.

use core::any::type_name;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use super::builder::HandleMapBuilder;
use super::guard::{drop_value, Ref};
use super::key::{DefaultKey, Key, RawKey};
use super::map::{no_room, too_many_guards, GetError, InAndOut, TakeError};
use super::still::Still;
use super::walk::{KeysOfAny, PASSES_MAX};
use super::word::{self, Pinning, Release, Removal};
use crate::raw::handle::{Cache, ReadGuard, DYING, PINS};
use crate::Full;

/// A map for all threads, as [`HandleMap`](crate::HandleMap), whose values move from sparse slabs to fuller ones, so
/// that memory follows what is live, whatever survives.
///
/// In a [`HandleMap`](crate::HandleMap) each value stays where it is. If few values survive, spread at random, each
/// page holds a survivor, and no memory goes back. Here the values of sparse slabs move, in passes,
/// trims and [`compact`](Self::compact), and the slabs go back. Keys stay valid. A value with a
/// guard ([`Ref`]) stays where it is. For groups of accesses without guards there is
/// [`while_still`](Self::while_still).
///
/// A value costs 20 bytes more than its size (in a `HandleMap` 8). When it is removed, 16 of these
/// bytes stay until at most a quarter of its 512 neighbours is live, or until a trim if at most two
/// thirds are. An insertion takes some nanoseconds longer. Values over 8 KiB, and those of programs
/// that run with checks (`SLABYARD=check`), do not move. Under Miri there is no such map.
///
/// A move copies the bytes of a value, as any move in Rust does, in any thread. So values are
/// `Send`. The rest is as for `HandleMap`, except that a value that was removed while it had a
/// guard is never dropped if this guard is leaked.
///
/// ```
/// use slabyard::MovableMap;
/// let sessions = MovableMap::new();
/// let keys: Vec<_> = (0..50_000).map(|i| sessions.insert((i, [0_u8; 120]))).collect();
/// for key in keys.iter().enumerate().filter(|(i, _)| i % 20 != 0) {
///     sessions.remove(*key.1); // one in twenty survives
/// }
/// slabyard::thread_flush();
/// assert!(sessions.compact(usize::MAX, u64::MAX) > 5_000_000); // or wait for a pass
/// assert_eq!(sessions.get(keys[40]).unwrap().0, 40);
/// ```
///
/// A guard borrows the map:
///
/// ```compile_fail
/// let map = slabyard::MovableMap::new();
/// let key = map.insert(1);
/// let guard = map.get(key);
/// drop(map);
/// drop(guard);
/// ```
pub struct MovableMap<T, K: Key = DefaultKey> {
    cache: Cache,
    _values: PhantomData<(T, InAndOut<T, K>)>,
}

// SAFETY: as for HandleMap.
unsafe impl<T: Send, K: Key> Send for MovableMap<T, K> {}
// SAFETY: as for HandleMap.
unsafe impl<T: Send + Sync, K: Key> Sync for MovableMap<T, K> {}

impl<T: Send> MovableMap<T> {
    /// Creates an empty map without a limit, with keys of the type [`DefaultKey`].
    ///
    /// # Panics
    /// If the map cannot be created ([`CreateError`](crate::CreateError)).
    #[track_caller]
    pub fn new() -> Self {
        Self::with_key()
    }
}

impl<T: Send, K: Key> MovableMap<T, K> {
    /// Creates an empty map without a limit, with keys of the type `K`.
    /// [`HandleMapBuilder::build_movable`] makes one with a name or a limit.
    ///
    /// # Panics
    /// If the map cannot be created ([`CreateError`](crate::CreateError)).
    #[track_caller]
    pub fn with_key() -> Self {
        match HandleMapBuilder::<T, K>::new().build_movable() {
            Ok(map) => map,
            Err(error) => panic!("map of {}: {error}", type_name::<T>()),
        }
    }
}

/// A place that has no value yet. When this is dropped, the place is freed.
struct Prepared<'a> {
    cache: &'a Cache,
    handle: u64,
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        // SAFETY: it was prepared, and not published: that forgets this.
        unsafe { self.cache.cancel(self.handle) }
    }
}

impl<T, K: Key> MovableMap<T, K> {
    pub(super) fn of_cache(cache: Cache) -> Self {
        Self {
            cache,
            _values: PhantomData,
        }
    }

    /// Inserts a value and returns its key.
    ///
    /// # Panics
    /// If there is no room: the limit is reached, or there is no memory.
    #[inline]
    #[track_caller]
    pub fn insert(&self, value: T) -> K {
        match self.try_insert(value) {
            Ok(key) => key,
            Err(_) => no_room::<T>(),
        }
    }

    /// Inserts a value if there is room, and returns its key.
    ///
    /// # Errors
    /// [`Full`], with the value: the limit is reached, or there is no memory.
    #[inline]
    pub fn try_insert(&self, value: T) -> Result<K, Full<T>> {
        match self.cache.prepare() {
            Some((handle, place)) => Ok(self.put(handle, place.cast(), value).into()),
            None => Err(Full(value)),
        }
    }

    /// Inserts the value that `make` makes from its own key. If `make` panics, the map stays
    /// unchanged, and the key stays invalid.
    ///
    /// # Panics
    /// If there is no room.
    #[track_caller]
    pub fn insert_with_key(&self, make: impl FnOnce(K) -> T) -> K {
        let Some((handle, place)) = self.cache.prepare() else {
            no_room::<T>()
        };
        let prepared = Prepared {
            cache: &self.cache,
            handle,
        };
        let value = make(key_of(handle).into());
        let _published = ManuallyDrop::new(prepared);
        self.put(handle, place.cast(), value).into()
    }

    /// Writes a value to its prepared place, and makes it live.
    #[inline]
    fn put(&self, handle: u64, place: NonNull<T>, value: T) -> RawKey {
        // SAFETY: the place is this call's, and large enough.
        unsafe {
            place.write(value);
            self.cache.publish(handle);
        }
        key_of(handle)
    }

    /// Repeats `change` on the word of the key until it does not meet a moving value (rule 6).
    /// `None`: the key is stale. The second argument is the word of the value without guards.
    #[inline]
    fn settled<R>(
        &self,
        key: RawKey,
        mut change: impl FnMut(&AtomicU64, u64) -> Option<R>,
    ) -> Option<R> {
        let handle = key.to_bits();
        let word = self.cache.word(handle)?;
        let live = (handle >> 32 << 32) | self.cache.live_of_any();
        loop {
            if let Some(result) = change(word, live) {
                return Some(result);
            }
            let folded = word.load(Ordering::Relaxed) == 0;
            if !folded && !has_value(word, live) {
                return None;
            }
            if !self.cache.settle(handle) && folded {
                return None;
            }
        }
    }

    /// A guard, if the value has fewer than `most`. `None`: the key is stale.
    #[inline]
    pub(super) fn pin(&self, key: RawKey, most: u64) -> Option<Result<Ref<'_, T, K>, GetError>> {
        let pinning = self.settled(key, |word, live| match word::pin(word, live, most) {
            Pinning::Stale => None,
            other => Some(other),
        })?;
        if pinning == Pinning::TooMany {
            return Some(Err(GetError::TooManyGuards));
        }
        // SAFETY: the word is pinned, so the value exists and stays where it is.
        unsafe {
            let word = self.cache.word_of(key.ordinal());
            Some(Ok(Ref::new(&self.cache, word, self.value(key.ordinal()))))
        }
    }

    /// # Safety
    /// The value of the ordinal has guards, or is owned by the caller.
    #[inline]
    unsafe fn value(&self, ordinal: u32) -> NonNull<T> {
        // SAFETY: as the caller says, so it has a place and stays there.
        unsafe { NonNull::new_unchecked(self.cache.place_of_any(ordinal).cast()) }
    }

    /// A guard of the value with this key, which keeps the value where it is. `None`: the key is
    /// stale.
    ///
    /// # Panics
    /// As [`HandleMap::get`](crate::HandleMap::get).
    #[inline]
    #[track_caller]
    pub fn get(&self, key: K) -> Option<Ref<'_, T, K>> {
        match self.try_get(key) {
            Ok(guard) => Some(guard),
            Err(GetError::Stale) => None,
            Err(GetError::TooManyGuards) => too_many_guards::<T>(),
        }
    }

    /// A guard of the value with this key. Never panics.
    ///
    /// # Errors
    /// As [`HandleMap::try_get`](crate::HandleMap::try_get).
    #[inline]
    pub fn try_get(&self, key: K) -> Result<Ref<'_, T, K>, GetError> {
        self.pin(key.into(), word::GUARDS_MAX)
            .unwrap_or(Err(GetError::Stale))
    }

    /// Calls `work` with the only access to the map. Meanwhile no value moves that it looks up: so
    /// look-ups need no guards, and cost a few loads. The moves of all maps wait, so keep `work`
    /// short.
    ///
    /// ```
    /// let mut accounts = slabyard::MovableMap::new();
    /// let (from, to) = (accounts.insert(100), accounts.insert(0));
    /// accounts.while_still(|accounts| {
    ///     *accounts.get_mut(from).unwrap() -= 10;
    ///     *accounts.get_mut(to).unwrap() += 10;
    ///     assert_eq!((accounts.get(from), accounts.get(to)), (Some(&90), Some(&10)));
    /// });
    /// ```
    ///
    /// A reference does not leave `work`:
    ///
    /// ```compile_fail
    /// let mut map = slabyard::MovableMap::new();
    /// let key = map.insert(1);
    /// let value = map.while_still(|values| values.get(key));
    /// ```
    pub fn while_still<R>(&mut self, work: impl FnOnce(&mut Still<'_, T, K>) -> R) -> R {
        // SAFETY: it is dropped at the end of this function, before all that are older.
        let _guard = unsafe { ReadGuard::new() };
        work(&mut Still::new(self))
    }

    #[inline]
    pub(super) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Whether there is a value with this key, at this moment.
    #[inline]
    pub fn contains(&self, key: K) -> bool {
        let handle = key.into().to_bits();
        let live = (handle >> 32 << 32) | self.cache.live_of_any();
        self.cache
            .word(handle)
            .is_some_and(|word| has_value(word, live))
    }

    /// Removes the value with this key. True exactly once for each key; false if the key is stale.
    /// The key is stale from now on. The value is dropped here, or with its last guard.
    #[inline]
    pub fn remove(&self, key: K) -> bool {
        self.remove_raw(key.into())
    }

    pub(super) fn remove_raw(&self, key: RawKey) -> bool {
        let removal = self.settled(key, |word, live| match word::remove(word, live) {
            Removal::Stale => None,
            other => Some(other),
        });
        if removal == Some(Removal::Ours) {
            // SAFETY: this call is the only owner of the value (rule 1).
            unsafe {
                let word = self.cache.word_of(key.ordinal());
                drop_value(&self.cache, word, self.value(key.ordinal()))
            }
        }
        removal.is_some()
    }

    /// Removes the value with this key and returns it, if it has no guards.
    ///
    /// # Errors
    /// [`TakeError`]: the key is stale, or there are guards. Then the value stays in the map.
    pub fn take(&self, key: K) -> Result<T, TakeError> {
        let key = key.into();
        let removal = self.settled(key, |word, live| match word::remove_unheld(word, live) {
            Removal::Stale => None,
            other => Some(other),
        });
        match removal {
            Some(Removal::Ours) => {
                // SAFETY: this call is the only owner of the value (rule 1), and moves it out.
                unsafe {
                    let word = self.cache.word_of(key.ordinal());
                    let _release = Release::of_any(&self.cache, word, key);
                    Ok(self.value(key.ordinal()).read())
                }
            }
            Some(_) => Err(TakeError::Held),
            None => Err(TakeError::Stale),
        }
    }

    /// Moves values out of sparse slabs now, until so many bytes of slabs are empty, or for so many
    /// nanoseconds. Returns the bytes of slabs that became empty: 0 if a thread is in
    /// [`while_still`](Self::while_still).
    pub fn compact(&self, bytes: usize, budget_ns: u64) -> usize {
        self.cache.compact(bytes, budget_ns)
    }

    /// The number of values, as [`HandleMap::len`](crate::HandleMap::len).
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

    /// Returns free memory to the system, as [`HandleMap::trim`](crate::HandleMap::trim). It moves values first.
    pub fn trim(&self) -> usize {
        self.cache.trim()
    }

    /// Iterates over the keys of all values, in no order, without guards. Which values it visits is
    /// as for [`HandleMap::iter`](crate::HandleMap::iter).
    pub fn keys(&self) -> impl Iterator<Item = K> + '_ {
        KeysOfAny::new(&self.cache).map(Into::into)
    }

    /// All values that can have another guard, each with its key.
    fn held(&self) -> impl Iterator<Item = (RawKey, Ref<'_, T, K>)> {
        let guard = |key| Some((key, self.pin(key, word::GUARDS_OF_WALKS_MAX)?.ok()?));
        KeysOfAny::new(&self.cache).filter_map(guard)
    }

    /// Iterates over guards of all values, in no order, as [`HandleMap::iter`](crate::HandleMap::iter).
    pub fn iter(&self) -> impl Iterator<Item = (K, Ref<'_, T, K>)> {
        self.held().map(|(key, guard)| (key.into(), guard))
    }

    /// Calls `visit` for each value, under a guard.
    pub fn for_each(&self, mut visit: impl FnMut(K, &T)) {
        self.held()
            .for_each(|(key, guard)| visit(key.into(), &guard));
    }

    /// Removes each value for which `keep` returns false.
    pub fn retain(&self, mut keep: impl FnMut(K, &T) -> bool) {
        for (key, guard) in self.held() {
            if !keep(key.into(), &guard) {
                self.remove_raw(key);
            }
        }
    }

    /// Removes all values, in passes over the map until a pass finds none, as [`HandleMap::clear`](crate::HandleMap::clear).
    pub fn clear(&self) {
        for _ in 0..PASSES_MAX {
            let mut found = false;
            for key in KeysOfAny::new(&self.cache) {
                found |= self.remove_raw(key);
            }
            if !found {
                return;
            }
        }
    }
}

fn key_of(handle: u64) -> RawKey {
    RawKey::of_parts(handle as u32, (handle >> 32) as u32)
}

/// Whether the word is that of a live value, with or without guards, moving or not.
fn has_value(word: &AtomicU64, live: u64) -> bool {
    word.load(Ordering::Relaxed) & !(PINS | DYING) == live
}

impl<T: Send, K: Key> Default for MovableMap<T, K> {
    fn default() -> Self {
        Self::with_key()
    }
}

impl<T: fmt::Debug, K: Key> fmt::Debug for MovableMap<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = alloc::format!("MovableMap<{}> {:?}", type_name::<T>(), self.cache.name());
        f.write_str(&name)?;
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Walks the values of a map that is being dropped: live values, with or without leaked guards.
struct Remains<'a, T, K: Key> {
    map: &'a MovableMap<T, K>,
    keys: KeysOfAny<'a>,
}

impl<T, K: Key> Remains<'_, T, K> {
    fn drop_rest(&mut self) {
        for key in self.keys.by_ref() {
            let removal = self
                .map
                .settled(key, |word, live| match word::remove(word, live) {
                    Removal::Stale => None,
                    other => Some(other),
                });
            if removal.is_some() {
                // SAFETY: the map is being dropped, so its guards were leaked, and nothing else uses
                // the value. Its word is dying now, so it is not found or moved again.
                unsafe { self.map.value(key.ordinal()).drop_in_place() }
            }
        }
    }
}

impl<T, K: Key> Drop for Remains<'_, T, K> {
    fn drop(&mut self) {
        self.drop_rest(); // values are left only if a drop panicked
    }
}

impl<T, K: Key> Drop for MovableMap<T, K> {
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
            let keys = KeysOfAny::new(&self.cache);
            Remains { map: self, keys }.drop_rest();
        }
    }
}
