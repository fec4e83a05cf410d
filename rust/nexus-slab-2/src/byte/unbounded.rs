//! Byte slabs that grow by chunks.

use super::slab::ByteSlab;
use super::{ByteClaim, Slot};
use crate::builder::{builder, Plan};
use crate::unbounded::Unbounded;
use core::fmt;

/// A slab of slots of `N` bytes that adds a chunk of slots when none is free. What is in it never
/// moves. All chunks have one list of free slots, so a free takes the same time however many chunks
/// there are.
pub type Slab<const N: usize> = ByteSlab<N, Unbounded>;

impl<const N: usize> Slab<N> {
    /// A slab whose chunks have so many slots. The first chunk comes with the first value.
    ///
    /// # Safety
    /// Slots are given back to this slab, before it is dropped: see [`Slab`].
    ///
    /// # Panics
    /// `chunk_capacity` is 0.
    #[inline]
    #[track_caller]
    pub unsafe fn with_chunk_capacity(chunk_capacity: usize) -> Self {
        // SAFETY: as the caller says.
        unsafe { Builder::new().chunk_capacity(chunk_capacity).build() }
    }

    /// Puts the value into a slot.
    ///
    /// # Panics
    /// The type is larger than `N` bytes, or its alignment greater than 8, or there is no memory for
    /// another chunk.
    #[inline]
    #[track_caller]
    pub fn alloc<T>(&self, value: T) -> Slot<T> {
        match self.put(value) {
            Some(slot) => slot,
            None => self.0.no_memory(),
        }
    }

    /// Takes a slot, for a value to be written in place.
    ///
    /// # Panics
    /// There is no memory for another chunk.
    #[inline]
    #[track_caller]
    pub fn claim(&self) -> ByteClaim<'_> {
        match self.reserve() {
            Some(claim) => claim,
            None => self.0.no_memory(),
        }
    }

    /// Copies bytes into a slot, and returns where it lies. [`free_raw`](Self::free_raw) frees it.
    ///
    /// # Safety
    /// So many bytes may be read at `source`.
    ///
    /// # Panics
    /// There are more than `N` bytes, or there is no memory for another chunk.
    #[inline]
    #[track_caller]
    pub unsafe fn alloc_raw(&self, source: *const u8, size: usize) -> *mut u8 {
        // SAFETY: as the caller says.
        match unsafe { self.put_raw(source, size) } {
            Some(place) => place,
            None => self.0.no_memory(),
        }
    }

    /// As [`free_raw`](Self::free_raw). The chunk need not be known here: all chunks have one list.
    ///
    /// # Safety
    /// As for `free_raw`; the slot is in the chunk of this number.
    ///
    /// # Panics
    /// In a debug build: the slot is in another chunk, or of another slab.
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
    /// The slab, with its first chunks.
    ///
    /// # Safety
    /// Slots are given back to this slab, before it is dropped: see [`Slab`].
    ///
    /// # Panics
    /// The size of a chunk is 0, or there is no memory for the first chunks.
    #[inline]
    #[track_caller]
    pub unsafe fn build<const N: usize>(self) -> Slab<N> {
        ByteSlab(self.0.build())
    }
}
