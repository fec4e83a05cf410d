//! Tests of containers over block caches and over the heap.
#![cfg(feature = "allocator-api2")]

use allocator_api2::alloc::{Allocator, Layout};
use allocator_api2::{boxed::Box, vec::Vec};
use hashbrown::{DefaultHashBuilder, HashMap};
use slabyard::{BlockCache, CreateError, Slabyard};

#[test]
fn what_fits_is_a_block_and_the_rest_is_not() {
    let blocks = BlockCache::new("block", Layout::from_size_align(60, 16).unwrap()).unwrap();
    let fitting = Box::new_in([1u8; 64], &blocks);
    let small = Box::new_in(2u8, &blocks);
    let large = Box::new_in([3u8; 65], &blocks);
    #[repr(align(32))]
    struct Aligned(u8);
    let aligned = Box::new_in(Aligned(4), &blocks);
    let nothing = Box::new_in((), &blocks);
    assert_eq!(blocks.in_use(), 2);
    assert_eq!(
        (fitting[63], *small, large[64], aligned.0, *nothing),
        (1, 2, 3, 4, ())
    );
    assert_eq!((&raw const aligned.0).addr() % 32, 0);
    drop((fitting, small, large, aligned, nothing));
    assert_eq!(blocks.in_use(), 0);
    let refused = BlockCache::new("wide", Layout::from_size_align(1, 4 << 20).unwrap());
    assert_eq!(refused.err(), Some(CreateError::Unsupported));
}

#[test]
fn a_vector_grows_out_of_its_block_and_shrinks_into_it() {
    let blocks = BlockCache::new("vector", Layout::array::<u64>(16).unwrap()).unwrap();
    let mut numbers = Vec::new_in(&blocks);
    for n in 0..1000u64 {
        numbers.push(n);
        assert_eq!(blocks.in_use(), usize::from(numbers.capacity() <= 16));
    }
    numbers.truncate(10);
    numbers.shrink_to_fit();
    assert_eq!((blocks.in_use(), numbers.len()), (1, 10));
    assert!(numbers
        .iter()
        .enumerate()
        .all(|(n, number)| *number == n as u64));
    numbers.clear();
    numbers.shrink_to_fit();
    assert_eq!(blocks.in_use(), 0);
}

#[test]
fn maps_of_boxes_go_through_threads() {
    type Map<'c> = HashMap<u64, Box<[u64; 4], &'c BlockCache>, DefaultHashBuilder, Slabyard>;

    const EACH: u64 = if cfg!(miri) { 50 } else { 5000 };
    let nodes = BlockCache::new("node", Layout::new::<[u64; 4]>()).unwrap();
    let maps: std::vec::Vec<Map> = std::thread::scope(|scope| {
        let threads: std::vec::Vec<_> = (0..3)
            .map(|thread| {
                let nodes = &nodes;
                scope.spawn(move || {
                    let mut map = Map::with_hasher_in(DefaultHashBuilder::default(), Slabyard);
                    for n in 0..EACH {
                        map.insert(n, Box::new_in([thread, n, thread, n], nodes));
                    }
                    map
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(nodes.in_use() as u64, 3 * EACH);
    for (thread, map) in maps.iter().enumerate() {
        let thread = thread as u64;
        assert!((0..EACH).all(|n| *map[&n] == [thread, n, thread, n]));
    }
    drop(maps);
    assert_eq!(nodes.in_use(), 0);
}

#[test]
fn blocks_are_zeroed_and_change_their_alignment() {
    let layout = |size, align| Layout::from_size_align(size, align).unwrap();
    let blocks = BlockCache::new("changed", layout(64, 8)).unwrap();
    for from in [layout(0, 1), layout(40, 8), layout(100, 8)] {
        for to in [layout(100, 8), layout(200, 64), layout(120, 4)] {
            // SAFETY: each block is passed with its own layout, and freed once.
            unsafe {
                for (allocator, name) in [(&&blocks as &dyn Allocator, 0), (&Slabyard, 1)] {
                    let block = allocator.allocate_zeroed(from).unwrap().cast::<u8>();
                    block.write_bytes(9, from.size());
                    let grown = allocator.grow_zeroed(block, from, to).unwrap().cast::<u8>();
                    let bytes = std::slice::from_raw_parts(grown.as_ptr(), to.size());
                    let (kept, new) = bytes.split_at(from.size());
                    assert!(kept.iter().all(|byte| *byte == 9), "{name} {from:?} {to:?}");
                    assert!(new.iter().all(|byte| *byte == 0), "{name} {from:?} {to:?}");
                    assert_eq!(grown.addr().get() % to.align(), 0);
                    let back = allocator.shrink(grown, to, from).unwrap().cast::<u8>();
                    let bytes = std::slice::from_raw_parts(back.as_ptr(), from.size());
                    assert!(bytes.iter().all(|byte| *byte == 9));
                    allocator.deallocate(back, from);
                }
            }
        }
    }
    assert_eq!(blocks.in_use(), 0);
}
