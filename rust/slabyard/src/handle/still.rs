//! [`Still`]: the only access to a map whose values do not move for now.

use core::marker::PhantomData;

use super::key::Key;
use super::movable::MovableMap;

/// The only access to a [`MovableMap`], while its values do not move
/// ([`MovableMap::while_still`]). It stays in its thread.
pub struct Still<'a, T, K: Key> {
    /// Borrowed exclusively, so no other code removes a value.
    map: &'a mut MovableMap<T, K>,
    _here: PhantomData<*mut ()>,
}

impl<'a, T, K: Key> Still<'a, T, K> {
    pub(super) fn new(map: &'a mut MovableMap<T, K>) -> Self {
        Self {
            map,
            _here: PhantomData,
        }
    }

    /// The value with this key. `None`: the key is stale.
    #[inline]
    pub fn get(&self, key: K) -> Option<&T> {
        // SAFETY: this is in a read guard. The value is removed only with `&mut self`.
        unsafe {
            let place = self.map.cache().still_place(key.into().to_bits())?;
            Some(place.cast().as_ref())
        }
    }

    /// The value with this key. `None`: the key is stale.
    #[inline]
    pub fn get_mut(&mut self, key: K) -> Option<&mut T> {
        // SAFETY: as in get; the map is borrowed exclusively, so no guard is in use.
        unsafe {
            let place = self.map.cache().still_place(key.into().to_bits())?;
            Some(place.cast().as_mut())
        }
    }

    /// Inserts a value, as [`MovableMap::insert`].
    ///
    /// # Panics
    /// If there is no room.
    #[inline]
    #[track_caller]
    pub fn insert(&mut self, value: T) -> K {
        self.map.insert(value)
    }

    /// Removes a value, as [`MovableMap::remove`].
    #[inline]
    pub fn remove(&mut self, key: K) -> bool {
        self.map.remove(key)
    }
}
