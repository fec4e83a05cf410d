//! [`LocalHandleMap`]: a map with one owner, a vector of slots, each with its generation.
//!
//! ```text
//!     slots:  | 3  value | 0  next, 5 | 1  value | 0  next, 2 | 0  RETIRED |
//!                              free -->----------------^  (newest first)
//! ```
//!
//! The generation of a slot is the generation of its value. A slot without a value has 0, which no
//! key has, so one compare refuses a stale key. A vacant slot keeps the generation of its next
//! value. When all generations of a slot are used up, the slot is retired. When vacant slots at the
//! end are cut off, `start` is set above all generations that they had; new slots begin with it.

mod iter;
mod live;
mod many;
mod slot;
#[cfg(feature = "serde")]
mod slots;

pub use iter::{Drain, IntoIter, Iter, IterMut, Keys, Values, ValuesMut};
#[cfg(feature = "serde")]
pub(in crate::handle) use slots::FromSlots;

use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Index, IndexMut};

use super::key::{DefaultKey, Key, RawKey};
use slot::{Link, Slot};

/// The ordinal that means "no slot".
const NONE: u32 = u32::MAX;

/// A map with one owner, which gives out a key for each value. It uses plain references and no
/// atomics.
///
/// A stale key never becomes valid again, not even after [`clear`](Self::clear) or
/// [`shrink_to`](Self::shrink_to). A slot whose 2^32 - 1 generations are used up is retired. Values
/// move when the map grows. The map is `Send` and `Sync` if `T` is.
///
/// ```
/// use slabyard::LocalHandleMap;
/// let mut map = LocalHandleMap::new();
/// let first = map.insert("first");
/// let second = map.insert("second");
/// assert_eq!(map.remove(first), Some("first"));
/// let third = map.insert("third"); // where the first was
/// assert_eq!(map.get(first), None);
/// assert_eq!((map[second], map[third]), ("second", "third"));
/// ```
pub struct LocalHandleMap<T, K: Key = DefaultKey> {
    slots: Vec<Slot<T>>,
    /// The newest vacant slot, or [`NONE`].
    free: u32,
    len: u32,
    /// The first generation of a new slot.
    start: u32,
    _keys: PhantomData<fn(K) -> K>,
}

#[cold]
#[inline(never)]
#[track_caller]
fn full() -> ! {
    panic!("a map has at most 2^32 - 1 slots")
}

#[cold]
#[inline(never)]
#[track_caller]
fn stale(key: &dyn fmt::Debug) -> ! {
    panic!("no value has the key {key:?}")
}

impl<T> LocalHandleMap<T> {
    /// Creates an empty map with keys of the type [`DefaultKey`]. Allocates nothing.
    pub const fn new() -> Self {
        Self::with_key()
    }

    /// Creates an empty map with memory for `capacity` values.
    #[track_caller]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_and_key(capacity)
    }
}

impl<T, K: Key> LocalHandleMap<T, K> {
    /// Creates an empty map with keys of the type `K`.
    pub const fn with_key() -> Self {
        Self {
            slots: Vec::new(),
            free: NONE,
            len: 0,
            start: 1,
            _keys: PhantomData,
        }
    }

    /// Creates an empty map with keys of the type `K` and memory for `capacity` values.
    #[track_caller]
    pub fn with_capacity_and_key(capacity: usize) -> Self {
        let mut map = Self::with_key();
        map.reserve(capacity);
        map
    }

    /// The number of values.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the map has no values.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of slots that fit without allocating, including retired slots.
    pub fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Inserts a value and returns its key.
    ///
    /// # Panics
    /// If there are 2^32 - 1 slots.
    #[inline]
    #[track_caller]
    pub fn insert(&mut self, value: T) -> K {
        // The slot is made first: a value that is passed on to a function would have to lie in
        // memory.
        if self.free as usize >= self.slots.len() {
            self.add_vacant();
        }
        let ordinal = self.free;
        // SAFETY: the slot exists and is in the list of free slots: vacant, and not retired.
        unsafe {
            let link = self.slots.get_unchecked_mut(ordinal as usize).fill(value);
            self.free = link.next;
            self.len += 1;
            RawKey::of_parts_unchecked(ordinal, link.generation).into()
        }
    }

