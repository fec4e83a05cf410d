//! With debug assertions or the feature `checked`, a pool with checks reports what unsafe code does
//! wrong with its objects.
#![cfg(all(any(debug_assertions, feature = "checked"), not(miri)))]

use slabyard::Pool;
use std::process::Command;

/// Runs one of the faulty tests below in a process of its own, and returns its output.
fn said_by(test: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("SLABYARD", "check,redzone=16,poison")
        .output()
        .unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
#[ignore = "writes behind an object"]
fn writes_behind_an_object() {
    let pool = Pool::builder().name("orders").build().unwrap();
    let slot = pool.insert([0u8; 32]);
    // SAFETY: none.
    unsafe { slot.as_ptr().cast::<u8>().add(32).write_volatile(1) };
    drop(slot);
    println!("not seen");
}

#[test]
#[ignore = "frees an object twice"]
fn frees_an_object_twice() {
    let pool = Pool::builder().name("orders").build().unwrap();
    let slot = pool.insert([0u8; 32]);
    // SAFETY: none.
    let copy = unsafe { std::ptr::read(&slot) };
    drop(slot);
    drop(copy);
    println!("not seen");
}

#[test]
fn an_overflow_is_seen_when_the_object_is_freed() {
    let said = said_by("writes_behind_an_object");
    assert!(
        said.contains("overflow") && said.contains("orders"),
        "{said}"
    );
}

#[test]
fn a_double_free_is_seen() {
    let said = said_by("frees_an_object_twice");
    assert!(
        said.contains("double free") && said.contains("orders"),
        "{said}"
    );
}
