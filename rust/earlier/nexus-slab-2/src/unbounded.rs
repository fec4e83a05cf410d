//! Slabs that grow by chunks.

use crate::builder::{builder, Plan};
use crate::shared::{Slot, SlotCell};
use crate::slab;
use core::fmt;
use slabyard::parts::Kind;

/// The kind of a growing [`Slab`]: it has as many chunks as are needed.
#[derive(Debug)]
pub enum Unbounded {}

impl Kind for Unbounded {
    const GROWS: bool = true;
    const TELLS: bool = false; // handles cannot be copied
}

/// A slab that adds a chunk of slots when no slot is free. Values do not move. All chunks share one
/// list of free slots, so a free takes the same time for any number of chunks.
///
/// ```
/// # use nexus_slab_2 as nexus_slab;
/// use nexus_slab::unbounded::Slab;
///
/// // SAFETY: the slot is given back to this slab.
/// let slab = unsafe { Slab::with_chunk_capacity(4096) };
/// let slot = slab.alloc(42u64);
/// assert_eq!((*slot, slab.chunk_count()), (42, 1));
/// slab.free(slot);
/// ```
pub type Slab<T> = slab::Slab<T, Unbounded>;

/// A slot of a [`Slab`] that is taken and has no value yet. Dropping it frees the slot.
pub type Claim<'a, T> = slab::Claim<'a, T, Unbounded>;

/// Whether so many chunks fit into the address space of a program, which has 47 bits.
fn fits<T>(chunks: usize, chunk_slots: usize) -> bool {
    let most = isize::MAX as usize >> usize::BITS.saturating_sub(48);
    size_of::<SlotCell<T>>()
        .checked_mul(chunk_slots)
        .and_then(|bytes| bytes.checked_mul(chunks))
        .is_some_and(|bytes| bytes <= most)
}

impl<T> Slab<T> {
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

    /// The number of slots of a chunk.
    #[inline]
    pub fn chunk_capacity(&self) -> usize {
        self.store().chunk_slots()
    }

    /// The number of chunks.
    #[inline]
    pub fn chunk_count(&self) -> usize {
        self.store().chunks()
    }

    /// Adds chunks until there are `count` of them.
    ///
    /// # Panics
    /// If there is no memory.
    #[inline]
    #[track_caller]
    pub fn reserve_chunks(&self, count: usize) {
        if !fits::<T>(count, self.chunk_capacity()) {
            self.no_memory();
        }
        while self.chunk_count() < count {
            self.add_chunk();
        }
    }

    /// Puts the value into a slot.
    ///
    /// # Panics
    /// If there is no memory for another chunk.
    #[inline]
    #[track_caller]
    pub fn alloc(&self, value: T) -> Slot<T> {
        self.claim().write(value)
    }

    /// Claims a slot, in which a value can be written in place.
    ///
    /// # Panics
    /// If there is no memory for another chunk.
    #[inline]
    #[track_caller]
    pub fn claim(&self) -> Claim<'_, T> {
        match self.typed().take_guarded() {
            Some(taken) => slab::Claim(taken),
            None => self.no_memory(),
        }
    }
}

builder! {
    /// Makes a [`Slab`].
    ///
    /// ```
    /// # use nexus_slab_2 as nexus_slab;
    /// use nexus_slab::unbounded::Builder;
    ///
    /// // SAFETY: the slot is given back to this slab.
    /// let slab = unsafe { Builder::new().chunk_capacity(64).initial_chunks(2).build() };
    /// assert_eq!(slab.capacity(), 128);
    /// slab.free(slab.alloc(42u64));
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
    pub unsafe fn build<T>(self) -> Slab<T> {
        self.0.build()
    }
}
