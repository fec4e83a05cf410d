//! Byte slabs: values of several types in slots of one size.
#![cfg_attr(not(debug_assertions), allow(clippy::drop_non_drop))] // debug builds have these drops

use nexus_slab_2::byte::{bounded, unbounded, AlignedBytes, PinnedSlot, Slot};
use std::borrow::{Borrow, BorrowMut};
use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use support::{panics, panics_in_debug, Counted, Panics};

mod support;

/// Each test gives all slots back to their slabs, except where it says otherwise.
fn bounded<const N: usize>(capacity: usize) -> bounded::Slab<N> {
    // SAFETY: the tests give the slots back, as said above.
    unsafe { bounded::Slab::with_capacity(capacity) }
}

fn unbounded<const N: usize>(chunk: usize) -> unbounded::Slab<N> {
    // SAFETY: as said above.
    unsafe { unbounded::Slab::with_chunk_capacity(chunk) }
}

#[test]
fn values_of_several_types_have_the_same_slots() {
    let (slab, growing) = (bounded::<24>(3), unbounded::<24>(2));
    let (a, b) = (slab.alloc(7u8), growing.alloc(String::from("x")));
    let (c, d) = (slab.alloc(String::from("y")), growing.alloc([1u64; 3]));
    let (e, f) = (slab.alloc(()), growing.alloc(Some(2u32)));
    assert_eq!(
        (*a, b.as_str(), c.as_str(), *d, *e, *f),
        (7, "x", "y", [1; 3], (), Some(2))
    );
    assert_eq!(slab.try_alloc(9i16).unwrap_err().into_inner(), 9);
    assert_eq!(panics(|| slab.alloc(1)), "byte slab full");
    assert_eq!(slab.capacity(), 3);
    slab.free(a);
    assert_eq!(growing.take(b), "x");
    slab.free(c);
    growing.free(d);
    slab.free(e);
    growing.free(f);
    assert_eq!(
        format!("{slab:?} {growing:?}"),
        "byte::bounded::Slab { slot_size: 24, capacity: 3 } byte::unbounded::Slab { slot_size: 24 }"
    );
}

