//! Containers of the standard library over Slabyard's allocators (the feature `nightly`).
//! tests/install/rust.sh runs this program in a project of its own: the crate's own tests have
//! dependencies that not every nightly Rust compiles.
#![feature(allocator_api)]

use slabyard::{Arena, BlockCache, Slabyard};
use std::alloc::{Allocator, Layout};
use std::collections::VecDeque;
use std::rc::Rc;

fn containers_take_the_heap() {
    let mut numbers = Vec::new_in(Slabyard);
    numbers.extend(0..10_000u64);
    numbers.retain(|n| n % 100 == 0);
    numbers.shrink_to_fit();
    assert_eq!((numbers.len(), numbers.capacity()), (100, 100));
    let queue: VecDeque<_, Slabyard> = numbers.into();
    assert_eq!(queue.iter().sum::<u64>(), 495_000);
    let shared = Rc::new_in([1u8; 3], Slabyard);
    assert_eq!(Rc::strong_count(&shared), 1);
}

fn boxes_are_objects_of_a_block_cache() {
    let blocks = BlockCache::new("block", Layout::new::<[u64; 4]>()).unwrap();
    let boxes: Vec<_> = (0..100).map(|n| Box::new_in([n; 4], &blocks)).collect();
    assert_eq!(blocks.in_use(), 100);
    assert!((0..).zip(&boxes).all(|(n, one)| **one == [n; 4]));
    drop(boxes);
    assert_eq!(blocks.in_use(), 0);
}

fn a_vector_lives_in_an_arena() {
    let arena = Arena::default();
    let mut numbers = Vec::new_in(&arena);
    numbers.extend(0..1000u32);
    assert_eq!(numbers[999], 999);
}

fn a_zeroed_block_that_grows_stays_zeroed() {
    let (small, large) = (Layout::new::<[u8; 40]>(), Layout::new::<[u8; 4000]>());
    let block = Slabyard.allocate_zeroed(small).unwrap();
    // SAFETY: the block is live, and has the layout that each call names.
    unsafe {
        let block = Slabyard.grow_zeroed(block.cast(), small, large).unwrap();
        assert!(block.as_ref().iter().all(|byte| *byte == 0));
        Slabyard.deallocate(block.cast(), large);
    }
}

fn main() {
    containers_take_the_heap();
    boxes_are_objects_of_a_block_cache();
    a_vector_lives_in_an_arena();
    a_zeroed_block_that_grows_stays_zeroed();
}
