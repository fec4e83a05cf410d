//! Tests of arenas, whose values are freed together.

use proptest::prelude::*;
use slabyard::Arena;
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};

const MANY: usize = if cfg!(miri) { 300 } else { 100_000 };
const LARGE: usize = if cfg!(miri) { 5 << 10 } else { 2 << 20 };
const LONGEST: usize = if cfg!(miri) { 50 } else { 3000 };

#[repr(align(128))]
#[derive(Clone, Copy, PartialEq, Debug)]
struct Wide(u8);

#[test]
fn values_lie_apart_and_stay() {
    let arena = Arena::new();
    let words: Vec<_> = (0..MANY).map(|i| arena.alloc(i)).collect();
    let texts: Vec<_> = (0..MANY).map(|i| arena.alloc_str(&i.to_string())).collect();
    let wide: Vec<_> = (0..100).map(|i| arena.alloc(Wide(i))).collect();
    let large = arena.alloc_slice(&[7u8; LARGE]);
    let nothing = arena.alloc(());
    *nothing = ();
    assert!(words.iter().enumerate().all(|(i, word)| **word == i));
    assert!(texts
        .iter()
        .enumerate()
        .all(|(i, it)| **it == i.to_string()));
    for (i, it) in wide.iter().enumerate() {
        assert!(it.0 == i as u8 && std::ptr::from_ref(&**it).addr() % 128 == 0);
    }
    assert!(large.iter().all(|byte| *byte == 7));
    assert!(arena.allocated_bytes() >= MANY * 16 + LARGE);
}

#[test]
fn memory_is_used_again_and_goes() {
    let mut arena = Arena::new();
    assert_eq!(arena.allocated_bytes(), 0);
    arena.reset();
    let mut kept = 0;
    for round in 0..5 {
        for i in 0..MANY {
            assert_eq!(*arena.alloc([i; 3]), [i; 3]);
        }
        arena.reset();
        assert!(
            round < 3 || arena.allocated_bytes() == kept,
            "it grows no more"
        );
        kept = arena.allocated_bytes();
    }
    assert!(kept > 0);
    arena.clear();
    assert_eq!(arena.allocated_bytes(), 0);
    assert_eq!(*arena.alloc(1), 1);
    let sent = std::thread::spawn(move || *arena.alloc(2));
    assert_eq!(sent.join().unwrap(), 2);
}

#[test]
fn functions_may_use_the_arena_and_panic() {
    let arena = Arena::new();
    let outer = arena.alloc_with(|| (1, arena.alloc(2)));
    assert_eq!((outer.0, *outer.1), (1, 2));
    let list = arena.alloc_slice_with(10, |i| arena.alloc(i));
    assert!(list.iter().enumerate().all(|(i, it)| **it == i));
    let run = AssertUnwindSafe(|| {
        arena.alloc_slice_with(10, |i| assert!(i < 5, "the sixth"));
    });
    assert!(catch_unwind(run).is_err());
    let cell = arena.alloc(Cell::new(1));
    cell.set(2);
    assert_eq!((cell.get(), outer.0), (2, 1));
    assert!(catch_unwind(AssertUnwindSafe(
        || arena.alloc_slice_with(usize::MAX, |i| i)
    ))
    .is_err());
}

#[cfg(feature = "allocator-api2")]
#[test]
fn containers_take_memory_of_it() {
    use allocator_api2::vec::Vec as Vec2;
    let arena = Arena::new();
    let mut list = Vec2::new_in(&arena);
    list.extend(0..MANY);
    let mut nested = Vec2::new_in(&arena);
    nested.extend((0..10).map(|i| allocator_api2::boxed::Box::new_in(i, &arena)));
    list.truncate(10);
    list.shrink_to_fit();
    assert!(list.iter().copied().eq(0..10) && nested.iter().map(|it| **it).eq(0..10));
    let first = allocator_api2::boxed::Box::new_in([1u8; 100], &arena);
    let place = first.as_ptr();
    drop(first);
    assert_eq!(
        arena.alloc([2u8; 100]).as_ptr(),
        place,
        "the last has its place again"
    );
    // A box's pointer is valid for its slice only, which Miri checks, and the next slice is larger.
    let mut list = Vec2::with_capacity_in(64, &arena);
    list.extend(0u64..8);
    let boxed = list.into_boxed_slice();
    let place = boxed.as_ptr();
    drop(boxed);
    let next = arena.alloc([7u64; 7]);
    assert_eq!(next.as_ptr().wrapping_add(7), place.wrapping_add(8));
    assert_eq!((*next, *arena.alloc([8u64; 40])), ([7; 7], [8; 40]));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 200 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Slices of any size and alignment do not overlap; each is written completely.
    #[test]
    fn places_are_as_in_a_list(sizes in prop::collection::vec((0..LONGEST, 0u8..4), 0..200)) {
        let arena = Arena::new();
        let mut all: Vec<(&mut [u8], u8)> = Vec::new();
        for (i, (size, kind)) in sizes.into_iter().enumerate() {
            let fill = i as u8;
            let bytes = match kind {
                0 => arena.alloc_slice(&vec![fill; size]),
                1 => arena.alloc_slice_with(size, |_| fill),
                2 => &mut arena.alloc(([fill; 48], 1u128)).0[..],
                _ => &mut arena.alloc([fill; 5])[..],
            };
            all.push((bytes, fill));
        }
        for (bytes, fill) in all {
            prop_assert!(bytes.iter().all(|byte| *byte == fill));
        }
    }
}
