//! Byte slabs of a fixed number of slots.

use super::slab::ByteSlab;
use super::{fits, ByteClaim, Slot};
use crate::bounded::{full, Bounded};
use crate::shared::Full;
use core::fmt;

/// A slab of so many slots of `N` bytes, whose memory is taken and touched when it is made.
pub type Slab<const N: usize> = ByteSlab<N, Bounded>;

impl<const N: usize> Slab<N> {
    /// A slab of so many slots.
    ///
    /// # Safety
    /// Slots are given back to this slab, before it is dropped: see [`Slab`].
    ///
    /// # Panics
    /// `capacity` is 0, or there is no memory for so many.
    #[inline]
    #[track_caller]
    pub unsafe fn with_capacity(capacity: usize) -> Self {
        // SAFETY: as the caller says.
        ByteSlab(unsafe { crate::bounded::Slab::with_capacity(capacity) })
    }

    /// Slots, taken and free.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Puts the value into a slot.
    ///
    /// # Panics
    /// The slab is full, or the type is larger than `N` bytes, or its alignment greater than 8.
    #[inline]
    #[track_caller]
    pub fn alloc<T>(&self, value: T) -> Slot<T> {
        match self.put(value) {
            Some(slot) => slot,
            None => full("byte slab full"),
        }
    }

    /// Puts the value into a slot.
    ///
    /// # Errors
    /// [`Full`], with the value: the slab is full.
    ///
    /// # Panics
    /// The type is larger than `N` bytes, or its alignment greater than 8.
    #[inline]
    #[track_caller]
    pub fn try_alloc<T>(&self, value: T) -> Result<Slot<T>, Full<T>> {
        fits::<T>(N);
        // SAFETY: the value fits; the slot holds it, and has no other handle.
        unsafe {
            self.0
                .typed()
                .insert_as(value, |slot| Ok(Slot::of(slot)), |value| Err(Full(value)))
        }
    }

    /// Takes a slot, for a value to be written in place. `None`: the slab is full.
    #[inline]
    pub fn try_claim(&self) -> Option<ByteClaim<'_>> {
        self.reserve()
    }

    /// Takes a slot, for a value to be written in place.
    ///
    /// # Panics
    /// The slab is full.
    #[inline]
    #[track_caller]
    pub fn claim(&self) -> ByteClaim<'_> {
        match self.reserve() {
            Some(claim) => claim,
            None => full("byte slab full"),
        }
    }

    /// Copies bytes into a slot, and returns where it lies. [`free_raw`](Self::free_raw) frees it.
    ///
    /// # Safety
    /// So many bytes may be read at `source`.
    ///
    /// # Panics
    /// The slab is full, or there are more than `N` bytes.
    #[inline]
    #[track_caller]
    pub unsafe fn alloc_raw(&self, source: *const u8, size: usize) -> *mut u8 {
        // SAFETY: as the caller says.
        match unsafe { self.put_raw(source, size) } {
            Some(place) => place,
            None => full("byte slab full"),
        }
    }
}

impl<const N: usize> fmt::Debug for Slab<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("byte::bounded::Slab")
            .field("slot_size", &N)
            .field("capacity", &self.capacity())
            .finish()
    }
}
