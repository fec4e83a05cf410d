//! Slabs of a fixed number of slots, of values with several owners.

use super::slab::RcSlab;
use super::{RcCell, RcSlot};
use crate::bounded::Bounded;
use crate::shared::Full;
use core::fmt;

/// A slab with a fixed number of slots. Its memory is allocated and touched when it is created.
pub type Slab<T> = RcSlab<T, Bounded>;

impl<T> Slab<T> {
    /// Creates a slab with `capacity` slots.
    ///
    /// # Safety
    /// Owners are given back to this slab, before it is dropped: see [`Slab`].
    ///
    /// # Panics
    /// If `capacity` is 0, or there is not enough memory.
    #[inline]
    #[track_caller]
    pub unsafe fn with_capacity(capacity: usize) -> Self {
        // SAFETY: as the caller says.
        Self::of(unsafe { crate::bounded::Slab::with_capacity(capacity) })
    }

    /// Puts the value into a slot.
    ///
    /// # Panics
    /// If the slab is full.
    #[inline]
    #[track_caller]
    pub fn alloc(&self, value: T) -> RcSlot<T> {
        Self::own(self.inner.alloc(RcCell::new(value)))
    }

    /// Puts the value into a slot.
    ///
    /// # Errors
    /// [`Full`], with the value: the slab is full.
    #[inline]
    pub fn try_alloc(&self, value: T) -> Result<RcSlot<T>, Full<T>> {
        match self.inner.try_alloc(RcCell::new(value)) {
            Ok(slot) => Ok(Self::own(slot)),
            Err(Full(cell)) => Err(Full(cell.into_inner())),
        }
    }
}

impl<T> fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("rc::bounded::Slab")
            .field("capacity", &self.capacity())
            .finish()
    }
}