    /// Inserts the value that `make` makes from its own key. If `make` panics, the key stays
    /// invalid.
    ///
    /// # Panics
    /// If there are 2^32 - 1 slots.
    #[inline]
    #[track_caller]
    pub fn insert_with_key(&mut self, make: impl FnOnce(K) -> T) -> K {
        let entry = self.vacant_entry();
        let value = make(entry.key());
        entry.insert(value)
    }

    /// Claims a place whose key is known before its value exists.
    ///
    /// # Panics
    /// If there are 2^32 - 1 slots.
    #[inline]
    #[track_caller]
    pub fn vacant_entry(&mut self) -> LocalVacantEntry<'_, T, K> {
        if self.free == NONE {
            self.add_vacant();
        }
        // The slot leaves the list now. So a leaked entry loses a slot, and no key is given out
        // twice.
        let ordinal = self.free;
        let link = self.slots[ordinal as usize].link();
        let link = link.expect("what is in the list of free slots is vacant");
        self.free = link.next;
        self.slots[ordinal as usize].set_link(Link::RETIRED);
        LocalVacantEntry {
            key: RawKey::of_parts(ordinal, link.generation),
            map: self,
        }
    }

    /// Adds a vacant slot at the end.
    #[inline(never)]
    #[track_caller]
    fn add_vacant(&mut self) {
        let ordinal = self.slots.len();
        if ordinal >= NONE as usize {
            full();
        }
        self.slots.push(Slot::vacant(Link {
            next: NONE,
            generation: self.start,
        }));
        self.free = ordinal as u32;
    }

    /// Removes the value with this key and returns it. `None`: the key is stale.
    #[inline]
    pub fn remove(&mut self, key: K) -> Option<T> {
        self.remove_raw(key.into())
    }

    #[inline]
    fn remove_raw(&mut self, raw: RawKey) -> Option<T> {
        let slot = self.slots.get_mut(raw.ordinal() as usize)?;
        if slot.generation() != raw.generation() {
            return None;
        }
        // SAFETY: a key's generation is not 0, so the slot has a value.
        let value = unsafe { slot.empty(Link::after(raw.generation(), self.free)) };
        if raw.generation() != u32::MAX {
            self.free = raw.ordinal();
        }
        self.len -= 1;
        Some(value)
    }

    /// The value with this key. `None`: the key is stale.
    #[inline]
    pub fn get(&self, key: K) -> Option<&T> {
        let raw = key.into();
        let slot = self.slots.get(raw.ordinal() as usize)?;
        // SAFETY: a key's generation is not 0, so the slot has a value.
        (slot.generation() == raw.generation()).then(|| unsafe { slot.value() })
    }

    /// The value with this key. `None`: the key is stale.
    #[inline]
    pub fn get_mut(&mut self, key: K) -> Option<&mut T> {
        let raw = key.into();
        let slot = self.slots.get_mut(raw.ordinal() as usize)?;
        // SAFETY: a key's generation is not 0, so the slot has a value.
        (slot.generation() == raw.generation()).then(|| unsafe { slot.value_mut() })
    }

    /// Whether there is a value with this key.
    #[inline]
    pub fn contains(&self, key: K) -> bool {
        self.get(key).is_some()
    }

    /// Iterates over all keys and values, in the order of places.
    pub fn iter(&self) -> Iter<'_, T, K> {
        // SAFETY: the values are counted.
        unsafe { Iter::new(&self.slots, self.len) }
    }

    /// Iterates over all keys and values, in the order of places.
    pub fn iter_mut(&mut self) -> IterMut<'_, T, K> {
        // SAFETY: the values are counted.
        unsafe { IterMut::new(&mut self.slots, self.len) }
    }

    /// Iterates over all keys, in the order of places.
    pub fn keys(&self) -> Keys<'_, T, K> {
        Keys::new(self.iter())
    }

    /// Iterates over all values, in the order of places.
    pub fn values(&self) -> Values<'_, T, K> {
        Values::new(self.iter())
    }

    /// Iterates over all values, in the order of places.
    pub fn values_mut(&mut self) -> ValuesMut<'_, T, K> {
        ValuesMut::new(self.iter_mut())
    }

    /// Provides memory for `more` values.
    ///
    /// # Panics
    /// If there would be more than 2^32 - 1 slots, or there is no memory.
    #[track_caller]
    pub fn reserve(&mut self, more: usize) {
        if let Err(error) = self.try_reserve(more) {
            crate::handle::no_memory(&error);
        }
    }

    /// Provides memory for `more` values.
    ///
    /// # Errors
    /// There is no memory.
    pub fn try_reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        self.slots.try_reserve(self.more_slots(more))
    }

    fn more_slots(&self, values: usize) -> usize {
        values.saturating_sub(self.slots.len() - self.len())
    }
}

