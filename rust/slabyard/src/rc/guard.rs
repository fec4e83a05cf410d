//! Who looks at a value with several owners.

use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::ops::{Deref, DerefMut};

/// Somebody else looks at the value, and one of the two may change it.
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

/// A look at a value. While it is there, nobody can change the value.
pub struct Ref<'b, T> {
    value: &'b UnsafeCell<T>,
    borrows: &'b Cell<i32>,
}

impl<'b, T> Ref<'b, T> {
    /// # Safety
    /// The value is looked at by these guards alone, all with the same count.
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
        // SAFETY: counted as a reader, so nobody writes.
        unsafe { &*self.value.get() }
    }
}

impl<T> Drop for Ref<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.borrows.set(self.borrows.get() - 1);
    }
}

/// A look at a value, to change it. While it is there, nobody else can look.
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
        // SAFETY: counted as the writer, so nobody else looks.
        unsafe { &*self.value.get() }
    }
}

impl<T> DerefMut for RefMut<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: counted as the writer, so nobody else looks.
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
