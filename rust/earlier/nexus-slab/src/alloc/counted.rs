//! Slots with several owners.
//!
//! The counts lie in the slot, before the value ([`RcInner`]). All owners together count as one
//! weak reference, so the slot is freed with the last weak reference. The value is accessed by the
//! slot's address, never through a reference to the whole slot, because an owner may be changing
//! the value.

use super::{Alloc, BoundedAlloc, Full, UnboundedAlloc};
use crate::shared::{RcInner, Slot, SlotCell};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::pin::Pin;
use std::ptr::NonNull;

/// The address of a slot with counts, which stays taken while this address exists. A `Counted` is
/// not counted itself; [`RcSlot`] and [`WeakSlot`] are.
struct Counted<T>(NonNull<SlotCell<RcInner<T>>>);

impl<T> Counted<T> {
    /// # Safety
    /// The slot at this address is taken as long as the result is used.
    #[inline(always)]
    unsafe fn at(cell: *mut SlotCell<RcInner<T>>) -> Self {
        // SAFETY: no slot is at address 0.
        Counted(unsafe { NonNull::new_unchecked(cell) })
    }

    /// A slot that was just allocated.
    #[inline(always)]
    fn new(slot: Slot<RcInner<T>>) -> Self {
        Counted(slot.into_cell())
    }

    /// Makes a second `Counted` with the same address.
    ///
    /// # Safety
    /// The slot is taken as long as either of the two is used.
    #[inline(always)]
    unsafe fn copy(&self) -> Self {
        Counted(self.0)
    }

    #[inline(always)]
    fn as_ptr(&self) -> *mut SlotCell<RcInner<T>> {
        self.0.as_ptr()
    }

    #[inline(always)]
    fn inner(&self) -> *mut RcInner<T> {
        self.0.as_ptr().cast()
    }

    /// The number of owners.
    #[inline(always)]
    fn strong(&self) -> &Cell<u32> {
        // SAFETY: the slot is taken; the value beside the count is not read.
        unsafe { &(*self.inner()).strong }
    }

    /// The number of weak references, with one for all owners together.
    #[inline(always)]
    fn weak(&self) -> &Cell<u32> {
        // SAFETY: as in `strong`.
        unsafe { &(*self.inner()).weak }
    }

    /// The address of the value.
    #[inline(always)]
    fn value(&self) -> *mut T {
        // SAFETY: the slot is taken; no reference is made.
        unsafe { (&raw mut (*self.inner()).value).cast() }
    }

    /// Makes a raw slot.
    ///
    /// # Safety
    /// As for [`Slot::from_ptr`].
    #[inline(always)]
    unsafe fn slot(&self) -> Slot<RcInner<T>> {
        // SAFETY: as the caller says.
        unsafe { Slot::from_cell(self.0) }
    }
}

