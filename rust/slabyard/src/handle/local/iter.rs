//! The iterators of a [`LocalHandleMap`].

use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::live::Live;
use super::slot::Slot;
use super::LocalHandleMap;
use crate::handle::key::{DefaultKey, Key, RawKey};

/// Iterates over keys and values: see [`LocalHandleMap::iter`].
pub struct Iter<'a, T, K: Key = DefaultKey> {
    live: Live<T>,
    _slots: PhantomData<&'a T>,
    _keys: PhantomData<fn() -> K>,
}

// SAFETY: these are references to values.
unsafe impl<T: Sync, K: Key> Send for Iter<'_, T, K> {}
// SAFETY: as before.
unsafe impl<T: Sync, K: Key> Sync for Iter<'_, T, K> {}

impl<'a, T, K: Key> Iter<'a, T, K> {
    /// # Safety
    /// At least `count` of the slots have a value.
    pub(super) unsafe fn new(slots: &'a [Slot<T>], count: u32) -> Self {
        Self {
            // SAFETY: as the caller says, and they are borrowed.
            live: unsafe { Live::new(NonNull::from(slots).cast(), count) },
            _slots: PhantomData,
            _keys: PhantomData,
        }
    }
}

impl<T, K: Key> Clone for Iter<'_, T, K> {
    fn clone(&self) -> Self {
        Self {
            live: self.live.clone(),
            ..*self
        }
    }
}

impl<'a, T, K: Key> Iterator for Iter<'a, T, K> {
    type Item = (K, &'a T);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (slot, ordinal, generation) = self.live.next()?;
        // SAFETY: the slot has a value, and that generation; it is borrowed.
        unsafe {
            let key = RawKey::of_parts_unchecked(ordinal, generation);
            Some((key.into(), slot.as_ref().value()))
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.live.left()
    }
}

/// Iterates over keys and values: see [`LocalHandleMap::iter_mut`].
pub struct IterMut<'a, T, K: Key = DefaultKey> {
    live: Live<T>,
    _slots: PhantomData<&'a mut T>,
    _keys: PhantomData<fn() -> K>,
}

// SAFETY: these are exclusive references to values.
unsafe impl<T: Send, K: Key> Send for IterMut<'_, T, K> {}
// SAFETY: shared, it gives nothing out.
unsafe impl<T: Sync, K: Key> Sync for IterMut<'_, T, K> {}

impl<'a, T, K: Key> IterMut<'a, T, K> {
    /// # Safety
    /// At least `count` of the slots have a value.
    pub(super) unsafe fn new(slots: &'a mut [Slot<T>], count: u32) -> Self {
        Self {
            // SAFETY: as the caller says, and they are borrowed.
            live: unsafe { Live::new(NonNull::from(slots).cast(), count) },
            _slots: PhantomData,
            _keys: PhantomData,
        }
    }
}

impl<'a, T, K: Key> Iterator for IterMut<'a, T, K> {
    type Item = (K, &'a mut T);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (mut slot, ordinal, generation) = self.live.next()?;
        // SAFETY: the slot has a value, and that generation; it is borrowed, and comes once.
        unsafe {
            let key = RawKey::of_parts_unchecked(ordinal, generation);
            Some((key.into(), slot.as_mut().value_mut()))
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.live.left()
    }
}

/// Iterates over keys: see [`LocalHandleMap::keys`].
pub struct Keys<'a, T, K: Key = DefaultKey>(Iter<'a, T, K>);

impl<'a, T, K: Key> Keys<'a, T, K> {
    pub(super) fn new(iter: Iter<'a, T, K>) -> Self {
        Self(iter)
    }
}

impl<T, K: Key> Iterator for Keys<'_, T, K> {
    type Item = K;

    #[inline]
    fn next(&mut self) -> Option<K> {
        self.0.next().map(|(key, _)| key)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

/// Iterates over values: see [`LocalHandleMap::values`].
pub struct Values<'a, T, K: Key = DefaultKey>(Iter<'a, T, K>);

impl<'a, T, K: Key> Values<'a, T, K> {
    pub(super) fn new(iter: Iter<'a, T, K>) -> Self {
        Self(iter)
    }
}

