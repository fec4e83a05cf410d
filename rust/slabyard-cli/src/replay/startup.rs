//! Measures how much memory an allocator takes when it starts.
//!
//! Several allocators are linked into this program, and some start before `main`. The memory that
//! they take at that time is in the worker when its replay begins, and would be counted as the
//! replay's own memory. So a worker that measures memory starts its allocator itself, before any
//! other part of the program runs, and reads how much memory that took.

use super::memory::Resident;
use super::worker::Pass;
use crate::allocators;
use std::ffi::{c_char, c_int, CStr};
use std::sync::atomic::{AtomicU64, Ordering};

static START_BYTES: AtomicU64 = AtomicU64::new(0);

/// The bytes that the allocator took when it started, in a worker of a memory pass.
pub fn bytes() -> u64 {
    START_BYTES.load(Ordering::Relaxed)
}

/// Runs before the constructors of all allocators, whose section names have no number.
#[used]
#[link_section = ".init_array.00101"]
static BEFORE_ALL: extern "C" fn(c_int, *const *const c_char) = start_measured;

extern "C" fn start_measured(count: c_int, arguments: *const *const c_char) {
    if count != 5 {
        return;
    }
    let argument = |index| {
        // SAFETY: the C library passes `count` strings.
        unsafe { CStr::from_ptr(*arguments.add(index)) }
            .to_str()
            .unwrap_or("")
    };
    let words = [argument(1), argument(4)];
    if words == ["worker", Pass::Memory.name()] {
        start(argument(3));
    }
}

fn start(name: &str) {
    let (Some(allocator), Ok(mut resident)) = (allocators::find(name), Resident::open()) else {
        return;
    };
    if allocator.thread_init.is_some() {
        return; // It starts in the replay, where it is counted.
    }
    let before = resident.bytes();
    // SAFETY: a malloc that replaces the C library's may be called before constructors, too.
    unsafe { (allocator.free)(std::hint::black_box((allocator.malloc)(1))) };
    START_BYTES.store(resident.bytes().saturating_sub(before), Ordering::Relaxed);
}
