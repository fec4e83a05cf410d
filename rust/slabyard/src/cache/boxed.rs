//! [`ObjectBox`]: the sole owner of an object in a cache.

use core::borrow::{Borrow, BorrowMut};
use core::future::Future;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};
use core::{cmp, error, fmt};

use super::{no_room, Cache, CacheHome, CacheVacant};
use crate::Full;

/// Owns an object of a home, as `Box` owns one of the heap. Dropping it drops the object and frees
/// its memory.
///
/// [`CacheBox`] is the box of a [`Cache`]; [`StaticBox`](crate::StaticBox), of 8 bytes, is the box
/// of a static cache. Functions that take the box by value are called as `ObjectBox::leak(object)`,
/// so that they do not hide methods of `T`.
///
/// The type is sized: [`into_dyn`](Self::into_dyn) makes a [`DynBox`](crate::DynBox) of a trait
/// object.
///
/// Thread rule: if `T` is `Send`, the box may be sent to another thread and dropped there.
pub struct ObjectBox<T, H: CacheHome<T>> {
    object: NonNull<T>,
    home: H,
    owned: PhantomData<T>,
}

/// Owns an object of a [`Cache`].
///
/// ```
/// use slabyard::{Cache, CacheBox};
///
/// let names = Cache::new("name");
/// let mut name = names.insert(String::from("Ada"));
/// name.push_str(" Lovelace");
/// assert_eq!(CacheBox::replace(&mut name, "Grace Hopper".into()), "Ada Lovelace");
/// assert_eq!(CacheBox::into_inner(name), "Grace Hopper");
/// assert_eq!(names.in_use(), 0);
/// ```
pub type CacheBox<'c, T> = ObjectBox<T, &'c Cache<T>>;

// SAFETY: the box is the only owner of its object.
unsafe impl<T: Send, H: CacheHome<T> + Send> Send for ObjectBox<T, H> {}
// SAFETY: a reference to the box gives references to the object and to the home only.
unsafe impl<T: Sync, H: CacheHome<T> + Sync> Sync for ObjectBox<T, H> {}

impl<T, H: CacheHome<T>> ObjectBox<T, H> {
    /// Puts a value into a home.
    ///
    /// # Panics
    /// If the limit of the cache is reached. If there is no memory, this fails as `Box::new` does.
    #[inline]
    #[track_caller]
    pub fn new_in(value: T, home: H) -> Self {
        match CacheVacant::claim_in(home) {
            Some(vacant) => vacant.write(value),
            None => no_room::<T>(),
        }
    }

    /// Puts a value into a home. If there is no room, the value is returned.
    #[inline]
    pub fn try_new_in(value: T, home: H) -> Result<Self, Full<T>> {
        match CacheVacant::claim_in(home) {
            Some(vacant) => Ok(vacant.write(value)),
            None => Err(Full(value)),
        }
    }

    /// # Safety
    /// The object was taken from that home, holds a value, and has no other owner.
    #[inline]
    pub(crate) unsafe fn from_parts(object: NonNull<T>, home: H) -> Self {
        ObjectBox {
            object,
            home,
            owned: PhantomData,
        }
    }

    /// Turns the box into a pointer and its home; [`from_raw`](Self::from_raw) makes a box of them
    /// again.
    #[inline]
    pub fn into_raw(this: Self) -> (NonNull<T>, H) {
        let this = ManuallyDrop::new(this);
        (this.object, this.home)
    }

    /// Makes a box again of a pointer and home from [`into_raw`](Self::into_raw).
    ///
    /// # Safety
    /// Both come from one call of `into_raw`, and no other box was made of them.
    #[inline]
    pub unsafe fn from_raw(object: NonNull<T>, home: H) -> Self {
        // SAFETY: as the caller says.
        unsafe { Self::from_parts(object, home) }
    }

    /// Moves the value out and frees its memory.
    #[inline]
    pub fn into_inner(this: Self) -> T {
        let (object, home) = Self::into_raw(this);
        // SAFETY: the value is moved out, and the memory was taken from there.
        unsafe {
            let value = object.read();
            home.give(object);
            value
        }
    }

    /// Stores another value in the object and returns the previous one.
    #[inline]
    pub fn replace(this: &mut Self, value: T) -> T {
        core::mem::replace(&mut **this, value)
    }

    /// Leaks the object: it is never dropped, and its memory is never freed, even if the cache is
    /// dropped.
    #[inline]
    pub fn leak<'a>(this: Self) -> &'a mut T
    where
        T: 'a,
    {
        // SAFETY: the object has no other owner, and a home keeps the memory of objects that were
        // not given back.
        unsafe { Self::into_raw(this).0.as_mut() }
    }