#[test]
fn values_that_do_not_fit_are_refused_and_take_no_slot() {
    #[repr(align(16))]
    struct Wide(#[allow(dead_code)] u8);
    let (slab, growing) = (bounded::<16>(1), unbounded::<16>(1));
    let large = "[u8; 17] (17 bytes) exceeds byte slab slot size (16 bytes)";
    assert_eq!(panics(|| slab.alloc([0u8; 17])), large);
    assert_eq!(panics(|| slab.try_alloc([0u8; 17]).is_ok()), large);
    assert_eq!(panics(|| growing.alloc([0u8; 17])), large);
    assert_eq!(panics(|| slab.claim().write([0u8; 17])), large);
    for told in [
        panics(|| slab.alloc(Wide(0))),
        panics(|| growing.alloc(Wide(0))),
        panics(|| growing.claim().write(Wide(0))),
    ] {
        assert!(
            told.ends_with("(align 16) exceeds byte slab alignment (8)"),
            "{told}"
        );
    }
    let bytes = [1u8; 20];
    // SAFETY: the source has at least as many bytes as are copied.
    unsafe {
        let told = "raw value (17 bytes) exceeds byte slab slot size (16 bytes)";
        assert_eq!(panics(|| slab.alloc_raw(bytes.as_ptr(), 17)), told);
        assert_eq!(panics(|| growing.alloc_raw(bytes.as_ptr(), 17)), told);
        assert_eq!(panics(|| slab.claim().write_raw(bytes.as_ptr(), 17)), told);
    }
    slab.free(slab.alloc([1u8; 16]));
    growing.free(growing.alloc([1u64; 2]));
}

#[test]
fn free_drops_the_value_and_take_returns_it() {
    let drops = Cell::new(0);
    let slab = bounded::<8>(2);
    let (first, second) = (slab.alloc(Counted(&drops)), slab.alloc(Counted(&drops)));
    slab.free(first);
    assert_eq!(drops.get(), 1);
    let value = slab.take(second);
    assert_eq!(drops.get(), 1);
    drop(value);
    assert_eq!(drops.get(), 2);
    let pinned = slab.alloc(Counted(&drops)).into_pinned();
    slab.free_pinned(pinned);
    assert_eq!(drops.get(), 3);
}

#[test]
fn a_slot_goes_back_when_a_drop_panics() {
    let slab = bounded::<8>(1);
    for _ in 0..2 {
        let slot = slab.alloc(Panics);
        assert_eq!(panics(|| slab.free(slot)), "dropped");
        let slot = slab.alloc(Panics).into_pinned();
        assert_eq!(panics(|| slab.free_pinned(slot)), "dropped");
    }
}

#[test]
fn a_claim_takes_values_and_bytes() {
    let slab = bounded::<32>(1);
    let claim = slab.claim();
    assert_eq!((claim.slot_size(), claim.chunk_idx()), (32, 0));
    let shown = format!("{claim:?}");
    assert!(shown.starts_with("ByteClaim { ptr: 0x") && shown.ends_with(", slot_size: 32 }"));
    assert!(slab.try_claim().is_none());
    assert_eq!(panics(|| drop(slab.claim())), "byte slab full");
    let at = claim.as_ptr();
    drop(claim);
    let slot = slab.try_claim().unwrap().write(String::from("abc"));
    assert_eq!((slot.as_ptr(), slot.as_str()), (at, "abc"));
    slab.free(slot);
    let bytes: Vec<u8> = (0..32).collect();
    // SAFETY: the source has at least as many bytes as are copied; the slots belong to this slab.
    unsafe {
        let raw = slab.claim().write_raw(bytes.as_ptr(), 32);
        assert_eq!(std::slice::from_raw_parts(raw, 32), bytes);
        assert!(slab.try_claim().is_none());
        slab.free_raw(raw);
        let raw = slab.alloc_raw(bytes.as_ptr(), 5);
        assert_eq!(std::slice::from_raw_parts(raw, 5), &bytes[..5]);
        assert_eq!(
            panics(|| slab.alloc_raw(bytes.as_ptr(), 5)),
            "byte slab full"
        );
        slab.free_raw(raw);
    }
    assert!(slab.try_claim().is_some());
}

#[test]
fn slots_of_a_growing_slab_know_their_chunk() {
    let slab = unbounded::<40>(3);
    let claims: Vec<_> = (0..50).map(|_| slab.claim()).collect();
    assert!(claims
        .iter()
        .enumerate()
        .all(|(at, claim)| claim.chunk_idx() == at / 3));
    drop(claims);
    let bytes = [5u8; 40];
    // SAFETY: the source has at least as many bytes as are copied; the slots belong to this slab
    // and lie in the given chunks.
    unsafe {
        let claim = slab.claim();
        let chunk = claim.chunk_idx();
        let raw = claim.write_raw(bytes.as_ptr(), 40);
        slab.free_raw_in_chunk(raw, chunk);
        let raw = slab.alloc_raw(bytes.as_ptr(), 40);
        assert_eq!(*raw.add(39), 5);
        if cfg!(debug_assertions) {
            assert!(panics(|| slab.free_raw_in_chunk(raw, chunk + 1)).contains("this chunk"));
        }
        slab.free_raw(raw);
    }
}

#[test]
fn a_builder_says_how_many_slots_and_chunks() {
    let builder = unbounded::Builder::default()
        .chunk_capacity(5)
        .initial_chunks(2);
    assert_eq!(
        format!("{:?} {:?}", builder.clone(), unbounded::Builder::new()),
        "Builder { chunk_capacity: 5, initial_chunks: 2 } \
         Builder { chunk_capacity: 256, initial_chunks: 0 }"
    );
    // SAFETY: the slots are given back.
    let slab = unsafe { builder.build::<16>() };
    let claims: Vec<_> = (0..11).map(|_| slab.claim()).collect();
    assert_eq!(claims[10].chunk_idx(), 2);
    let zero = unbounded::Builder::new().chunk_capacity(0);
    // SAFETY: the slab is not created, so it has no slots.
    let told = panics(|| unsafe { zero.build::<8>() });
    assert_eq!(told, "chunk_capacity must be non-zero");
    // SAFETY: as before.
    let told = panics(|| unsafe { bounded::Slab::<8>::with_capacity(0) });
    assert_eq!(told, "capacity must be non-zero");
}

#[test]
fn slots_are_read_and_changed_as_the_value() {
    let slab = bounded::<24>(1);
    let mut slot = slab.alloc(String::from("a"));
    slot.push('b');
    let text: &mut String = slot.as_mut();
    text.push('c');
    let text: &mut String = slot.borrow_mut();
    text.push('d');
    let (one, other): (&String, &String) = (slot.as_ref(), slot.borrow());
    assert_eq!((one.as_str(), other.as_str()), ("abcd", "abcd"));
    assert_eq!(format!("{slot:?}"), "byte::Slot { value: \"abcd\" }");
    // SAFETY: only one of the handles is used from here on.
    let slot = unsafe {
        let second = slot.clone_ptr();
        let _ = slot.into_raw();
        Slot::<String>::from_raw(second.into_raw())
    };
    let mut pinned = slot.into_pinned();
    Pin::into_inner(pinned.as_mut()).push('e');
    let text: &String = pinned.borrow();
    assert_eq!((text.as_str(), pinned.as_ref().len()), ("abcde", 5));
    assert_eq!(
        format!("{pinned:?}"),
        "byte::PinnedSlot { value: \"abcde\" }"
    );
    // SAFETY: it came from into_raw.
    let pinned = unsafe { PinnedSlot::<String>::from_raw(pinned.into_raw()) };
    assert!(!pinned.as_ptr().is_null());
    slab.free_pinned(pinned);
    assert_eq!(
        (
            size_of::<Option<Slot<String>>>(),
            size_of::<AlignedBytes<9>>()
        ),
        (8, 16)
    );
}

#[test]
fn debug_builds_tell_of_slots_that_are_not_given_back() {
    let slab = bounded::<8>(4);
    panics_in_debug("byte::Slot<u64> dropped without being freed", || {
        drop(slab.alloc(1u64))
    });
    panics_in_debug("byte::PinnedSlot<u64> dropped without being freed", || {
        drop(slab.alloc(2u64).into_pinned())
    });
    panics_in_debug("dropped with 2 occupied slot(s)", || drop(slab));
}

#[test]
#[cfg(debug_assertions)]
fn debug_builds_tell_of_a_free_to_another_slab() {
    let (one, other) = (bounded::<8>(1), unbounded::<8>(1));
    other.free(other.alloc(0u8));
    let foreign = "slot was not allocated from this slab";
    let raw = one.alloc(1u64).into_raw();
    // SAFETY: each panic forgets its handle, so only one handle of the slot exists at a time.
    unsafe {
        assert_eq!(panics(|| other.free(Slot::<u64>::from_raw(raw))), foreign);
        assert_eq!(panics(|| other.take(Slot::<u64>::from_raw(raw))), foreign);
        let pinned = || PinnedSlot::<u64>::from_raw(raw);
        assert_eq!(panics(|| other.free_pinned(pinned())), foreign);
        assert_eq!(panics(|| other.free_raw(raw)), foreign);
        one.free_raw(raw);
    }
}

#[test]
fn a_slab_moves_while_a_value_that_must_not_stays() {
    let slab = unbounded::<16>(2);
    let shared = Rc::new(1);
    let slot = slab.alloc(shared.clone());
    let slab = std::thread::spawn(move || {
        slab.free(slab.alloc(5u64));
        slab
    });
    assert_eq!(**slot, 1);
    slab.join().unwrap().free(slot);
    assert_eq!(Rc::strong_count(&shared), 1);
}
