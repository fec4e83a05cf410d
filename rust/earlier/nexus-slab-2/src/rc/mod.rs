//! Slabs whose values have several owners, each of which is given back to the slab.
//!
//! The count of owners lies in the slot, before the value. A value is accessed through a guard, for
//! reading or changing; only one guard exists at a time.
//!
//! ```
//! # use nexus_slab_2 as nexus_slab;
//! use nexus_slab::rc::bounded::Slab;
//!
//! // SAFETY: the owners are given back to this slab.
//! let slab = unsafe { Slab::with_capacity(16) };
//! let one = slab.alloc(42u64);
//! let other = one.clone();
//! *other.borrow_mut() += 1;
//! slab.free(other);
//! assert_eq!((*one.borrow(), one.refcount()), (43, 1));
//! slab.free(one);
//! ```

pub mod bounded;
mod slab;
pub mod unbounded;

use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

/// This bit of the state is set while a guard exists. The other bits count the owners.
const BORROWED: usize = 1 << (usize::BITS - 1);

/// The content of a slot: a value, with the number of its owners before it.
///
/// Its drop does not drop the value. The slab drops it with the last owner.
#[repr(C)]
pub struct RcCell<T> {
    state: Cell<usize>,
    value: UnsafeCell<ManuallyDrop<T>>,
}

impl<T> RcCell<T> {
    /// A value with one owner.
    #[inline(always)]
    fn new(value: T) -> Self {
        RcCell {
            state: Cell::new(1),
            value: UnsafeCell::new(ManuallyDrop::new(value)),
        }
    }

    #[inline(always)]
    fn into_inner(self) -> T {
        ManuallyDrop::into_inner(self.value.into_inner())
    }

    /// The address of the value. No guard is taken.
    #[inline]
    pub fn value_ptr(&self) -> *mut T {
        self.value.get().cast()
    }

    #[inline(always)]
    fn owners(&self) -> usize {
        self.state.get() & !BORROWED
    }

    /// Removes an owner; returns the number of owners left.
    #[inline(always)]
    fn leave(&self) -> usize {
        debug_assert!(self.owners() > 0, "RcSlot refcount underflow");
        self.state.set(self.state.get() - 1);
        self.owners()
    }

    /// Takes the guard. Panics if there is one already.
    #[inline(always)]
    #[track_caller]
    fn acquire(&self) {
        let state = self.state.get();
        if state & BORROWED != 0 {
            already_borrowed::<T>();
        }
        self.state.set(state | BORROWED);
    }

