//! A slot with one owner.

use super::{Alloc, BoundedAlloc, Full, LocalStatic, UnboundedAlloc};
use crate::shared::{Slot, SlotCell};
use std::borrow::{Borrow, BorrowMut};
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::ptr::NonNull;

/// A value in a slot of the allocator `A`: 8 bytes. Dropping it drops the value and frees the slot.
/// It cannot leave its thread.
#[must_use = "a slot that is dropped is freed at once"]
pub struct BoxSlot<T, A: Alloc<Item = T>> {
    slot: Slot<T>,
    of: PhantomData<A>,
}

impl<T, A: BoundedAlloc<Item = T>> BoxSlot<T, A> {
    /// Puts a value into a slot.
    ///
    /// # Errors
    /// [`Full`], with the value: no slot is free.
    #[inline]
    pub fn try_new(value: T) -> Result<Self, Full<T>> {
        let slot = A::try_alloc(value)?;
        Ok(BoxSlot {
            slot,
            of: PhantomData,
        })
    }
}

impl<T, A: UnboundedAlloc<Item = T>> BoxSlot<T, A> {
    /// Puts a value into a slot of an allocator that grows.
    #[inline]
    pub fn new(value: T) -> Self {
        BoxSlot {
            slot: A::alloc(value),
            of: PhantomData,
        }
    }
}

impl<T, A: Alloc<Item = T>> BoxSlot<T, A> {
    /// Leaks the value: it stays until the process ends and is never dropped. Its slot stays taken.
    #[inline]
    pub fn leak(self) -> LocalStatic<T>
    where
        T: 'static,
    {
        let value = NonNull::from(&*self.into_slot());
        // SAFETY: no handle is left that could free the slot or reach the value, and the memory of
        // a slot that is taken stays.
        unsafe { LocalStatic::new(value) }
    }

    /// The raw slot. Free it with `free` or `take` of the allocator, or make it a `BoxSlot` again.
    #[inline]
    pub fn into_slot(self) -> Slot<T> {
        // SAFETY: the other handle is forgotten.
        unsafe { ManuallyDrop::new(self).slot.copy() }
    }

    /// Frees the slot and returns the value.
    #[inline]
    pub fn into_inner(self) -> T {
        // SAFETY: the slot is ours, and of this allocator.
        unsafe { A::take(self.into_slot()) }
    }

    /// Stores another value in the slot and returns the previous one.
    #[inline]
    pub fn replace(&mut self, value: T) -> T {
        std::mem::replace(&mut **self, value)
    }

    /// The value, pinned. To pin a value that must not move any more, use
    /// [`into_pin`](Self::into_pin).
    #[inline]
    pub fn pin(&self) -> Pin<&T>
    where
        T: Unpin,
    {
        Pin::new(self)
    }

    /// The value, pinned. To pin a value that must not move any more, use
    /// [`into_pin`](Self::into_pin).
    #[inline]
    pub fn pin_mut(&mut self) -> Pin<&mut T>
    where
        T: Unpin,
    {
        Pin::new(self)
    }

    /// Pins the value: the result drops it in place, and cannot move it out.
    #[inline]
    pub fn into_pin(self) -> Pin<Self> {
        // SAFETY: a pinned slot gives no &mut of a value that must not move, and frees the slot's
        // memory only after the drop.
        unsafe { Pin::new_unchecked(self) }
    }

    /// Makes an owner of a raw slot again.
    ///
    /// # Safety
    /// The slot was allocated from `A` on this thread, and has no other owner or handle.
    #[inline]
    pub unsafe fn from_slot(slot: Slot<T>) -> Self {
        BoxSlot {
            slot,
            of: PhantomData,
        }
    }

    /// The address of the slot.
    #[inline]
    pub fn as_ptr(&self) -> *mut SlotCell<T> {
        self.slot.as_ptr()
    }

    /// The address of the slot. The slot has no owner from now on.
    #[inline]
    pub fn into_raw(self) -> *mut SlotCell<T> {
        self.into_slot().as_ptr()
    }

    /// Makes an owner of the slot again.
    ///
    /// # Safety
    /// The slot holds a value, was allocated from `A` on this thread, and has no other owner.
    #[inline]
    pub unsafe fn from_raw(cell: *mut SlotCell<T>) -> Self {
        // SAFETY: as the caller says.
        unsafe { Self::from_slot(Slot::from_ptr(cell)) }
    }
}

impl<T, A: Alloc<Item = T>> Drop for BoxSlot<T, A> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the slot is ours, of this allocator, and not used again.
        unsafe { A::free(self.slot.copy()) }
    }
}

impl<T, A: Alloc<Item = T>> Deref for BoxSlot<T, A> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.slot
    }
}

impl<T, A: Alloc<Item = T>> DerefMut for BoxSlot<T, A> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.slot
    }
}

impl<T, A: Alloc<Item = T>> AsRef<T> for BoxSlot<T, A> {
    #[inline]
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T, A: Alloc<Item = T>> AsMut<T> for BoxSlot<T, A> {
    #[inline]
    fn as_mut(&mut self) -> &mut T {
        self
    }
}

impl<T, A: Alloc<Item = T>> Borrow<T> for BoxSlot<T, A> {
    #[inline]
    fn borrow(&self) -> &T {
        self
    }
}

impl<T, A: Alloc<Item = T>> BorrowMut<T> for BoxSlot<T, A> {
    #[inline]
    fn borrow_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: fmt::Debug, A: Alloc<Item = T>> fmt::Debug for BoxSlot<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxSlot").field("value", &**self).finish()
    }
}
