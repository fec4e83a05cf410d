//! A cache that meets the limit of the process names this limit when it panics.
#![cfg(not(miri))] // which has no limit of the process

use slabyard::{Cache, Limit};
use std::panic::{catch_unwind, AssertUnwindSafe};

#[test]
fn the_panic_names_the_limit_that_was_reached() {
    Limit::new().hard(4 << 20).set().unwrap();
    let pages = Cache::new("page");
    let mut boxes = Vec::new();
    let panic = catch_unwind(AssertUnwindSafe(|| {
        for _ in 0..4096 {
            boxes.push(pages.insert([0u8; 4096]));
        }
    }))
    .unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("the limit of the process"), "{text}");
}
