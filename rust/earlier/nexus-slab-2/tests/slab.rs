//! Slabs of typed values, and their raw slots.
#![cfg_attr(not(debug_assertions), allow(clippy::drop_non_drop))] // debug builds have these drops

use nexus_slab_2::{bounded, unbounded, Full, PinnedSlot, Slot, SlotCell};
use std::borrow::{Borrow, BorrowMut};
use std::cell::Cell;
use std::collections::HashSet;
use std::marker::PhantomPinned;
use std::panic::UnwindSafe;
use std::pin::Pin;
use support::{panics, panics_in_debug, Counted, Panics};

mod support;

/// Each test gives all slots back to their slabs, except where it says otherwise.
fn bounded<T>(capacity: usize) -> bounded::Slab<T> {
    // SAFETY: the tests give the slots back, as said above.
    unsafe { bounded::Slab::with_capacity(capacity) }
}

fn unbounded<T>(chunk: usize) -> unbounded::Slab<T> {
    // SAFETY: as said above.
    unsafe { unbounded::Slab::with_chunk_capacity(chunk) }
}

#[test]
fn a_bounded_slab_has_exactly_its_slots() {
    for capacity in [1, 2, 3, 65, 200] {
        let slab = bounded(capacity);
        assert_eq!(slab.capacity(), capacity);
        let slots: Vec<Slot<usize>> = (0..capacity).map(|i| slab.alloc(i)).collect();
        assert_eq!(slab.try_alloc(7).unwrap_err().into_inner(), 7);
        assert!(slab.claim().is_none());
        assert_eq!(panics(|| slab.alloc(7)), "slab full");
        assert!(slots.iter().enumerate().all(|(i, slot)| **slot == i));
        let places: HashSet<_> = slots.iter().map(Slot::as_ptr).collect();
        assert_eq!(places.len(), capacity);
        slots.into_iter().for_each(|slot| slab.free(slot));
        slab.free(slab.try_alloc(0).unwrap());
    }
}

#[test]
fn no_slots_and_too_many_are_panics() {
    assert_eq!(panics(|| bounded::<u64>(0)), "capacity must be non-zero");
    for capacity in [usize::MAX, usize::MAX / 8, isize::MAX as usize / 8] {
        assert!(panics(|| bounded::<u64>(capacity)).contains("no memory"));
    }
    let zero = "chunk_capacity must be non-zero";
    assert_eq!(panics(|| unbounded::<u64>(0)), zero);
    let builder = || unbounded::Builder::default().chunk_capacity(0);
    // SAFETY: the slab is not created, so it has no slots.
    assert_eq!(panics(|| unsafe { builder().build::<u64>() }), zero);
    let slab = unbounded::<u64>(usize::MAX / 8);
    assert!(panics(|| slab.alloc(1)).contains("no memory"));
    assert!(panics(|| drop(slab.claim())).contains("no memory"));
    assert!(panics(|| slab.reserve_chunks(1)).contains("no memory"));
    // No chunk is taken for chunks that no address space has.
    let slab = unbounded::<[u64; 512]>(4);
    for chunks in [usize::MAX, usize::MAX / 4096, 1 << 40] {
        assert!(panics(|| slab.reserve_chunks(chunks)).contains("no memory"));
        assert_eq!(slab.chunk_count(), 0);
    }
    assert_eq!((slab.chunk_count(), slab.capacity()), (0, 0));
}

#[test]
fn the_slot_freed_last_is_given_first() {
    let slab = bounded(20);
    let slots: Vec<_> = (0..20).map(|i| slab.alloc(i)).collect();
    let free = |slot: Slot<i32>| {
        let at = slot.as_ptr();
        slab.free(slot);
        at
    };
    let freed: Vec<_> = slots.into_iter().map(free).collect();
    let slots: Vec<_> = (0..20).map(|i| slab.alloc(i)).collect();
    assert!(slots.iter().map(Slot::as_ptr).eq(freed.into_iter().rev()));
    slots.into_iter().for_each(|slot| slab.free(slot));
}

#[test]
fn an_unbounded_slab_adds_a_chunk_when_no_slot_is_free() {
    let slab = unbounded(4);
    assert_eq!(
        (slab.chunk_capacity(), slab.chunk_count(), slab.capacity()),
        (4, 0, 0)
    );
    let mut slots: Vec<Slot<u32>> = Vec::new();
    for i in 0..10 {
        slots.push(slab.alloc(i));
        assert_eq!(slab.chunk_count(), slots.len().div_ceil(4));
    }
    assert_eq!(slab.capacity(), 12);
    let places: Vec<_> = slots.iter().map(Slot::as_ptr).collect();
    slots.drain(..).for_each(|slot| slab.free(slot));
    slots.extend((0..10).map(|i| slab.alloc(i)));
    assert!(slots.iter().rev().map(Slot::as_ptr).eq(places));
    assert_eq!(slab.chunk_count(), 3);
    slots.drain(..).for_each(|slot| slab.free(slot));
}

