//! Values in slots with several owners, counted and borrowed in the slot itself.
//!
//! A slot is a [`Node`]: the value, and behind it how many own it, how many know of it, and who is
//! looking at it. All owners together count as one who knows of it, so the slot goes back with the
//! last of both.
//!
//! A value's drop may panic, or use any name of the slot that it has: it runs when no owner is counted, so no name
//! upgrades, and the slot goes back behind a drop guard. Borrows that are forgotten stay counted.

mod guard;
mod pool;
mod shared;
mod weak;

pub use guard::{Borrowed, Ref, RefMut};
pub use pool::RcPool;
pub use shared::{RcSlot, Shared};
pub use weak::{Weak, WeakSlot};

use crate::home::Home;
use crate::slot::Claim;
use core::cell::{Cell, UnsafeCell};
use core::ptr::NonNull;

/// What lies in a slot: the value first, so that the slot of a value with one owner is one of a
/// plain value too.
#[repr(C)]
pub(crate) struct Node<T> {
    value: UnsafeCell<T>,
    counts: Counts,
}

/// Valid while any owner or weak name is there, the value only while an owner is.
pub(crate) struct Counts {
    strong: Cell<u32>,
    weak: Cell<u32>,
    /// How many read, or -1: one writes.
    borrows: Cell<i32>,
}

/// # Safety
/// The node was written and its slot did not go back, for as long as the reference is used.
#[inline(always)]
unsafe fn counts<'a, T>(node: NonNull<Node<T>>) -> &'a Counts {
    // SAFETY: as the caller says; the value is not looked at.
    unsafe { &(*node.as_ptr()).counts }
}

/// Makes a slot with a value the first owner's.
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

/// One more, or a panic where it would wrap: after 4 billion that were forgotten.
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

/// One who knows of the slot less, when it is dropped; with the last one the slot goes back.
struct Forget<T, H: Home>(NonNull<Node<T>>, H);

impl<T, H: Home> Drop for Forget<T, H> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: made by one who counts. After the last one nobody reaches the slot.
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
