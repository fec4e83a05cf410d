//! [`LocalStatic`]: a value that stays until the process ends.

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::pin::Pin;
use core::ptr::NonNull;

/// A value in a slot of a per-thread pool that stays until the process ends.
/// [`leak`](super::BoxSlot) makes it. It is never dropped, and cannot leave the thread. It has 8
/// bytes and can be copied.
pub struct LocalStatic<T: 'static> {
    value: NonNull<T>,
    of: PhantomData<&'static T>,
}

impl<T> LocalStatic<T> {
    /// # Safety
    /// The value stays until the process ends, and is not changed.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn new(value: NonNull<T>) -> Self {
        LocalStatic {
            value,
            of: PhantomData,
        }
    }

    /// The address of the value.
    #[inline]
    pub fn as_ptr(&self) -> *const T {
        self.value.as_ptr()
    }

    /// The value as a pinned one: it never moves.
    #[inline]
    pub fn pin(&self) -> Pin<&T> {
        // SAFETY: the value cannot be moved, and its memory stays.
        unsafe { Pin::new_unchecked(self.value.as_ref()) }
    }
}

impl<T> Deref for LocalStatic<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the value exists, and is not changed.
        unsafe { self.value.as_ref() }
    }
}

impl<T> AsRef<T> for LocalStatic<T> {
    #[inline(always)]
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T> Copy for LocalStatic<T> {}
impl<T> Clone for LocalStatic<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: fmt::Debug> fmt::Debug for LocalStatic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalStatic").field(&&**self).finish()
    }
}
