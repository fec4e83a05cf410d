//! The entries of `SecondaryMap` and `SparseSecondaryMap`, as `std`'s maps have them.

use super::key::Key;

/// A map with further values for keys, for [`Entry`]. It is sealed.
pub trait Secondary: sealed::Sealed {
    #[doc(hidden)]
    type Key: Key;
    #[doc(hidden)]
    type Value;
    #[doc(hidden)]
    fn value(&mut self, key: Self::Key) -> Option<&mut Self::Value>;
    #[doc(hidden)]
    fn put(&mut self, key: Self::Key, value: Self::Value) -> Option<Self::Value>;
    #[doc(hidden)]
    fn take(&mut self, key: Self::Key) -> Option<Self::Value>;
}

pub(super) mod sealed {
    pub trait Sealed {}
}

/// The place of a key in a `SecondaryMap` or `SparseSecondaryMap`, with or without a value.
///
/// ```
/// use slabyard::{LocalHandleMap, SecondaryMap};
/// let mut words = LocalHandleMap::new();
/// let (a, b) = (words.insert("a"), words.insert("b"));
/// let mut counts = SecondaryMap::new();
/// for key in [a, b, a] {
///     *counts.entry(key).unwrap().or_insert(0) += 1;
/// }
/// assert_eq!((counts[a], counts[b]), (2, 1));
/// ```
pub enum Entry<'a, M: Secondary> {
    /// There is a value for the key.
    Occupied(OccupiedEntry<'a, M>),
    /// There is none.
    Vacant(EmptyEntry<'a, M>),
}

/// A place with a value for its key.
pub struct OccupiedEntry<'a, M: Secondary> {
    map: &'a mut M,
    key: M::Key,
}

/// A place without a value for its key.
pub struct EmptyEntry<'a, M: Secondary> {
    map: &'a mut M,
    key: M::Key,
}

#[cold]
#[inline(never)]
fn fickle() -> ! {
    panic!("a key's conversion to RawKey gave different numbers")
}

impl<'a, M: Secondary> Entry<'a, M> {
    /// There is no value for a newer key of the same place.
    pub(super) fn of(map: &'a mut M, key: M::Key) -> Self {
        if map.value(key).is_some() {
            Self::Occupied(OccupiedEntry { map, key })
        } else {
            Self::Vacant(EmptyEntry { map, key })
        }
    }

    /// The key.
    pub fn key(&self) -> M::Key {
        match self {
            Self::Occupied(entry) => entry.key,
            Self::Vacant(entry) => entry.key,
        }
    }

    /// The value, which is inserted if there is none.
    pub fn or_insert(self, value: M::Value) -> &'a mut M::Value {
        self.or_insert_with(|| value)
    }

    /// The value, which is made if there is none.
    pub fn or_insert_with(self, make: impl FnOnce() -> M::Value) -> &'a mut M::Value {
        match self {
            Self::Occupied(entry) => entry.into_mut(),
            Self::Vacant(entry) => entry.insert(make()),
        }
    }

    /// The value, which is the default value if there was none.
    pub fn or_default(self) -> &'a mut M::Value
    where
        M::Value: Default,
    {
        self.or_insert_with(M::Value::default)
    }

    /// Changes the value, if there is one.
    pub fn and_modify(mut self, change: impl FnOnce(&mut M::Value)) -> Self {
        if let Self::Occupied(entry) = &mut self {
            change(entry.get_mut());
        }
        self
    }
}

impl<'a, M: Secondary> OccupiedEntry<'a, M> {
    /// The key.
    pub fn key(&self) -> M::Key {
        self.key
    }

    /// The value.
    pub fn get_mut(&mut self) -> &mut M::Value {
        self.map.value(self.key).unwrap_or_else(|| fickle())
    }

    /// The value, for as long as the map is borrowed.
    pub fn into_mut(self) -> &'a mut M::Value {
        self.map.value(self.key).unwrap_or_else(|| fickle())
    }

    /// Sets the value and returns the previous one.
    pub fn insert(&mut self, value: M::Value) -> M::Value {
        core::mem::replace(self.get_mut(), value)
    }

    /// Removes the value and returns it.
    pub fn remove(self) -> M::Value {
        self.map.take(self.key).unwrap_or_else(|| fickle())
    }
}

impl<'a, M: Secondary> EmptyEntry<'a, M> {
    /// The key.
    pub fn key(&self) -> M::Key {
        self.key
    }

    /// Sets the value.
    pub fn insert(self, value: M::Value) -> &'a mut M::Value {
        self.map.put(self.key, value);
        self.map.value(self.key).unwrap_or_else(|| fickle())
    }
}
