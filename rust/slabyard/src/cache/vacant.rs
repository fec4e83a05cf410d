//! Room for an object that is not there yet.

use core::fmt;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;

use super::CacheHome;
use crate::ObjectBox;

/// Room for one object, claimed and not yet written; goes back when it is dropped.
///
/// ```
/// let frames = slabyard::Cache::<[u8; 4096]>::new("frame");
/// let mut vacant = frames.claim().expect("there is no limit");
/// let place = vacant.as_uninit_mut().as_mut_ptr().cast::<u8>();
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

// SAFETY: it is memory that nobody else has a part of, and the way to its home.
unsafe impl<T, H: CacheHome<T> + Send> Send for CacheVacant<T, H> {}
// SAFETY: through a reference nothing can be done with it.
unsafe impl<T, H: CacheHome<T> + Sync> Sync for CacheVacant<T, H> {}

impl<T, H: CacheHome<T>> CacheVacant<T, H> {
    /// Claims room; `None`: there is none.
    #[inline]
    pub fn claim_in(home: H) -> Option<Self> {
        let place = home.take()?;
        Some(CacheVacant { place, home })
    }

    /// Writes the value, and is the box that holds it.
    #[inline]
    pub fn write(self, value: T) -> ObjectBox<T, H> {
        // SAFETY: the place is ours, and written now.
        unsafe {
            self.place.write(value);
            self.assume_init()
        }
    }

    /// Writes what the function returns, without a copy where the compiler can: it does with structs
    /// of a few fields. If the function panics, the room goes back.
    #[inline]
    pub fn write_with(self, make: impl FnOnce() -> T) -> ObjectBox<T, H> {
        // SAFETY: the place is ours, and written now.
        unsafe {
            self.place.write(make());
            self.assume_init()
        }
    }

    /// The place, to be written bit by bit: never a copy.
    #[inline]
    pub fn as_uninit_mut(&mut self) -> &mut MaybeUninit<T> {
        // SAFETY: the place is ours, and large enough; what is there is never read.
        unsafe { self.place.cast::<MaybeUninit<T>>().as_mut() }
    }

    /// The box that holds what was written.
    ///
    /// # Safety
    /// The place holds a value.
    #[inline]
    pub unsafe fn assume_init(self) -> ObjectBox<T, H> {
        let vacant = ManuallyDrop::new(self);
        // SAFETY: the place was taken from that home, and holds a value as the caller says.
        unsafe { ObjectBox::from_parts(vacant.place, vacant.home) }
    }
}

impl<T, H: CacheHome<T>> Drop for CacheVacant<T, H> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it was taken from there, and nobody uses it.
        unsafe { self.home.give(self.place) }
    }
}

impl<T, H: CacheHome<T>> fmt::Debug for CacheVacant<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CacheVacant")
    }
}
