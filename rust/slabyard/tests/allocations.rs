//! Tests the counts of allocations, with Slabyard as the allocator of this program. The tests run
//! side by side: each thread's count is its own.
#![cfg(not(miri))]

use std::collections::BTreeMap;
use std::panic;

use slabyard::test::allocations;
use slabyard::Cache;

#[global_allocator]
static ALLOCATOR: slabyard::Slabyard = slabyard::Slabyard;

#[test]
fn code_without_allocations_has_none() {
    let (sum, counted) = allocations(|| (0..100).sum::<u32>());
    assert_eq!((sum, counted), (4950, Default::default()));
}

#[test]
fn all_is_counted() {
    for _ in 0..10 {
        let (kept, counted) = allocations(|| {
            let first = vec![1u8; 1000];
            let second = Box::new([2u64; 50]);
            let large = vec![3u8; 1 << 20];
            drop((first, large));
            second
        });
        assert_eq!(
            (counted.allocations, counted.frees, counted.live),
            (3, 2, 1)
        );
        assert_eq!(counted.bytes, 1000 + 400 + (1 << 20));
        assert_eq!(
            (counted.live_bytes, counted.peak_bytes),
            (400, counted.bytes)
        );
        drop(kept);
    }
}

#[test]
fn a_container_frees_all_that_it_allocates() {
    let (_, counted) = allocations(|| {
        let mut map = BTreeMap::new();
        for n in 0..10_000u32 {
            map.insert(n.wrapping_mul(2_654_435_761), n.to_string());
        }
        map.retain(|_, text| text.len() == 4);
    });
    assert!(counted.allocations > 10_000);
    assert_eq!((counted.live, counted.live_bytes), (0, 0));
}

#[test]
fn caches_are_counted() {
    let cache = Cache::<[u64; 10]>::new("tens");
    let (kept, counted) = allocations(|| {
        drop(cache.insert([0; 10]));
        cache.insert([1; 10])
    });
    assert_eq!(
        (counted.allocations, counted.live, counted.peak_bytes),
        (2, 1, 80)
    );
    drop(kept);
}

#[test]
fn other_threads_are_not_counted() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let other = std::thread::spawn(move || {
        let received: Vec<u8> = receiver.recv().unwrap();
        drop(received);
        vec![5u8; 300]
    });
    let block = {
        let (_, counted) = allocations(|| std::hint::black_box(vec![0u8; 200]).len());
        assert_eq!((counted.allocations, counted.live), (1, 0));
        vec![0u8; 200]
    };
    sender.send(block).unwrap();
    other.join().unwrap();
}

#[test]
fn a_panic_ends_the_count() {
    let result = panic::catch_unwind(|| allocations(|| panic::resume_unwind(Box::new(1))));
    assert!(result.is_err());
    let ((), counted) = allocations(|| drop(Box::new(1)));
    assert_eq!(counted.allocations, 1);
    assert!(panic::catch_unwind(|| allocations(|| allocations(|| ()))).is_err());
}
