//! What the tests have in common.
#![allow(dead_code)] // no test uses all of it

use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Counts its drops.
pub struct Counted<'a>(pub &'a Cell<u32>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// Its drop panics.
pub struct Panics;

impl Drop for Panics {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

/// What a panic says.
pub fn panics<R>(function: impl FnOnce() -> R) -> String {
    let Err(said) = catch_unwind(AssertUnwindSafe(function)) else {
        panic!("it does not panic");
    };
    match said.downcast::<String>() {
        Ok(text) => *text,
        Err(said) => said.downcast_ref::<&str>().unwrap().to_string(),
    }
}

/// Does nothing to the value in release builds, and panics so in debug builds.
pub fn panics_in_debug<R>(said: &str, function: impl FnOnce() -> R) {
    if cfg!(debug_assertions) {
        let told = panics(function);
        assert!(told.contains(said), "{told}");
    } else {
        function();
    }
}
