//! Allocators as types, and the slots that find their allocator by its type.
//!
//! The macros make such types. A type of your own may be one too: [`Alloc`] says what it promises.

mod boxed;
mod counted;

pub use boxed::BoxSlot;
pub use counted::{RcSlot, WeakSlot};
pub use slabyard::{Full, LocalStatic};

use crate::shared::Slot;

/// A type that names an allocator of the current thread.
///
/// # Safety
/// - `free` drops the value where it lies and takes the slot back; `take` moves the value out and
///   takes the slot back.
/// - The memory of a slot that was not given back stays, and does not move, as long as the thread
///   can reach the slot. A destructor of a thread-local variable can reach it too.
/// - All functions are about the current thread.
pub unsafe trait Alloc: Sized + 'static {
    /// What a slot holds.
    type Item;

    /// Has the current thread built the allocator?
    fn is_initialized() -> bool;

    /// Slots that there are, taken and free.
    fn capacity() -> usize;

    /// Drops the value and frees the slot.
    ///
    /// # Safety
    /// The slot was allocated from this allocator on this thread, and there is no reference to the
    /// value.
    unsafe fn free(slot: Slot<Self::Item>);

    /// Frees the slot and returns the value.
    ///
    /// # Safety
    /// The slot was allocated from this allocator on this thread, and there is no reference to the
    /// value.
    unsafe fn take(slot: Slot<Self::Item>) -> Self::Item;
}

/// An allocator of a fixed number of slots.
///
/// # Safety
/// A slot that `try_alloc` returns is one of this allocator, and holds the value.
pub unsafe trait BoundedAlloc: Alloc {
    /// Puts the value into a slot.
    ///
    /// # Errors
    /// [`Full`], with the value: no slot is free.
    fn try_alloc(value: Self::Item) -> Result<Slot<Self::Item>, Full<Self::Item>>;
}

/// An allocator that grows.
///
/// # Safety
/// A slot that `alloc` returns is one of this allocator, and holds the value.
pub unsafe trait UnboundedAlloc: Alloc {
    /// Puts the value into a slot.
    fn alloc(value: Self::Item) -> Slot<Self::Item>;

    /// Adds chunks until there are so many.
    fn reserve_chunks(count: usize);

    /// Chunks that there are.
    fn chunk_count() -> usize;
}
