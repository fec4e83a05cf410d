//! Slots of a pool: [`Claim`], which has no value yet, and [`Owned`], which has one.
//!
//! Code of the program that runs inside (a value's drop, the function of [`Claim::fill_with`]) may
//! panic, or use the same pool. Meanwhile the slot is not in the pool's list, and a drop guard
//! frees it. The traits of a value (`Eq`, `Ord`, `Hash`, `Debug`, `Borrow`) are forwarded; nothing
//! depends on them. [`Home`] is sealed.

use crate::home::{Home, In};
use crate::in_place::{self, Zeroable};
use crate::pinned::Pinned;
use core::borrow::{Borrow, BorrowMut};
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::ptr::NonNull;

/// A slot of a [`Pool`](crate::Pool) that is taken and has no value yet; see [`Claim`].
pub type Vacant<'p, T> = Claim<T, In<'p>>;

/// A value in a slot of a [`Pool`](crate::Pool), [`BytePool`](crate::BytePool) or
/// [`RcPool`](crate::RcPool); see [`Owned`].
pub type Slot<'p, T> = Owned<T, In<'p>>;

/// A slot that is taken and has no value yet. Dropping it frees the slot.
///
/// In optimized builds, a value that is written as a struct expression, or by an inlined function,
/// is built directly in the slot, without a copy on the stack. The result of a call or of a loop is
/// copied, and a value that is larger than the stack ends the program. To avoid this, use
/// [`Claim::fill_with`], [`Claim::zeroed`] or [`Claim::as_uninit`].
///
/// ```
/// let pool = slabyard::Pool::bounded(1);
/// let vacant = pool.claim().unwrap();
/// assert!(pool.claim().is_none());
/// let slot = vacant.write([7u64; 512]);
/// assert_eq!(slot[511], 7);
/// ```
#[must_use = "a slot that is dropped goes back at once"]
pub struct Claim<T, H: Home> {
    object: NonNull<T>,
    home: H,
}

impl<T, H: Home> Claim<T, H> {
    /// Takes a slot of the home.
    ///
    /// # Safety
    /// The objects of the home are large enough and aligned for T.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn take(home: H) -> Option<Claim<T, H>> {
        home.take().map(|object| Claim {
            object: object.cast(),
            home,
        })
    }

    /// Writes the value and returns its slot.
    #[inline(always)]
    pub fn write(self, value: T) -> Owned<T, H> {
        // SAFETY: the slot is ours, and fits a T.
        unsafe {
            self.object.write(value);
            self.assume_init()
        }
    }

    /// The memory of the slot, for a value that is built piece by piece.
    ///
    /// ```
    /// # let pool = slabyard::Pool::<[u8; 4096]>::bounded(1);
    /// let mut vacant = pool.claim().unwrap();
    /// let bytes = vacant.as_uninit();
    /// bytes.write([0; 4096]);
    /// // SAFETY: all of it was written.
    /// let slot = unsafe { vacant.assume_init() };
    /// ```
    pub fn as_uninit(&mut self) -> &mut MaybeUninit<T> {
        // SAFETY: the slot is ours, and fits a T.
        unsafe { self.object.cast().as_mut() }
    }

    /// The slot with the value that was written through [`Claim::as_uninit`].
    ///
    /// # Safety
    /// All of the value was written.
    #[inline(always)]
    pub unsafe fn assume_init(self) -> Owned<T, H> {
        let claim = ManuallyDrop::new(self);
        // SAFETY: as the caller says; the claim is given up.
        unsafe { Owned::from_parts(claim.object, claim.home) }
    }

    /// A slot whose value is gone. It is freed when this is dropped, also in a panic.
    ///
    /// # Safety
    /// The object belongs to the home, and no other code uses it.
    #[inline(always)]
    pub(crate) unsafe fn from_parts(object: NonNull<T>, home: H) -> Claim<T, H> {
        Claim { object, home }
    }
}

impl<E, const N: usize, H: Home> Claim<[E; N], H> {
    /// Builds an array in the slot, element by element.
    ///
    /// ```
    /// let pool = slabyard::Pool::bounded(1);
    /// let squares = pool.claim().unwrap().fill_with(|i| i * i);
    /// assert_eq!(*squares, [0, 1, 4, 9, 16]);
    /// ```
    #[inline]
    pub fn fill_with(self, element: impl FnMut(usize) -> E) -> Owned<[E; N], H> {
        // SAFETY: the slot is ours, has room for the array, and all elements are written.
        unsafe {
            in_place::fill(self.object, element);
            self.assume_init()
        }
    }
}

impl<T: Zeroable, H: Home> Claim<T, H> {
    /// Makes the value of zeros in the slot.
    #[inline]
    pub fn zeroed(self) -> Owned<T, H> {
        // SAFETY: the slot is ours, and zeros are a value.
        unsafe {
            in_place::zero(self.object);
            self.assume_init()
        }
    }
}

impl<T, H: Home> Drop for Claim<T, H> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the slot is ours, and has no value.
        unsafe { self.home.give(self.object.cast()) }
    }
}

impl<T, H: Home> fmt::Debug for Claim<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vacant(..)")
    }
}

