//! Functions of [`LocalHandleMap`] for many values at once.

use core::mem::MaybeUninit;

use super::slot::{Link, Slot};
use super::{Drain, LocalHandleMap, NONE};
use crate::handle::key::{Key, RawKey};

impl<T, K: Key> LocalHandleMap<T, K> {
    /// Moves the value of a place out with its key, if there is one.
    #[inline]
    pub(super) fn take_at(&mut self, ordinal: u32) -> Option<(RawKey, T)> {
        let generation = self.slots.get(ordinal as usize)?.generation();
        let raw = RawKey::new(ordinal, generation)?;
        self.remove_raw(raw).map(|value| (raw, value))
    }

    /// The number of slots, including vacant ones.
    #[inline]
    pub(super) fn slot_count(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Keeps the values for which `keep` returns true, and drops the others. If `keep` panics, the
    /// values that were not visited yet are kept.
    pub fn retain(&mut self, mut keep: impl FnMut(K, &mut T) -> bool) {
        for ordinal in 0..self.slot_count() {
            let slot = &mut self.slots[ordinal as usize];
            let Some(raw) = RawKey::new(ordinal, slot.generation()) else {
                continue;
            };
            // SAFETY: its generation is not 0.
            if !keep(raw.into(), unsafe { slot.value_mut() }) {
                drop(self.remove_raw(raw));
            }
        }
    }

    /// Drops all values. The memory is kept, and all keys become stale.
    pub fn clear(&mut self) {
        drop(self.drain());
    }

    /// Moves all values out. When the iterator is dropped, it drops the remaining values. If the
    /// iterator is leaked, they stay in the map.
    pub fn drain(&mut self) -> Drain<'_, T, K> {
        Drain::new(self)
    }

    /// The values of these keys, all at once. `None`: a key is stale or occurs twice.
    ///
    /// ```
    /// use slabyard::LocalHandleMap;
    /// let mut map = LocalHandleMap::new();
    /// let keys = [map.insert(1), map.insert(2)];
    /// let [one, two] = map.get_disjoint_mut(keys).unwrap();
    /// std::mem::swap(one, two);
    /// assert_eq!(map[keys[0]], 2);
    /// assert!(map.get_disjoint_mut([keys[0], keys[0]]).is_none());
    /// ```
    pub fn get_disjoint_mut<const N: usize>(&mut self, keys: [K; N]) -> Option<[&mut T; N]> {
        let raws: [RawKey; N] = keys.map(Into::into);
        let mut values = [const { MaybeUninit::<*mut T>::uninit() }; N];
        let mut found = 0;
        let (slots, count) = (self.slots.as_mut_ptr(), self.slots.len());
        for (raw, value) in raws.iter().zip(&mut values) {
            if raw.ordinal() as usize >= count {
                break;
            }
            // SAFETY: the slot exists. It looks vacant until all are found, so that it is not found
            // twice.
            unsafe {
                let (at, generation) = Slot::parts(slots.add(raw.ordinal() as usize));
                if *generation != raw.generation() {
                    break;
                }
                value.write(at);
                *generation = 0;
            }
            found += 1;
        }
        for raw in &raws[..found] {
            // SAFETY: the slot had this generation. The value beside it is not accessed.
            unsafe { *Slot::parts(slots.add(raw.ordinal() as usize)).1 = raw.generation() }
        }
        // SAFETY: all were found, in different slots, and the map is borrowed.
        (found == N).then(|| values.map(|value| unsafe { &mut *value.assume_init() }))
    }

    /// Frees the memory beyond `capacity` slots, except for places up to the last value. Valid keys
    /// stay valid, and stale keys stale. It walks through all slots.
    ///
    /// ```
    /// use slabyard::LocalHandleMap;
    /// let mut map = LocalHandleMap::new();
    /// let keys: Vec<_> = (0..1000).map(|i| map.insert(i)).collect();
    /// map.retain(|_, value| *value < 10);
    /// map.shrink_to(100);
    /// assert!(map.capacity() < 1000);
    /// map.insert(1000);
    /// assert!(map.get(keys[999]).is_none());
    /// ```
    pub fn shrink_to(&mut self, capacity: usize) {
        while self.slots.len() > capacity {
            match self.slots.last().and_then(|slot| slot.link()) {
                Some(link) if !link.is_retired() => self.start = self.start.max(link.generation),
                _ => break,
            }
            self.slots.pop();
        }
        self.relink();
        self.slots.shrink_to(capacity);
    }

    /// Frees as much memory as possible.
    pub fn shrink_to_fit(&mut self) {
        self.shrink_to(0);
    }

    /// Rebuilds the list of vacant slots, the lowest first.
    pub(in crate::handle) fn relink(&mut self) {
        self.free = NONE;
        for (ordinal, slot) in self.slots.iter_mut().enumerate().rev() {
            if let Some(link) = slot.link().filter(|link| !link.is_retired()) {
                slot.set_link(Link {
                    next: self.free,
                    ..link
                });
                self.free = ordinal as u32;
            }
        }
    }
}
