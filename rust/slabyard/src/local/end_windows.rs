//! Ends a thread's pools when the thread ends: each by the destructor of its thread-local variable.
//!
//! Where Rust does not use the compiler's thread-local variables, as with mingw-w64, it destroys also
//! those that have no destructor. So none outlives the others.

use super::LocalPool;
use core::cell::RefCell;
use std::vec::Vec;

/// Ends a pool of this thread. The argument is true: there is one round.
pub type End = fn(bool) -> bool;

impl<T, A> Drop for LocalPool<T, A> {
    fn drop(&mut self) {
        self.hand.end(true);
    }
}

/// True: a pool needs no registration.
pub(super) fn register(_end: End) -> bool {
    true
}

/// There is nothing to be undone.
pub(super) fn unregister() {}

struct Ends(RefCell<Vec<End>>);

impl Drop for Ends {
    fn drop(&mut self) {
        for end in self.0.take() {
            end(true);
        }
    }
}

/// Registers a pool of another crate. It is ended among the thread-local variables, in no certain
/// order. False: there is no memory, and nothing changed.
pub fn at_thread_end(end: End) -> bool {
    std::thread_local! {
        static ENDS: Ends = const { Ends(RefCell::new(Vec::new())) };
    }
    let push = |ends: &Ends| {
        let mut ends = ends.0.borrow_mut();
        ends.try_reserve(1).map(|()| ends.push(end)).is_ok()
    };
    ENDS.try_with(push).unwrap_or(false)
}
