//! Values with several owners on one thread: counts and borrow state lie in the slot itself.
//!
//! A slot holds a [`Node`]: the value, and behind it the number of owners, the number of weak
//! references and the borrow state. All owners together count as one weak reference, so the slot is
//! freed when there are no owners and no weak references.
//!
//! A value's drop may panic, or use any reference to the slot. It runs when no owner is counted, so
//! no weak reference can be upgraded, and a drop guard frees the slot. Borrows that are forgotten
//! stay counted.

mod guard;
mod pool;
mod shared;
mod weak;

pub use guard::{Borrowed, Ref, RefMut};
pub use pool::{RcPool, RcVacant};
pub use shared::{RcSlot, Shared};
pub use weak::{Weak, WeakSlot};

use crate::home::Home;
use crate::slot::Claim;
use core::cell::{Cell, UnsafeCell};
use core::ptr::NonNull;

/// The content of a slot. The value comes first, so a slot of a value with one owner is also a slot
/// of the plain value.
#[repr(C)]
pub(crate) struct Node<T> {
    value: UnsafeCell<T>,
    counts: Counts,
}

/// Valid while an owner or weak reference exists; the value is valid only while an owner exists.
pub(crate) struct Counts {
    strong: Cell<u32>,
    weak: Cell<u32>,
    /// The number of readers, or -1: there is a writer.
    borrows: Cell<i32>,
}

/// # Safety
/// The node was written, and its slot is not freed while the reference is used.
#[inline(always)]
unsafe fn counts<'a, T>(node: NonNull<Node<T>>) -> &'a Counts {
    // SAFETY: as the caller says; the value is not accessed.
    unsafe { &(*node.as_ptr()).counts }
}

/// Makes the first owner of a value in a slot.
///
/// # Safety
/// The slot is the caller's, has room for a node, and holds the value.
#[inline(always)]
pub(crate) unsafe fn adopt<T, H: Home>(object: NonNull<T>, home: H) -> Shared<T, H> {
    let node: NonNull<Node<T>> = object.cast();
    let one = Counts {
        strong: Cell::new(1),
        weak: Cell::new(1),
        borrows: Cell::new(0),
    };
    // SAFETY: as the caller says; the value lies at the start of the node.
    unsafe {
        (&raw mut (*node.as_ptr()).counts).write(one);
        Shared::from_parts(node, home)
    }
}

/// Adds one to a count. It panics if the count would wrap, after 4 billion forgotten references.
#[inline(always)]
#[track_caller]
fn count_up(count: &Cell<u32>) {
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn too_many() -> ! {
        panic!("there are too many names of one slot")
    }
    match count.get().checked_add(1) {
        Some(more) => count.set(more),
        None => too_many(),
    }
}

/// Removes a weak reference when it is dropped. With the last one, the slot is freed.
struct Forget<T, H: Home>(NonNull<Node<T>>, H);

impl<T, H: Home> Drop for Forget<T, H> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the maker holds a counted reference. After the last one, no reference to the slot
        // exists.
        unsafe {
            let weak = &counts(self.0).weak;
            let left = weak.get() - 1;
            weak.set(left);
            if left == 0 {
                drop(Claim::from_parts(self.0, self.1));
            }
        }
    }
}
