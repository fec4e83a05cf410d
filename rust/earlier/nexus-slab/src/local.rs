//! A slab in each thread, named by a type: used by the macros.
//!
//! The slab lies in a thread-local variable without a destructor. So the destructors of other
//! thread-local variables can use its slots, in any order. Its memory is freed after them, when the
//! thread ends, if no slot is taken. If a slot is taken, the memory stays until the process ends.
//! The main thread's slabs stay.

use crate::alloc::{Alloc, BoundedAlloc, UnboundedAlloc};
use crate::bounded::Bounded;
use crate::macros::AlreadyInitialized;
use crate::shared::Slot;
use crate::slab::Slab;
use crate::unbounded::Unbounded;
use crate::Full;
use slabyard::parts::{at_thread_end, Kind};
use std::fmt;
use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop};
use std::thread::LocalKey;

pub use std::thread_local;

/// The default number of slots of a chunk.
const CHUNK_SLOTS: usize = 4096;

/// A thread's slab.
pub struct LocalSlab<T, K: Kind>(ManuallyDrop<Slab<T, K>>);

impl<T, K: Kind> LocalSlab<T, K> {
    /// Creates a slab that is not initialized.
    #[allow(clippy::new_without_default)] // only for a constant
    pub const fn new() -> Self {
        LocalSlab(ManuallyDrop::new(Slab::new()))
    }
}

impl<T, K: Kind> fmt::Debug for LocalSlab<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A type that names a slab in each thread. The macros implement it.
///
/// # Safety
/// `SLAB` is a `thread_local!` whose value is `const { LocalSlab::new() }`, and no other type uses
/// the same variable.
pub unsafe trait Local: Sized + 'static {
    /// The content of a slot.
    type Item: 'static;
    /// Whether the slab grows.
    type Kind: Kind;
    /// The thread-local variable with the thread's slab.
    const SLAB: &'static LocalKey<LocalSlab<Self::Item, Self::Kind>>;
}

/// Calls a function with this thread's slab.
#[inline(always)]
fn with<L: Local, R>(function: impl FnOnce(&Slab<L::Item, L::Kind>) -> R) -> R {
    L::SLAB.with(|slab| function(&slab.0))
}

// SAFETY: `SLAB` is a constant, so each thread has one slab for L. The slab gives memory back only
// when no slot is taken.
unsafe impl<L: Local> Alloc for L {
    type Item = L::Item;

    #[inline]
    fn is_initialized() -> bool {
        with::<L, _>(|slab| slab.is_initialized())
    }

    #[inline]
    fn capacity() -> usize {
        with::<L, _>(|slab| slab.capacity())
    }

    #[inline]
    unsafe fn free(slot: Slot<L::Item>) {
        // SAFETY: as the caller says.
        with::<L, _>(|slab| unsafe { slab.free(slot) })
    }

    #[inline]
    unsafe fn take(slot: Slot<L::Item>) -> L::Item {
        // SAFETY: as the caller says.
        with::<L, _>(|slab| unsafe { slab.take(slot) })
    }
}

// SAFETY: the slots are of this thread's slab.
unsafe impl<L: Local<Kind = Bounded>> BoundedAlloc for L {
    #[inline(always)]
    fn try_alloc(value: L::Item) -> Result<Slot<L::Item>, Full<L::Item>> {
        // The value is not captured by the closure, because that would copy its bytes.
        match with::<L, _>(Slab::take_cell) {
            // SAFETY: the slot is ours, and empty.
            Some(cell) => Ok(unsafe { Slot::fill(cell, value) }),
            None => {
                debug_assert!(L::is_initialized(), "allocator not initialized");
                Err(Full(value))
            }
        }
    }
}

// SAFETY: the slots are of this thread's slab.
unsafe impl<L: Local<Kind = Unbounded>> UnboundedAlloc for L {
    #[inline(always)]
    fn alloc(value: L::Item) -> Slot<L::Item> {
        match with::<L, _>(Slab::take_cell) {
            // SAFETY: as in `try_alloc`.
            Some(cell) => unsafe { Slot::fill(cell, value) },
            None => with::<L, _>(|slab| slab.no_slot()),
        }
    }

