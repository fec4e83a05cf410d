//! Converts a [`LocalHandleMap`] to plain parts and back, for serde.

use alloc::vec::Vec;

use super::slot::{Link, Slot};
use super::{LocalHandleMap, NONE};
use crate::handle::key::Key;

/// Why a list of slots does not make a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::handle) enum FromSlots {
    NoStart,
    NoGeneration,
    TooMany,
}

impl<T, K: Key> LocalHandleMap<T, K> {
    pub(in crate::handle) fn start_generation(&self) -> u32 {
        self.start
    }

    /// For each slot the generation and value, or the generation of the next value; 0 if there will
    /// be none.
    pub(in crate::handle) fn to_slots(&self) -> impl Iterator<Item = (u32, Option<&T>)> {
        self.slots.iter().map(|slot| match slot.link() {
            Some(link) => (link.generation, None),
            // SAFETY: it is not vacant.
            None => (slot.generation(), Some(unsafe { slot.value() })),
        })
    }

    pub(in crate::handle) fn from_slots(
        start: u32,
        slots: Vec<(u32, Option<T>)>,
    ) -> Result<Self, FromSlots> {
        if slots.len() > NONE as usize {
            return Err(FromSlots::TooMany);
        }
        if start == 0 {
            return Err(FromSlots::NoStart);
        }
        let mut map = Self::with_capacity_and_key(slots.len());
        map.start = start;
        for (generation, value) in slots {
            map.slots.push(match value {
                Some(_) if generation == 0 => return Err(FromSlots::NoGeneration),
                Some(value) => {
                    map.len += 1;
                    Slot::with(value, generation)
                }
                None => Slot::vacant(Link {
                    next: NONE,
                    generation,
                }),
            });
        }
        map.relink();
        Ok(map)
    }
}
