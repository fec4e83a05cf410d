//! A program without `std`: see tests/no_std.rs.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::boxed::Box;
use slabyard::{Cache, HandleMap, Slabyard};

#[global_allocator]
static ALLOCATOR: Slabyard = Slabyard;

slabyard::static_cache! {
    struct Numbers: i32;
}

extern "C" {
    fn abort() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: a function of the C library.
    unsafe { abort() }
}

/// The precompiled `core` names this function, which no code calls if panics abort.
#[no_mangle]
extern "C" fn rust_eh_personality() {}

#[no_mangle]
extern "C" fn main() -> i32 {
    let cache = Cache::new("number");
    let map = HandleMap::new();
    let key = map.insert(3);
    let sum = *Box::new(1) + *cache.insert(2) + *map.get(key).unwrap() + *Numbers::insert(4);
    i32::from(sum != 10)
}
