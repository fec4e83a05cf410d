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
///
/// A value that is not `Unpin`, such as the future of an `async` block, is pinned from the start:
/// [`pin_mut`](Self::pin_mut) gives it, and nothing moves it out of its slot or gives a `&mut` to
/// it:
///
/// ```compile_fail,E0277
/// # use std::marker::PhantomPinned;
/// # pub struct Fixed(PhantomPinned);
/// # mod fixed {
/// #     nexus_slab::bounded_allocator!(super::Fixed);
/// # }
/// # fn main() {
/// let slot = fixed::BoxSlot::try_new(Fixed(PhantomPinned)).ok().unwrap();
/// let moved = slot.into_inner();
/// # }
/// ```
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
        let value = NonNull::from(&*self.into_handle());
        // SAFETY: no handle is left that could free the slot or reach the value, and the memory of
        // a slot that is taken stays.
        unsafe { LocalStatic::new(value) }
    }

    /// The raw slot. Free it with `free` or `take` of the allocator, or make it a `BoxSlot` again.
    #[inline]
    pub fn into_slot(self) -> Slot<T>
    where
        T: Unpin,
    {
        self.into_handle()
    }

    #[inline(always)]
    fn into_handle(self) -> Slot<T> {
        // SAFETY: the other handle is forgotten.
        unsafe { ManuallyDrop::new(self).slot.copy() }
    }

    /// Frees the slot and returns the value.
    #[inline]
    pub fn into_inner(self) -> T
    where
        T: Unpin,
    {
        // SAFETY: the slot is ours, and of this allocator.
        unsafe { A::take(self.into_handle()) }
    }

    /// Stores another value in the slot and returns the previous one.
    #[inline]
    pub fn replace(&mut self, value: T) -> T
    where
        T: Unpin,
    {
        std::mem::replace(&mut **self, value)
    }

    /// The value, pinned.
    #[inline]
    pub fn pin(&self) -> Pin<&T> {
        // SAFETY: a value that is not `Unpin` never leaves its slot, no `&mut` to it is given, and
        // the slot's memory is freed only after its drop.
        unsafe { Pin::new_unchecked(&**self) }
    }

    /// The value, pinned, for changing it or for polling it:
    ///
    /// ```
    /// use std::future::Future;
    /// use std::marker::PhantomPinned;
    /// use std::pin::Pin;
    /// use std::task::{Context, Poll, Waker};
    ///
    /// pub struct Answer(PhantomPinned);
    ///
    /// impl Future for Answer {
    ///     type Output = u32;
    ///     fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u32> {
    ///         Poll::Ready(42)
    ///     }
    /// }
    ///
    /// mod answers {
    ///     nexus_slab::bounded_allocator!(super::Answer);
    /// }
    ///
    /// # fn main() {
    /// answers::Allocator::builder().capacity(100).build().unwrap();
    /// let mut slot = answers::BoxSlot::try_new(Answer(PhantomPinned)).ok().unwrap();
    /// let cx = &mut Context::from_waker(Waker::noop());
    /// assert_eq!(slot.pin_mut().poll(cx), Poll::Ready(42));
    /// # }
    /// ```
    #[inline]
    pub fn pin_mut(&mut self) -> Pin<&mut T> {
        // SAFETY: as in `pin`.
        unsafe { Pin::new_unchecked(&mut self.slot) }
    }

    /// Pins the value for functions that take a `Pin` that owns it: the result drops the value in
    /// place, and cannot move it out.
    #[inline]
    pub fn into_pin(self) -> Pin<PinnedSlot<T, A>> {
        // SAFETY: a `PinnedSlot` exists only in a `Pin`, which gives no &mut of a value that must
        // not move. The slot's memory is freed only after the drop.
        unsafe { Pin::new_unchecked(PinnedSlot(self)) }
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
        self.into_handle().as_ptr()
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

impl<T: Unpin, A: Alloc<Item = T>> DerefMut for BoxSlot<T, A> {
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

impl<T: Unpin, A: Alloc<Item = T>> AsMut<T> for BoxSlot<T, A> {
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

impl<T: Unpin, A: Alloc<Item = T>> BorrowMut<T> for BoxSlot<T, A> {
    #[inline]
    fn borrow_mut(&mut self) -> &mut T {
        self
    }
}

/// The owner of a slot in a `Pin`, which [`BoxSlot::into_pin`] returns. It exists only there, so its
/// value stays where it is.
pub struct PinnedSlot<T, A: Alloc<Item = T>>(BoxSlot<T, A>);

impl<T, A: Alloc<Item = T>> Deref for PinnedSlot<T, A> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T, A: Alloc<Item = T>> DerefMut for PinnedSlot<T, A> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.slot
    }
}

impl<T: fmt::Debug, A: Alloc<Item = T>> fmt::Debug for PinnedSlot<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Debug, A: Alloc<Item = T>> fmt::Debug for BoxSlot<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxSlot").field("value", &**self).finish()
    }
}
