//! Tests a thread's pool when the program's allocator has no memory.
#![cfg(not(any(miri, windows)))] // the model of a pool is a box; on Windows a pool needs no record

use slabyard::BuildError;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static NONE_LEFT: Cell<bool> = const { Cell::new(false) };
}

struct Switched;

// SAFETY: it returns the system allocator's memory or null.
unsafe impl GlobalAlloc for Switched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if NONE_LEFT.get() {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: as the caller says.
        unsafe { System.dealloc(object, layout) }
    }
}

#[global_allocator]
static GLOBAL: Switched = Switched;

mod words {
    slabyard::unbounded_allocator!(pub u64);
}

#[test]
fn a_pool_is_built_when_there_is_memory() {
    for chunks in [0, 1] {
        NONE_LEFT.set(true);
        let built = words::Allocator::builder().initial_chunks(chunks).build();
        NONE_LEFT.set(false);
        assert_eq!(built, Err(BuildError::NoMemory));
        assert!(!words::Allocator::is_initialized());
    }
    words::Allocator::builder().build().unwrap();
    assert_eq!(*words::BoxSlot::new(1), 1);
}
