//! The content of a slot, and the raw handle of a slot.

use std::borrow::{Borrow, BorrowMut};
use std::cell::Cell;
use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A slot: a value, or the address of the next free slot in the same bytes.
#[repr(C)]
pub union SlotCell<T> {
    /// In a free slot: the next one, or null.
    #[doc(hidden)]
    pub next_free: *mut SlotCell<T>,
    /// In a taken slot: the value.
    #[doc(hidden)]
    pub value: ManuallyDrop<MaybeUninit<T>>,
}

/// A value with counts before it: the content of a slot with several owners.
///
/// Its drop does not drop the value. The owners drop it ([`RcSlot`](crate::alloc::RcSlot)).
#[repr(C)]
pub struct RcInner<T> {
    pub(crate) strong: Cell<u32>,
    /// All owners together count as one weak reference.
    pub(crate) weak: Cell<u32>,
    pub(crate) value: ManuallyDrop<T>,
}

impl<T> RcInner<T> {
    /// A value with one owner.
    #[inline]
    pub fn new(value: T) -> Self {
        RcInner {
            strong: Cell::new(1),
            weak: Cell::new(1),
            value: ManuallyDrop::new(value),
        }
    }

    /// The number of owners.
    #[inline]
    pub fn strong(&self) -> u32 {
        self.strong.get()
    }

    /// The number of weak references, plus one while the value is owned.
    #[inline]
    pub fn weak(&self) -> u32 {
        self.weak.get()
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> &T {
        &self.value
    }
}

/// A raw handle of a slot that holds a value: one pointer, 8 bytes.
///
/// Dropping it frees nothing. Pass it to `free` or `take` of its slab or allocator; otherwise the
/// slot stays taken.
#[repr(transparent)]
pub struct Slot<T>(NonNull<SlotCell<T>>);

impl<T> Slot<T> {
    /// Makes a handle from the address of a slot.
    ///
    /// # Safety
    /// The slot holds a value, and no other `Slot` has its address.
    #[inline]
    pub unsafe fn from_ptr(cell: *mut SlotCell<T>) -> Self {
        // SAFETY: no slot is at address 0.
        Slot(unsafe { NonNull::new_unchecked(cell) })
    }

    /// Puts the value into a slot.
    ///
    /// # Safety
    /// The slot is taken, holds no value, and is not used by any other code.
    #[inline(always)]
    pub(crate) unsafe fn fill(cell: NonNull<SlotCell<T>>, value: T) -> Self {
        // SAFETY: as the caller says; a slot has the size and alignment of T.
        unsafe { cell.cast::<T>().write(value) };
        Slot(cell)
    }

    /// # Safety
    /// As [`Slot::from_ptr`].
    #[inline(always)]
    pub(crate) unsafe fn from_cell(cell: NonNull<SlotCell<T>>) -> Self {
        Slot(cell)
    }

    /// Makes a second handle of the same slot.
    ///
    /// # Safety
    /// Only one of the two is used to reach the value or to free it.
    #[inline(always)]
    pub(crate) unsafe fn copy(&self) -> Self {
        Slot(self.0)
    }

    #[inline(always)]
    pub(crate) fn into_cell(self) -> NonNull<SlotCell<T>> {
        self.0
    }

    /// The address of the slot.
    #[inline]
    pub fn as_ptr(&self) -> *mut SlotCell<T> {
        self.0.as_ptr()
    }
}

impl<T> Deref for Slot<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the slot holds a value, and its memory stays as long as it is taken.
        unsafe { self.0.cast().as_ref() }
    }
}

impl<T> DerefMut for Slot<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in deref; this is the only handle of the slot.
        unsafe { self.0.cast().as_mut() }
    }
}

impl<T> AsRef<T> for Slot<T> {
    #[inline]
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T> AsMut<T> for Slot<T> {
    #[inline]
    fn as_mut(&mut self) -> &mut T {
        self
    }
}

impl<T> Borrow<T> for Slot<T> {
    #[inline]
    fn borrow(&self) -> &T {
        self
    }
}

impl<T> BorrowMut<T> for Slot<T> {
    #[inline]
    fn borrow_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: fmt::Debug> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("value", &**self).finish()
    }
}
