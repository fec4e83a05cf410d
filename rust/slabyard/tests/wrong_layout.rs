//! Unsafe code that frees with a wrong layout, or to a wrong allocator, is reported. The heap
//! reports it at once, without any option. So does a `BlockCache` if, by the layout, the object
//! belongs to the heap. If the layout could be a block's, the object is freed as in any cache: with
//! checks, the mistake is reported at once.
#![cfg(all(feature = "allocator-api2", not(miri)))]

use allocator_api2::alloc::{Allocator, Layout};
use slabyard::{BlockCache, Slabyard};
use std::process::Command;
use std::ptr::NonNull;

fn bytes(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

fn blocks() -> BlockCache {
    BlockCache::new("node", bytes(64)).unwrap()
}

/// Frees the object wrongly, and should not return.
fn free(allocator: impl Allocator, object: NonNull<[u8]>, layout: Layout) {
    // SAFETY: none.
    unsafe { allocator.deallocate(object.cast(), layout) };
    println!("not seen");
    std::process::exit(0);
}

#[test]
#[ignore = "frees with a wrong layout"]
fn other_size_to_the_heap() {
    let object = Slabyard.allocate(bytes(64)).unwrap();
    free(Slabyard, object, bytes(200));
}

#[test]
#[ignore = "frees with a wrong layout"]
fn size_of_a_class_for_a_large_one_to_the_heap() {
    let object = Slabyard.allocate(bytes(1 << 20)).unwrap();
    free(Slabyard, object, bytes(64));
}

#[test]
#[ignore = "frees what is not the heap's"]
fn variable_to_the_heap() {
    let variable = Box::leak(Box::new([0u8; 64]));
    free(Slabyard, NonNull::from(&mut variable[..]), bytes(64));
}

#[test]
#[ignore = "frees what is not the heap's"]
fn block_to_the_heap() {
    let blocks = blocks();
    let object = (&blocks).allocate(bytes(64)).unwrap();
    free(Slabyard, object, bytes(64));
}

#[test]
#[ignore = "frees with a wrong layout"]
fn block_as_more_than_a_block() {
    let blocks = blocks();
    let object = (&blocks).allocate(bytes(64)).unwrap();
    free(&blocks, object, bytes(65));
}

#[test]
#[ignore = "frees with a wrong layout"]
fn block_as_more_aligned_than_a_block() {
    let blocks = blocks();
    let object = (&blocks).allocate(bytes(64)).unwrap();
    free(&blocks, object, Layout::from_size_align(64, 64).unwrap());
}

#[test]
#[ignore = "grows with a wrong layout"]
fn block_grown_as_more_than_a_block() {
    let blocks = blocks();
    let object = (&blocks).allocate(bytes(64)).unwrap();
    // SAFETY: none.
    let grown = unsafe { (&blocks).grow(object.cast(), bytes(65), bytes(200)) };
    println!("not seen: {grown:?}");
    std::process::exit(0);
}

#[test]
#[ignore = "frees with a wrong layout"]
fn more_than_a_block_as_a_block() {
    let blocks = blocks();
    let object = (&blocks).allocate(bytes(200)).unwrap();
    free(&blocks, object, bytes(64));
}

#[test]
#[ignore = "frees to another cache"]
fn block_to_another_cache() {
    let (blocks, other) = (blocks(), BlockCache::new("other", bytes(64)).unwrap());
    let object = (&blocks).allocate(bytes(64)).unwrap();
    free(&other, object, bytes(64));
}

/// Runs one of the faulty tests above in a process of its own; its report must contain these words.
fn is_told(test: &str, options: &str, words: &[&str]) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("SLABYARD", options)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{test}: {said}");
    for word in words {
        assert!(said.contains(word), "{test}: {word}? {said}");
    }
}

const WRONG_SIZE: &str = "free with the wrong size: ";
const WRONG_CACHE: &str = "free to the wrong cache: ";
const FOREIGN: &str = "free of a pointer that is not an object of Slabyard's: ";

#[test]
fn what_comes_to_the_heap_is_told_at_once() {
    for options in ["", "check"] {
        is_told("other_size_to_the_heap", options, &[WRONG_SIZE, " 200"]);
        let large = "size_of_a_class_for_a_large_one_to_the_heap";
        is_told(large, options, &[WRONG_SIZE]);
        is_told("variable_to_the_heap", options, &[FOREIGN]);
        for test in [
            "block_to_the_heap",
            "block_as_more_than_a_block",
            "block_grown_as_more_than_a_block",
            "block_as_more_aligned_than_a_block",
        ] {
            is_told(test, options, &[WRONG_CACHE, "belongs to cache \"node\""]);
        }
    }
}

#[test]
fn what_may_be_a_block_is_told_with_checks() {
    let to_node = [WRONG_CACHE, "freed to cache \"node\"", "\"heap-208\""];
    is_told("more_than_a_block_as_a_block", "check", &to_node);
    let to_other = [WRONG_CACHE, "freed to cache \"other\"", "\"node\""];
    is_told("block_to_another_cache", "check", &to_other);
}