/// Adds one to a count. It panics if the count would wrap, after 4 billion forgotten references.
#[inline(always)]
#[track_caller]
fn count_up(count: &Cell<u32>) {
    match count.get().checked_add(1) {
        Some(more) => count.set(more),
        None => too_many(),
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn too_many() -> ! {
    panic!("there are too many names of one slot")
}

/// One of several owners of a value in a slot of the allocator `A`: 8 bytes. The value is dropped
/// with its last owner; the slot is freed with its last reference. An owner cannot leave its
/// thread. A value that is not `Unpin` is pinned from the start, as in a
/// [`BoxSlot`](super::BoxSlot).
#[must_use = "an owner that is dropped counts no more"]
pub struct RcSlot<T, A: Alloc<Item = RcInner<T>>> {
    slot: Counted<T>,
    of: PhantomData<(T, A)>,
}

impl<T, A: BoundedAlloc<Item = RcInner<T>>> RcSlot<T, A> {
    /// Puts a value into a slot.
    ///
    /// # Errors
    /// [`Full`], with the value: no slot is free.
    #[inline]
    pub fn try_new(value: T) -> Result<Self, Full<T>> {
        match A::try_alloc(RcInner::new(value)) {
            Ok(slot) => Ok(Self::own(Counted::new(slot))),
            Err(Full(inner)) => Err(Full(ManuallyDrop::into_inner(inner.value))),
        }
    }
}

impl<T, A: UnboundedAlloc<Item = RcInner<T>>> RcSlot<T, A> {
    /// Puts a value into a slot of an allocator that grows.
    #[inline]
    pub fn new(value: T) -> Self {
        Self::own(Counted::new(A::alloc(RcInner::new(value))))
    }
}

impl<T, A: Alloc<Item = RcInner<T>>> RcSlot<T, A> {
    /// Makes an owner that was counted.
    #[inline(always)]
    fn own(slot: Counted<T>) -> Self {
        RcSlot {
            slot,
            of: PhantomData,
        }
    }

    /// Makes a weak reference, which does not keep the value.
    ///
    /// # Panics
    /// If there are 4 billion weak references.
    #[inline]
    #[track_caller]
    pub fn downgrade(&self) -> WeakSlot<T, A> {
        count_up(self.slot.weak());
        // SAFETY: both references are counted.
        WeakSlot::name(unsafe { self.slot.copy() })
    }

    /// The number of owners.
    #[inline]
    pub fn strong_count(&self) -> u32 {
        self.slot.strong().get()
    }

    /// The number of weak references.
    #[inline]
    pub fn weak_count(&self) -> u32 {
        self.slot.weak().get().saturating_sub(1)
    }

    fn is_only(&self) -> bool {
        self.strong_count() == 1 && self.weak_count() == 0
    }

    /// The value, pinned.
    #[inline]
    pub fn pin(&self) -> Pin<&T> {
        // SAFETY: a value that is not `Unpin` never leaves its slot, no `&mut` to it is given
        // unless the caller of an unsafe function promises the same, and the slot's memory is freed
        // only after the value's drop.
        unsafe { Pin::new_unchecked(&**self) }
    }

    /// The value, pinned, if there is no other reference to the slot.
    #[inline]
    pub fn pin_get_mut(&mut self) -> Option<Pin<&mut T>> {
        // SAFETY: as in `get_mut` and `pin`.
        self.is_only()
            .then(|| unsafe { Pin::new_unchecked(self.get_mut_unchecked()) })
    }

    /// Pins the value, if there is no other reference to the slot. Owners cloned from the result
    /// are pinned too.
    ///
    /// # Errors
    /// This owner, if there is another reference.
    #[inline]
    pub fn into_pin(self) -> Result<Pin<Self>, Self> {
        if !self.is_only() {
            return Err(self);
        }
        // SAFETY: no other reference can move the value, and a pinned owner gives no &mut of it.
        Ok(unsafe { Pin::new_unchecked(self) })
    }

    /// The value, if there is no other reference to the slot.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T>
    where
        T: Unpin,
    {
        // SAFETY: this only reference is borrowed as long as the result is used.
        self.is_only().then(|| unsafe { self.get_mut_unchecked() })
    }

    /// The value, for changing it.
    ///
    /// # Safety
    /// There is no other reference to the value as long as this one is used. A value that is not
    /// `Unpin` is not moved.
    #[inline]
    #[allow(clippy::mut_from_ref)] // the caller promises it
    pub unsafe fn get_mut_unchecked(&self) -> &mut T {
        // SAFETY: as the caller says; the value is there as long as it has an owner.
        unsafe { &mut *self.slot.value() }
    }

    /// The raw slot, if there is no other reference to it; otherwise this owner is dropped. No
    /// owner is counted for the value in the raw slot: freeing the slot does not drop it.
    #[inline]
    pub fn into_slot(self) -> Option<Slot<RcInner<T>>>
    where
        T: Unpin,
    {
        if !self.is_only() {
            return None;
        }
        self.slot.strong().set(0);
        self.slot.weak().set(0);
        // SAFETY: this was the only reference.
        Some(unsafe { self.into_slot_unchecked() })
    }

    /// The raw slot, with unchanged counts.
    ///
    /// # Safety
    /// Other references still count this owner. When the slot is freed, none of them is used any
    /// more, not even to be dropped.
    #[inline]
    pub unsafe fn into_slot_unchecked(self) -> Slot<RcInner<T>> {
        // SAFETY: the slot is taken; the owner is forgotten.
        unsafe { ManuallyDrop::new(self).slot.slot() }
    }

    /// The address of the slot.
    #[inline]
    pub fn as_ptr(&self) -> *mut SlotCell<RcInner<T>> {
        self.slot.as_ptr()
    }

    /// The address of the slot. The owner stays counted.
    #[inline]
    pub fn into_raw(self) -> *mut SlotCell<RcInner<T>> {
        ManuallyDrop::new(self).slot.as_ptr()
    }

    /// Makes an owner that is counted already.
    ///
    /// # Safety
    /// The slot was allocated from `A` on this thread, holds a value, and its count includes an
    /// owner that no other `RcSlot` represents.
    #[inline]
    pub unsafe fn from_raw(cell: *mut SlotCell<RcInner<T>>) -> Self {
        // SAFETY: as the caller says.
        Self::own(unsafe { Counted::at(cell) })
    }

    /// Adds an owner to the count.
    ///
    /// # Safety
    /// The slot holds a value, which has an owner.
    ///
    /// # Panics
    /// If there are 4 billion owners.
    #[inline]
    #[track_caller]
    pub unsafe fn increment_strong_count(cell: *mut SlotCell<RcInner<T>>) {
        // SAFETY: as the caller says.
        count_up(unsafe { Counted::at(cell).strong() });
    }

    /// Drops an owner.
    ///
    /// # Safety
    /// As [`from_raw`](Self::from_raw).
    #[inline]
    pub unsafe fn decrement_strong_count(cell: *mut SlotCell<RcInner<T>>) {
        // SAFETY: as the caller says.
        drop(unsafe { Self::from_raw(cell) });
    }
}

impl<T: Clone + Unpin, A: UnboundedAlloc<Item = RcInner<T>>> RcSlot<T, A> {
    /// The value, for changing it. If there is another reference, the value is cloned into a slot
    /// of its own first.
    #[inline]
    pub fn make_mut(&mut self) -> &mut T {
        if !self.is_only() {
            *self = Self::new((**self).clone());
        }
        // SAFETY: there is no other reference to the slot.
        unsafe { self.get_mut_unchecked() }
    }
}

impl<T: Clone + Unpin, A: BoundedAlloc<Item = RcInner<T>>> RcSlot<T, A> {
    /// The value, for changing it. If there is another reference, the value is cloned into a slot
    /// of its own first.
    ///
    /// # Errors
    /// [`Full`]: no slot is free for the clone.
    #[inline]
    pub fn try_make_mut(&mut self) -> Result<&mut T, Full<()>> {
        if !self.is_only() {
            *self = Self::try_new((**self).clone()).map_err(|_| Full(()))?;
        }
        // SAFETY: there is no other reference to the slot.
        Ok(unsafe { self.get_mut_unchecked() })
    }
}

impl<T, A: Alloc<Item = RcInner<T>>> Clone for RcSlot<T, A> {
    /// Makes another owner.
    ///
    /// # Panics
    /// If there are 4 billion owners.
    #[inline]
    #[track_caller]
    fn clone(&self) -> Self {
        count_up(self.slot.strong());
        // SAFETY: as in `downgrade`.
        Self::own(unsafe { self.slot.copy() })
    }
}

impl<T, A: Alloc<Item = RcInner<T>>> Drop for RcSlot<T, A> {
    #[inline]
    fn drop(&mut self) {
        let left = self.slot.strong().get() - 1;
        self.slot.strong().set(left);
        if left == 0 {
            // The weak reference of all owners together is dropped after the value, even if the
            // value's drop panics.
            // SAFETY: the slot is taken until this reference is dropped; the owner is not used
            // then.
            let _name: WeakSlot<T, A> = WeakSlot::name(unsafe { self.slot.copy() });
            // SAFETY: this was the last owner. No weak reference can reach the value when no owner
            // is counted.
            unsafe { self.slot.value().drop_in_place() }
        }
    }
}

impl<T, A: Alloc<Item = RcInner<T>>> Deref for RcSlot<T, A> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value exists as long as it has an owner. It is changed only if there is no
        // other reference.
        unsafe { &*self.slot.value() }
    }
}

