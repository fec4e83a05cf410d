//! What a thread has at hand of one pool: the pool, and a list of free slots before it.
//!
//! The head of the list lies in the thread's storage itself, so taking a slot and giving it back
//! need not look for the pool: five instructions each. Two of those that give back compare with the
//! slot that was given back last, which may not come a second time. The pool fills the list, some
//! slots at a time, and gets it back when the thread ends, or for a trim.

use crate::raw::pool::{RawPool, CALLS};
use core::cell::Cell;
use core::ptr::NonNull;

/// Slots that come from the pool at a time, unless that would be more than so many bytes.
const FILL_SLOTS: usize = 64;
const FILL_BYTES: usize = 16 << 10;

/// A free slot, or the end of the list; the first word of each slot leads to the next.
type Link = Option<NonNull<u8>>;

/// One pool of this thread, if it has been built. Without a destructor, so that it can be used by
/// those of other thread-local variables.
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

    /// From here on the pool is this thread's.
    pub(super) fn begin(&self, pool: RawPool) {
        self.pool.set(Some(pool));
    }

    /// A slot, content undefined; `None`: there is no pool, it is bounded and full, or there is no memory.
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
    /// The slot is one of the pool, and not used again.
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
        // SAFETY: the slot is free from here on, aligned for a link, and no smaller.
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

    /// A slot from the pool, and the next ones into the list, where they may stay unseen by it.
    #[cold]
    #[inline(never)]
    fn fill(&self) -> Option<NonNull<u8>> {
        let pool = self.pool()?;
        // SAFETY: the pool exists, and is this thread's; what it gives is a free slot.
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

    /// Gives the list back to the pool.
    fn settle(&self, pool: RawPool) {
        while let Some(slot) = self.free.get() {
            // SAFETY: the slot is free, one of the pool's, and begins with a link.
            unsafe {
                self.free.set(slot.cast::<Link>().read());
                pool.push(slot);
            }
        }
    }

    /// Slots that are taken; 0 without a pool.
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

    /// Slots that there are; 0 without a pool.
    pub(super) fn capacity(&self) -> usize {
        // SAFETY: the pool exists, and is this thread's.
        self.pool().map_or(0, |pool| unsafe { pool.capacity() })
    }

    /// Provides memory for so many more slots, those at hand included; whether there is room. False
    /// without a pool.
    pub(super) fn reserve(&self, more: usize) -> bool {
        self.pool().is_some_and(|pool| {
            self.settle(pool);
            // SAFETY: the pool exists, and is this thread's.
            unsafe { crate::pool_doors::reserve(pool, more) }
        })
    }

    /// Gives memory back if no slot is taken; bytes.
    pub(super) fn trim(&self) -> usize {
        self.pool().map_or(0, |pool| {
            self.settle(pool);
            // SAFETY: the pool exists, and is this thread's.
            unsafe { pool.trim() }
        })
    }

    /// The pool goes, if no slot is taken. If one is, it stays: for ever, if this is the last time.
    /// True if that is settled.
    pub(super) fn end(&self, last: bool) -> bool {
        let Some(pool) = self.pool() else { return true };
        self.settle(pool);
        // SAFETY: the pool exists, and is this thread's. It goes where no slot is taken, after the
        // last way to reach it.
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
