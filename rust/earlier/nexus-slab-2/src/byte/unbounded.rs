//! Byte slabs that grow by chunks.

use super::slab::ByteSlab;
use super::{ByteClaim, Slot};
use crate::builder::{builder, Plan};
use crate::unbounded::Unbounded;
use core::fmt;

/// A slab with slots of `N` bytes that adds a chunk of slots when no slot is free. Values do not
/// move. All chunks share one list of free slots, so a free takes the same time for any number of
/// chunks.
pub type Slab<const N: usize> = ByteSlab<N, Unbounded>;

impl<const N: usize> Slab<N> {
    /// Creates a slab with `chunk_capacity` slots in each chunk. The first chunk is added with the
    /// first value.
    ///
    /// # Safety
    /// Slots are given back to this slab, before it is dropped: see [`Slab`].
    ///
    /// # Panics
    /// If `chunk_capacity` is 0.
    #[inline]
    #[track_caller]
    pub unsafe fn with_chunk_capacity(chunk_capacity: usize) -> Self {
        // SAFETY: as the caller says.
        unsafe { Builder::new().chunk_capacity(chunk_capacity).build() }
    }

    /// Puts the value into a slot.
    ///
    /// # Panics
    /// If the type is larger than `N` bytes, its alignment is greater than 8, or there is no memory
    /// for another chunk.
    #[inline]
    #[track_caller]
    pub fn alloc<T>(&self, value: T) -> Slot<T> {
        match self.put(value) {
            Some(slot) => slot,
            None => self.0.no_memory(),
        }
    }

    /// Claims a slot, in which a value can be written in place.
    ///
    /// # Panics
    /// If there is no memory for another chunk.
    #[inline]
    #[track_caller]
    pub fn claim(&self) -> ByteClaim<'_> {
        match self.reserve() {
            Some(claim) => claim,
            None => self.0.no_memory(),
        }
    }

    /// Copies `size` bytes from `source` into a slot, and returns the slot's address.
    /// [`free_raw`](Self::free_raw) frees the slot.
    ///
    /// # Safety
    /// `size` bytes can be read at `source`.
    ///
    /// # Panics
    /// If `size` is greater than `N`, or there is no memory for another chunk.
    #[inline]
    #[track_caller]
    pub unsafe fn alloc_raw(&self, source: *const u8, size: usize) -> *mut u8 {
        // SAFETY: as the caller says.
        match unsafe { self.put_raw(source, size) } {
            Some(place) => place,
            None => self.0.no_memory(),
        }
    }

    /// Frees a slot as [`free_raw`](Self::free_raw) does. The number of the chunk is not needed,
    /// because all chunks share one list of free slots; a debug build checks it.
    ///
    /// # Safety
    /// As for `free_raw`; the slot lies in chunk number `chunk_idx`.
    ///
    /// # Panics
    /// In a debug build, if the slot lies in another chunk or belongs to another slab.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub unsafe fn free_raw_in_chunk(&self, slot: *mut u8, chunk_idx: usize) {
        debug_assert_eq!(
            self.0.store().chunk_of(slot as usize),
            Some(chunk_idx),
            "slot was not allocated from this chunk"
        );
        // SAFETY: as the caller says.
        unsafe { self.free_raw(slot) }
    }
}

impl<const N: usize> fmt::Debug for Slab<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("byte::unbounded::Slab")
            .field("slot_size", &N)
            .finish()
    }
}

builder! {
    /// Makes a [`Slab`].
    ///
    /// ```
    /// # use nexus_slab_2 as nexus_slab;
    /// use nexus_slab::byte::unbounded::Builder;
    ///
    /// // SAFETY: the slot is given back to this slab.
    /// let slab = unsafe { Builder::new().chunk_capacity(64).build::<256>() };
    /// slab.free(slab.alloc([0u8; 200]));
    /// ```
}

impl Builder {
    /// Creates the slab with its initial chunks.
    ///
    /// # Safety
    /// Slots are given back to this slab, before it is dropped: see [`Slab`].
    ///
    /// # Panics
    /// If the size of a chunk is 0, or there is no memory for the initial chunks.
    #[inline]
    #[track_caller]
    pub unsafe fn build<const N: usize>(self) -> Slab<N> {
        ByteSlab(self.0.build())
    }
}