    #[inline(always)]
    fn release(&self) {
        self.state.set(self.state.get() & !BORROWED);
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn already_borrowed<T>() -> ! {
    panic!("RcSlot<{}> already borrowed", core::any::type_name::<T>())
}

/// One of several owners of a value: an address, 8 bytes.
///
/// Dropping it does not reduce the count: give it to `free` of its slab. A debug build panics if it
/// is dropped instead. It cannot leave its thread.
///
/// ```compile_fail,E0277
/// # use nexus_slab_2 as nexus_slab;
/// fn moves<T: Send>() {}
/// moves::<nexus_slab::RcSlot<u64>>();
/// ```
pub struct RcSlot<T>(NonNull<RcCell<T>>, PhantomData<T>);

impl<T> RcSlot<T> {
    /// Makes an owner that is counted already.
    ///
    /// # Safety
    /// The slot holds a value, and its count includes an owner that no other `RcSlot` represents.
    #[inline(always)]
    unsafe fn of(cell: NonNull<RcCell<T>>) -> Self {
        RcSlot(cell, PhantomData)
    }

    #[inline(always)]
    fn cell(&self) -> &RcCell<T> {
        // SAFETY: the slot is taken as long as it has an owner. A guard changes the value only,
        // which lies in an UnsafeCell.
        unsafe { self.0.as_ref() }
    }

    #[inline(always)]
    fn into_cell(self) -> NonNull<RcCell<T>> {
        ManuallyDrop::new(self).0
    }

    /// The address of the slot.
    #[inline]
    pub fn as_ptr(&self) -> *mut RcCell<T> {
        self.0.as_ptr()
    }

    /// The address of the slot. The owner stays counted: make it an owner again with
    /// [`from_raw`](Self::from_raw).
    #[inline]
    pub fn into_raw(self) -> *mut RcCell<T> {
        self.into_cell().as_ptr()
    }

    /// Makes an owner of the address again. The count does not change.
    ///
    /// # Safety
    /// The address came from [`into_raw`](Self::into_raw), each call of which allows one call of
    /// this function, and the slot has been taken since.
    #[inline]
    pub unsafe fn from_raw(cell: *mut RcCell<T>) -> Self {
        // SAFETY: as the caller says; no slot is at address 0.
        unsafe { Self::of(NonNull::new_unchecked(cell)) }
    }

    /// The address of the value. No guard is taken.
    ///
    /// # Safety
    /// The value is not read through the address while a guard changes it.
    #[inline]
    pub unsafe fn value_ptr(&self) -> *const T {
        self.cell().value_ptr()
    }

    /// The address of the value, for changing it. No guard is taken.
    ///
    /// # Safety
    /// While a guard exists, the value is not used through this address. While the value is changed
    /// through it, the value is not used in any other way.
    #[inline]
    pub unsafe fn value_ptr_mut(&self) -> *mut T {
        self.cell().value_ptr()
    }

    /// The number of owners.
    #[inline]
    pub fn refcount(&self) -> usize {
        self.cell().owners()
    }

    /// The value, for reading.
    ///
    /// # Panics
    /// If there is another guard of the value, for reading or changing.
    #[inline]
    #[track_caller]
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref(Guard::of(self.cell()), PhantomData)
    }

    /// The value, for changing it.
    ///
    /// # Panics
    /// If there is another guard of the value, for reading or changing.
    #[inline]
    #[track_caller]
    pub fn borrow_mut(&self) -> RefMut<'_, T> {
        RefMut(Guard::of(self.cell()), PhantomData)
    }
}

impl<T> Clone for RcSlot<T> {
    /// Makes another owner. Each owner is given back to the slab.
    #[inline]
    fn clone(&self) -> Self {
        let state = &self.cell().state;
        debug_assert!(self.refcount() < !BORROWED, "RcSlot refcount overflow");
        state.set(state.get() + 1);
        // SAFETY: the new owner is counted.
        unsafe { Self::of(self.0) }
    }
}

impl<T: fmt::Debug> fmt::Debug for RcSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RcSlot")
            .field("refcount", &self.refcount())
            .finish()
    }
}

#[cfg(debug_assertions)]
impl<T> Drop for RcSlot<T> {
    #[track_caller]
    fn drop(&mut self) {
        crate::handle::dropped::<T>("RcSlot", "give it to free of its slab");
    }
}

/// The one guard of a value. It is an address, not a reference, because a reference would still
/// borrow the value while the guard is dropped.
struct Guard<T>(NonNull<RcCell<T>>);

impl<T> Guard<T> {
    /// # Panics
    /// If there is a guard already.
    #[inline(always)]
    #[track_caller]
    fn of(cell: &RcCell<T>) -> Self {
        cell.acquire();
        Guard(NonNull::from(cell))
    }

    #[inline(always)]
    fn value(&self) -> *mut T {
        // SAFETY: the guard borrows an owner, which keeps the slot.
        unsafe { self.0.as_ref().value_ptr() }
    }
}

impl<T> Drop for Guard<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as in `value`.
        unsafe { self.0.as_ref().release() }
    }
}

/// The value of an [`RcSlot`], for reading. No other guard of the value exists meanwhile.
pub struct Ref<'a, T>(Guard<T>, PhantomData<&'a T>);

impl<T> Deref for Ref<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: there is one guard at a time.
        unsafe { &*self.0.value() }
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ref").field("value", &**self).finish()
    }
}

/// The value of an [`RcSlot`], for changing it. No other guard of the value exists meanwhile.
pub struct RefMut<'a, T>(Guard<T>, PhantomData<&'a mut T>);

impl<T> Deref for RefMut<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: there is one guard at a time.
        unsafe { &*self.0.value() }
    }
}

impl<T> DerefMut for RefMut<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is one guard at a time.
        unsafe { &mut *self.0.value() }
    }
}

impl<T: fmt::Debug> fmt::Debug for RefMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefMut").field("value", &**self).finish()
    }
}