/// Owns a value in a slot of a pool, as `Box` owns one of the heap. Dropping it drops the value and
/// frees the slot.
///
/// It cannot leave its thread. If it is forgotten, its slot stays taken and its value is not
/// dropped; nothing else happens. If the value's drop panics, the slot is freed nevertheless.
///
/// ```
/// let pool = slabyard::Pool::unbounded();
/// let mut slot = pool.insert(String::from("a"));
/// slot.push('b');
/// assert_eq!(*slot, "ab");
/// assert_eq!(slot.into_inner(), "ab");
/// assert_eq!(pool.in_use(), 0);
/// ```
pub struct Owned<T, H: Home> {
    object: NonNull<T>,
    home: H,
    owns: PhantomData<T>,
}

impl<T, H: Home> Owned<T, H> {
    /// # Safety
    /// The object belongs to the home, holds a value, and no other code uses it.
    #[inline(always)]
    pub(crate) unsafe fn from_parts(object: NonNull<T>, home: H) -> Owned<T, H> {
        Owned {
            object,
            home,
            owns: PhantomData,
        }
    }

    #[inline(always)]
    pub(crate) fn into_parts(self) -> (NonNull<T>, H) {
        let slot = ManuallyDrop::new(self);
        (slot.object, slot.home)
    }

    /// Moves the value out and frees the slot.
    #[inline]
    pub fn into_inner(self) -> T {
        let (object, home) = self.into_parts();
        // SAFETY: the slot is ours and holds a value, which is moved out of it.
        unsafe {
            let value = object.read();
            drop(Claim::from_parts(object, home));
            value
        }
    }

    /// Stores another value and returns the previous one.
    #[inline]
    pub fn replace(&mut self, value: T) -> T {
        core::mem::replace(&mut **self, value)
    }

    /// The address of the value; valid while the value is in the slot.
    #[inline]
    pub fn as_ptr(&self) -> NonNull<T> {
        self.object
    }

    /// Pins the value: it does not move until it is dropped.
    ///
    /// ```
    /// use core::pin::Pin;
    /// let pool = slabyard::Pool::unbounded();
    /// let mut slot = pool.insert(async { 42 }).into_pin();
    /// let future: Pin<&mut _> = slot.as_mut();
    /// # let _ = future;
    /// ```
    #[inline]
    pub fn into_pin(self) -> Pinned<T, H> {
        Pinned::new(self)
    }

    /// The value, pinned, for types that are `Unpin`. For other types use [`Owned::into_pin`].
    #[inline]
    pub fn pin(&self) -> Pin<&T>
    where
        T: Unpin,
    {
        Pin::new(&**self)
    }

    /// The value, pinned, for changing it; for types that are `Unpin`.
    #[inline]
    pub fn pin_mut(&mut self) -> Pin<&mut T>
    where
        T: Unpin,
    {
        Pin::new(&mut **self)
    }
}

impl<'p, T> Owned<T, In<'p>> {
    /// Leaks the value: it stays as long as the pool is borrowed, and is never dropped. Its slot is
    /// never freed.
    ///
    /// ```
    /// let pool = slabyard::Pool::unbounded();
    /// let number: &mut i32 = pool.insert(1).leak();
    /// *number += 1;
    /// assert_eq!((*number, pool.in_use()), (2, 1));
    /// ```
    #[inline]
    pub fn leak(self) -> &'p mut T {
        let (object, _) = self.into_parts();
        // SAFETY: the value has no other owner, and the pool, which is borrowed, never gets it
        // back.
        unsafe { &mut *object.as_ptr() }
    }
}

impl<T, H: Home> Drop for Owned<T, H> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the slot is ours and holds a value. The slot is freed after the drop, also in a
        // panic.
        unsafe {
            let _goes_back = Claim::from_parts(self.object, self.home);
            self.object.drop_in_place();
        }
    }
}

impl<T, H: Home> Deref for Owned<T, H> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the slot is ours and holds a value.
        unsafe { self.object.as_ref() }
    }
}

impl<T, H: Home> DerefMut for Owned<T, H> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the slot is ours and holds a value.
        unsafe { self.object.as_mut() }
    }
}

// Moving the slot's name does not move the value.
impl<T, H: Home> Unpin for Owned<T, H> {}

impl<T, H: Home> AsRef<T> for Owned<T, H> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T, H: Home> AsMut<T> for Owned<T, H> {
    fn as_mut(&mut self) -> &mut T {
        self
    }
}

impl<T, H: Home> Borrow<T> for Owned<T, H> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T, H: Home> BorrowMut<T> for Owned<T, H> {
    fn borrow_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: fmt::Debug, H: Home> fmt::Debug for Owned<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display, H: Home> fmt::Display for Owned<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: PartialEq, H: Home> PartialEq for Owned<T, H> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq, H: Home> Eq for Owned<T, H> {}

impl<T: PartialOrd, H: Home> PartialOrd for Owned<T, H> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (**self).partial_cmp(&**other)
    }
}

impl<T: Ord, H: Home> Ord for Owned<T, H> {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl<T: Hash, H: Home> Hash for Owned<T, H> {
    fn hash<S: Hasher>(&self, state: &mut S) {
        (**self).hash(state)
    }
}
