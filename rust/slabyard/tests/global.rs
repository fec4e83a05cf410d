//! Tests Slabyard as the allocator of this program, the test harness and its threads included.
#![cfg(not(miri))]

use std::alloc::{GlobalAlloc, Layout};
use std::collections::{BTreeMap, HashMap};

#[global_allocator]
static ALLOCATOR: slabyard::Slabyard = slabyard::Slabyard;

#[test]
fn the_program_is_in_slabyard() {
    let before = slabyard::memory_used();
    let large = vec![1u8; 64 << 20];
    // Half of the size is enough: other tests allocate and free at the same time.
    assert!(slabyard::memory_used() >= before + large.len() / 2);
    drop(large);
    let waits = std::env::var_os("SLABYARD").is_some(); // with some options, freed memory may wait
    assert!(waits || slabyard::memory_used() < before + (32 << 20));
}

#[test]
fn any_layout_is_kept_through_its_life() {
    for align in (0..=22).map(|shift| 1usize << shift) {
        for size in [
            1,
            3,
            8,
            9,
            16,
            17,
            100,
            128,
            1000,
            4096,
            70_000,
            131_072,
            131_073,
            1 << 20,
        ] {
            let layout = Layout::from_size_align(size, align).unwrap();
            // SAFETY: the size is not 0; each block is used within its layout and freed once.
            unsafe {
                let block = ALLOCATOR.alloc_zeroed(layout);
                assert!(!block.is_null() && block.addr() % align == 0, "{layout:?}");
                let bytes = std::slice::from_raw_parts_mut(block, size);
                assert!(bytes.iter().all(|byte| *byte == 0));
                bytes
                    .iter_mut()
                    .enumerate()
                    .for_each(|(n, byte)| *byte = n as u8);
                let mut old = layout;
                let mut block = block;
                for new in [size * 2, size / 2 + 1, 5, size + 7] {
                    block = ALLOCATOR.realloc(block, old, new);
                    assert!(
                        !block.is_null() && block.addr() % align == 0,
                        "{layout:?} {new}"
                    );
                    let kept = size.min(5).min(new).min(size / 2 + 1);
                    let bytes = std::slice::from_raw_parts(block, kept);
                    assert!(bytes.iter().enumerate().all(|(n, byte)| *byte == n as u8));
                    old = Layout::from_size_align(new, align).unwrap();
                }
                ALLOCATOR.dealloc(block, old);
            }
        }
    }
    assert_eq!(slabyard::verify(), 0);
}

#[test]
fn threads_hand_containers_to_each_other() {
    let (send, receive) = std::sync::mpsc::channel::<(u64, HashMap<u64, String>)>();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let send = send.clone();
            scope.spawn(move || {
                for round in 0..50 {
                    let key = thread * 1000 + round;
                    let map = (0..200).map(|n| (n, format!("{key}-{n}"))).collect();
                    send.send((key, map)).unwrap();
                }
            });
        }
        drop(send);
        let mut all = BTreeMap::new();
        for (key, mut map) in receive {
            map.retain(|n, _| n % 2 == 0);
            map.shrink_to_fit();
            all.insert(key, map);
        }
        assert_eq!(all.len(), 200);
        for (key, map) in &all {
            assert!(map.iter().all(|(n, text)| *text == format!("{key}-{n}")));
        }
    });
}

#[test]
fn many_short_threads_leave_nothing() {
    for round in 0..300 {
        let text = std::thread::spawn(move || {
            std::thread_local!(static KEPT: std::cell::RefCell<Vec<String>> =
                const { std::cell::RefCell::new(Vec::new()) });
            KEPT.with_borrow_mut(|kept| kept.push(format!("round {round}")));
            KEPT.with_borrow(|kept| kept[0].clone() + &"x".repeat(round))
        })
        .join()
        .unwrap();
        assert!(text.len() > round);
    }
    assert_eq!(slabyard::verify(), 0);
}
