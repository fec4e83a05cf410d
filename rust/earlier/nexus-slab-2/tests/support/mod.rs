//! Types and functions that the tests share.
#![allow(dead_code)] // no test uses all of them

use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Counts its drops.
pub struct Counted<'a>(pub &'a Cell<u32>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// A value whose drop panics.
pub struct Panics;

impl Drop for Panics {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

/// Runs a function that must panic, and returns the message.
pub fn panics<R>(function: impl FnOnce() -> R) -> String {
    let Err(said) = catch_unwind(AssertUnwindSafe(function)) else {
        panic!("it does not panic");
    };
    match said.downcast::<String>() {
        Ok(text) => *text,
        Err(said) => said.downcast_ref::<&str>().unwrap().to_string(),
    }
}

/// Runs a function that must return normally in release builds, and panic with the message `said`
/// in debug builds.
pub fn panics_in_debug<R>(said: &str, function: impl FnOnce() -> R) {
    if cfg!(debug_assertions) {
        let told = panics(function);
        assert!(told.contains(said), "{told}");
    } else {
        function();
    }
}
