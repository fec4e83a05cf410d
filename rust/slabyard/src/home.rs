//! Where a slot came from and goes back to. The types of slots are the same for pools that are
//! values and for the pools of a thread; what differs is how a slot finds its pool.

use crate::raw::pool::RawPool;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// A pool that slots go back to: [`In`] a pool that is a value, or the pool of a thread. There are
/// no others.
pub trait Home: sealed::Home {}

pub(crate) mod sealed {
    use super::*;

    /// # Safety
    /// `pool` is always the pool that `grow` and it gave objects of, on the one thread that can
    /// have the value; it exists while the value does.
    pub unsafe trait Home: Copy {
        /// Do pins have to be counted, since the pool could go while objects are out?
        const COUNTS_PINS: bool;

        fn pool(self) -> RawPool;

        /// An object, after `pool` had none at hand.
        fn grow(self) -> Option<NonNull<u8>>;
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
    const COUNTS_PINS: bool = true;

    #[inline(always)]
    fn pool(self) -> RawPool {
        self.pool
    }

    #[cold]
    #[inline(never)]
    fn grow(self) -> Option<NonNull<u8>> {
        // SAFETY: it exists, and is this thread's.
        unsafe { self.pool.grow() }
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
