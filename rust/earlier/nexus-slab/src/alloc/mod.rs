//! Allocators as types, and the slots that find their allocator by its type.
//!
//! The macros define such types. Your own types can implement [`Alloc`] too; its documentation
//! states the contract.

mod boxed;
mod counted;

pub use boxed::{BoxSlot, PinnedSlot};
pub use counted::{RcSlot, WeakSlot};
pub use slabyard::{Full, LocalStatic};

use crate::shared::Slot;

/// A type that names an allocator of the current thread.
///
/// # Safety
/// - `free` drops the value in place and frees the slot; `take` moves the value out and frees the
///   slot.
/// - The memory of a slot that was not freed stays and does not move while the thread can reach the
///   slot. Destructors of thread-local variables can reach it too.
/// - All functions use the allocator of the current thread.
pub unsafe trait Alloc: Sized + 'static {
    /// The content of a slot.
    type Item;

    /// Whether the current thread has built the allocator.
    fn is_initialized() -> bool;

    /// The number of slots, taken and free.
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

/// An allocator with a fixed number of slots.
///
/// # Safety
/// A slot that `try_alloc` returns belongs to this allocator, and holds the value.
pub unsafe trait BoundedAlloc: Alloc {
    /// Puts a value into a slot.
    ///
    /// # Errors
    /// [`Full`], with the value: no slot is free.
    fn try_alloc(value: Self::Item) -> Result<Slot<Self::Item>, Full<Self::Item>>;
}

/// An allocator that grows.
///
/// # Safety
/// A slot that `alloc` returns belongs to this allocator, and holds the value.
pub unsafe trait UnboundedAlloc: Alloc {
    /// Puts a value into a slot.
    fn alloc(value: Self::Item) -> Slot<Self::Item>;

    /// Adds chunks until there are `count` of them.
    fn reserve_chunks(count: usize);

    /// The number of chunks.
    fn chunk_count() -> usize;
}
