//! [`Pinned`]: values in slots that do not move until they are dropped.

use crate::home::{Home, In};
use crate::slot::{Claim, Owned};
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};

/// A pinned value in a slot of a pool; see [`Pinned`].
pub type PinnedSlot<'p, T> = Pinned<T, In<'p>>;

/// A value in a slot that does not move until it is dropped, whether or not it is `Unpin`.
///
/// If it is forgotten, its memory stays until the process ends. Then a pool that is dropped keeps
/// all of its memory.
///
/// ```
/// use std::future::Future;
/// use std::task::{Context, Poll, Waker};
///
/// let pool = slabyard::Pool::unbounded();
/// let mut answer = pool.insert(async { 42 }).into_pin();
/// let polled = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
/// assert_eq!(polled, Poll::Ready(42));
/// ```
pub struct Pinned<T, H: Home> {
    object: NonNull<T>,
    home: H,
    owns: PhantomData<T>,
}

impl<T, H: Home> Pinned<T, H> {
    #[inline]
    pub(crate) fn new(slot: Owned<T, H>) -> Pinned<T, H> {
        let (object, home) = slot.into_parts();
        if let Some(pins) = home.pins() {
            pins.set(pins.get() + 1);
        }
        Pinned {
            object,
            home,
            owns: PhantomData,
        }
    }

    /// The value, pinned, for changing it.
    #[inline(always)]
    pub fn as_mut(&mut self) -> Pin<&mut T> {
        // SAFETY: the value stays where it is until it is dropped: no function here moves it out.
        // If it is never dropped, its memory stays.
        unsafe { Pin::new_unchecked(self.object.as_mut()) }
    }

    /// The value, pinned.
    #[inline(always)]
    pub fn as_ref(&self) -> Pin<&T> {
        // SAFETY: as in as_mut.
        unsafe { Pin::new_unchecked(self.object.as_ref()) }
    }

    /// Drops the value and writes another one in its place.
    #[inline]
    pub fn set(&mut self, value: T) {
        self.as_mut().set(value);
    }

    /// The slot without the pin, for a value that does not need it.
    #[inline]
    pub fn into_slot(self) -> Owned<T, H>
    where
        T: Unpin,
    {
        let slot = ManuallyDrop::new(self);
        drop(Unpinned(slot.home));
        // SAFETY: the slot is ours, and holds a value that may be moved.
        unsafe { Owned::from_parts(slot.object, slot.home) }
    }
}

/// Removes a pin from the count when it is dropped.
struct Unpinned<H: Home>(H);

impl<H: Home> Drop for Unpinned<H> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(pins) = self.0.pins() {
            pins.set(pins.get() - 1);
        }
    }
}

impl<T, H: Home> Drop for Pinned<T, H> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the slot is ours and holds a value, which is dropped in place. After that, or
        // after a panic, the slot is freed.
        unsafe {
            let _goes_back = Claim::from_parts(self.object, self.home);
            let _unpinned = Unpinned(self.home);
            self.object.drop_in_place();
        }
    }
}

impl<T, H: Home> Deref for Pinned<T, H> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the slot is ours and holds a value.
        unsafe { self.object.as_ref() }
    }
}

impl<T: Unpin, H: Home> DerefMut for Pinned<T, H> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the slot is ours and holds a value, which may be moved.
        unsafe { self.object.as_mut() }
    }
}

// Moving the slot's name does not move the value.
impl<T, H: Home> Unpin for Pinned<T, H> {}

impl<F: Future, H: Home> Future for Pinned<F, H> {
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.as_mut().get_mut().as_mut().poll(context)
    }
}

impl<T: fmt::Debug, H: Home> fmt::Debug for Pinned<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display, H: Home> fmt::Display for Pinned<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