    #[inline]
    fn reserve_chunks(count: usize) {
        with::<L, _>(|slab| slab.reserve_chunks(count))
    }

    #[inline]
    fn chunk_count() -> usize {
        with::<L, _>(|slab| slab.chunk_count())
    }
}

/// Makes a slab without taken slots as new again when it is dropped.
struct Undone<'a, T, K: Kind>(&'a Slab<T, K>);

impl<T, K: Kind> Drop for Undone<'_, T, K> {
    fn drop(&mut self) {
        self.0.store().release();
    }
}

/// Initializes this thread's slab, whose memory is freed when the thread ends.
fn build<L: Local>(
    initialize: impl FnOnce(&Slab<L::Item, L::Kind>),
) -> Result<(), AlreadyInitialized> {
    if L::is_initialized() {
        return Err(AlreadyInitialized);
    }
    with::<L, _>(initialize);
    // If the system has no memory to register the function, the slab's memory stays.
    at_thread_end(end::<L>);
    Ok(())
}

/// Frees the memory of this thread's slab if no slot is taken. Returns whether no further call is
/// needed. `last`: this is the last call.
fn end<L: Local>(last: bool) -> bool {
    with::<L, _>(|slab| {
        let gone = slab.store().release();
        if !gone && last {
            slab.store().keep();
        }
        gone || last
    })
}

/// Builds this thread's slab of a fixed number of slots.
#[must_use = "a builder does nothing until build is called"]
pub struct BoundedBuilder<L> {
    capacity: Option<usize>,
    of: PhantomData<L>,
}

impl<L: Local<Kind = Bounded>> BoundedBuilder<L> {
    #[doc(hidden)]
    #[allow(clippy::new_without_default)] // the macros call it
    #[inline]
    pub fn new() -> Self {
        BoundedBuilder {
            capacity: None,
            of: PhantomData,
        }
    }

    /// Sets the number of slots. It must be set.
    #[inline]
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = Some(capacity);
        self
    }

    /// Allocates the memory for all slots.
    ///
    /// # Errors
    /// [`AlreadyInitialized`]: this thread has built the slab already.
    ///
    /// # Panics
    /// If the capacity was not set, or is 0, or there is not enough memory.
    pub fn build(self) -> Result<(), AlreadyInitialized> {
        let capacity = self.capacity.expect("capacity must be set before build()");
        build::<L>(|slab| slab.init(capacity))
    }
}

/// Builds this thread's growing slab.
#[must_use = "a builder does nothing until build is called"]
pub struct UnboundedBuilder<L> {
    chunk_size: usize,
    initial_chunks: usize,
    of: PhantomData<L>,
}

impl<L: Local<Kind = Unbounded>> UnboundedBuilder<L> {
    #[doc(hidden)]
    #[allow(clippy::new_without_default)] // the macros call it
    #[inline]
    pub fn new() -> Self {
        UnboundedBuilder {
            chunk_size: CHUNK_SLOTS,
            initial_chunks: 0,
            of: PhantomData,
        }
    }

    /// Sets the number of slots of a chunk; the default is 4096.
    #[inline]
    pub fn chunk_size(mut self, slots: usize) -> Self {
        self.chunk_size = slots;
        self
    }

    /// Sets the number of initial chunks; the default is none.
    #[inline]
    pub fn initial_chunks(mut self, chunks: usize) -> Self {
        self.initial_chunks = chunks;
        self
    }

    /// Creates the slab with its initial chunks.
    ///
    /// # Errors
    /// [`AlreadyInitialized`]: this thread has built the slab already.
    ///
    /// # Panics
    /// If the size of a chunk is 0, or there is no memory for the initial chunks. The slab is then
    /// not initialized.
    pub fn build(self) -> Result<(), AlreadyInitialized> {
        build::<L>(|slab| {
            slab.init(self.chunk_size);
            let undone = Undone(slab);
            slab.reserve_chunks(self.initial_chunks);
            mem::forget(undone);
        })
    }
}
