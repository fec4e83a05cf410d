//! An object that unsafe code frees twice in a row is reported at once, in every build without any
//! option.
#![cfg(not(miri))]

use slabyard::{Cache, Pool, StaticBox};
use std::process::Command;

slabyard::static_cache! {
    struct Numbers: [u64; 4];
}

mod order_alloc {
    slabyard::unbounded_allocator!([u64; 4]);
}

/// Drops the value twice, and should not return.
fn drop_twice<T>(value: T) {
    // SAFETY: none.
    let copy = unsafe { std::ptr::read(&value) };
    drop(value);
    drop(copy);
    println!("not seen");
    std::process::exit(0);
}

#[test]
#[ignore = "frees an object twice"]
fn twice_to_a_pool() {
    let pool = Pool::builder().name("orders").build().unwrap();
    let other = pool.insert([1u64; 4]);
    drop(pool.insert([2u64; 4]));
    drop_twice(other);
}

#[test]
#[ignore = "frees an object twice"]
fn twice_to_a_bounded_pool() {
    let pool = Pool::builder().name("orders").bounded(1).build().unwrap();
    drop_twice(pool.insert([1u64; 4]));
}

#[test]
#[ignore = "frees an object twice"]
fn twice_to_a_pool_of_the_thread() {
    order_alloc::Allocator::builder().build().unwrap();
    drop_twice(order_alloc::BoxSlot::new([1u64; 4]));
}

#[test]
#[ignore = "frees an object twice"]
fn twice_to_a_cache() {
    let cache = Cache::builder().name("orders").build().unwrap();
    drop_twice(cache.insert([1u64; 4]));
}

#[test]
#[ignore = "frees an object twice"]
fn twice_to_a_static_cache() {
    let number: StaticBox<Numbers> = Numbers::insert([1; 4]);
    drop_twice(number);
}

/// Runs each of the faulty tests above in a process of its own, and expects the name of its cache
/// or pool.
#[test]
fn a_double_free_in_a_row_is_told_at_once() {
    let tests = [
        ("twice_to_a_pool", "\"orders\""),
        ("twice_to_a_bounded_pool", "\"orders\""),
        ("twice_to_a_pool_of_the_thread", ""),
        ("twice_to_a_cache", "\"orders\""),
        ("twice_to_a_static_cache", "\"Numbers\""),
    ];
    for (test, name) in tests {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored", "--nocapture"])
            .env_remove("SLABYARD")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{test}");
        assert!(
            said.contains("slabyard: double free: ") && said.contains(name),
            "{test}: {said}"
        );
    }
}
