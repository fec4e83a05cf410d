//! [`SecondaryMap`]: further values for the keys of another map, in a vector indexed by place.

use alloc::vec::Vec;
use core::iter::Enumerate;
use core::marker::PhantomData;
use core::num::NonZeroU32;

use super::key::{DefaultKey, Key, RawKey};

/// The value for a key, and the key's generation.
#[derive(Clone)]
struct Kept<V> {
    generation: NonZeroU32,
    value: V,
}

/// Further values for the keys of another map. It is a vector that is as long as the highest place
/// among the keys.
///
/// A place has one value, of the newest generation inserted. Inserting for a newer key replaces the
/// value. Inserting for an older key, whose value must have been removed from the other map, does
/// nothing. This map is not told when the other map removes a key: its value stays until it is
/// replaced or removed.
///
/// It is meant for the keys of a [`LocalHandleMap`](super::LocalHandleMap). The places of a
/// [`HandleMap`](super::HandleMap) are numbers of the whole process; use `SparseSecondaryMap` for
/// these.
///
/// ```
/// use slabyard::{LocalHandleMap, SecondaryMap};
/// let mut players = LocalHandleMap::new();
/// let mut health = SecondaryMap::new();
/// let alice = players.insert("alice");
/// health.insert(alice, 100);
/// assert_eq!(health[alice], 100);
/// players.remove(alice);
/// let bob = players.insert("bob"); // where alice was
/// assert!(health.get(bob).is_none());
/// health.insert(bob, 50);
/// assert!(health.get(alice).is_none());
/// ```
#[derive(Clone)]
pub struct SecondaryMap<K: Key = DefaultKey, V = ()> {
    slots: Vec<Option<Kept<V>>>,
    len: usize,
    _keys: PhantomData<fn(K) -> K>,
}

fn generation(raw: RawKey) -> NonZeroU32 {
    NonZeroU32::new(raw.generation()).expect("a key's generation is not 0")
}

impl<K: Key, V> SecondaryMap<K, V> {
    #[cfg(feature = "serde")]
    pub(super) const PLACE_BYTES: usize = size_of::<Option<Kept<V>>>();

    /// An empty map. Allocates nothing.
    pub const fn new() -> Self {
        Self {
            slots: Vec::new(),
            len: 0,
            _keys: PhantomData,
        }
    }

    /// Creates an empty map with memory for keys of `capacity` places.
    #[track_caller]
    pub fn with_capacity(capacity: usize) -> Self {
        let mut map = Self::new();
        map.reserve(capacity);
        map
    }

    /// The number of values.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the map has no values.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of places that fit without allocating.
    pub fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Provides memory for `more` places.
    #[track_caller]
    pub fn reserve(&mut self, more: usize) {
        if let Err(error) = self.slots.try_reserve(more) {
            super::no_memory(&error);
        }
    }

    /// Frees the memory behind the last place that has a value.
    pub fn shrink_to_fit(&mut self) {
        let end = self.slots.iter().rposition(Option::is_some);
        self.slots.truncate(end.map_or(0, |last| last + 1));
        self.slots.shrink_to_fit();
    }

    /// Sets the value for a key and returns the previous value for this key. If there is a value
    /// for a newer key of the same place, `value` is dropped.
    #[track_caller]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.insert_raw(key.into(), value)
    }

    #[track_caller]
    pub(super) fn insert_raw(&mut self, raw: RawKey, value: V) -> Option<V> {
        let at = raw.ordinal() as usize;
        if at >= self.slots.len() {
            self.slots.resize_with(at + 1, || None);
        }
        let generation = generation(raw);
        let slot = &mut self.slots[at];
        match slot {
            Some(kept) if kept.generation > generation => None,
            Some(kept) if kept.generation == generation => {
                Some(core::mem::replace(&mut kept.value, value))
            }
            _ => {
                self.len += usize::from(slot.is_none());
                *slot = Some(Kept { generation, value });
                None
            }
        }
    }

    /// Whether there is a value for a newer key of the same place.
    fn has_newer(&self, raw: RawKey) -> bool {
        let kept = self.slots.get(raw.ordinal() as usize);
        matches!(kept, Some(Some(kept)) if kept.generation.get() > raw.generation())
    }

    /// Removes the value for a key and returns it.
    pub fn remove(&mut self, key: K) -> Option<V> {
        let raw = key.into();
        let slot = self.slots.get_mut(raw.ordinal() as usize)?;
        let kept = slot.take_if(|kept| kept.generation.get() == raw.generation())?;
        self.len -= 1;
        Some(kept.value)
    }

    /// The value for a key.
    #[inline]
    pub fn get(&self, key: K) -> Option<&V> {
        let raw = key.into();
        let kept = self.slots.get(raw.ordinal() as usize)?.as_ref()?;
        (kept.generation.get() == raw.generation()).then_some(&kept.value)
    }

    /// The value for a key.
    #[inline]
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let raw = key.into();
        let kept = self.slots.get_mut(raw.ordinal() as usize)?.as_mut()?;
        (kept.generation.get() == raw.generation()).then_some(&mut kept.value)
    }

    /// Drops all values. The memory is kept.
    pub fn clear(&mut self) {
        self.len = 0;
        self.slots.clear();
    }

    /// Keeps the values for which `keep` returns true, and drops the others.
    pub fn retain(&mut self, mut keep: impl FnMut(K, &mut V) -> bool) {
        for (at, slot) in self.slots.iter_mut().enumerate() {
            let gone = slot.take_if(|kept| !keep(key_of(at, kept), &mut kept.value));
            self.len -= usize::from(gone.is_some());
        }
    }

    /// All keys and values, in the order of places.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter::new(self.slots.iter().enumerate())
    }

    /// All keys and values, in the order of places.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        IterMut::new(self.slots.iter_mut().enumerate())
    }

    /// Moves all values out, in the order of places.
    pub fn drain(&mut self) -> impl Iterator<Item = (K, V)> + '_ {
        self.len = 0;
        let kept = self.slots.drain(..).enumerate();
        kept.filter_map(|(at, slot)| slot.map(|kept| (key_of(at, &kept), kept.value)))
    }
}

fn key_of<K: Key, V>(at: usize, kept: &Kept<V>) -> K {
    RawKey::of_parts(at as u32, kept.generation.get()).into()
}

super::kept::references!(
    Iter,
    [],
    Enumerate<core::slice::Iter<'a, Option<Kept<V>>>>,
    |(at, slot)| {
        let kept = slot.as_ref()?;
        Some((key_of(at, kept), &kept.value))
    },
    "Iterates over keys and values: see [`SecondaryMap::iter`]."
);
super::kept::references!(
    IterMut,
    [mut],
    Enumerate<core::slice::IterMut<'a, Option<Kept<V>>>>,
    |(at, slot)| {
        let kept = slot.as_mut()?;
        Some((key_of(at, kept), &mut kept.value))
    },
    "Iterates over keys and values: see [`SecondaryMap::iter_mut`]."
);
super::kept::secondary!(SecondaryMap, "by place");
