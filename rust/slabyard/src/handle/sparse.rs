//! [`SparseSecondaryMap`]: further values for the keys of another map, in a hash table.

use core::marker::PhantomData;
use std::collections::hash_map::{self, Entry, HashMap};

use super::key::{DefaultKey, Key, RawKey};

/// Further values for a few of the keys of another map, or for keys of a
/// [`HandleMap`](super::HandleMap). It is a hash table by place, with the rules of
/// [`SecondaryMap`](super::SecondaryMap).
///
/// ```
/// use slabyard::{HandleMap, SparseSecondaryMap};
/// let sessions = HandleMap::new();
/// let mut names = SparseSecondaryMap::new();
/// let key = sessions.insert(1);
/// names.insert(key, "alice");
/// sessions.remove(key);
/// names.retain(|key, _| sessions.contains(key));
/// assert!(names.is_empty());
/// ```
#[derive(Clone)]
pub struct SparseSecondaryMap<K: Key = DefaultKey, V = ()> {
    slots: HashMap<u32, (RawKey, V)>,
    _keys: PhantomData<fn(K) -> K>,
}

impl<K: Key, V> SparseSecondaryMap<K, V> {
    /// An empty map. Allocates nothing.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// Creates an empty map with memory for `capacity` values.
    #[track_caller]
    pub fn with_capacity(capacity: usize) -> Self {
        let mut map = Self {
            slots: HashMap::new(),
            _keys: PhantomData,
        };
        map.reserve(capacity);
        map
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether the map has no values.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The number of values that fit without allocating.
    pub fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Provides memory for `more` values.
    #[track_caller]
    pub fn reserve(&mut self, more: usize) {
        if let Err(error) = self.slots.try_reserve(more) {
            super::no_memory(&error);
        }
    }

    /// Frees unused memory.
    pub fn shrink_to_fit(&mut self) {
        self.slots.shrink_to_fit();
    }

    /// Sets the value for a key and returns the previous value for this key. If there is a value
    /// for a newer key of the same place, `value` is dropped.
    #[track_caller]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let raw = key.into();
        match self.slots.entry(raw.ordinal()) {
            Entry::Vacant(entry) => {
                entry.insert((raw, value));
                None
            }
            Entry::Occupied(entry) if entry.get().0 > raw => None,
            Entry::Occupied(mut entry) => {
                let (before, old) = entry.insert((raw, value));
                (before == raw).then_some(old)
            }
        }
    }

    /// Whether there is a value for a newer key of the same place.
    fn has_newer(&self, raw: RawKey) -> bool {
        let kept = self.slots.get(&raw.ordinal());
        kept.is_some_and(|(kept, _)| kept.generation() > raw.generation())
    }

    /// Removes the value for a key and returns it.
    pub fn remove(&mut self, key: K) -> Option<V> {
        let raw = key.into();
        let Entry::Occupied(entry) = self.slots.entry(raw.ordinal()) else {
            return None;
        };
        (entry.get().0 == raw).then(|| entry.remove().1)
    }

    /// The value for a key.
    #[inline]
    pub fn get(&self, key: K) -> Option<&V> {
        let raw = key.into();
        let (kept, value) = self.slots.get(&raw.ordinal())?;
        (*kept == raw).then_some(value)
    }

    /// The value for a key.
    #[inline]
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let raw = key.into();
        let (kept, value) = self.slots.get_mut(&raw.ordinal())?;
        (*kept == raw).then_some(value)
    }

    /// Drops all values. The memory is kept.
    pub fn clear(&mut self) {
        self.slots.clear();
    }

    /// Keeps the values for which `keep` returns true, and drops the others.
    pub fn retain(&mut self, mut keep: impl FnMut(K, &mut V) -> bool) {
        self.slots
            .retain(|_, (raw, value)| keep((*raw).into(), value));
    }

    /// All keys and values, in no order.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter::new(self.slots.values())
    }

    /// All keys and values, in no order.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        IterMut::new(self.slots.values_mut())
    }

    /// Moves all values out, in no order.
    pub fn drain(&mut self) -> impl Iterator<Item = (K, V)> + '_ {
        self.slots
            .drain()
            .map(|(_, (raw, value))| (raw.into(), value))
    }
}

super::kept::references!(
    Iter,
    [],
    hash_map::Values<'a, u32, (RawKey, V)>,
    |(raw, value)| Some(((*raw).into(), value)),
    "Iterates over keys and values: see [`SparseSecondaryMap::iter`]."
);
super::kept::references!(
    IterMut,
    [mut],
    hash_map::ValuesMut<'a, u32, (RawKey, V)>,
    |(raw, value)| Some(((*raw).into(), value)),
    "Iterates over keys and values: see [`SparseSecondaryMap::iter_mut`]."
);
super::kept::secondary!(SparseSecondaryMap, "in no order");