#[test]
fn a_builder_says_how_many_slots_and_chunks() {
    let builder = unbounded::Builder::new()
        .chunk_capacity(10)
        .initial_chunks(3);
    assert_eq!(
        format!("{builder:?}"),
        "Builder { chunk_capacity: 10, initial_chunks: 3 }"
    );
    // SAFETY: the slots are given back.
    let slab = unsafe { builder.clone().build() };
    assert_eq!((slab.chunk_count(), slab.capacity()), (3, 30));
    slab.reserve_chunks(2);
    assert_eq!(slab.chunk_count(), 3);
    let slots: Vec<_> = (0..30u32).map(|i| slab.alloc(i)).collect();
    assert_eq!(slab.chunk_count(), 3);
    drop(slab.claim());
    assert_eq!(slab.chunk_count(), 4);
    slots.into_iter().for_each(|slot| slab.free(slot));
    // SAFETY: it has no slots.
    let slab = unsafe { unbounded::Builder::default().build::<u8>() };
    assert_eq!((slab.chunk_capacity(), slab.chunk_count()), (256, 0));
}

#[test]
fn free_drops_the_value_and_take_returns_it() {
    let drops = Cell::new(0);
    let slab = bounded(2);
    let (first, second) = (slab.alloc(Counted(&drops)), slab.alloc(Counted(&drops)));
    slab.free(first);
    assert_eq!(drops.get(), 1);
    let value = slab.take(second);
    assert_eq!(drops.get(), 1);
    drop(value);
    assert_eq!(drops.get(), 2);
}

#[test]
fn a_slot_goes_back_when_a_drop_panics() {
    let slab = bounded(1);
    for _ in 0..2 {
        let slot = slab.alloc(Panics);
        assert_eq!(panics(|| slab.free(slot)), "dropped");
        let slot = slab.alloc(Panics).into_pinned();
        assert_eq!(panics(|| slab.free_pinned(slot)), "dropped");
    }
}

#[test]
fn a_drop_may_use_the_slab_that_it_is_freed_in() {
    struct Frees(*const unbounded::Slab<Frees>, Option<Slot<Frees>>);
    impl Drop for Frees {
        fn drop(&mut self) {
            if let Some(other) = self.1.take() {
                // SAFETY: the slab outlives its values.
                unsafe { (*self.0).free(other) }
            }
        }
    }
    let slab = Box::new(unbounded(1));
    let mut list = None;
    for _ in 0..3 {
        list = Some(slab.alloc(Frees(&*slab, list)));
    }
    slab.free(list.unwrap());
    let slots = [(); 3].map(|()| slab.alloc(Frees(&*slab, None)));
    assert_eq!(slab.chunk_count(), 3);
    slots.into_iter().for_each(|slot| slab.free(slot));
}

#[test]
fn a_claim_is_a_slot_without_a_value() {
    let slab = bounded(1);
    let claim = slab.claim().unwrap();
    assert!(slab.claim().is_none());
    assert!(matches!(slab.try_alloc([1; 9]), Err(Full([1, ..]))));
    drop(claim);
    let slot = slab.claim().unwrap().write([2; 9]);
    assert_eq!(*slot, [2; 9]);
    slab.free(slot);
    let growing = unbounded(1);
    let (first, second) = (growing.claim(), growing.claim());
    let shown = format!("{second:?}");
    assert!(shown.starts_with("Claim { slot_ptr: 0x"), "{shown}");
    assert!(shown.ends_with(", chunk_idx: 1 }"), "{shown}");
    assert!(format!("{first:?}").ends_with(", chunk_idx: 0 }"));
    let slot = second.write([3u8; 3]);
    drop(first);
    assert_eq!(growing.take(slot), [3; 3]);
    let shown = format!("{:?}", slab.claim());
    assert!(!shown.contains("chunk"), "{shown}");
}

#[test]
fn slots_are_eight_bytes_and_so_are_options_of_them() {
    assert_eq!(size_of::<Slot<u8>>(), 8);
    assert_eq!(size_of::<Option<Slot<[u64; 100]>>>(), 8);
    assert_eq!(size_of::<Option<PinnedSlot<u8>>>(), 8);
    assert_eq!(size_of::<SlotCell<u8>>(), 8);
    assert_eq!(size_of::<SlotCell<[u64; 100]>>(), 800);
}

