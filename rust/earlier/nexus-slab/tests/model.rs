//! Compares slabs and counted slots with models of them: vectors and maps, with drops counted.

use nexus_slab::{bounded, unbounded, Alloc, Slot};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;

thread_local! {
    static DROPPED: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// Records its number when it is dropped.
#[derive(Debug)]
pub struct Said(u32);

impl Drop for Said {
    fn drop(&mut self) {
        DROPPED.with_borrow_mut(|dropped| dropped.push(self.0));
    }
}

impl Clone for Said {
    /// A clone has a number of its own.
    fn clone(&self) -> Self {
        Said(self.0 + CLONED)
    }
}

/// The numbers of clones start here.
const CLONED: u32 = 1 << 20;

fn dropped() -> Vec<u32> {
    DROPPED.with_borrow(Vec::clone)
}

mod counted {
    nexus_slab::bounded_rc_allocator!(super::Said);
}

const CAPACITY: usize = 20;

#[derive(Clone, Debug)]
enum Step {
    Alloc,
    Claim,
    AbandonClaim,
    Free(usize),
    Take(usize),
    Replace(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Alloc),
        2 => Just(Step::Claim),
        1 => Just(Step::AbandonClaim),
        4 => any::<usize>().prop_map(Step::Free),
        1 => any::<usize>().prop_map(Step::Take),
        1 => any::<usize>().prop_map(Step::Replace),
    ]
}

/// The functions of both kinds of slabs that the test uses.
trait Slab {
    fn put(&self, value: Said, by_claim: bool) -> Result<Slot<Said>, Said>;
    fn abandon_claim(&self);
    unsafe fn free(&self, slot: Slot<Said>);
    unsafe fn take(&self, slot: Slot<Said>) -> Said;
}

impl Slab for bounded::Slab<Said> {
    fn put(&self, value: Said, by_claim: bool) -> Result<Slot<Said>, Said> {
        if !by_claim {
            return self.try_alloc(value).map_err(|full| full.into_inner());
        }
        match self.claim() {
            Some(claim) => Ok(claim.write(value)),
            None => Err(value),
        }
    }
    fn abandon_claim(&self) {
        drop(self.claim());
    }
    unsafe fn free(&self, slot: Slot<Said>) {
        // SAFETY: as the caller says.
        unsafe { self.free(slot) }
    }
    unsafe fn take(&self, slot: Slot<Said>) -> Said {
        // SAFETY: as the caller says.
        unsafe { self.take(slot) }
    }
}

impl Slab for unbounded::Slab<Said> {
    fn put(&self, value: Said, by_claim: bool) -> Result<Slot<Said>, Said> {
        Ok(if by_claim {
            self.claim().write(value)
        } else {
            self.alloc(value)
        })
    }
    fn abandon_claim(&self) {
        drop(self.claim());
    }
    unsafe fn free(&self, slot: Slot<Said>) {
        // SAFETY: as the caller says.
        unsafe { self.free(slot) }
    }
    unsafe fn take(&self, slot: Slot<Said>) -> Said {
        // SAFETY: as the caller says.
        unsafe { self.take(slot) }
    }
}

