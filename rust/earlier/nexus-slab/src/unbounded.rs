//! Slabs that grow by chunks.

use crate::shared::{Slot, SlotCell};
use crate::slab;

pub use slabyard::parts::Unbounded;

/// A slab that adds a chunk of slots when no slot is free. Values do not move. All chunks share one
/// list of free slots, so a free takes the same time for any number of chunks.
///
/// ```
/// use nexus_slab::unbounded::Slab;
///
/// let slab = Slab::with_chunk_capacity(4096);
/// let slot = slab.alloc(42u64);
/// assert_eq!((*slot, slab.chunk_count()), (42, 1));
/// // SAFETY: the slot is of this slab, and not used again.
/// unsafe { slab.free(slot) };
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
    /// # Panics
    /// If `chunk_capacity` is 0.
    #[inline]
    pub fn with_chunk_capacity(chunk_capacity: usize) -> Self {
        let slab = Self::new();
        slab.init(chunk_capacity);
        slab
    }

    /// Sets the number of slots of a chunk.
    ///
    /// # Panics
    /// If the slab is initialized already, or `chunk_capacity` is 0.
    pub fn init(&self, chunk_capacity: usize) {
        assert!(chunk_capacity > 0, "chunk_capacity must be non-zero");
        self.store().initialize(chunk_capacity);
    }

    /// The number of slots of a chunk; 0 until the slab is initialized.
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
    /// If the slab is not initialized, or there is no memory.
    pub fn reserve_chunks(&self, count: usize) {
        if !fits::<T>(count, self.chunk_capacity()) {
            self.no_slot();
        }
        while self.chunk_count() < count {
            if !self.is_initialized() || !self.add_chunk() {
                self.no_slot();
            }
        }
    }

    /// Puts the value into a slot.
    ///
    /// # Panics
    /// If the slab is not initialized, or there is no memory.
    #[inline]
    #[track_caller]
    pub fn alloc(&self, value: T) -> Slot<T> {
        match self.take_cell() {
            // SAFETY: the slot is ours, and empty.
            Some(cell) => unsafe { Slot::fill(cell, value) },
            None => self.no_slot(),
        }
    }

    /// Claims a slot, in which a value can be written in place.
    ///
    /// # Panics
    /// If the slab is not initialized, or there is no memory.
    #[inline]
    #[track_caller]
    pub fn claim(&self) -> Claim<'_, T> {
        match self.claim_cell() {
            Some(claim) => claim,
            None => self.no_slot(),
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(crate) fn no_slot(&self) -> ! {
        assert!(self.is_initialized(), "allocator not initialized");
        panic!("there is no memory for another chunk")
    }
}
