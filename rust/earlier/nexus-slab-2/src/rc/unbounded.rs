//! Slabs that grow by chunks, of values with several owners.

use super::slab::RcSlab;
use super::{RcCell, RcSlot};
use crate::unbounded::Unbounded;
use core::fmt;

/// A slab that adds a chunk of slots when no slot is free. Values do not move.
pub type Slab<T> = RcSlab<T, Unbounded>;

impl<T> Slab<T> {
    /// Creates a slab with `chunk_capacity` slots in each chunk. The first chunk is added with the
    /// first value.
    ///
    /// # Safety
    /// Owners are given back to this slab, before it is dropped: see [`Slab`].
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
    /// If there is no memory for another chunk.
    #[inline]
    #[track_caller]
    pub fn alloc(&self, value: T) -> RcSlot<T> {
        Self::own(self.inner.alloc(RcCell::new(value)))
    }

    /// The number of slots of a chunk.
    #[inline]
    pub fn chunk_capacity(&self) -> usize {
        self.inner.chunk_capacity()
    }

    /// The number of chunks.
    #[inline]
    pub fn chunk_count(&self) -> usize {
        self.inner.chunk_count()
    }

    /// Adds chunks until there are `count` of them.
    ///
    /// # Panics
    /// If there is no memory.
    #[track_caller]
    pub fn reserve_chunks(&self, count: usize) {
        self.inner.reserve_chunks(count);
    }
}

impl<T> fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("rc::unbounded::Slab")
            .field("capacity", &self.capacity())
            .finish()
    }
}

/// Makes a [`Slab`].
///
/// ```
/// # use nexus_slab_2 as nexus_slab;
/// use nexus_slab::rc::unbounded::Builder;
///
/// // SAFETY: the owner is given back to this slab.
/// let slab = unsafe { Builder::new().chunk_capacity(64).initial_chunks(2).build() };
/// assert_eq!(slab.chunk_count(), 2);
/// slab.free(slab.alloc(42u64));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Builder {
    inner: crate::unbounded::Builder,
}

impl Builder {
    /// Starts with chunks of 256 slots and no initial chunk.
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of slots of a chunk. If it is 0, `build` panics.
    #[inline]
    pub fn chunk_capacity(mut self, slots: usize) -> Self {
        self.inner = self.inner.chunk_capacity(slots);
        self
    }

    /// Sets the number of initial chunks.
    #[inline]
    pub fn initial_chunks(mut self, chunks: usize) -> Self {
        self.inner = self.inner.initial_chunks(chunks);
        self
    }

    /// Creates the slab with its initial chunks.
    ///
    /// # Safety
    /// Owners are given back to this slab, before it is dropped: see [`Slab`].
    ///
    /// # Panics
    /// If the size of a chunk is 0, or there is no memory for the initial chunks.
    #[inline]
    #[track_caller]
    pub unsafe fn build<T>(self) -> Slab<T> {
        // SAFETY: as the caller says.
        Slab::of(unsafe { self.inner.build() })
    }
}