/// Applies the steps to a slab with room for `capacity` values, and compares it with the model
/// after each step.
fn compare(slab: &impl Slab, capacity: usize, steps: Vec<Step>) -> Result<(), TestCaseError> {
    DROPPED.take();
    let mut slots: Vec<(Slot<Said>, u32)> = Vec::new();
    let mut expected = Vec::new();
    for (step, next) in steps.into_iter().zip(0u32..) {
        match step {
            Step::Alloc | Step::Claim => {
                let room = slots.len() < capacity;
                match slab.put(Said(next), matches!(step, Step::Claim)) {
                    Ok(slot) => {
                        prop_assert!(room);
                        prop_assert!(slots.iter().all(|(it, _)| it.as_ptr() != slot.as_ptr()));
                        slots.push((slot, next));
                    }
                    Err(value) => {
                        prop_assert!(!room && value.0 == next);
                        expected.push(next);
                    }
                }
            }
            Step::AbandonClaim => slab.abandon_claim(),
            Step::Free(_) | Step::Take(_) | Step::Replace(_) if slots.is_empty() => {}
            Step::Free(at) => {
                let (slot, value) = slots.swap_remove(at % slots.len());
                // SAFETY: the slot is of this slab.
                unsafe { slab.free(slot) };
                expected.push(value);
            }
            Step::Take(at) => {
                let (slot, value) = slots.swap_remove(at % slots.len());
                // SAFETY: the slot is of this slab.
                let taken = unsafe { slab.take(slot) };
                prop_assert!(taken.0 == value && !dropped().contains(&value));
                expected.push(value);
            }
            Step::Replace(at) => {
                let at = at % slots.len();
                *slots[at].0 = Said(next);
                expected.push(std::mem::replace(&mut slots[at].1, next));
            }
        }
        prop_assert!(slots.iter().all(|(slot, value)| slot.0 == *value));
        prop_assert_eq!(&dropped(), &expected);
    }
    for (slot, _) in slots {
        // SAFETY: the slot is of this slab.
        unsafe { slab.free(slot) };
    }
    Ok(())
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..Default::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_bounded_slab_is_a_list_of_boxes(capacity in 1usize..40, steps in prop::collection::vec(step(), 1..200)) {
        compare(&bounded::Slab::with_capacity(capacity), capacity, steps)?;
    }

    #[test]
    fn an_unbounded_slab_is_a_list_of_boxes(chunk in 1usize..40, steps in prop::collection::vec(step(), 1..200)) {
        compare(&unbounded::Slab::with_chunk_capacity(chunk), usize::MAX, steps)?;
    }

    #[test]
    fn names_of_a_counted_slot_are_counted(steps in prop::collection::vec((0u8..8, any::<usize>()), 1..200)) {
        if !counted::Allocator::is_initialized() {
            counted::Allocator::builder().capacity(CAPACITY).build().unwrap();
        }
        DROPPED.take();
        let mut owners: Vec<counted::RcSlot> = Vec::new();
        let mut weak: Vec<(u32, counted::WeakSlot)> = Vec::new();
        // The number of owners of each value.
        let mut strong: HashMap<u32, u32> = HashMap::new();
        // The number of taken slots: those with an owner or a weak reference.
        let names = |strong: &HashMap<u32, u32>, weak: &[(u32, counted::WeakSlot)]| {
            let mut known: Vec<u32> = strong.keys().copied().collect();
            known.extend(weak.iter().map(|(value, _)| *value));
            known.sort_unstable();
            known.dedup();
            known.len()
        };
        for ((kind, at), next) in steps.into_iter().zip(0u32..) {
            match kind {
                0 | 1 => {
                    let room = names(&strong, &weak) < CAPACITY;
                    match counted::RcSlot::try_new(Said(next)) {
                        Ok(owner) => {
                            prop_assert!(room);
                            owners.push(owner);
                            strong.insert(next, 1);
                        }
                        Err(full) => prop_assert!(!room && full.into_inner().0 == next),
                    }
                }
                2 if !owners.is_empty() => {
                    let owner = owners[at % owners.len()].clone();
                    *strong.get_mut(&owner.0).unwrap() += 1;
                    owners.push(owner);
                }
                3 if !owners.is_empty() => {
                    let owner = owners.swap_remove(at % owners.len());
                    let value = owner.0;
                    let left = strong.get_mut(&value).unwrap();
                    *left -= 1;
                    if *left == 0 {
                        strong.remove(&value);
                    }
                    drop(owner);
                    prop_assert_eq!(dropped().contains(&value), !strong.contains_key(&value));
                }
                4 if !owners.is_empty() => {
                    let owner = &owners[at % owners.len()];
                    weak.push((owner.0, owner.downgrade()));
                }
                5 if !weak.is_empty() => {
                    let (value, name) = &weak[at % weak.len()];
                    let owner = name.upgrade();
                    prop_assert_eq!(owner.is_some(), strong.contains_key(value));
                    if let Some(owner) = owner {
                        *strong.get_mut(value).unwrap() += 1;
                        owners.push(owner);
                    }
                }
                6 if !weak.is_empty() => drop(weak.swap_remove(at % weak.len())),
                7 if !owners.is_empty() => {
                    let at = at % owners.len();
                    let value = owners[at].0;
                    let only = owners[at].strong_count() == 1 && owners[at].weak_count() == 0;
                    let room = names(&strong, &weak) < CAPACITY;
                    prop_assert_eq!(owners[at].get_mut().is_some(), only);
                    let changed = owners[at].try_make_mut().map(|it| std::mem::replace(&mut it.0, next));
                    prop_assert_eq!(changed.is_ok(), only || room);
                    if let Ok(before) = changed {
                        prop_assert_eq!(before, if only { value } else { value + CLONED });
                        let left = strong.get_mut(&value).unwrap();
                        *left -= 1;
                        if *left == 0 {
                            strong.remove(&value);
                        }
                        strong.insert(next, 1);
                    }
                }
                _ => {}
            }
            for owner in &owners {
                let known = weak.iter().filter(|(value, _)| *value == owner.0).count();
                prop_assert_eq!(owner.strong_count(), strong[&owner.0]);
                prop_assert_eq!(owner.weak_count() as usize, known);
            }
            for (value, name) in &weak {
                prop_assert_eq!(name.strong_count(), strong.get(value).copied().unwrap_or(0));
                prop_assert_eq!(name.weak_count() as usize, weak.iter().filter(|(it, _)| it == value).count());
            }
        }
        let left: Vec<u32> = strong.into_keys().collect();
        drop((owners, weak));
        prop_assert!(left.iter().all(|value| dropped().contains(value)));
        let all = [(); CAPACITY].map(|()| counted::RcSlot::try_new(Said(0)));
        prop_assert!(all.iter().all(Result::is_ok));
    }
}
