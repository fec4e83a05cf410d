//! Tests of misuse: unsafe code that handles slots wrongly, and the report that it gets. Each
//! mistake is made in a process of its own.

use nexus_slab::{bounded, unbounded, Slot};
use std::process::Command;

mod orders {
    nexus_slab::bounded_allocator!([u64; 4]);
}

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

/// Makes a second handle of the slot.
fn copy<T>(slot: &Slot<T>) -> Slot<T> {
    // SAFETY: none: the mistake is the test.
    unsafe { Slot::from_ptr(slot.as_ptr()) }
}

#[test]
#[ignore = "frees a slot twice"]
fn twice_to_a_bounded_slab() {
    let slab = bounded::Slab::with_capacity(4);
    let slot = slab.alloc([1u64; 4]);
    // SAFETY: none.
    unsafe {
        slab.free(copy(&slot));
        slab.free(slot);
    }
    println!("not seen");
    std::process::exit(0);
}

#[test]
#[ignore = "frees a slot twice"]
fn twice_to_an_unbounded_slab() {
    let slab = unbounded::Slab::with_chunk_capacity(4);
    let slot = slab.alloc([1u64; 4]);
    // SAFETY: none.
    unsafe {
        slab.take(copy(&slot));
        slab.take(slot);
    }
    println!("not seen");
    std::process::exit(0);
}

#[test]
#[ignore = "frees a slot twice"]
fn twice_to_an_allocator() {
    orders::Allocator::builder().capacity(4).build().unwrap();
    let slot = orders::BoxSlot::try_new([1; 4]).unwrap();
    // SAFETY: none.
    drop(unsafe { orders::BoxSlot::from_raw(slot.as_ptr()) });
    drop(slot);
    println!("not seen");
    std::process::exit(0);
}

#[test]
#[ignore = "frees a slot twice"]
fn twice_with_another_between() {
    let slab = bounded::Slab::with_capacity(4);
    let (slot, other) = (slab.alloc([1u64; 4]), slab.alloc([2u64; 4]));
    // SAFETY: none.
    unsafe {
        slab.free(copy(&slot));
        slab.free(other);
        slab.free(slot);
    }
    println!("not seen");
    std::process::exit(0);
}

#[test]
#[ignore = "frees what is no slot of the slab"]
fn to_another_slab() {
    let (one, other) = (
        bounded::Slab::with_capacity(4),
        bounded::Slab::with_capacity(4),
    );
    let _kept = other.alloc([1u64; 4]);
    // SAFETY: none.
    unsafe { other.free(one.alloc([1u64; 4])) };
    println!("not seen");
    std::process::exit(0);
}

#[test]
#[ignore = "writes behind a value"]
fn behind_a_value() {
    let slab = bounded::Slab::with_capacity(4);
    let slot = slab.alloc([1u64; 4]);
    // SAFETY: none.
    unsafe {
        slot.as_ptr().cast::<u64>().add(4).write_volatile(2);
        slab.free(slot);
    }
    println!("not seen");
    std::process::exit(0);
}

#[test]
fn a_double_free_in_a_row_is_told_at_once() {
    for test in [
        "twice_to_a_bounded_slab",
        "twice_to_an_unbounded_slab",
        "twice_to_an_allocator",
    ] {
        let said = said_by(test, "");
        assert!(said.contains("slabyard: double free: "), "{test}: {said}");
        assert!(said.contains("[u64; 4]"), "{test}: {said}");
    }
}

#[test]
#[cfg(any(debug_assertions, feature = "checked"))]
fn with_checks_all_misuse_is_told() {
    let tests = [
        ("twice_with_another_between", "double free"),
        ("to_another_slab", "free"),
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
