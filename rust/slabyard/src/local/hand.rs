//! A thread's access to one of its pools: the pool, and a list of free slots in front of it.
//!
//! The head of the list lies in thread-local storage, so taking a slot or giving it back does not
//! look up the pool: five instructions each. Two instructions of giving back compare the slot with
//! the one that was given back last, to find double frees. The pool fills the list, several slots
//! at a time. It gets them back when the thread ends, or for a trim.

use crate::raw::pool::{RawPool, CALLS};
use core::cell::Cell;
use core::ptr::NonNull;

/// The number of slots that come from the pool at a time. It is smaller if they would have more
/// bytes than the second constant.
const FILL_SLOTS: usize = 64;
const FILL_BYTES: usize = 16 << 10;

/// A free slot, or the end of the list. The first word of each free slot points to the next one.
type Link = Option<NonNull<u8>>;

/// One pool of this thread, if it has been built. It has no destructor, so destructors of other
/// thread-local variables can still use it (on Windows: end_windows.rs).
pub(super) struct Hand {
    free: Cell<Link>,
    pool: Cell<Option<RawPool>>,
}

impl Hand {
    pub(super) const fn new() -> Self {
        Hand {
            free: Cell::new(None),
            pool: Cell::new(None),
        }
    }

    #[inline(always)]
    pub(super) fn pool(&self) -> Option<RawPool> {
        self.pool.get()
    }

    /// Makes the pool this thread's.
    pub(super) fn begin(&self, pool: RawPool) {
        self.pool.set(Some(pool));
    }

    /// Takes a slot with undefined content. `None`: there is no pool, it is bounded and full, or
    /// there is no memory.
    #[inline(always)]
    pub(super) fn take(&self) -> Option<NonNull<u8>> {
        match self.free.get() {
            Some(slot) => {
                // SAFETY: a slot in the list is free, and begins with a link.
                self.free.set(unsafe { slot.cast::<Link>().read() });
                Some(slot)
            }
            None => self.fill(),
        }
    }

    /// # Safety
    /// The slot belongs to the pool, and is not used again.
    #[inline(always)]
    pub(super) unsafe fn give(&self, slot: NonNull<u8>) {
        if CALLS {
            if let Some(pool) = self.pool() {
                // SAFETY: as the caller says.
                unsafe { pool.push(slot) }
            }
            return;
        }
        let newest = self.free.get();
        if newest == Some(slot) {
            return self.given_twice(slot);
        }
        // SAFETY: the slot is free from here on, aligned for a link, and large enough for one.
        unsafe { slot.cast::<Link>().write(newest) }
        self.free.set(Some(slot));
    }

    #[cold]
    #[inline(never)]
    fn given_twice(&self, slot: NonNull<u8>) {
        if let Some(pool) = self.pool() {
            // SAFETY: the pool exists, and is this thread's.
            unsafe { pool.given_twice(slot) }
        }
    }

    /// Takes a slot from the pool, and moves further ones into the list. The pool counts these as
    /// taken.
    #[cold]
    #[inline(never)]
    fn fill(&self) -> Option<NonNull<u8>> {
        let pool = self.pool()?;
        // SAFETY: the pool exists, and is this thread's. It gives free slots.
        unsafe {
            let first = pool.pop().or_else(|| pool.grow())?;
            let mut last: Option<NonNull<Link>> = None;
            for _ in 1..self.fill_slots(pool) {
                let Some(slot) = pool.pop() else { break };
                match last {
                    Some(link) => link.write(Some(slot)),
                    None => self.free.set(Some(slot)),
                }
                last = Some(slot.cast());
                slot.cast::<Link>().write(None);
            }
            Some(first)
        }
    }

    fn fill_slots(&self, pool: RawPool) -> usize {
        if CALLS {
            return 1;
        }
        // SAFETY: the pool exists.
        (FILL_BYTES / unsafe { pool.slot_size() }).min(FILL_SLOTS)
    }

    /// Gives the slots of the list back to the pool.
    fn settle(&self, pool: RawPool) {
        while let Some(slot) = self.free.get() {
            // SAFETY: the slot is free, belongs to the pool, and begins with a link.
            unsafe {
                self.free.set(slot.cast::<Link>().read());
                pool.push(slot);
            }
        }
    }

    /// The number of taken slots; 0 without a pool.
    pub(super) fn in_use(&self) -> usize {
        let Some(pool) = self.pool() else { return 0 };
        let next = |slot: &NonNull<u8>| {
            // SAFETY: as in `take`.
            unsafe { slot.cast::<Link>().read() }
        };
        let free = core::iter::successors(self.free.get(), next).count();
        // SAFETY: the pool exists, and is this thread's.
        unsafe { pool.in_use() - free }
    }

    /// The number of slots; 0 without a pool.
    pub(super) fn capacity(&self) -> usize {
        // SAFETY: the pool exists, and is this thread's.
        self.pool().map_or(0, |pool| unsafe { pool.capacity() })
    }

    /// Provides memory for `more` slots, including those in the list. False: there is no room, or
    /// no pool.
    pub(super) fn reserve(&self, more: usize) -> bool {
        self.pool().is_some_and(|pool| {
            self.settle(pool);
            // SAFETY: the pool exists, and is this thread's.
            unsafe { crate::pool_functions::reserve(pool, more) }
        })
    }

    /// If no slot is taken, returns memory to the system. The result is the number of bytes.
    pub(super) fn trim(&self) -> usize {
        self.pool().map_or(0, |pool| {
            self.settle(pool);
            // SAFETY: the pool exists, and is this thread's.
            unsafe { pool.trim() }
        })
    }

    /// Ends the pool if no slot is taken. If a slot is taken in the last round, the pool stays
    /// until the process ends. True: the matter is settled, either way.
    pub(super) fn end(&self, last: bool) -> bool {
        let Some(pool) = self.pool() else { return true };
        self.settle(pool);
        // SAFETY: the pool exists, and is this thread's. It is destroyed only if no slot is taken,
        // and it can no longer be reached then.
        unsafe {
            if pool.in_use() == 0 {
                self.pool.set(None);
                pool.destroy();
                return true;
            }
            if last {
                pool.keep();
            }
        }
        last
    }
}
