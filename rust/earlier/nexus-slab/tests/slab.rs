//! Tests of slabs that are values, and of their raw slots.

use nexus_slab::{bounded, unbounded, Slot, SlotCell};
use std::borrow::{Borrow, BorrowMut};
use std::cell::Cell;
use std::collections::HashSet;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Counts its drops.
struct Counted<'a>(&'a Cell<u32>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// Runs a function that must panic, and returns the message.
fn panics<R>(function: impl FnOnce() -> R) -> String {
    let Err(said) = catch_unwind(AssertUnwindSafe(function)) else {
        panic!("it does not panic");
    };
    match said.downcast::<String>() {
        Ok(text) => *text,
        Err(said) => said.downcast_ref::<&str>().unwrap().to_string(),
    }
}

#[test]
fn a_bounded_slab_has_exactly_its_slots() {
    for capacity in [1, 2, 3, 64, 65, 1000] {
        let slab = bounded::Slab::with_capacity(capacity);
        assert_eq!(slab.capacity(), capacity);
        let slots: Vec<Slot<usize>> = (0..capacity).map(|i| slab.alloc(i)).collect();
        assert_eq!(slab.try_alloc(7).unwrap_err().into_inner(), 7);
        assert!(slab.claim().is_none());
        assert_eq!(panics(|| slab.alloc(7)), "slab full");
        assert!(slots.iter().enumerate().all(|(i, slot)| **slot == i));
        let places: HashSet<_> = slots.iter().map(Slot::as_ptr).collect();
        assert_eq!(places.len(), capacity);
        slots.into_iter().for_each(|slot| {
            // SAFETY: the slot is of this slab.
            unsafe { slab.free(slot) }
        });
        assert!(slab.try_alloc(0).is_ok());
    }
}

#[test]
fn a_slab_without_memory_says_so() {
    let slab = bounded::Slab::<u64>::new();
    assert!(!slab.is_initialized());
    assert_eq!(slab.capacity(), 0);
    assert_eq!(slab.try_alloc(3).unwrap_err().into_inner(), 3);
    assert!(slab.claim().is_none() && slab.claim_ptr().is_none());
    assert_eq!(panics(|| slab.alloc(3)), "slab full");
    slab.init(2);
    assert!(slab.is_initialized());
    assert!(panics(|| slab.init(2)).contains("already initialized"));
    assert_eq!(slab.capacity(), 2);
    assert_eq!(format!("{slab:?}"), "Slab { capacity: 2 }");

    let slab = unbounded::Slab::<u64>::default();
    assert!(!slab.is_initialized());
    assert!(panics(|| slab.alloc(3)).contains("not initialized"));
    assert!(panics(|| drop(slab.claim())).contains("not initialized"));
    assert!(panics(|| slab.reserve_chunks(1)).contains("not initialized"));
    slab.reserve_chunks(0);
    slab.init(2);
    assert!(panics(|| slab.init(2)).contains("already initialized"));
}

#[test]
fn no_slots_and_too_many_are_panics() {
    let bounded = bounded::Slab::<u64>::with_capacity;
    assert_eq!(panics(|| bounded(0)), "capacity must be non-zero");
    for capacity in [usize::MAX, usize::MAX / 8, isize::MAX as usize / 8, 1 << 50] {
        assert!(panics(|| bounded(capacity)).contains("no memory"));
    }
    let slab = bounded::Slab::<u64>::new();
    assert!(panics(|| slab.init(usize::MAX)).contains("no memory"));
    slab.init(1); // the failed call changed nothing
    assert_eq!(slab.capacity(), 1);

    let unbounded = unbounded::Slab::<u64>::with_chunk_capacity;
    assert_eq!(panics(|| unbounded(0)), "chunk_capacity must be non-zero");
    let slab = unbounded(1 << 50);
    assert!(panics(|| slab.alloc(1)).contains("no memory"));
    assert!(panics(|| slab.reserve_chunks(1)).contains("no memory"));
    assert_eq!((slab.chunk_count(), slab.capacity()), (0, 0));
}

