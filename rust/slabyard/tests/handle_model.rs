//! Compares maps with a table of the standard library during random operations, and retries all
//! stale keys.
#![cfg(all(not(miri), feature = "std"))]

use std::collections::{BTreeMap, HashSet};

use proptest::collection::vec;
use proptest::prelude::*;
use slabyard::{
    new_key_type, DefaultKey, HandleMap, LocalHandleMap, RawKey, SecondaryMap, SparseSecondaryMap,
};

new_key_type! { struct Name; }

#[derive(Clone, Debug)]
enum Step {
    Insert,
    InsertWithKey,
    Abandon,
    Remove(usize),
    Take(usize),
    Hold(usize),
    LetGo(usize),
    Change(usize),
    Disjoint(usize, usize),
    Retain(u64),
    Shrink(usize),
    Clear,
    Drain(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let any = || any::<usize>();
    prop_oneof![
        8 => Just(Step::Insert),
        2 => Just(Step::InsertWithKey),
        1 => Just(Step::Abandon),
        6 => any().prop_map(Step::Remove),
        2 => any().prop_map(Step::Take),
        2 => any().prop_map(Step::Hold),
        2 => any().prop_map(Step::LetGo),
        2 => any().prop_map(Step::Change),
        2 => (any(), any()).prop_map(|(one, other)| Step::Disjoint(one, other)),
        1 => (1..5_u64).prop_map(Step::Retain),
        1 => (0..50_usize).prop_map(Step::Shrink),
        1 => Just(Step::Clear),
        1 => (0..10_usize).prop_map(Step::Drain),
    ]
}

/// The live values by their keys, and all keys so far.
struct Model<K> {
    live: BTreeMap<K, u64>,
    all: Vec<K>,
    next: u64,
}

impl<K: Ord + Copy + std::hash::Hash + Eq> Model<K> {
    fn new() -> Self {
        Self {
            live: BTreeMap::new(),
            all: Vec::new(),
            next: 0,
        }
    }

    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn add(&mut self, key: K) {
        self.all.push(key);
        self.live.insert(key, self.next);
    }

    fn pick(&self, at: usize) -> Option<K> {
        (!self.all.is_empty()).then(|| self.all[at % self.all.len()])
    }

