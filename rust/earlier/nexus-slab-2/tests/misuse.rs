//! Tests of misuse: unsafe code that handles slots wrongly, and the report that it gets. Each
//! mistake is made in a process of its own.
#![cfg(not(miri))] // Miri starts no processes

use nexus_slab_2::{bounded, byte, Slot};
use std::process::Command;

/// Runs one of the faulty tests below with the given options, and returns its output.
fn said_by(test: &str, options: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("SLABYARD", options)
        .output()
        .unwrap();
    assert!(!output.status.success(), "{test}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn slab() -> bounded::Slab<[u64; 4]> {
    // SAFETY: none: the mistake is the test.
    unsafe { bounded::Slab::with_capacity(4) }
}

#[test]
#[ignore = "frees a slot twice"]
fn twice_to_a_slab() {
    let slab = slab();
    let slot = slab.alloc([1; 4]);
    // SAFETY: none.
    slab.free(unsafe { slot.clone_ptr() });
    slab.free(slot);
    println!("not seen");
    std::process::exit(0);
}

#[test]
#[ignore = "frees a slot twice"]
fn twice_to_a_byte_slab() {
    // SAFETY: none.
    let slab = unsafe { byte::unbounded::Slab::<32>::with_chunk_capacity(4) };
    let slot = slab.alloc([1u64; 4]).into_raw();
    // SAFETY: none.
    unsafe {
        slab.free_raw(slot);
        slab.free_raw(slot);
    }
    println!("not seen");
    std::process::exit(0);
}

#[test]
#[ignore = "frees a slot twice"]
fn twice_with_another_between() {
    let slab = slab();
    let (slot, other) = (slab.alloc([1; 4]), slab.alloc([2; 4]));
    // SAFETY: none.
    slab.free(unsafe { slot.clone_ptr() });
    slab.free(other);
    slab.free(slot);
    println!("not seen");
    std::process::exit(0);
}

#[test]
#[ignore = "writes behind a value"]
fn behind_a_value() {
    let slab = slab();
    let slot: Slot<[u64; 4]> = slab.alloc([1; 4]);
    // SAFETY: none.
    unsafe { slot.as_ptr().cast::<u64>().add(4).write_volatile(2) };
    slab.free(slot);
    println!("not seen");
    std::process::exit(0);
}

#[test]
fn a_double_free_in_a_row_is_told_at_once() {
    // Only unsafe code can copy a handle, so a free is checked only in builds where it is a call.
    let calls = cfg!(any(debug_assertions, feature = "checked"));
    let tests = [
        ("twice_to_a_byte_slab", "byte::Aligned"),
        ("twice_to_a_slab", "[u64; 4]"),
    ];
    for (test, of) in tests.into_iter().take(if calls { 2 } else { 1 }) {
        let said = said_by(test, "");
        assert!(said.contains("slabyard: double free: "), "{test}: {said}");
        assert!(said.contains(of), "{test}: {said}");
    }
}

#[test]
#[cfg(any(debug_assertions, feature = "checked"))]
fn with_checks_all_misuse_is_told() {
    let tests = [
        ("twice_with_another_between", "double free"),
        ("behind_a_value", "overflow"),
    ];
    for (test, what) in tests {
        let said = said_by(test, "check,redzone=16");
        assert!(
            said.contains("slabyard: ") && said.contains(what),
            "{test}: {said}"
        );
    }
}
