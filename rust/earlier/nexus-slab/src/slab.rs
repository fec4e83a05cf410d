//! Slabs: slots for values of one type, and the handles that programs use for them.
//!
//! Above: [`crate::bounded`] and [`crate::unbounded`], which name the two kinds, and
//! [`crate::local`], which keeps one of either kind for a thread. Below: [`TypedStore`], where slots
//! come from.

use crate::shared::{Slot, SlotCell};
use slabyard::parts::{Kind, Store, Taken, TypedStore};
use std::fmt;
use std::ptr::NonNull;

/// Slots for one thread: [`bounded::Slab`](crate::bounded::Slab) or
/// [`unbounded::Slab`](crate::unbounded::Slab).
///
/// When it is dropped, it frees its memory if no slot is taken. If a slot is taken, its [`Slot`]
/// may be read later, so the memory stays until the process ends.
pub struct Slab<T, K: Kind>(TypedStore<T, K>);

impl<T, K: Kind> Slab<T, K> {
    /// Creates a slab without memory. It must be initialized before it is used.
    #[inline]
    pub const fn new() -> Self {
        Slab(TypedStore::new())
    }

    /// Whether the slab is initialized.
    #[inline]
    pub fn is_initialized(&self) -> bool {
        self.store().is_initialized()
    }

    /// The number of slots of all chunks, taken and free.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.store().capacity()
    }

    /// Drops the value and frees the slot, also if the drop panics.
    ///
    /// # Safety
    /// The slot was allocated from this slab, and there is no reference to the value.
    #[inline]
    pub unsafe fn free(&self, slot: Slot<T>) {
        // SAFETY: as the caller says.
        unsafe { self.0.free(slot.into_cell().cast()) }
    }

    /// Frees the slot and returns the value.
    ///
    /// # Safety
    /// The slot was allocated from this slab, and there is no reference to the value.
    #[inline]
    pub unsafe fn take(&self, slot: Slot<T>) -> T {
        // SAFETY: as the caller says.
        unsafe { self.0.remove(slot.into_cell().cast()) }
    }

    /// Frees a slot that holds no value.
    ///
    /// # Safety
    /// The slot was allocated or claimed from this slab, and is not used again.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn free_ptr(&self, cell: *mut SlotCell<T>) {
        // SAFETY: as the caller says; no slot is at address 0.
        unsafe { self.0.give(NonNull::new_unchecked(cell.cast())) }
    }

    /// Claims a slot. It is freed if no value is put in.
    #[inline]
    pub(crate) fn claim_cell(&self) -> Option<Claim<'_, T, K>> {
        self.0.take_guarded().map(Claim)
    }

    /// Takes a slot with undefined content. `None`: the slab is bounded and full, or not
    /// initialized, or there is no memory.
    #[inline(always)]
    pub(crate) fn take_cell(&self) -> Option<NonNull<SlotCell<T>>> {
        self.0.take().map(NonNull::cast)
    }

    /// The slots, with their type.
    #[inline(always)]
    pub(crate) fn typed(&self) -> &TypedStore<T, K> {
        &self.0
    }

    /// The slots without their type, which also initialize the slab.
    pub(crate) fn store(&self) -> &Store {
        self.0.store()
    }

    /// Adds a chunk. False: there is no memory.
    pub(crate) fn add_chunk(&self) -> bool {
        self.0.add_chunk()
    }
}

impl<T, K: Kind> Default for Slab<T, K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, K: Kind> fmt::Debug for Slab<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab")
            .field("capacity", &self.capacity())
            .finish()
    }
}

/// A slot that is taken and has no value yet. Dropping it frees the slot.
#[must_use = "a slot that is dropped goes back at once"]
pub struct Claim<'a, T, K: Kind>(Taken<'a, T, K>);

impl<T, K: Kind> Claim<'_, T, K> {
    /// Puts a value into the slot.
    #[inline]
    pub fn write(self, value: T) -> Slot<T> {
        // SAFETY: the slot holds a value, and has no other handle.
        unsafe { Slot::from_cell(self.0.fill(value).cast()) }
    }
}