#[test]
fn slots_are_read_and_changed_as_the_value() {
    let slab = bounded(1);
    let mut slot = slab.alloc(String::from("a"));
    slot.push('b');
    let text: &mut String = slot.as_mut();
    text.push('c');
    let text: &mut String = slot.borrow_mut();
    text.push('d');
    let (one, other): (&String, &String) = (slot.as_ref(), slot.borrow());
    assert_eq!((one.as_str(), other.as_str()), ("abcd", "abcd"));
    assert_eq!(format!("{slot:?}"), "Slot { value: \"abcd\" }");
    assert_eq!(format!("{slab:?}"), "Slab { capacity: 1 }");
    let full = slab.try_alloc(String::new()).unwrap_err();
    assert_eq!(format!("{full:?} {full}"), "Full(..) allocator full");
    // SAFETY: one of the two handles is used at a time, and one is freed.
    let second = unsafe { slot.clone_ptr() };
    assert_eq!(second.as_ptr(), slot.as_ptr());
    let cell = slot.into_raw();
    // SAFETY: as before; the slot holds a value, and no handle is used meanwhile.
    unsafe {
        (*cell).value_mut().push('e');
        *SlotCell::value_ptr_mut(cell) = format!("{}f", (*cell).value_ref());
        assert_eq!((*(*cell).value_ptr()).as_str(), "abcdef");
        let _ = second.into_raw();
        assert_eq!(slab.take(Slot::from_raw(cell)), "abcdef");
    }
}

/// Points to itself, and checks when it is dropped that it was not moved.
struct Stays<'a> {
    own: Cell<*const Stays<'a>>,
    drops: &'a Cell<u32>,
    _pinned: PhantomPinned,
}

impl Drop for Stays<'_> {
    fn drop(&mut self) {
        assert!(std::ptr::eq(self.own.get(), self));
        self.drops.set(self.drops.get() + 1);
    }
}

#[test]
fn a_pinned_value_stays_until_it_is_dropped() {
    let drops = Cell::new(0);
    let (slab, growing) = (bounded(1), unbounded(1));
    let new = || Stays {
        own: Cell::new(std::ptr::null()),
        drops: &drops,
        _pinned: PhantomPinned,
    };
    let one = slab.alloc(new()).into_pinned();
    one.own.set(&raw const *one);
    let other = growing.alloc(new()).into_pinned();
    other.own.set(&raw const *other);
    let more = growing.alloc(new()); // adds a chunk
    more.own.set(&raw const *more);
    // SAFETY: the address came from into_raw.
    let one = unsafe { PinnedSlot::from_raw(one.into_raw()) };
    slab.free_pinned(one);
    growing.free_pinned(other);
    assert_eq!(drops.get(), 2);
    growing.free(more);
    let numbers = bounded(1);
    let mut slot = numbers.alloc(41u64).into_pinned();
    *Pin::into_inner(slot.as_mut()) += 1;
    let value: &u64 = slot.borrow();
    assert_eq!((*value, *slot.as_ref().get_ref()), (42, 42));
    assert_eq!(format!("{slot:?}"), "PinnedSlot { value: 42 }");
    assert!(numbers.contains_ptr(slot.as_ptr().cast()));
    numbers.free_pinned(slot);
}