#[test]
fn the_slot_freed_last_is_given_first() {
    let slab = bounded::Slab::with_capacity(100);
    let slots: Vec<_> = (0..100).map(|i| slab.alloc(i)).collect();
    let freed: Vec<_> = slots
        .into_iter()
        .map(|slot| {
            let at = slot.as_ptr();
            // SAFETY: the slot is of this slab.
            unsafe { slab.free(slot) };
            at
        })
        .collect();
    let given: Vec<_> = (0..100).map(|i| slab.alloc(i).as_ptr()).collect();
    assert!(given.iter().eq(freed.iter().rev()));
}

#[test]
fn an_unbounded_slab_adds_a_chunk_when_no_slot_is_free() {
    let slab = unbounded::Slab::with_chunk_capacity(4);
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
    // SAFETY: the slots are of this slab.
    slots.drain(..).for_each(|slot| unsafe { slab.free(slot) });
    for i in 0..10 {
        slots.push(slab.alloc(i));
    }
    assert!(slots.iter().rev().map(Slot::as_ptr).eq(places));
    assert_eq!(slab.chunk_count(), 3);
    // SAFETY: as before.
    slots.drain(..).for_each(|slot| unsafe { slab.free(slot) });
}

#[test]
fn reserved_chunks_are_there() {
    let slab = unbounded::Slab::with_chunk_capacity(1000);
    slab.reserve_chunks(3);
    assert_eq!((slab.chunk_count(), slab.capacity()), (3, 3000));
    slab.reserve_chunks(2);
    assert_eq!(slab.chunk_count(), 3);
    let slots: Vec<_> = (0..3000u32).map(|i| slab.alloc(i)).collect();
    assert_eq!(slab.chunk_count(), 3);
    assert!(slots.iter().zip(0..).all(|(slot, i)| **slot == i));
    let claim = slab.claim();
    assert_eq!(slab.chunk_count(), 4);
    drop(claim);
    // SAFETY: the slots are of this slab.
    slots
        .into_iter()
        .for_each(|slot| unsafe { slab.free(slot) });
}

#[test]
fn free_drops_the_value_and_take_returns_it() {
    let drops = Cell::new(0);
    let slab = bounded::Slab::with_capacity(2);
    let (first, second) = (slab.alloc(Counted(&drops)), slab.alloc(Counted(&drops)));
    // SAFETY: the slots are of this slab.
    let value = unsafe {
        slab.free(first);
        assert_eq!(drops.get(), 1);
        slab.take(second)
    };
    assert_eq!(drops.get(), 1);
    drop(value);
    assert_eq!(drops.get(), 2);
    let _ = slab.alloc(Counted(&drops)); // dropping a raw slot drops nothing
    assert_eq!(drops.get(), 2);
}

#[test]
fn a_slot_goes_back_when_a_drop_panics() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let slab = bounded::Slab::with_capacity(1);
    let slot = slab.alloc(Panics);
    // SAFETY: the slot is of this slab.
    assert_eq!(panics(|| unsafe { slab.free(slot) }), "dropped");
    assert!(slab.try_alloc(Panics).is_ok());
}

#[test]
fn a_drop_may_use_the_slab_that_it_is_freed_in() {
    struct Frees<'a> {
        slab: &'a bounded::Slab<Frees<'a>>,
        other: Option<Slot<Frees<'a>>>,
    }
    impl Drop for Frees<'_> {
        fn drop(&mut self) {
            if let Some(other) = self.other.take() {
                // SAFETY: the slot is of this slab.
                unsafe { self.slab.free(other) }
            }
        }
    }
    let slab = bounded::Slab::with_capacity(3);
    let mut list = None;
    for _ in 0..3 {
        let value = Frees {
            slab: &slab,
            other: list.take(),
        };
        list = slab.try_alloc(value).ok();
    }
    // SAFETY: the slot is of this slab.
    unsafe { slab.free(list.unwrap()) };
    let slots = [(); 3].map(|()| {
        slab.alloc(Frees {
            slab: &slab,
            other: None,
        })
    });
    // SAFETY: as before.
    slots
        .into_iter()
        .for_each(|slot| unsafe { slab.free(slot) });
}

