//! Slabs whose values have several owners.
#![cfg_attr(not(debug_assertions), allow(clippy::drop_non_drop))] // debug builds have these drops

use nexus_slab_2::rc::{bounded, unbounded, RcCell};
use nexus_slab_2::{Full, RcSlot, Ref};
use std::cell::Cell;
use support::{panics, panics_in_debug, Counted, Panics};

mod support;

/// Each test gives all owners back to their slabs, except where it says otherwise.
fn bounded<T>(capacity: usize) -> bounded::Slab<T> {
    // SAFETY: the tests give the owners back, as said above.
    unsafe { bounded::Slab::with_capacity(capacity) }
}

fn unbounded<T>(chunk: usize) -> unbounded::Slab<T> {
    // SAFETY: as said above.
    unsafe { unbounded::Slab::with_chunk_capacity(chunk) }
}

#[test]
fn the_value_is_dropped_with_its_last_owner() {
    let drops = Cell::new(0);
    let (slab, growing) = (bounded(1), unbounded(1));
    let (one, grown) = (slab.alloc(Counted(&drops)), growing.alloc(Counted(&drops)));
    let (two, three) = (one.clone(), one.clone());
    assert_eq!((one.refcount(), grown.refcount()), (3, 1));
    slab.free(two);
    slab.free(one);
    assert_eq!((three.refcount(), drops.get()), (1, 0));
    assert!(slab.try_alloc(Counted(&drops)).is_err());
    assert_eq!(drops.get(), 1); // the value that was refused
    slab.free(three);
    assert_eq!(drops.get(), 2);
    growing.free(grown);
    assert_eq!(drops.get(), 3);
    slab.free(slab.alloc(Counted(&drops)));
}

#[test]
fn a_full_slab_gives_the_value_back() {
    let slab = bounded(1);
    let one = slab.alloc(String::from("a"));
    assert!(matches!(slab.try_alloc(String::from("b")), Err(Full(text)) if text == "b"));
    assert_eq!(panics(|| slab.alloc(String::new())), "slab full");
    slab.free(one);
    slab.free(slab.try_alloc(String::from("c")).unwrap());
}

#[test]
fn there_is_one_guard_at_a_time() {
    let slab = bounded(1);
    let one = slab.alloc(1u64);
    let other = one.clone();
    {
        let mut guard = other.borrow_mut();
        *guard += 1;
        assert_eq!(format!("{guard:?}"), "RefMut { value: 2 }");
        assert_eq!(
            panics(|| drop(one.borrow())),
            "RcSlot<u64> already borrowed"
        );
        assert_eq!(
            panics(|| drop(one.borrow_mut())),
            "RcSlot<u64> already borrowed"
        );
        let third = one.clone(); // owners come and go meanwhile
        assert_eq!(one.refcount(), 3);
        slab.free(third);
        assert_eq!((*guard, one.refcount()), (2, 2));
        assert_eq!(
            panics(|| drop(one.borrow())),
            "RcSlot<u64> already borrowed"
        );
    }
    {
        let guard: Ref<'_, u64> = one.borrow();
        assert_eq!(
            format!("{guard:?} {one:?}"),
            "Ref { value: 2 } RcSlot { refcount: 2 }"
        );
        assert_eq!(
            panics(|| drop(other.borrow())),
            "RcSlot<u64> already borrowed"
        );
    }
    *one.borrow_mut() += 1;
    assert_eq!(*other.borrow(), 3);
    slab.free(one);
    slab.free(other);
}

#[test]
fn an_address_is_an_owner_that_is_still_counted() {
    let slab = bounded(1);
    let one = slab.alloc(5u64);
    let (at, other) = (one.as_ptr(), one.clone().into_raw());
    assert_eq!((at, one.refcount()), (other, 2));
    // SAFETY: the address came from into_raw, and no guard exists.
    unsafe {
        let other: RcSlot<u64> = RcSlot::from_raw(other);
        *other.value_ptr_mut() += 1;
        let cell: *mut RcCell<u64> = other.as_ptr();
        assert_eq!((*one.value_ptr(), *(*cell).value_ptr()), (6, 6));
        assert!(slab.contains_ptr(cell.cast()) && !slab.contains_ptr((&raw const slab).cast()));
        slab.free(other);
    }
    assert_eq!(one.refcount(), 1);
    slab.free(one);
    assert_eq!(size_of::<Option<RcSlot<[u64; 9]>>>(), 8);
}

#[test]
fn a_slot_goes_back_when_a_drop_panics() {
    let slab = bounded(1);
    for _ in 0..2 {
        let one = slab.alloc(Panics);
        let other = one.clone();
        slab.free(one);
        assert_eq!(panics(|| slab.free(other)), "dropped");
    }
}

#[test]
fn owners_in_values_of_the_same_slab() {
    struct Node(Cell<Option<RcSlot<Node>>>);
    let slab = unbounded(2);
    let mut last = None;
    for _ in 0..5 {
        last = Some(slab.alloc(Node(Cell::new(last))));
    }
    let mut freed = 0;
    while let Some(node) = last {
        last = node.borrow().0.take();
        slab.free(node);
        freed += 1;
    }
    assert_eq!((freed, slab.chunk_count()), (5, 3));
}

#[test]
fn a_growing_slab_says_how_large_it_is() {
    let builder = unbounded::Builder::new()
        .chunk_capacity(4)
        .initial_chunks(2);
    assert_eq!(
        format!("{builder:?}"),
        "Builder { inner: Builder { chunk_capacity: 4, initial_chunks: 2 } }"
    );
    // SAFETY: the owners are given back.
    let slab = unsafe { builder.clone().build() };
    assert_eq!(
        (slab.chunk_count(), slab.capacity(), slab.chunk_capacity()),
        (2, 8, 4)
    );
    slab.reserve_chunks(3);
    let owners: Vec<_> = (0..13u64).map(|i| slab.alloc(i)).collect();
    assert_eq!((slab.chunk_count(), slab.capacity()), (4, 16));
    assert!(owners
        .iter()
        .enumerate()
        .all(|(i, owner)| *owner.borrow() == i as u64));
    assert!(owners
        .iter()
        .all(|owner| slab.contains_ptr(owner.as_ptr().cast())));
    assert_eq!(
        format!("{slab:?} {:?}", bounded::<u8>(3)),
        "rc::unbounded::Slab { capacity: 16 } rc::bounded::Slab { capacity: 3 }"
    );
    owners.into_iter().for_each(|owner| slab.free(owner));
    let zero = unbounded::Builder::default().chunk_capacity(0);
    // SAFETY: the slab is not created, so it has no owners.
    let told = panics(|| unsafe { zero.build::<u8>() });
    assert_eq!(told, "chunk_capacity must be non-zero");
}

#[test]
fn debug_builds_tell_of_owners_that_are_not_given_back() {
    let slab = bounded(2);
    let one = slab.alloc(1u64);
    panics_in_debug("RcSlot<u64> dropped without being freed", || drop(one));
    panics_in_debug("dropped with 1 occupied slot(s)", || drop(slab));
}

#[test]
#[cfg(debug_assertions)]
fn debug_builds_tell_of_a_free_to_another_slab() {
    let (one, other) = (bounded(1), bounded(1));
    let owner = one.alloc(1u64);
    let told = panics(|| other.free(owner));
    assert_eq!(told, "slot was not allocated from this slab");
    // The value has no owner any more, and its slot stays taken.
    assert!(panics(|| drop(one)).contains("dropped with 1 occupied slot(s)"));
}
