//! Compares slabs with models of them: vectors of values, with drops counted.

use nexus_slab_2::{bounded, byte, unbounded};
use proptest::prelude::*;
use std::cell::RefCell;

thread_local! {
    static DROPPED: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// Records its number when it is dropped.
#[derive(Debug)]
struct Said(u32);

impl Drop for Said {
    fn drop(&mut self) {
        DROPPED.with_borrow_mut(|dropped| dropped.push(self.0));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Alloc,
    Claim,
    AbandonClaim,
    Free(usize),
    Take(usize),
    Pin(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Alloc),
        2 => Just(Step::Claim),
        1 => Just(Step::AbandonClaim),
        4 => any::<usize>().prop_map(Step::Free),
        1 => any::<usize>().prop_map(Step::Take),
        1 => any::<usize>().prop_map(Step::Pin),
    ]
}

/// Applies the steps to a slab with room for `$capacity` values, and compares it with the model
/// after each step. It is a macro because the handles of the kinds of slabs have no type in common.
macro_rules! compare {
    ($slab:expr, $capacity:expr, $steps:expr, $put:expr, $claim:expr) => {{
        let (slab, capacity) = (&$slab, $capacity);
        DROPPED.take();
        let mut slots = Vec::new();
        let mut expected = Vec::new();
        for (step, next) in $steps.into_iter().zip(0u32..) {
            let at = |at: usize| at % slots.len().max(1);
            match step {
                Step::Alloc | Step::Claim => {
                    let room = slots.len() < capacity;
                    let put = match step {
                        Step::Alloc => $put(slab, Said(next)),
                        _ => $claim(slab).map(|claim| claim.write(Said(next))),
                    };
                    prop_assert_eq!(put.is_some(), room);
                    match put {
                        Some(slot) => slots.push((slot, next)),
                        None if matches!(step, Step::Alloc) => expected.push(next),
                        None => {}
                    }
                }
                Step::AbandonClaim => drop($claim(slab)),
                _ if slots.is_empty() => {}
                Step::Free(which) => {
                    let (slot, value) = slots.swap_remove(at(which));
                    slab.free(slot);
                    expected.push(value);
                }
                Step::Take(which) => {
                    let (slot, value) = slots.swap_remove(at(which));
                    prop_assert_eq!(slab.take(slot).0, value);
                    expected.push(value);
                }
                Step::Pin(which) => {
                    let (slot, value) = slots.swap_remove(at(which));
                    let pinned = slot.into_pinned();
                    prop_assert_eq!(pinned.0, value);
                    slab.free_pinned(pinned);
                    expected.push(value);
                }
            }
            prop_assert!(slots.iter().all(|(slot, value)| slot.0 == *value));
            prop_assert_eq!(&DROPPED.with_borrow(Vec::clone), &expected);
        }
        slots.into_iter().for_each(|(slot, _)| slab.free(slot));
    }};
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..if cfg!(miri) { 20 } else { 200 })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 300 },
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn a_bounded_slab_is_a_list_of_boxes(capacity in 1usize..40, steps in steps()) {
        // SAFETY: the slots are given back.
        let slab = unsafe { bounded::Slab::with_capacity(capacity) };
        let put = |slab: &bounded::Slab<_>, value| slab.try_alloc(value).ok();
        compare!(slab, capacity, steps, put, bounded::Slab::claim);
    }

    #[test]
    fn an_unbounded_slab_is_a_list_of_boxes(chunk in 1usize..40, steps in steps()) {
        // SAFETY: as before.
        let slab = unsafe { unbounded::Slab::with_chunk_capacity(chunk) };
        let put = |slab: &unbounded::Slab<_>, value| Some(slab.alloc(value));
        let claim = |slab| Some(unbounded::Slab::claim(slab));
        compare!(slab, usize::MAX, steps, put, claim);
    }

    #[test]
    fn a_byte_slab_is_a_list_of_boxes(capacity in 1usize..40, steps in steps()) {
        // SAFETY: as before.
        let slab = unsafe { byte::bounded::Slab::<16>::with_capacity(capacity) };
        let put = |slab: &byte::bounded::Slab<16>, value| slab.try_alloc(value).ok();
        compare!(slab, capacity, steps, put, byte::bounded::Slab::try_claim);
    }

    #[test]
    fn a_growing_byte_slab_is_a_list_of_boxes(chunk in 1usize..40, steps in steps()) {
        // SAFETY: as before.
        let slab = unsafe { byte::unbounded::Slab::<16>::with_chunk_capacity(chunk) };
        let put = |slab: &byte::unbounded::Slab<16>, value| Some(slab.alloc(value));
        let claim = |slab| Some(byte::unbounded::Slab::claim(slab));
        compare!(slab, usize::MAX, steps, put, claim);
    }
}
