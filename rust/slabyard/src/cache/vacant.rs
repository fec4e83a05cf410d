//! [`CacheVacant`]: a slot that is claimed and not written yet.

use core::fmt;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;

use super::CacheHome;
use crate::in_place::{self, Zeroable};
use crate::{Counted, ObjectArc, ObjectBox};

/// A slot for one object, claimed and not yet written. Dropping it frees the slot.
///
/// ```
/// let frames = slabyard::Cache::<[u8; 4096]>::new("frame");
/// let mut vacant = frames.claim().expect("there is no limit");
/// let place = vacant.as_uninit().as_mut_ptr().cast::<u8>();
/// // SAFETY: all of it is written, where it stays.
/// let frame = unsafe {
///     place.write_bytes(7, 4096);
///     vacant.assume_init()
/// };
/// assert_eq!(frame[4095], 7);
/// ```
pub struct CacheVacant<T, H: CacheHome<T>> {
    place: NonNull<T>,
    home: H,
}

// SAFETY: it holds memory that no other code uses, and its home.
unsafe impl<T, H: CacheHome<T> + Send> Send for CacheVacant<T, H> {}
// SAFETY: a shared reference to it gives access to nothing.
unsafe impl<T, H: CacheHome<T> + Sync> Sync for CacheVacant<T, H> {}

impl<T, H: CacheHome<T>> CacheVacant<T, H> {
    /// Claims a slot. `None`: there is no room.
    #[inline]
    pub fn claim_in(home: H) -> Option<Self> {
        let place = home.take()?;
        Some(CacheVacant { place, home })
    }

    /// Writes the value and returns its box.
    #[inline]
    pub fn write(self, value: T) -> ObjectBox<T, H> {
        // SAFETY: the slot is claimed, and written now.
        unsafe {
            self.place.write(value);
            self.assume_init()
        }
    }

    /// Writes the value that the function returns. The compiler often avoids the copy, as with
    /// structs of a few fields, but not reliably: a value that is larger than the stack ends the
    /// program. Make such a value by [`fill_with`](Self::fill_with), [`zeroed`](Self::zeroed) or
    /// [`as_uninit`](Self::as_uninit). If the function panics, the slot is freed.
    #[inline]
    pub fn write_with(self, make: impl FnOnce() -> T) -> ObjectBox<T, H> {
        // SAFETY: the slot is claimed, and written now.
        unsafe {
            self.place.write(make());
            self.assume_init()
        }
    }

    /// The memory of the slot, to be initialized in place without a copy.
    #[inline]
    pub fn as_uninit(&mut self) -> &mut MaybeUninit<T> {
        // SAFETY: the slot is claimed and large enough; its content is never read.
        unsafe { self.place.cast::<MaybeUninit<T>>().as_mut() }
    }

    /// Makes the box of the value that was written.
    ///
    /// # Safety
    /// The slot holds a value.
    #[inline]
    pub unsafe fn assume_init(self) -> ObjectBox<T, H> {
        let vacant = ManuallyDrop::new(self);
        // SAFETY: the slot was taken from that home, and holds a value as the caller says.
        unsafe { ObjectBox::from_parts(vacant.place, vacant.home) }
    }
}

impl<E, const N: usize, H: CacheHome<[E; N]>> CacheVacant<[E; N], H> {
    /// Builds an array in the slot, element by element. If the function panics, the slot is freed.
    ///
    /// ```
    /// let frames = slabyard::Cache::<[u64; 1 << 20]>::new("frame");
    /// let frame = frames.claim().unwrap().fill_with(|at| at as u64);
    /// assert_eq!(frame[1 << 19], 1 << 19);
    /// ```
    #[inline]
    pub fn fill_with(self, element: impl FnMut(usize) -> E) -> ObjectBox<[E; N], H> {
        // SAFETY: the slot is claimed, and all elements are written.
        unsafe {
            in_place::fill(self.place, element);
            self.assume_init()
        }
    }
}

impl<T: Zeroable, H: CacheHome<T>> CacheVacant<T, H> {
    /// Makes the value of zeros in the slot.
    #[inline]
    pub fn zeroed(self) -> ObjectBox<T, H> {
        // SAFETY: the slot is claimed, and zeros are a value.
        unsafe {
            in_place::zero(self.place);
            self.assume_init()
        }
    }
}

impl<T, H: CacheHome<Counted<T>>> CacheVacant<Counted<T>, H> {
    /// Writes the counts, and returns the place of the value.
    fn counted(&mut self) -> NonNull<T> {
        // SAFETY: the slot is claimed; no reference to the value is made.
        unsafe { Counted::begin(self.place) }
    }

    /// Makes the first owner of the value that was written.
    ///
    /// # Safety
    /// The slot holds counts and a value.
    unsafe fn into_arc(self) -> ObjectArc<T, H> {
        let vacant = ManuallyDrop::new(self);
        // SAFETY: as the caller says, and the slot was taken from that home.
        unsafe { ObjectArc::from_parts(vacant.place, vacant.home) }
    }
}

impl<E, const N: usize, H: CacheHome<Counted<[E; N]>>> CacheVacant<Counted<[E; N]>, H> {
    /// Builds an array in the slot, element by element, and returns its first owner.
    ///
    /// ```
    /// use slabyard::{Cache, Counted};
    /// let tables = Cache::<Counted<[u64; 1 << 20]>>::new("table");
    /// let table = tables.claim().unwrap().fill_arc_with(|at| at as u64);
    /// assert_eq!(table.clone()[7], 7);
    /// ```
    #[inline]
    pub fn fill_arc_with(mut self, element: impl FnMut(usize) -> E) -> ObjectArc<[E; N], H> {
        // SAFETY: the slot is claimed, and all elements are written.
        unsafe {
            in_place::fill(self.counted(), element);
            self.into_arc()
        }
    }
}

impl<T: Zeroable, H: CacheHome<Counted<T>>> CacheVacant<Counted<T>, H> {
    /// Makes the value of zeros in the slot, and returns its first owner.
    #[inline]
    pub fn zeroed_arc(mut self) -> ObjectArc<T, H> {
        // SAFETY: the slot is claimed, and zeros are a value.
        unsafe {
            in_place::zero(self.counted());
            self.into_arc()
        }
    }
}

impl<T, H: CacheHome<T>> Drop for CacheVacant<T, H> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the slot was taken from this home, and is not used again.
        unsafe { self.home.give(self.place) }
    }
}

impl<T, H: CacheHome<T>> fmt::Debug for CacheVacant<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CacheVacant")
    }
}
