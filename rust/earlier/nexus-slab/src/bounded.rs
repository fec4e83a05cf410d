//! Slabs of a fixed number of slots.

use crate::shared::{Slot, SlotCell};
use crate::slab;
use crate::Full;
use std::ptr::NonNull;

pub use slabyard::parts::Bounded;

/// A slab with a fixed number of slots. Its memory is allocated and touched when it is initialized.
///
/// ```
/// use nexus_slab::bounded::Slab;
///
/// let slab = Slab::with_capacity(1);
/// let slot = slab.alloc(42u64);
/// assert_eq!(slab.try_alloc(43).unwrap_err().into_inner(), 43);
/// // SAFETY: the slot is of this slab, and not used again.
/// unsafe { slab.free(slot) };
/// ```
pub type Slab<T> = slab::Slab<T, Bounded>;

/// A slot of a [`Slab`] that is taken and has no value yet. Dropping it frees the slot.
pub type Claim<'a, T> = slab::Claim<'a, T, Bounded>;

impl<T> Slab<T> {
    /// Creates a slab with `capacity` slots.
    ///
    /// # Panics
    /// If `capacity` is 0, or there is not enough memory.
    #[inline]
    pub fn with_capacity(capacity: usize) -> Self {
        let slab = Self::new();
        slab.init(capacity);
        slab
    }

    /// Allocates the memory for `capacity` slots.
    ///
    /// # Panics
    /// If the slab is initialized already, `capacity` is 0, or there is not enough memory.
    pub fn init(&self, capacity: usize) {
        assert!(capacity > 0, "capacity must be non-zero");
        self.store().initialize(capacity);
        if !self.add_chunk() {
            self.store().release();
            panic!("there is no memory for a slab of {capacity} slots");
        }
    }

    /// Puts the value into a slot.
    ///
    /// # Panics
    /// If the slab is full, or not initialized.
    #[inline]
    #[track_caller]
    pub fn alloc(&self, value: T) -> Slot<T> {
        match self.take_cell() {
            // SAFETY: the slot is ours, and empty.
            Some(cell) => unsafe { Slot::fill(cell, value) },
            None => full(),
        }
    }

    /// Puts the value into a slot.
    ///
    /// # Errors
    /// [`Full`], with the value: the slab is full, or not initialized.
    #[inline]
    pub fn try_alloc(&self, value: T) -> Result<Slot<T>, Full<T>> {
        let named = |slot: NonNull<T>| {
            // SAFETY: the slot holds the value, and has no other handle.
            unsafe { Slot::from_cell(slot.cast()) }
        };
        self.typed()
            .insert(value, |slot| Ok(named(slot)), |value| Err(Full(value)))
    }

    /// Claims a slot, in which a value can be written in place. `None`: the slab is full, or not
    /// initialized.
    #[inline]
    pub fn claim(&self) -> Option<Claim<'_, T>> {
        self.claim_cell()
    }

    /// Claims a slot as [`claim`](Self::claim) does, without a guard that frees it.
    #[doc(hidden)]
    #[inline]
    pub fn claim_ptr(&self) -> Option<*mut SlotCell<T>> {
        self.take_cell().map(|cell| cell.as_ptr())
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn full() -> ! {
    panic!("slab full")
}
