//! The doors that all pools which are values have, written once.

use alloc::vec::Vec;
use core::ptr::NonNull;

use crate::raw::pool::RawPool;

/// No room: a bounded pool is full, or there is no memory.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn no_room() -> ! {
    panic!("the pool has no room for another object: it is bounded and full, or there is no memory")
}

/// The smallest page that there is; of larger ones, some are touched more than once.
const PAGE: usize = 4096;

/// Writes to each page of a slot.
///
/// # Safety
/// The slot is taken, has so many bytes, at least 1, and nothing that counts is in them.
unsafe fn touch(slot: NonNull<u8>, bytes: usize) {
    let last = bytes - 1;
    // SAFETY: as the caller says. Where the slot is not aligned to pages, its last byte may lie on
    // one more.
    unsafe {
        (0..last)
            .step_by(PAGE)
            .for_each(|at| slot.add(at).write_volatile(0));
        slot.add(last).write_volatile(0);
    }
}

/// Takes so many slots, touches their memory, and gives them back; whether there were.
///
/// # Safety
/// The pool exists and is this thread's.
pub(crate) unsafe fn reserve(pool: RawPool, more: usize) -> bool {
    let mut slots = Vec::new();
    if slots.try_reserve_exact(more).is_err() {
        return false;
    }
    // SAFETY: as the caller says; what was taken is given back, unused, the first at last.
    unsafe {
        slots.extend(core::iter::from_fn(|| pool.pop().or_else(|| pool.grow())).take(more));
        let bytes = pool.slot_size();
        slots.iter().for_each(|slot| touch(*slot, bytes));
        let there = slots.len() == more;
        slots.into_iter().rev().for_each(|slot| pool.push(slot));
        there
    }
}

/// `bounded`, `unbounded` and the rest, for a type with a `memory: PoolMemory`. Here `layout` is
/// that of a slot.
macro_rules! pool_doors {
    ([$($generics:tt)*] $pool:ty, $layout:expr) => {
        impl<$($generics)*> $crate::builder::FromMemory for $pool {
            fn from_memory(memory: $crate::home::PoolMemory) -> Self {
                Self { memory, holds: core::marker::PhantomData }
            }
        }

        impl<$($generics)*> $pool {
            /// A pool with options.
            pub fn builder() -> $crate::PoolBuilder<Self> {
                $crate::PoolBuilder::new($layout)
            }

            /// A pool of at most `capacity` objects at a time. The address space for all of them is
            /// taken now, pages when they are first used.
            ///
            /// # Panics
            /// `capacity` is 0, or there is not that much memory; [`PoolBuilder::build`] is the
            /// form with errors.
            ///
            /// [`PoolBuilder::build`]: crate::PoolBuilder::build
            #[track_caller]
            pub fn bounded(capacity: usize) -> Self {
                Self::builder().bounded(capacity).build().expect("a bounded pool")
            }

            /// A pool that grows. What is in it is never moved or copied for that.
            ///
            /// # Panics
            /// There is no memory for the first chunk of 64 KiB.
            #[track_caller]
            pub fn unbounded() -> Self {
                Self::builder().build().expect("an unbounded pool")
            }

            /// Slots that are taken: objects, and slots without a value yet; what was leaked or
            /// forgotten counts too. Exact; it takes a load for each slot that is free.
            pub fn in_use(&self) -> usize {
                // SAFETY: the pool exists, and can only be used by this thread.
                unsafe { self.memory.0.in_use() }
            }

            /// Objects that fit: of a bounded pool, its capacity; of another, how many it can hold
            /// before it grows, those there included.
            pub fn capacity(&self) -> usize {
                // SAFETY: as in in_use.
                unsafe { self.memory.0.capacity() }
            }

            /// Provides memory, each page of it touched, for so many more objects: the next that are taken need
            /// nothing of the system, and do not wait for a page. Whether there is room; if not, what
            /// was provided stays. Takes as many slots and gives them back, in that order.
            ///
            /// A later [`Self::trim`] takes back what is not used; less than all cannot go, since
            /// the list of free slots runs through all chunks.
            pub fn reserve(&self, more: usize) -> bool {
                // SAFETY: the pool exists, and can only be used by this thread.
                unsafe { $crate::pool_doors::reserve(self.memory.0, more) }
            }

            /// Gives memory back to the system, if no slot is taken; else nothing happens. Returns
            /// how many bytes, those never touched included. Nothing goes back from a pool that was
            /// touched in advance ([`PoolBuilder::prefault`](crate::PoolBuilder::prefault)). It
            /// costs as much as [`Self::in_use`]. Memory goes back here and when the pool is dropped,
            /// not otherwise.
            pub fn trim(&self) -> usize {
                // SAFETY: as in in_use; nothing is in use where memory goes.
                unsafe { self.memory.0.trim() }
            }
        }

        impl<$($generics)*> core::fmt::Debug for $pool {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let path = core::any::type_name::<Self>();
                f.debug_struct(path.strip_prefix(concat!(module_path!(), "::")).unwrap_or(path))
                    .field("capacity", &self.capacity())
                    .finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use pool_doors;