#[test]
fn a_claim_is_a_slot_without_a_value() {
    let slab = bounded::Slab::with_capacity(1);
    let claim = slab.claim().unwrap();
    assert!(slab.claim().is_none() && slab.try_alloc([1; 9]).is_err());
    drop(claim);
    let slot = slab.claim().unwrap().write([2; 9]);
    assert_eq!(*slot, [2; 9]);
    // SAFETY: both slots, the freed and the claimed one, belong to this slab.
    unsafe {
        slab.free(slot);
        let cell: *mut SlotCell<[i32; 9]> = slab.claim_ptr().unwrap();
        assert!(slab.claim_ptr().is_none());
        slab.free_ptr(cell);
    }
    assert!(slab.claim().is_some());
}

#[test]
fn slots_are_eight_bytes_and_so_are_options_of_them() {
    assert_eq!(size_of::<Slot<u8>>(), 8);
    assert_eq!(size_of::<Option<Slot<[u64; 100]>>>(), 8);
    assert_eq!(size_of::<SlotCell<u8>>(), 8);
    assert_eq!(size_of::<SlotCell<[u64; 100]>>(), 800);
}

#[test]
fn slots_are_read_and_changed_as_the_value() {
    let slab = bounded::Slab::with_capacity(1);
    let mut slot = slab.alloc(String::from("a"));
    slot.push('b');
    let text: &mut String = slot.as_mut();
    text.push('c');
    let text: &mut String = slot.borrow_mut();
    text.push('d');
    let (one, other): (&String, &String) = (slot.as_ref(), slot.borrow());
    assert_eq!((one.as_str(), other.as_str()), ("abcd", "abcd"));
    assert_eq!(format!("{slot:?}"), "Slot { value: \"abcd\" }");
    // SAFETY: only the second handle is used.
    let text = unsafe { slab.take(Slot::from_ptr(slot.as_ptr())) };
    assert_eq!(text, "abcd");
}

#[test]
fn values_of_any_size_and_alignment() {
    #[repr(align(4096))]
    struct Page(u8);
    fn addresses<T>(make: fn(u8) -> T) -> Vec<usize> {
        let slab = bounded::Slab::with_capacity(10);
        let growing = unbounded::Slab::with_chunk_capacity(3);
        let slots: Vec<_> = (0..10)
            .map(|i| (slab.alloc(make(i)), growing.alloc(make(i))))
            .collect();
        let places = slots
            .iter()
            .flat_map(|(a, b)| [a.as_ptr() as usize, b.as_ptr() as usize]);
        let places: HashSet<usize> = places.collect();
        assert!(places.len() == 20 && places.iter().all(|at| at % align_of::<T>() == 0));
        for (one, other) in slots {
            // SAFETY: each slot belongs to its slab.
            unsafe {
                slab.free(one);
                growing.free(other);
            }
        }
        places.into_iter().collect()
    }
    addresses(|_| ());
    addresses(|i| i);
    addresses(|i| [i; 3]);
    addresses(|i| [u128::from(i); 5]);
    addresses(|i| [i; 100_000]);
    assert!(addresses(Page).iter().all(|at| at % 4096 == 0));
    assert_eq!(Page(1).0, 1);
}

/// A raw slot has no lifetime, so the memory of a slot that is taken outlives its slab.
#[test]
fn a_slot_may_be_read_after_its_slab() {
    let slab = bounded::Slab::with_capacity(10_000);
    let slot = slab.alloc([7u64; 100]);
    let growing = unbounded::Slab::with_chunk_capacity(8);
    let mut other = growing.alloc([8u64; 100]);
    drop((slab, growing));
    let _fills_the_gap = bounded::Slab::<[u64; 100]>::with_capacity(10_000);
    other[0] = 9;
    assert_eq!((*slot, other[0], other[99]), ([7; 100], 9, 8));
}

#[test]
fn slabs_have_nothing_in_common() {
    let slabs: Vec<_> = (0..100).map(|_| bounded::Slab::with_capacity(1)).collect();
    let slots: Vec<_> = slabs
        .iter()
        .zip(0..)
        .map(|(slab, i)| slab.alloc(i))
        .collect();
    assert!(slots.iter().zip(0..).all(|(slot, i)| **slot == i));
    assert!(slabs.iter().all(|slab| slab.try_alloc(0).is_err()));
    for (slab, slot) in slabs.iter().zip(slots) {
        // SAFETY: the slot is of the slab.
        assert_eq!(
            unsafe { slab.take(slot) } as usize,
            slabs.iter().position(|s| std::ptr::eq(s, slab)).unwrap()
        );
    }
}
