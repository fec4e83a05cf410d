//! Guards of borrowed values: [`Ref`] for reading, [`RefMut`] for writing.

use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::ops::{Deref, DerefMut};

/// The value is borrowed in a way that excludes this borrow: one of the two is for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Borrowed;

impl Borrowed {
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(super) fn panic(self) -> ! {
        panic!("{self}")
    }
}

impl fmt::Display for Borrowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value is borrowed")
    }
}

impl core::error::Error for Borrowed {}

/// A borrow of a value for reading. While it exists, the value cannot be borrowed for writing.
pub struct Ref<'b, T> {
    value: &'b UnsafeCell<T>,
    borrows: &'b Cell<i32>,
}

impl<'b, T> Ref<'b, T> {
    /// # Safety
    /// The value is accessed only through these guards, all with the same count.
    #[inline(always)]
    pub(super) unsafe fn new(
        value: &'b UnsafeCell<T>,
        borrows: &'b Cell<i32>,
    ) -> Result<Self, Borrowed> {
        let readers = borrows.get();
        if !(0..i32::MAX).contains(&readers) {
            return Err(Borrowed);
        }
        borrows.set(readers + 1);
        Ok(Ref { value, borrows })
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this guard is counted as a reader, so there is no writer.
        unsafe { &*self.value.get() }
    }
}

impl<T> Drop for Ref<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.borrows.set(self.borrows.get() - 1);
    }
}

/// A borrow of a value for writing. While it exists, the value cannot be borrowed again.
pub struct RefMut<'b, T> {
    value: &'b UnsafeCell<T>,
    borrows: &'b Cell<i32>,
}

impl<'b, T> RefMut<'b, T> {
    /// # Safety
    /// As for [`Ref::new`].
    #[inline(always)]
    pub(super) unsafe fn new(
        value: &'b UnsafeCell<T>,
        borrows: &'b Cell<i32>,
    ) -> Result<Self, Borrowed> {
        if borrows.get() != 0 {
            return Err(Borrowed);
        }
        borrows.set(-1);
        Ok(RefMut { value, borrows })
    }
}

impl<T> Deref for RefMut<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this guard is counted as the writer, so there is no other guard.
        unsafe { &*self.value.get() }
    }
}

impl<T> DerefMut for RefMut<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is counted as the writer, so there is no other guard.
        unsafe { &mut *self.value.get() }
    }
}

impl<T> Drop for RefMut<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.borrows.set(0);
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for RefMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for RefMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
