//! The content of a slot, the raw handles of typed slabs, and the error of a full slab.

use crate::handle::{handle, movable, pinned};
use core::borrow::{Borrow, BorrowMut};
use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::ptr::NonNull;

/// A bounded slab has no free slot. The error holds the value.
pub struct Full<T>(pub T);

impl<T> Full<T> {
    /// The value that could not be inserted.
    #[inline]
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Full(..)")
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("allocator full")
    }
}

impl<T> core::error::Error for Full<T> {}

/// A slot: a value, or the address of the next free slot in the same bytes.
#[repr(C)]
pub union SlotCell<T> {
    next_free: *mut SlotCell<T>,
    value: ManuallyDrop<MaybeUninit<T>>,
}

impl<T> SlotCell<T> {
    /// The value.
    ///
    /// # Safety
    /// The slot holds one.
    #[inline]
    pub unsafe fn value_ref(&self) -> &T {
        // SAFETY: as the caller says.
        unsafe { self.value.assume_init_ref() }
    }

    /// The value, to be changed.
    ///
    /// # Safety
    /// The slot holds one, and there is no other reference to it.
    #[inline]
    pub unsafe fn value_mut(&mut self) -> &mut T {
        // SAFETY: as the caller says.
        unsafe { (*self.value).assume_init_mut() }
    }

    /// The address of the value.
    ///
    /// # Safety
    /// The slot holds one.
    #[inline]
    pub unsafe fn value_ptr(&self) -> *const T {
        (&raw const *self).cast()
    }

    /// The address of the value, computed from the address of the slot. No reference is made, so
    /// the value may be written through the result.
    ///
    /// # Safety
    /// The slot holds a value.
    #[inline]
    pub unsafe fn value_ptr_mut(cell: *mut SlotCell<T>) -> *mut T {
        cell.cast()
    }
}

handle! {
    /// A raw handle of a slot that holds a value: an address, 8 bytes.
    ///
    /// Dropping it frees nothing: give it to `free` or `take` of its slab. A debug build panics if
    /// it is dropped instead.
    Slot of SlotCell<T>, holds (), "Slot", "give it to free or take of its slab"
}
movable!(Slot, PinnedSlot);

handle! {
    /// A raw handle of a slot whose value is pinned: it never moves until `free_pinned` drops it.
    ///
    /// [`Slot::into_pinned`] makes it. Give it to `free_pinned` of its slab before the slab is
    /// dropped. A debug build panics if you drop it instead.
    PinnedSlot of SlotCell<T>, holds (), "PinnedSlot", "give it to free_pinned of its slab"
}
pinned!(PinnedSlot);
