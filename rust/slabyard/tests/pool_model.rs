//! Compares pools with models of them: vectors and maps, with drops counted.

use proptest::prelude::*;
use slabyard::{Pool, RcPool, RcSlot, Slot, WeakSlot};
use std::cell::RefCell;
use std::collections::HashMap;

/// Records its number when it is dropped.
struct Said<'d>(&'d RefCell<Vec<u32>>, u32);

impl Drop for Said<'_> {
    fn drop(&mut self) {
        self.0.borrow_mut().push(self.1);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert,
    Claim,
    Drop(usize),
    TakeOut(usize),
    Replace(usize),
    PinAndDrop(usize),
    Forget(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Insert),
        1 => Just(Step::Claim),
        3 => any::<usize>().prop_map(Step::Drop),
        1 => any::<usize>().prop_map(Step::TakeOut),
        1 => any::<usize>().prop_map(Step::Replace),
        1 => any::<usize>().prop_map(Step::PinAndDrop),
        1 => any::<usize>().prop_map(Step::Forget),
    ]
}

const STEPS: usize = if cfg!(miri) { 20 } else { 200 };

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 300 },
        failure_persistence: None,
        ..Default::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_pool_is_a_list_of_boxes(capacity in 1usize..40, steps in prop::collection::vec(step(), 1..STEPS)) {
        let drops = RefCell::new(Vec::new());
        let pool = Pool::bounded(capacity);
        let mut slots: Vec<Slot<'_, Said<'_>>> = Vec::new();
        let mut values: Vec<u32> = Vec::new();
        let (mut next, mut forgotten, mut dropped) = (0, 0, Vec::new());
        for step in steps {
            match step {
                Step::Insert | Step::Claim => {
                    let value = Said(&drops, next);
                    let full = values.len() + forgotten == capacity;
                    let slot = match step {
                        Step::Insert => pool.try_insert(value).map_err(|full| full.into_inner()),
                        _ => match pool.claim() {
                            Some(vacant) => Ok(vacant.write(value)),
                            None => Err(value),
                        },
                    };
                    prop_assert_eq!(slot.is_err(), full);
                    match slot {
                        Ok(slot) => {
                            slots.push(slot);
                            values.push(next);
                        }
                        Err(_) => dropped.push(next),
                    }
                    next += 1;
                }
                _ if slots.is_empty() => {}
                Step::Drop(i) => {
                    let i = i % slots.len();
                    drop(slots.swap_remove(i));
                    dropped.push(values.swap_remove(i));
                }
                Step::TakeOut(i) => {
                    let i = i % slots.len();
                    let value = slots.swap_remove(i).into_inner();
                    prop_assert_eq!(value.1, values[i]);
                    dropped.push(values.swap_remove(i));
                }
                Step::Replace(i) => {
                    let i = i % slots.len();
                    drop(slots[i].replace(Said(&drops, next)));
                    dropped.push(values[i]);
                    values[i] = next;
                    next += 1;
                }
                Step::PinAndDrop(i) => {
                    let i = i % slots.len();
                    drop(slots.swap_remove(i).into_pin());
                    dropped.push(values.swap_remove(i));
                }
                Step::Forget(i) => {
                    let i = i % slots.len();
                    std::mem::forget(slots.swap_remove(i));
                    values.swap_remove(i);
                    forgotten += 1;
                }
            }
            prop_assert_eq!(pool.in_use(), values.len() + forgotten);
            prop_assert!(slots.iter().zip(&values).all(|(slot, value)| slot.1 == *value));
            prop_assert_eq!(&*drops.borrow(), &dropped);
        }
        drop(slots);
        prop_assert_eq!(pool.in_use(), forgotten);
        prop_assert_eq!(drops.borrow().len(), dropped.len() + values.len());
    }

    #[test]
    fn owners_are_counted(steps in prop::collection::vec((0u8..6, any::<usize>()), 1..STEPS)) {
        let drops = RefCell::new(Vec::new());
        let pool = RcPool::unbounded();
        let mut owners: Vec<RcSlot<'_, Said<'_>>> = Vec::new();
        let mut weak: Vec<(u32, WeakSlot<'_, Said<'_>>)> = Vec::new();
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for (next, (kind, i)) in steps.into_iter().enumerate() {
            let next = next as u32;
            match kind {
                0 => {
                    owners.push(pool.insert(Said(&drops, next)));
                    counts.insert(next, 1);
                }
                1 if !owners.is_empty() => {
                    let owner = owners[i % owners.len()].clone();
                    *counts.get_mut(&owner.borrow().1).unwrap() += 1;
                    owners.push(owner);
                }
                2 if !owners.is_empty() => {
                    let owner = owners.swap_remove(i % owners.len());
                    let value = owner.borrow().1;
                    let left = counts.get_mut(&value).unwrap();
                    *left -= 1;
                    if *left == 0 {
                        counts.remove(&value);
                    }
                    drop(owner);
                    prop_assert_eq!(drops.borrow().contains(&value), !counts.contains_key(&value));
                }
                3 if !owners.is_empty() => {
                    let owner = &owners[i % owners.len()];
                    weak.push((owner.borrow().1, owner.downgrade()));
                }
                4 if !weak.is_empty() => {
                    let (value, name) = &weak[i % weak.len()];
                    let owner = name.upgrade();
                    prop_assert_eq!(owner.is_some(), counts.contains_key(value));
                    if let Some(owner) = owner {
                        prop_assert_eq!(owner.borrow().1, *value);
                        *counts.get_mut(value).unwrap() += 1;
                        owners.push(owner);
                    }
                }
                5 if !weak.is_empty() => {
                    weak.swap_remove(i % weak.len());
                }
                _ => {}
            }
            let mut known: Vec<u32> = counts.keys().copied().collect();
            known.extend(weak.iter().map(|(value, _)| *value));
            known.sort_unstable();
            known.dedup();
            prop_assert_eq!(pool.in_use(), known.len());
            prop_assert!(owners.iter().all(|o| o.strong_count() == counts[&o.borrow().1]));
        }
        drop((owners, weak));
        prop_assert_eq!(pool.in_use(), 0);
    }
}