    fn keys_never_come_twice(&self) {
        let distinct: HashSet<_> = self.all.iter().collect();
        assert_eq!(distinct.len(), self.all.len());
    }
}

fn local(steps: Vec<Step>) {
    let mut map = LocalHandleMap::<Box<u64>, Name>::with_key();
    let mut model = Model::new();
    let (mut dense, mut sparse) = (SecondaryMap::new(), SparseSecondaryMap::new());
    for step in steps {
        match step {
            Step::Insert | Step::Hold(_) | Step::LetGo(_) => {
                let value = model.next();
                let key = map.insert(Box::new(value));
                model.add(key);
                assert_eq!(
                    (dense.insert(key, value), sparse.insert(key, value)),
                    (None, None)
                );
            }
            Step::InsertWithKey => {
                let value = model.next();
                let mut told = None;
                let key = map.insert_with_key(|key| {
                    told = Some(key);
                    Box::new(value)
                });
                assert_eq!(told, Some(key));
                model.add(key);
            }
            Step::Abandon => {
                let key = map.vacant_entry().key();
                model.all.push(key);
            }
            Step::Remove(at) | Step::Take(at) => {
                if let Some(key) = model.pick(at) {
                    assert_eq!(map.remove(key), model.live.remove(&key).map(Box::new));
                }
            }
            Step::Change(at) => {
                if let Some(key) = model.pick(at) {
                    let (ours, theirs) = (map.get_mut(key), model.live.get_mut(&key));
                    assert_eq!(ours.is_some(), theirs.is_some());
                    if let (Some(ours), Some(theirs)) = (ours, theirs) {
                        **ours += 1 << 32;
                        *theirs += 1 << 32;
                    }
                }
            }
            Step::Disjoint(one, other) => {
                if let (Some(one), Some(other)) = (model.pick(one), model.pick(other)) {
                    let both = model.live.contains_key(&one) && model.live.contains_key(&other);
                    match map.get_disjoint_mut([one, other]) {
                        Some([first, second]) => {
                            assert!(both && one != other);
                            std::mem::swap(first, second);
                            let (a, b) = (model.live[&one], model.live[&other]);
                            model.live.insert(one, b);
                            model.live.insert(other, a);
                        }
                        None => assert!(!both || one == other),
                    }
                }
            }
            Step::Retain(n) => {
                map.retain(|_, value| **value % n != 0);
                model.live.retain(|_, value| *value % n != 0);
            }
            Step::Shrink(capacity) => map.shrink_to(capacity),
            Step::Clear => {
                map.clear();
                model.live.clear();
            }
            Step::Drain(count) => {
                for (key, value) in map.drain().take(count) {
                    assert_eq!(model.live.remove(&key), Some(*value));
                }
                model.live.clear();
            }
        }
        assert_eq!(map.len(), model.live.len());
        for key in &model.all {
            assert_eq!(map.get(*key).map(|it| **it), model.live.get(key).copied());
            assert_eq!(dense.get(*key), sparse.get(*key));
        }
    }
    model.keys_never_come_twice();
    let ours: BTreeMap<Name, u64> = map.iter().map(|(key, value)| (key, **value)).collect();
    assert_eq!(ours, model.live);
    let copy = map.clone();
    assert!(copy.iter().eq(map.iter()) && copy.keys().len() == map.len());
}

fn concurrent(steps: Vec<Step>) {
    let mut map = HandleMap::<Box<u64>, Name>::with_key();
    let mut model = Model::new();
    let mut held: Vec<(Name, u64)> = Vec::new();
    for steps in steps.chunks(40) {
        // Guards live until a step needs the map exclusively.
        let mut guards = Vec::new();
        for step in steps {
            match *step {
                Step::Insert | Step::Shrink(_) => {
                    let value = model.next();
                    model.add(map.insert(Box::new(value)));
                }
                Step::InsertWithKey => {
                    let value = model.next();
                    let key = map.insert_with_key(|_| Box::new(value));
                    model.add(key);
                }
                Step::Abandon => model.all.push(map.vacant_entry().key()),
                Step::Remove(at) | Step::Change(at) => {
                    if let Some(key) = model.pick(at) {
                        assert_eq!(map.remove(key), model.live.remove(&key).is_some());
                    }
                }
                Step::Take(at) => {
                    if let Some(key) = model.pick(at) {
                        let is_held = held.iter().any(|(it, _)| *it == key);
                        match map.take(key) {
                            Ok(value) => {
                                assert!(!is_held);
                                assert_eq!(model.live.remove(&key), Some(*value));
                            }
                            Err(error) => assert_eq!(
                                error == slabyard::TakeError::Held,
                                model.live.contains_key(&key) && is_held
                            ),
                        }
                    }
                }
                Step::Hold(at) | Step::Disjoint(at, _) => {
                    if let Some(key) = model.pick(at) {
                        if let Some(guard) = map.get(key) {
                            held.push((key, **guard));
                            guards.push(guard);
                        }
                    }
                }
                Step::LetGo(at) => {
                    if !guards.is_empty() {
                        let at = at % guards.len();
                        let (key, value) = held.swap_remove(at);
                        let guard = guards.swap_remove(at);
                        assert_eq!((slabyard::handle::Ref::key(&guard), **guard), (key, value));
                    }
                }
                Step::Retain(n) => {
                    map.retain(|_, value| **value % n != 0);
                    model.live.retain(|_, value| *value % n != 0);
                }
                Step::Clear | Step::Drain(_) => {
                    map.clear();
                    model.live.clear();
                }
            }
            for key in &model.all {
                assert_eq!(map.get(*key).map(|it| **it), model.live.get(key).copied());
            }
            for ((_, value), guard) in held.iter().zip(&guards) {
                assert_eq!(***guard, *value);
            }
        }
        drop(guards);
        held.clear();
        assert_eq!(map.len(), model.live.len());
        let ours: BTreeMap<Name, u64> = map.iter_mut().map(|(key, value)| (key, **value)).collect();
        assert_eq!(ours, model.live);
    }
    model.keys_never_come_twice();
    let drained: BTreeMap<Name, u64> = map.drain().map(|(key, value)| (key, *value)).collect();
    assert_eq!(drained, model.live);
    assert!(map.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn a_local_map_is_a_table(steps in vec(step(), 0..200)) {
        local(steps);
    }

    #[test]
    fn a_map_of_all_threads_is_a_table(steps in vec(step(), 0..200)) {
        concurrent(steps);
    }

    #[test]
    fn any_bits_may_be_a_key(bits in any::<u64>(), near in 0..100_u64) {
        let mut local = LocalHandleMap::new();
        let map = HandleMap::new();
        let keys: Vec<DefaultKey> = (0..10).map(|i| local.insert(i)).collect();
        let others: Vec<DefaultKey> = (0..10).map(|i| map.insert(i)).collect();
        for bits in [bits, bits & 0xf_0000_000f, RawKey::from(others[0]).to_bits() ^ near] {
            let Some(key) = RawKey::from_bits(bits).map(DefaultKey::from) else { continue };
            prop_assert_eq!(local.contains(key), keys.contains(&key));
            prop_assert_eq!(map.contains(key), others.contains(&key));
            prop_assert_eq!(map.get(key).is_some(), others.contains(&key));
        }
    }
}

#[cfg(feature = "serde")]
mod serial {
    use super::*;

    #[test]
    fn a_map_that_was_written_is_read_with_its_keys() {
        let mut map = LocalHandleMap::new();
        let keys: Vec<DefaultKey> = (0..10).map(|i| map.insert(i)).collect();
        map.remove(keys[3]);
        map.remove(keys[9]);
        map.shrink_to_fit();
        let text = serde_json::to_string(&(&map, &keys)).unwrap();
        let (mut again, names): (LocalHandleMap<i32>, Vec<DefaultKey>) =
            serde_json::from_str(&text).unwrap();
        assert_eq!(names, keys);
        assert!(again.iter().eq(map.iter()));
        let next = [again.insert(10), again.insert(11)];
        assert!(next.iter().all(|key| !keys.contains(key)));
        assert!(again.get(keys[3]).is_none() && again.get(keys[9]).is_none());
    }

    #[test]
    fn what_is_no_map_is_refused() {
        let read = |text| serde_json::from_str::<LocalHandleMap<i32>>(text);
        assert!(read(r#"{"start":1,"slots":[[1,5],[0,null],[7,null]]}"#).is_ok());
        assert!(read(r#"{"start":1,"slots":[[0,5]]}"#).is_err());
        assert!(read(r#"{"start":0,"slots":[]}"#).is_err());
        assert!(serde_json::from_str::<DefaultKey>("5").is_err());
    }

    #[test]
    fn secondary_maps_are_written_and_read() {
        let mut map = LocalHandleMap::new();
        let (mut dense, mut sparse) = (SecondaryMap::new(), SparseSecondaryMap::new());
        for i in 0..5_i32 {
            let key: DefaultKey = map.insert(());
            dense.insert(key, i);
            sparse.insert(key, i);
        }
        let text = serde_json::to_string(&(&dense, &sparse)).unwrap();
        let (d, s): (
            SecondaryMap<DefaultKey, i32>,
            SparseSecondaryMap<DefaultKey, i32>,
        ) = serde_json::from_str(&text).unwrap();
        assert!(d.iter().eq(dense.iter()));
        assert!(map
            .keys()
            .all(|key| s.get(key) == sparse.get(key) && s.contains(key)));
    }
}
