//! Byte slabs of a fixed number of slots.

use super::slab::ByteSlab;
use super::{fits, ByteClaim, Slot};
use crate::bounded::{full, Bounded};
use crate::shared::Full;
use core::fmt;

/// A slab with a fixed number of slots of `N` bytes. Its memory is allocated and touched when it is
/// created.
pub type Slab<const N: usize> = ByteSlab<N, Bounded>;

impl<const N: usize> Slab<N> {
    /// Creates a slab with `capacity` slots.
    ///
    /// # Safety
    /// Slots are given back to this slab, before it is dropped: see [`Slab`].
    ///
    /// # Panics
    /// If `capacity` is 0, or there is not enough memory.
    #[inline]
    #[track_caller]
    pub unsafe fn with_capacity(capacity: usize) -> Self {
        // SAFETY: as the caller says.
        ByteSlab(unsafe { crate::bounded::Slab::with_capacity(capacity) })
    }

    /// The number of slots, taken and free.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Puts the value into a slot.
    ///
    /// # Panics
    /// If the slab is full, the type is larger than `N` bytes, or its alignment is greater than 8.
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
    /// If the type is larger than `N` bytes, or its alignment is greater than 8.
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

    /// Claims a slot, in which a value can be written in place. `None`: the slab is full.
    #[inline]
    pub fn try_claim(&self) -> Option<ByteClaim<'_>> {
        self.reserve()
    }

    /// Claims a slot, in which a value can be written in place.
    ///
    /// # Panics
    /// If the slab is full.
    #[inline]
    #[track_caller]
    pub fn claim(&self) -> ByteClaim<'_> {
        match self.reserve() {
            Some(claim) => claim,
            None => full("byte slab full"),
        }
    }

    /// Copies `size` bytes from `source` into a slot, and returns the slot's address.
    /// [`free_raw`](Self::free_raw) frees the slot.
    ///
    /// # Safety
    /// `size` bytes can be read at `source`.
    ///
    /// # Panics
    /// If the slab is full, or `size` is greater than `N`.
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
