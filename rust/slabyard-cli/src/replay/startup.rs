//! How much memory an allocator takes when it starts.
//!
//! Several allocators are in this program, and some start before `main`. What they take then is in
//! the worker when its replay begins, and would be taken for the replay's own. So a worker that is
//! to look at memory starts its allocator itself, before any other part of the program runs, and
//! reads how much that took.

use super::memory::Resident;
use super::worker::Pass;
use crate::allocators;
use std::ffi::{c_char, c_int, CStr};
use std::sync::atomic::{AtomicU64, Ordering};

static START_BYTES: AtomicU64 = AtomicU64::new(0);

/// What the allocator of this worker's memory pass had taken when it had started.
pub fn bytes() -> u64 {
    START_BYTES.load(Ordering::Relaxed)
}

/// Runs before the constructors of all allocators, which have no number in their section's name.
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
        return; // It starts in the replay, and is counted there.
    }
    let before = resident.bytes();
    // SAFETY: a malloc that replaces the C library's is called before constructors too.
    unsafe { (allocator.free)(std::hint::black_box((allocator.malloc)(1))) };
    START_BYTES.store(resident.bytes().saturating_sub(before), Ordering::Relaxed);
}
