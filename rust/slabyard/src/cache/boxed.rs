//! A box: whoever has it owns the object.

use core::borrow::{Borrow, BorrowMut};
use core::future::Future;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};
use core::{cmp, fmt};

use super::{no_room, Cache, CacheHome, CacheVacant};
use crate::Full;

/// Owns an object of a home, as `Box` owns one of the heap: drops it, and gives its memory back.
///
/// [`CacheBox`] is the one of a [`Cache`]; [`StaticBox`](crate::StaticBox), of 8 bytes, that of a
/// static cache. Functions that take it by value are called as `ObjectBox::leak(object)`, so that they
/// do not hide those of `T`.
///
/// Thread rule: goes to other threads where `T` does, and may be dropped there.
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

// SAFETY: it owns its object alone.
unsafe impl<T: Send, H: CacheHome<T> + Send> Send for ObjectBox<T, H> {}
// SAFETY: a reference to it gives references to the object, and to the home.
unsafe impl<T: Sync, H: CacheHome<T> + Sync> Sync for ObjectBox<T, H> {}

impl<T, H: CacheHome<T>> ObjectBox<T, H> {
    /// Puts a value into a home.
    ///
    /// # Panics
    /// If the limit of the cache is reached. Where there is no memory, it does as `Box::new`.
    #[inline]
    #[track_caller]
    pub fn new_in(value: T, home: H) -> Self {
        match CacheVacant::claim_in(home) {
            Some(vacant) => vacant.write(value),
            None => no_room::<T>(),
        }
    }

    /// Puts a value into a home, or gives it back: there is no room.
    #[inline]
    pub fn try_new_in(value: T, home: H) -> Result<Self, Full<T>> {
        match CacheVacant::claim_in(home) {
            Some(vacant) => Ok(vacant.write(value)),
            None => Err(Full(value)),
        }
    }

    /// # Safety
    /// The object was taken from that home, holds a value, and is nobody else's.
    #[inline]
    pub(crate) unsafe fn from_parts(object: NonNull<T>, home: H) -> Self {
        ObjectBox {
            object,
            home,
            owned: PhantomData,
        }
    }

    /// The object without its owner; [`from_raw`](Self::from_raw) gives it one again.
    #[inline]
    pub fn into_raw(this: Self) -> (NonNull<T>, H) {
        let this = ManuallyDrop::new(this);
        (this.object, this.home)
    }

    /// A box for what [`into_raw`](Self::into_raw) gave.
    ///
    /// # Safety
    /// That is where both come from, and no other box was made of them.
    #[inline]
    pub unsafe fn from_raw(object: NonNull<T>, home: H) -> Self {
        // SAFETY: as the caller says.
        unsafe { Self::from_parts(object, home) }
    }

    /// Takes the value out; its memory goes back.
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

    /// Puts another value in its place, and gives the one before.
    #[inline]
    pub fn replace(this: &mut Self, value: T) -> T {
        core::mem::replace(&mut **this, value)
    }

    /// Gives the object up for ever: it is never dropped, and its memory stays, even if the cache
    /// ends.
    #[inline]
    pub fn leak<'a>(this: Self) -> &'a mut T
    where
        T: 'a,
    {
        // SAFETY: it is nobody else's, and a home keeps what was not given back.
        unsafe { Self::into_raw(this).0.as_mut() }
    }

    /// The object at this place for the rest of its life, for futures and what points to itself. If
    /// it is forgotten, its memory stays for ever: pinned values are dropped before their memory goes.
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
        // SAFETY: the object does not move with its box, and nothing gives a `Self` or `&mut T` out
        // of a pinned one unless T is Unpin; its memory is given back after it was dropped, or
        // never.
        unsafe { Pin::new_unchecked(this) }
    }

    /// Its address.
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

/// Gives memory back, whatever becomes of dropping what was in it.
struct Leaving<T, H: CacheHome<T>>(NonNull<T>, H);

impl<T, H: CacheHome<T>> Drop for Leaving<T, H> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: whoever made it has moved the value out, or dropped it.
        unsafe { self.1.give(self.0) }
    }
}

impl<T, H: CacheHome<T>> Drop for ObjectBox<T, H> {
    #[inline]
    fn drop(&mut self) {
        let _leaving = Leaving(self.object, self.home);
        // SAFETY: it is owned, and dropped once.
        unsafe { self.object.drop_in_place() }
    }
}

impl<T, H: CacheHome<T>> Deref for ObjectBox<T, H> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: it is owned.
        unsafe { self.object.as_ref() }
    }
}

impl<T, H: CacheHome<T>> DerefMut for ObjectBox<T, H> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: it is owned.
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

// The object does not move with its box.
impl<T, H: CacheHome<T>> Unpin for ObjectBox<T, H> {}