#[test]
fn values_of_any_size_and_alignment() {
    #[repr(align(4096))]
    struct Page(#[allow(dead_code)] u8);
    fn check<T>(make: fn(u8) -> T) {
        let (slab, growing) = (bounded(10), unbounded(3));
        let slots: Vec<_> = (0..10)
            .map(|i| (slab.alloc(make(i)), growing.alloc(make(i))))
            .collect();
        let places = slots
            .iter()
            .flat_map(|(a, b)| [a.as_ptr() as usize, b.as_ptr() as usize]);
        let places: HashSet<usize> = places.collect();
        assert!(places.len() == 20 && places.iter().all(|at| at % align_of::<T>() == 0));
        for (one, other) in slots {
            slab.free(one);
            growing.free(other);
        }
    }
    check(|_| ());
    check(|i| i);
    check(|i| [i; 3]);
    check(|i| [u128::from(i); 5]);
    check(|i| [i; 10_000]);
    check(Page);
}

#[test]
fn a_slab_knows_its_slots() {
    let (one, other) = (unbounded(3), unbounded(3));
    let slots: Vec<_> = (0..100u64)
        .map(|i| (one.alloc(i), other.alloc(i)))
        .collect();
    for (at, (first, second)) in slots.iter().enumerate() {
        let (first, second) = (first.as_ptr(), second.as_ptr());
        assert!(one.contains_ptr(first.cast()) && other.contains_ptr(second.cast()));
        assert!(!one.contains_ptr(second.cast()) && !other.contains_ptr(first.cast()));
        let last = first.cast::<u8>().wrapping_add(7);
        assert!(one.contains_ptr(last.cast()), "{at}");
    }
    assert!(!one.contains_ptr(std::ptr::null()));
    assert!(!one.contains_ptr((&raw const slots).cast()));
    for (first, second) in slots {
        one.free(first);
        other.free(second);
    }
}

#[test]
fn chunks_are_numbered_in_the_order_of_their_making() {
    let slab = unbounded::<[u64; 5]>(7);
    let claims: Vec<_> = (0..500).map(|_| slab.claim()).collect();
    for (at, claim) in claims.iter().enumerate() {
        let shown = format!("{claim:?}");
        assert!(shown.ends_with(&format!(" {} }}", at / 7)), "{at} {shown}");
    }
}

#[test]
fn a_slab_moves_to_another_thread() {
    let slab = bounded(8);
    slab.free(slab.alloc(1u64));
    let slab = std::thread::spawn(move || {
        let slots: Vec<_> = (0..8).map(|i| slab.alloc(i)).collect();
        assert!(slab.try_alloc(8).is_err());
        slots.into_iter().for_each(|slot| slab.free(slot));
        slab
    })
    .join()
    .unwrap();
    slab.free(slab.alloc(2));
    let growing = unbounded(2);
    let kept = growing.alloc(3u64);
    let growing = std::thread::spawn(move || {
        let slots: Vec<_> = (0..8).map(|i| growing.alloc(i)).collect();
        slots.into_iter().for_each(|slot| growing.free(slot));
        growing
    });
    assert_eq!(*kept, 3);
    growing.join().unwrap().free(kept);
}

/// A raw slot has no lifetime, so the memory of a slot that is taken outlives its slab.
#[test]
fn a_slot_that_was_kept_may_be_read_after_its_slab() {
    let slab = bounded(100);
    let slot = slab.alloc([7u64; 100]);
    panics_in_debug("dropped with 1 occupied slot(s)", || drop(slab));
    let fills_the_gap = bounded(100);
    fills_the_gap.free(fills_the_gap.alloc([1u64; 100]));
    assert_eq!(*slot, [7; 100]);
    let _ = slot.into_raw();
}

#[test]
fn debug_builds_tell_of_slots_that_are_not_given_back() {
    let slab = bounded(4);
    panics_in_debug("Slot<u64> dropped without being freed", || {
        drop(slab.alloc(1u64))
    });
    panics_in_debug("PinnedSlot<u64> dropped without being freed", || {
        drop(slab.alloc(2u64).into_pinned())
    });
    panics_in_debug("dropped with 2 occupied slot(s)", || drop(slab));
    // Only the first panic is reported.
    let told = panics(|| {
        let slab = bounded(1);
        let _slot = slab.alloc(1u64);
        panic!("first");
    });
    assert_eq!(told, "first");
    if !cfg!(miri) {
        // Miri would report the memory of the forgotten slab as a leak.
        let slab = bounded(1);
        let _ = slab.alloc(1u64).into_raw();
        std::mem::forget(slab);
    }
}

#[test]
#[cfg(debug_assertions)]
fn debug_builds_tell_of_a_free_to_another_slab() {
    let (one, other) = (bounded(1), bounded(1));
    let (first, second) = (unbounded(1), unbounded(1));
    let foreign = "slot was not allocated from this slab";
    let cell = one.alloc(1u64).into_raw();
    let grown = first.alloc(1u64).into_raw();
    // SAFETY: each panic forgets its handle, so only one handle of the slot exists at a time.
    unsafe {
        assert_eq!(panics(|| other.free(Slot::from_raw(cell))), foreign);
        assert_eq!(panics(|| other.take(Slot::from_raw(cell))), foreign);
        assert_eq!(panics(|| second.free(Slot::from_raw(grown))), foreign);
        let pinned = || PinnedSlot::from_raw(cell);
        assert_eq!(panics(|| other.free_pinned(pinned())), foreign);
        one.free(Slot::from_raw(cell));
        first.free(Slot::from_raw(grown));
    }
}

#[test]
fn types_have_the_marker_traits_that_programs_need() {
    fn is_unwind_safe<T: UnwindSafe>() {}
    fn is_error<T: std::error::Error>() {}
    fn may_be_shown<T: std::fmt::Debug>() {}
    fn moves<T: Send>() {}
    is_unwind_safe::<bounded::Slab<u64>>();
    is_unwind_safe::<Slot<&mut u64>>();
    is_error::<Full<Cell<u8>>>();
    may_be_shown::<bounded::Slab<Panics>>();
    may_be_shown::<unbounded::Claim<'_, Panics>>();
    moves::<unbounded::Slab<Cell<u8>>>();
}
