//! Homes of slots. The home of a slot is the pool that it came from and goes back to. Pools that
//! are values and per-thread pools have the same types of slots; only the way in which a slot finds
//! its pool differs.

use crate::raw::pool::RawPool;
use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// The pool of a slot: [`In`] for a pool that is a value, or a per-thread pool. The trait is
/// sealed.
pub trait Home: sealed::Home {}

pub(crate) mod sealed {
    use super::*;

    /// # Safety
    /// `take` gives objects that no other code uses, and only on the thread of the home. The memory
    /// of objects that were not given back stays.
    pub unsafe trait Home: Copy {
        /// Allocates an object with undefined content. `None`: the pool is bounded and full, or
        /// there is no memory.
        #[track_caller]
        fn take(self) -> Option<NonNull<u8>>;

        /// # Safety
        /// The object is from this home, and is not used again.
        unsafe fn give(self, object: NonNull<u8>);

        /// The count of pinned objects, if the pool can be dropped while objects are out.
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
    /// The pool exists on this thread for as long as the borrow.
    #[inline(always)]
    pub(crate) fn new(pool: &'p PoolMemory) -> In<'p> {
        In {
            pool: pool.0,
            borrows: PhantomData,
        }
    }
}

impl Home for In<'_> {}

// SAFETY: the pool is borrowed, and neither the pool nor this can be sent to another thread
// meanwhile.
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

/// Owns a pool that is a value. It does not name the type of the objects, because it does nothing
/// with them. So objects may borrow from the pool that they are in.
#[derive(Debug)]
pub(crate) struct PoolMemory(pub RawPool);

impl Drop for PoolMemory {
    fn drop(&mut self) {
        // SAFETY: nothing borrows the pool any more. Objects that are still in it were leaked and
        // cannot be reached. If one of them was pinned, its memory must stay.
        unsafe {
            if self.0.word().get() == 0 {
                self.0.destroy();
            } else {
                self.0.keep();
            }
        }
    }
}
