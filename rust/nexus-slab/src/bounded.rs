//! Slabs of a fixed number of slots.

use crate::shared::{Slot, SlotCell};
use crate::slab::{self, Kind};
use crate::store::Store;
use crate::Full;
use slabyard::parts::CALLS;
use std::ptr::NonNull;

/// The kind of [`Slab`]: one chunk.
#[derive(Debug)]
pub enum Bounded {}

impl Kind for Bounded {
    const GROWS: bool = false;
}

/// A slab of at most so many slots, whose memory is taken and touched when it is initialized.
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

/// A slot of a [`Slab`] that is taken and has no value yet. Dropped, it goes back.
pub type Claim<'a, T> = slab::Claim<'a, T, Bounded>;

impl<T> Slab<T> {
    /// A slab of so many slots.
    ///
    /// # Panics
    /// `capacity` is 0, or there is no memory for so many.
    #[inline]
    pub fn with_capacity(capacity: usize) -> Self {
        let slab = Self::new();
        slab.init(capacity);
        slab
    }

    /// Takes the memory for so many slots.
    ///
    /// # Panics
    /// The slab is initialized, `capacity` is 0, or there is no memory for so many.
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
    /// The slab is full, or not initialized.
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
        // The value is written before the list changes: the other way round, the compiler may take a
        // value of bytes apart on the stack, and to read it back costs ten cycles.
        let slot = self.store().head();
        if slot.is_null() {
            return self.try_alloc_seldom(value);
        }
        // SAFETY: a slot of the list is free and empty; writing the value runs no code of the program.
        unsafe {
            let list = Store::behind(slot);
            let slot = Slot::fill(NonNull::new_unchecked(slot).cast(), value);
            self.store().set_list(list);
            Ok(slot)
        }
    }

    /// What `try_alloc` does where the list is empty.
    #[inline(always)]
    fn try_alloc_seldom(&self, value: T) -> Result<Slot<T>, Full<T>> {
        if CALLS {
            if let Some(cell) = self.take_cell() {
                // SAFETY: the slot is ours, and empty.
                return Ok(unsafe { Slot::fill(cell, value) });
            }
        }
        Err(Full(value))
    }

    /// Takes a slot, for a value to be written in place. `None`: the slab is full, or not
    /// initialized.
    #[inline]
    pub fn claim(&self) -> Option<Claim<'_, T>> {
        self.claim_cell()
    }

    /// As [`claim`](Self::claim), with nothing that gives the slot back.
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