impl<T, A: Alloc<Item = RcInner<T>>> AsRef<T> for RcSlot<T, A> {
    #[inline]
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: fmt::Debug, A: Alloc<Item = RcInner<T>>> fmt::Debug for RcSlot<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RcSlot")
            .field("strong", &self.strong_count())
            .field("weak", &self.weak_count())
            .field("value", &**self)
            .finish()
    }
}

/// A reference to a slot that keeps the slot but not the value: 8 bytes.
pub struct WeakSlot<T, A: Alloc<Item = RcInner<T>>> {
    slot: Counted<T>,
    of: PhantomData<(T, A)>,
}

impl<T, A: Alloc<Item = RcInner<T>>> WeakSlot<T, A> {
    /// Makes a weak reference that is counted already.
    #[inline(always)]
    fn name(slot: Counted<T>) -> Self {
        WeakSlot {
            slot,
            of: PhantomData,
        }
    }

    /// Makes an owner of the value, if the value still exists.
    ///
    /// # Panics
    /// If there are 4 billion owners.
    #[inline]
    #[track_caller]
    pub fn upgrade(&self) -> Option<RcSlot<T, A>> {
        if self.strong_count() == 0 {
            return None;
        }
        count_up(self.slot.strong());
        // SAFETY: both references are counted.
        Some(RcSlot::own(unsafe { self.slot.copy() }))
    }

    /// The number of owners.
    #[inline]
    pub fn strong_count(&self) -> u32 {
        self.slot.strong().get()
    }

    /// The number of weak references.
    #[inline]
    pub fn weak_count(&self) -> u32 {
        self.slot.weak().get() - u32::from(self.strong_count() > 0)
    }
}

impl<T, A: Alloc<Item = RcInner<T>>> Clone for WeakSlot<T, A> {
    /// Makes another weak reference.
    ///
    /// # Panics
    /// If there are 4 billion weak references.
    #[inline]
    #[track_caller]
    fn clone(&self) -> Self {
        count_up(self.slot.weak());
        // SAFETY: both references are counted.
        Self::name(unsafe { self.slot.copy() })
    }
}

impl<T, A: Alloc<Item = RcInner<T>>> Drop for WeakSlot<T, A> {
    #[inline]
    fn drop(&mut self) {
        let left = self.slot.weak().get() - 1;
        self.slot.weak().set(left);
        if left == 0 {
            // SAFETY: this was the last reference to a slot of this allocator, and its value is
            // dropped.
            unsafe { A::free(self.slot.slot()) }
        }
    }
}

impl<T, A: Alloc<Item = RcInner<T>>> fmt::Debug for WeakSlot<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakSlot")
            .field("strong", &self.strong_count())
            .field("weak", &self.weak_count())
            .finish()
    }
}
