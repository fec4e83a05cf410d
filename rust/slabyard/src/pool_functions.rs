//! The functions that all pools which are values share.

use alloc::vec::Vec;
use core::ptr::NonNull;

use crate::raw::pool::RawPool;

/// The panic of an insertion: a bounded pool is full, or there is no memory.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn no_room() -> ! {
    panic!("the pool has no room for another object: it is bounded and full, or there is no memory")
}

/// The smallest page size. Where pages are larger, some are touched more than once.
const PAGE: usize = 4096;

/// Writes to each page of a slot.
///
/// # Safety
/// The slot is taken, has this many bytes, at least 1, and its content is not needed.
unsafe fn touch(slot: NonNull<u8>, bytes: usize) {
    let last = bytes - 1;
    // SAFETY: as the caller says. If the slot is not aligned to pages, its last byte may lie on one
    // more page.
    unsafe {
        (0..last)
            .step_by(PAGE)
            .for_each(|at| slot.add(at).write_volatile(0));
        slot.add(last).write_volatile(0);
    }
}

/// Takes `more` slots, touches their memory, and gives them back. False: there were fewer.
///
/// # Safety
/// The pool exists and is this thread's.
pub(crate) unsafe fn reserve(pool: RawPool, more: usize) -> bool {
    let mut slots = Vec::new();
    if slots.try_reserve_exact(more).is_err() {
        return false;
    }
    // SAFETY: as the caller says. The slots are given back unused, the first one last.
    unsafe {
        slots.extend(core::iter::from_fn(|| pool.pop().or_else(|| pool.grow())).take(more));
        let bytes = pool.slot_size();
        slots.iter().for_each(|slot| touch(*slot, bytes));
        let there = slots.len() == more;
        slots.into_iter().rev().for_each(|slot| pool.push(slot));
        there
    }
}

/// Implements `bounded`, `unbounded` and the other functions for a type with a `memory:
/// PoolMemory`. `layout` is the layout of a slot.
macro_rules! pool_functions {
    ([$($generics:tt)*] $pool:ty, $layout:expr) => {
        impl<$($generics)*> $crate::builder::FromMemory for $pool {
            fn from_memory(memory: $crate::home::PoolMemory) -> Self {
                Self { memory, holds: core::marker::PhantomData }
            }
        }

        /// As [`unbounded`](Self::unbounded).
        impl<$($generics)*> Default for $pool {
            #[track_caller]
            fn default() -> Self {
                Self::unbounded()
            }
        }

        impl<$($generics)*> $pool {
            /// Starts the settings of a pool with options.
            pub fn builder() -> $crate::PoolBuilder<Self> {
                $crate::PoolBuilder::new($layout)
            }

            /// Creates a pool of at most `capacity` objects. The address space for all of them is
            /// reserved now; pages get memory when they are first used.
            ///
            /// # Panics
            /// If `capacity` is 0, or there is not enough memory. [`PoolBuilder::build`] returns an
            /// error instead.
            ///
            /// [`PoolBuilder::build`]: crate::PoolBuilder::build
            #[track_caller]
            pub fn bounded(capacity: usize) -> Self {
                Self::builder().bounded(capacity).build().expect("a bounded pool")
            }

            /// Creates a pool that grows. Growing does not move or copy its objects.
            ///
            /// # Panics
            /// If there is no memory for the first chunk of 64 KiB.
            #[track_caller]
            pub fn unbounded() -> Self {
                Self::builder().build().expect("an unbounded pool")
            }

            /// The exact number of taken slots: objects, slots without a value yet, and leaked or
            /// forgotten objects. It takes a load for each free slot.
            pub fn in_use(&self) -> usize {
                // SAFETY: the pool exists, and can only be used by this thread.
                unsafe { self.memory.0.in_use() }
            }

            /// The number of objects that fit: the capacity of a bounded pool; for other pools, the
            /// number of objects that it can hold without growing, including existing ones.
            pub fn capacity(&self) -> usize {
                // SAFETY: as in in_use.
                unsafe { self.memory.0.capacity() }
            }

            /// Provides memory for `more` objects, and touches each page. The next objects then
            /// need nothing from the system, and do not wait for page faults. False: there is not
            /// enough room; the part that was provided stays. It takes this number of slots and
            /// then gives them back.
            ///
            /// A later [`Self::trim`] returns the memory if no slot is taken. It cannot return a
            /// part, because the list of free slots runs through all chunks.
            pub fn reserve(&self, more: usize) -> bool {
                // SAFETY: the pool exists, and can only be used by this thread.
                unsafe { $crate::pool_functions::reserve(self.memory.0, more) }
            }

            /// If no slot is taken, returns memory to the system; otherwise does nothing. The
            /// result is the number of bytes, including pages that were never touched. A pool that
            /// was touched in advance ([`PoolBuilder::prefault`](crate::PoolBuilder::prefault))
            /// returns nothing. It costs as much as [`Self::in_use`]. A pool returns memory only
            /// here and when it is dropped.
            pub fn trim(&self) -> usize {
                // SAFETY: as in in_use; memory is returned only if no slot is taken.
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

pub(crate) use pool_functions;