    /// Pins the object for the rest of its life, for futures and for values that point to
    /// themselves. If the pinned box is forgotten, its memory is never freed, because a pinned
    /// value must be dropped before its memory is reused.
    ///
    /// ```
    /// use std::future::Future;
    /// use slabyard::CacheBox;
    ///
    /// let futures = slabyard::Cache::new("future");
    /// let mut ready = CacheBox::into_pin(futures.insert(async { 42 }));
    /// let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// assert!(ready.as_mut().poll(&mut context).is_ready());
    /// ```
    #[inline]
    pub fn into_pin(this: Self) -> Pin<Self> {
        // SAFETY: the object does not move with its box. A pinned box gives out no `Self` and no
        // `&mut T` unless T is Unpin. The memory is given back after the object was dropped, or
        // never.
        unsafe { Pin::new_unchecked(this) }
    }

    /// The address of the object.
    #[inline]
    pub fn as_ptr(this: &Self) -> *const T {
        this.object.as_ptr()
    }
}

impl<T, H: CacheHome<T>> From<ObjectBox<T, H>> for Pin<ObjectBox<T, H>> {
    fn from(object: ObjectBox<T, H>) -> Self {
        ObjectBox::into_pin(object)
    }
}

/// Gives memory back when it is dropped, even if the drop of the value panicked.
struct Leaving<T, H: CacheHome<T>>(NonNull<T>, H);

impl<T, H: CacheHome<T>> Drop for Leaving<T, H> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the code that made it moves the value out or drops it first.
        unsafe { self.1.give(self.0) }
    }
}

impl<T, H: CacheHome<T>> Drop for ObjectBox<T, H> {
    #[inline]
    fn drop(&mut self) {
        let _leaving = Leaving(self.object, self.home);
        // SAFETY: the box owns the object, and drops it once.
        unsafe { self.object.drop_in_place() }
    }
}

impl<T, H: CacheHome<T>> Deref for ObjectBox<T, H> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the box owns the object.
        unsafe { self.object.as_ref() }
    }
}

impl<T, H: CacheHome<T>> DerefMut for ObjectBox<T, H> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the box owns the object.
        unsafe { self.object.as_mut() }
    }
}

impl<T, H: CacheHome<T>> AsRef<T> for ObjectBox<T, H> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T, H: CacheHome<T>> AsMut<T> for ObjectBox<T, H> {
    fn as_mut(&mut self) -> &mut T {
        self
    }
}

impl<T, H: CacheHome<T>> Borrow<T> for ObjectBox<T, H> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T, H: CacheHome<T>> BorrowMut<T> for ObjectBox<T, H> {
    fn borrow_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: Clone, H: CacheHome<T>> Clone for ObjectBox<T, H> {
    /// A clone of the value in the same home.
    ///
    /// # Panics
    /// As [`new_in`](ObjectBox::new_in).
    #[track_caller]
    fn clone(&self) -> Self {
        ObjectBox::new_in(T::clone(self), self.home)
    }
}

impl<T: fmt::Debug, H: CacheHome<T>> fmt::Debug for ObjectBox<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

impl<T: fmt::Display, H: CacheHome<T>> fmt::Display for ObjectBox<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

impl<T, H: CacheHome<T>> fmt::Pointer for ObjectBox<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&self.object, f)
    }
}

impl<T: PartialEq, H: CacheHome<T>> PartialEq for ObjectBox<T, H> {
    fn eq(&self, other: &Self) -> bool {
        T::eq(self, other)
    }
}

impl<T: Eq, H: CacheHome<T>> Eq for ObjectBox<T, H> {}

impl<T: PartialOrd, H: CacheHome<T>> PartialOrd for ObjectBox<T, H> {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        T::partial_cmp(self, other)
    }
}

impl<T: Ord, H: CacheHome<T>> Ord for ObjectBox<T, H> {
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        T::cmp(self, other)
    }
}

impl<T: Hash, H: CacheHome<T>> Hash for ObjectBox<T, H> {
    fn hash<S: Hasher>(&self, state: &mut S) {
        T::hash(self, state);
    }
}

impl<F: Future + Unpin, H: CacheHome<F>> Future for ObjectBox<F, H>
where
    H: Unpin,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        Pin::new(&mut **self).poll(context)
    }
}

impl<I: Iterator, H: CacheHome<I>> Iterator for ObjectBox<I, H> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        (**self).next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (**self).size_hint()
    }

    fn nth(&mut self, n: usize) -> Option<I::Item> {
        (**self).nth(n)
    }
}

impl<T: error::Error, H: CacheHome<T>> error::Error for ObjectBox<T, H> {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        (**self).source()
    }
}

#[cfg(feature = "std")]
impl<T: std::io::Write, H: CacheHome<T>> std::io::Write for ObjectBox<T, H> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        (**self).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        (**self).flush()
    }
}

// The object does not move with its box.
impl<T, H: CacheHome<T>> Unpin for ObjectBox<T, H> {}
