//! Where a slot came from and goes back to. The types of slots are the same for pools that are
//! values and for the pools of a thread; what differs is how a slot finds its pool.

use crate::raw::pool::RawPool;
use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// A pool that slots go back to: [`In`] a pool that is a value, or the pool of a thread. There are
/// no others.
pub trait Home: sealed::Home {}

pub(crate) mod sealed {
    use super::*;

    /// # Safety
    /// `take` gives objects that are nobody else's, on the one thread that can have the value; the
    /// memory of those not given back stays.
    pub unsafe trait Home: Copy {
        /// An object, content undefined; `None`: the pool is bounded and full, or there is no
        /// memory.
        #[track_caller]
        fn take(self) -> Option<NonNull<u8>>;

        /// # Safety
        /// The object is of this home, and not used again.
        unsafe fn give(self, object: NonNull<u8>);

        /// Where pins are counted, if the pool could go while objects are out.
        fn pins(&self) -> Option<&Cell<usize>>;
    }
}

/// The home of slots that borrow a pool for `'p`.
#[derive(Clone, Copy)]
pub struct In<'p> {
    pool: RawPool,
    borrows: PhantomData<&'p ()>,
}

impl<'p> In<'p> {
    /// The pool is one that exists for as long as the thing borrowed, on this thread.
    #[inline(always)]
    pub(crate) fn new(pool: &'p PoolMemory) -> In<'p> {
        In {
            pool: pool.0,
            borrows: PhantomData,
        }
    }
}

impl Home for In<'_> {}

// SAFETY: the pool is borrowed, and neither it nor this can be sent to another thread meanwhile.
unsafe impl sealed::Home for In<'_> {
    #[inline(always)]
    fn take(self) -> Option<NonNull<u8>> {
        #[cold]
        #[inline(never)]
        fn grow(pool: RawPool) -> Option<NonNull<u8>> {
            // SAFETY: as in take.
            unsafe { pool.grow() }
        }
        // SAFETY: the pool exists, and is this thread's.
        match unsafe { self.pool.pop() } {
            Some(object) => Some(object),
            None => grow(self.pool),
        }
    }

    #[inline(always)]
    unsafe fn give(self, object: NonNull<u8>) {
        // SAFETY: as the caller says.
        unsafe { self.pool.push(object) }
    }

    #[inline(always)]
    fn pins(&self) -> Option<&Cell<usize>> {
        // SAFETY: the pool exists while it is borrowed.
        Some(unsafe { self.pool.word() })
    }
}

/// What owns a pool that is a value. It says nothing of the type of the objects, since it does
/// nothing with them: they may borrow from the pool that they are in.
#[derive(Debug)]
pub(crate) struct PoolMemory(pub RawPool);

impl Drop for PoolMemory {
    fn drop(&mut self) {
        // SAFETY: nothing borrows the pool any more. What is still in it was leaked; that cannot be
        // reached, but it may know that it was pinned: then its memory stays as it is.
        unsafe {
            if self.0.word().get() == 0 {
                self.0.destroy();
            } else {
                self.0.keep();
            }
        }
    }
}
