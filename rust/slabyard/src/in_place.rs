//! Values that are made where they stay, for types that are too large for a stack: arrays that are
//! filled element by element, and values of zeros.
//!
//! A function of the program that makes an element may panic, or use the same cache, pool or map.
//! Meanwhile the slot is taken, and a drop guard drops the elements that were made.

use core::cell::{Cell, UnsafeCell};
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::num::{NonZero, Wrapping};
use core::ptr::NonNull;
use core::sync::atomic;

/// Fills an array element by element. If `element` panics, the elements that were made are dropped.
///
/// # Safety
/// The place has room for the array, and no other code uses it.
#[inline]
pub(crate) unsafe fn fill<E, const N: usize>(
    place: NonNull<[E; N]>,
    mut element: impl FnMut(usize) -> E,
) {
    /// Drops the elements written so far if the next call panics.
    struct Filled<E>(*mut E, usize);
    impl<E> Drop for Filled<E> {
        fn drop(&mut self) {
            let there = core::ptr::slice_from_raw_parts_mut(self.0, self.1);
            // SAFETY: this number of elements were written, and no other code uses them.
            unsafe { there.drop_in_place() }
        }
    }
    let mut filled = Filled(place.as_ptr().cast::<E>(), 0);
    while filled.1 < N {
        // SAFETY: the place has room for N consecutive elements.
        unsafe { filled.0.add(filled.1).write(element(filled.1)) };
        filled.1 += 1;
    }
    core::mem::forget(filled);
}

/// Makes the value of zeros.
///
/// # Safety
/// The place has room for a `T`, and no other code uses it.
#[inline]
pub(crate) unsafe fn zero<T: Zeroable>(place: NonNull<T>) {
    // SAFETY: as the caller says.
    unsafe { place.write_bytes(0, 1) }
}

/// A type for which bytes of zeros are a value. Functions named `zeroed` make it where it stays:
/// no copy of it is ever on the stack.
///
/// ```
/// use slabyard::{Cache, Zeroable};
///
/// #[repr(C)]
/// struct Frame { length: usize, bytes: [u8; 4 << 20] }
/// // SAFETY: zeros are a value of each field.
/// unsafe impl Zeroable for Frame {}
///
/// let frames = Cache::<Frame>::new("frame");
/// let frame = frames.claim().unwrap().zeroed();
/// assert_eq!(frame.length, 0);
/// ```
///
/// # Safety
/// A value whose bytes are all zero is valid, and safe code may use it.
pub unsafe trait Zeroable {}

macro_rules! zeroable {
    ($($name:ty),+) => {
        $(
            // SAFETY: zero, false, none or nothing.
            unsafe impl Zeroable for $name {}
        )+
    };
}

zeroable!(
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    i8,
    i16,
    i32,
    i64,
    i128,
    isize,
    f32,
    f64,
    bool,
    char,
    ()
);
zeroable!(
    atomic::AtomicU8,
    atomic::AtomicU16,
    atomic::AtomicU32,
    atomic::AtomicU64
);
zeroable!(
    atomic::AtomicI8,
    atomic::AtomicI16,
    atomic::AtomicI32,
    atomic::AtomicI64
);
zeroable!(atomic::AtomicUsize, atomic::AtomicIsize, atomic::AtomicBool);

macro_rules! zeroable_options {
    ($($name:ty),+) => {
        $(
            // SAFETY: `None` has the bits that no number has.
            unsafe impl Zeroable for Option<NonZero<$name>> {}
        )+
    };
}

zeroable_options!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

// SAFETY: zeros are a value of each element.
unsafe impl<E: Zeroable, const N: usize> Zeroable for [E; N] {}
// SAFETY: any bytes are.
unsafe impl<T> Zeroable for MaybeUninit<T> {}
// SAFETY: it has no bytes.
unsafe impl<T: ?Sized> Zeroable for PhantomData<T> {}
// SAFETY: as the value in it, which has the same bytes.
unsafe impl<T: Zeroable> Zeroable for Wrapping<T> {}
// SAFETY: as above.
unsafe impl<T: Zeroable> Zeroable for ManuallyDrop<T> {}
// SAFETY: as above.
unsafe impl<T: Zeroable> Zeroable for Cell<T> {}
// SAFETY: as above.
unsafe impl<T: Zeroable> Zeroable for UnsafeCell<T> {}
// SAFETY: null.
unsafe impl<T> Zeroable for *const T {}
// SAFETY: null.
unsafe impl<T> Zeroable for *mut T {}
// SAFETY: null.
unsafe impl<T> Zeroable for atomic::AtomicPtr<T> {}
// SAFETY: `None` is the null pointer.
unsafe impl<T> Zeroable for Option<NonNull<T>> {}