/// A place in a [`LocalHandleMap`] that is claimed and has no value yet. If it is dropped without a
/// value, its key stays invalid.
///
/// ```
/// use slabyard::{DefaultKey, LocalHandleMap};
/// struct Node { me: DefaultKey }
/// let mut map = LocalHandleMap::new();
/// let entry = map.vacant_entry();
/// let me = entry.key();
/// entry.insert(Node { me });
/// assert_eq!(map[me].me, me);
/// ```
pub struct LocalVacantEntry<'a, T, K: Key> {
    map: &'a mut LocalHandleMap<T, K>,
    key: RawKey,
}

impl<T, K: Key> LocalVacantEntry<'_, T, K> {
    /// The key that the value will have.
    #[inline]
    pub fn key(&self) -> K {
        self.key.into()
    }

    /// Inserts the value and returns its key.
    #[inline]
    #[track_caller]
    pub fn insert(self, value: T) -> K {
        let mut this = core::mem::ManuallyDrop::new(self);
        let key = this.key;
        this.map.slots[key.ordinal() as usize] = Slot::with(value, key.generation());
        this.map.len += 1;
        key.into()
    }
}

impl<T, K: Key> Drop for LocalVacantEntry<'_, T, K> {
    fn drop(&mut self) {
        let link = Link::after(self.key.generation(), self.map.free);
        self.map.slots[self.key.ordinal() as usize].set_link(link);
        if !link.is_retired() {
            self.map.free = self.key.ordinal();
        }
    }
}

impl<T, K: Key> Index<K> for LocalHandleMap<T, K> {
    type Output = T;

    /// # Panics
    /// If the key is stale.
    #[inline]
    #[track_caller]
    fn index(&self, key: K) -> &T {
        match self.get(key) {
            Some(value) => value,
            None => stale(&key),
        }
    }
}

impl<T, K: Key> IndexMut<K> for LocalHandleMap<T, K> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, key: K) -> &mut T {
        match self.get_mut(key) {
            Some(value) => value,
            None => stale(&key),
        }
    }
}

impl<T, K: Key> Default for LocalHandleMap<T, K> {
    fn default() -> Self {
        Self::with_key()
    }
}

/// Inserts all values. Their keys are found by [`LocalHandleMap::keys`].
impl<T, K: Key> Extend<T> for LocalHandleMap<T, K> {
    #[track_caller]
    fn extend<I: IntoIterator<Item = T>>(&mut self, all: I) {
        for value in all {
            self.insert(value);
        }
    }
}

/// A new map of these values, in this order. Their keys are found by [`LocalHandleMap::keys`].
impl<T, K: Key> FromIterator<T> for LocalHandleMap<T, K> {
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        let mut map = Self::with_key();
        map.extend(all);
        map
    }
}

/// The keys of the map are valid for its clone, too.
impl<T: Clone, K: Key> Clone for LocalHandleMap<T, K> {
    fn clone(&self) -> Self {
        Self {
            slots: self.slots.clone(),
            ..*self
        }
    }
}

/// Whether both have values for the same keys, and equal ones.
impl<T: PartialEq, K: Key> PartialEq for LocalHandleMap<T, K> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self
                .iter()
                .all(|(key, value)| other.get(key) == Some(value))
    }
}

impl<T: Eq, K: Key> Eq for LocalHandleMap<T, K> {}

impl<T: fmt::Debug, K: Key> fmt::Debug for LocalHandleMap<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
