//! Guards of borrowed values: [`Ref`] for reading, [`RefMut`] for writing.

use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

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
///
/// The guard of a value in a [`HandleMap`](crate::HandleMap) is a [`handle::Ref`](crate::handle::Ref).
pub struct Ref<'b, T: ?Sized> {
    value: NonNull<T>,
    borrows: Reader<'b>,
    reads: PhantomData<&'b T>,
}

/// Counts a reader, until it is dropped.
struct Reader<'b>(&'b Cell<i32>);

impl<'b> Reader<'b> {
    #[inline(always)]
    fn new(borrows: &'b Cell<i32>) -> Result<Self, Borrowed> {
        let readers = borrows.get();
        if !(0..i32::MAX).contains(&readers) {
            return Err(Borrowed);
        }
        borrows.set(readers + 1);
        Ok(Self(borrows))
    }
}

impl Drop for Reader<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl<'b, T> Ref<'b, T> {
    /// # Safety
    /// The value is accessed only through these guards, all with the same count.
    #[inline(always)]
    pub(super) unsafe fn new(
        value: &'b UnsafeCell<T>,
        borrows: &'b Cell<i32>,
    ) -> Result<Self, Borrowed> {
        Ok(Ref {
            borrows: Reader::new(borrows)?,
            // SAFETY: the address of a value.
            value: unsafe { NonNull::new_unchecked(value.get()) },
            reads: PhantomData,
        })
    }
}

impl<'b, T: ?Sized> Ref<'b, T> {
    /// Another borrow for reading. It is called as `Ref::clone(&borrow)`, because `borrow.clone()`
    /// clones the value.
    ///
    /// # Panics
    /// If there are 2 billion of them.
    #[allow(clippy::should_implement_trait)]
    #[track_caller]
    pub fn clone(this: &Self) -> Self {
        match Reader::new(this.borrows.0) {
            Ok(borrows) => Ref { borrows, ..*this },
            Err(borrowed) => borrowed.panic(),
        }
    }

    /// A borrow of a part of the value.
    ///
    /// ```
    /// use slabyard::Ref;
    /// let pool = slabyard::RcPool::unbounded();
    /// let pair = pool.insert((1, String::from("a")));
    /// let name = Ref::map(pair.borrow(), |it| it.1.as_str());
    /// assert!(&*name == "a" && pair.try_borrow_mut().is_err());
    /// ```
    #[inline]
    pub fn map<U: ?Sized>(this: Self, part: impl FnOnce(&T) -> &U) -> Ref<'b, U> {
        Ref {
            value: NonNull::from(part(&this)),
            borrows: this.borrows,
            reads: PhantomData,
        }
    }
}

impl<T: ?Sized> Deref for Ref<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this guard is counted as a reader, so there is no writer.
        unsafe { self.value.as_ref() }
    }
}

/// A borrow of a value for writing. While it exists, the value cannot be borrowed again.
pub struct RefMut<'b, T: ?Sized> {
    value: NonNull<T>,
    borrows: Writer<'b>,
    writes: PhantomData<&'b mut T>,
}

/// Stands for the writer, until it is dropped.
struct Writer<'b>(&'b Cell<i32>);

impl Drop for Writer<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.set(0);
    }
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
        Ok(RefMut {
            borrows: Writer(borrows),
            // SAFETY: the address of a value.
            value: unsafe { NonNull::new_unchecked(value.get()) },
            writes: PhantomData,
        })
    }
}

impl<'b, T: ?Sized> RefMut<'b, T> {
    /// A borrow of a part of the value.
    ///
    /// ```
    /// use slabyard::RefMut;
    /// let pool = slabyard::RcPool::unbounded();
    /// let pair = pool.insert((1, 2));
    /// *RefMut::map(pair.borrow_mut(), |it| &mut it.1) += 1;
    /// assert_eq!(*pair.borrow(), (1, 3));
    /// ```
    #[inline]
    pub fn map<U: ?Sized>(mut this: Self, part: impl FnOnce(&mut T) -> &mut U) -> RefMut<'b, U> {
        RefMut {
            value: NonNull::from(part(&mut this)),
            borrows: this.borrows,
            writes: PhantomData,
        }
    }
}

impl<T: ?Sized> Deref for RefMut<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this guard is counted as the writer, so there is no other guard.
        unsafe { self.value.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for RefMut<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is counted as the writer, so there is no other guard.
        unsafe { self.value.as_mut() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RefMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RefMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