impl<'a, T, K: Key> Iterator for Values<'a, T, K> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        self.0.next().map(|(_, value)| value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

/// Iterates over values: see [`LocalHandleMap::values_mut`].
pub struct ValuesMut<'a, T, K: Key = DefaultKey>(IterMut<'a, T, K>);

impl<'a, T, K: Key> ValuesMut<'a, T, K> {
    pub(super) fn new(iter: IterMut<'a, T, K>) -> Self {
        Self(iter)
    }
}

impl<'a, T, K: Key> Iterator for ValuesMut<'a, T, K> {
    type Item = &'a mut T;

    #[inline]
    fn next(&mut self) -> Option<&'a mut T> {
        self.0.next().map(|(_, value)| value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

/// Moves values out: see [`LocalHandleMap::drain`].
pub struct Drain<'a, T, K: Key = DefaultKey> {
    map: &'a mut LocalHandleMap<T, K>,
    next: u32,
}

impl<'a, T, K: Key> Drain<'a, T, K> {
    pub(super) fn new(map: &'a mut LocalHandleMap<T, K>) -> Self {
        Self { map, next: 0 }
    }
}

impl<T, K: Key> Drain<'_, T, K> {
    #[inline]
    fn next_value(&mut self) -> Option<(RawKey, T)> {
        while self.next < self.map.slot_count() {
            self.next += 1;
            let taken = self.map.take_at(self.next - 1);
            if taken.is_some() {
                return taken;
            }
        }
        None
    }
}

impl<T, K: Key> Iterator for Drain<'_, T, K> {
    type Item = (K, T);

    #[inline]
    fn next(&mut self) -> Option<(K, T)> {
        let (raw, value) = self.next_value()?;
        Some((raw.into(), value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.map.len(), Some(self.map.len()))
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

impl<T, K: Key> ExactSizeIterator for Iter<'_, T, K> {}
impl<T, K: Key> ExactSizeIterator for IterMut<'_, T, K> {}
impl<T, K: Key> ExactSizeIterator for Keys<'_, T, K> {}
impl<T, K: Key> ExactSizeIterator for Values<'_, T, K> {}
impl<T, K: Key> ExactSizeIterator for ValuesMut<'_, T, K> {}
impl<T, K: Key> ExactSizeIterator for Drain<'_, T, K> {}
impl<T, K: Key> FusedIterator for Iter<'_, T, K> {}
impl<T, K: Key> FusedIterator for IterMut<'_, T, K> {}
impl<T, K: Key> FusedIterator for Keys<'_, T, K> {}
impl<T, K: Key> FusedIterator for Values<'_, T, K> {}
impl<T, K: Key> FusedIterator for ValuesMut<'_, T, K> {}
impl<T, K: Key> FusedIterator for Drain<'_, T, K> {}

impl<'a, T, K: Key> IntoIterator for &'a LocalHandleMap<T, K> {
    type Item = (K, &'a T);
    type IntoIter = Iter<'a, T, K>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T, K: Key> IntoIterator for &'a mut LocalHandleMap<T, K> {
    type Item = (K, &'a mut T);
    type IntoIter = IterMut<'a, T, K>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

/// Moves values out: see the [`IntoIterator`] of a [`LocalHandleMap`].
pub struct IntoIter<T, K: Key = DefaultKey> {
    map: LocalHandleMap<T, K>,
    next: u32,
}

impl<T, K: Key> Iterator for IntoIter<T, K> {
    type Item = (K, T);

    #[inline]
    fn next(&mut self) -> Option<(K, T)> {
        while self.next < self.map.slot_count() {
            self.next += 1;
            if let Some((raw, value)) = self.map.take_at(self.next - 1) {
                return Some((raw.into(), value));
            }
        }
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.map.len(), Some(self.map.len()))
    }
}

impl<T, K: Key> ExactSizeIterator for IntoIter<T, K> {}
impl<T, K: Key> FusedIterator for IntoIter<T, K> {}

/// All keys and values, moved out in the order of places.
impl<T, K: Key> IntoIterator for LocalHandleMap<T, K> {
    type Item = (K, T);
    type IntoIter = IntoIter<T, K>;

    fn into_iter(self) -> Self::IntoIter {
        IntoIter { map: self, next: 0 }
    }
}
