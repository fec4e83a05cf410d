//! Tests of a map with one owner: drops, panics, and values that refer to the map.

use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};

use slabyard::{DefaultKey, LocalHandleMap, RawKey, SecondaryMap};

/// Counts its drops; one of them panics.
struct Counted<'a> {
    number: u32,
    drops: &'a Cell<u32>,
    panics: bool,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.drops.set(self.drops.get() + 1);
        assert!(!self.panics, "as the test wants");
    }
}

fn filled(drops: &Cell<u32>, panics: u32) -> (LocalHandleMap<Counted<'_>>, Vec<DefaultKey>) {
    let mut map = LocalHandleMap::new();
    let keys = (0..10)
        .map(|number| {
            map.insert(Counted {
                number,
                drops,
                panics: number == panics,
            })
        })
        .collect();
    (map, keys)
}

const NONE: u32 = 100;

#[test]
fn every_value_is_dropped_once() {
    let drops = Cell::new(0);
    let (mut map, keys) = filled(&drops, NONE);
    assert_eq!(map.remove(keys[3]).map(|it| it.number), Some(3));
    assert_eq!(drops.get(), 1);
    map.retain(|_, value| value.number % 2 == 0);
    assert_eq!((drops.get(), map.len()), (5, 5));
    assert_eq!(
        map.drain().next().map(|(key, it)| (key, it.number)),
        Some((keys[0], 0))
    );
    assert_eq!((drops.get(), map.len()), (10, 0));
    let (map, _) = filled(&drops, NONE);
    drop(map);
    assert_eq!(drops.get(), 20);
}

#[test]
fn a_drop_that_panics_keeps_no_other_value_alive() {
    type Way = for<'a> fn(LocalHandleMap<Counted<'a>>);
    let ways: [Way; 3] = [
        |map| drop(map),
        |mut map| map.clear(),
        |mut map| drop(map.drain()),
    ];
    for way in ways {
        let drops = Cell::new(0);
        let (map, _) = filled(&drops, 4);
        assert!(catch_unwind(AssertUnwindSafe(|| way(map))).is_err());
        assert_eq!(drops.get(), 10);
    }
}

#[test]
fn a_drop_that_panics_leaves_the_map_whole() {
    let drops = Cell::new(0);
    let (mut map, keys) = filled(&drops, 4);
    let removed = catch_unwind(AssertUnwindSafe(|| drop(map.remove(keys[4]))));
    assert!(removed.is_err() && map.get(keys[4]).is_none());
    assert_eq!((map.len(), map.iter().count()), (9, 9));
}

#[test]
fn a_leaked_drain_leaves_the_rest() {
    let drops = Cell::new(0);
    let (mut map, keys) = filled(&drops, NONE);
    let mut drain = map.drain();
    drop(drain.next());
    std::mem::forget(drain);
    assert_eq!(
        (map.len(), map.contains(keys[0]), map.contains(keys[1])),
        (9, false, true)
    );
}

#[test]
fn a_leaked_entry_loses_a_slot_and_no_key_comes_twice() {
    let mut map = LocalHandleMap::new();
    let first: DefaultKey = map.insert(1);
    map.remove(first);
    let entry = map.vacant_entry();
    let lost = entry.key();
    std::mem::forget(entry);
    let next = map.insert(2);
    assert_ne!(RawKey::from(next).ordinal(), RawKey::from(lost).ordinal());
    assert!(map.get(lost).is_none() && map.remove(lost).is_none());
    map.shrink_to_fit();
    let again = map.clone();
    assert_eq!((again[next], again.len()), (2, 1));
}

#[test]
fn many_values_are_had_at_once() {
    let mut map = LocalHandleMap::new();
    let keys: [DefaultKey; 5] = std::array::from_fn(|i| map.insert(i.to_string()));
    let [a, b, c] = map.get_disjoint_mut([keys[4], keys[0], keys[2]]).unwrap();
    std::mem::swap(a, b);
    c.push('!');
    a.push('?');
    assert_eq!(
        (&*map[keys[4]], &*map[keys[0]], &*map[keys[2]]),
        ("0?", "4", "2!")
    );
    map.remove(keys[1]);
    assert!(map.get_disjoint_mut([keys[0], keys[1]]).is_none());
    assert!(map.get_disjoint_mut([keys[0], keys[2], keys[0]]).is_none());
    assert!(map.get_disjoint_mut([]).is_some());
    assert_eq!(map.values().count(), 4, "none stays hidden");
    for value in map.values_mut() {
        value.clear();
    }
    assert!(map
        .iter()
        .all(|(key, value)| map.contains(key) && value.is_empty()));
}

#[test]
#[should_panic(expected = "no value has the key DefaultKey(0v1)")]
fn an_index_that_is_stale_says_so() {
    let mut map = LocalHandleMap::new();
    let key = map.insert(1);
    map.remove(key);
    map[key] += 1;
}

#[test]
fn what_is_kept_beside_is_for_the_newest_key_of_a_place() {
    let mut map = LocalHandleMap::new();
    let mut beside = SecondaryMap::new();
    let old: DefaultKey = map.insert(());
    map.remove(old);
    let new = map.insert(());
    assert_eq!(beside.insert(new, 2), None);
    assert_eq!(beside.insert(old, 1), None);
    assert_eq!(
        (beside.get(old), beside.get(new), beside.len()),
        (None, Some(&2), 1)
    );
    assert_eq!(beside.get_or_insert_with(old, || 3), None);
    *beside.get_or_insert_with(new, || 3).unwrap() += 1;
    assert_eq!(
        (beside.insert(new, 5), beside.remove(old), beside[new]),
        (Some(3), None, 5)
    );
    beside.retain(|_, value| *value > 5);
    assert!(beside.is_empty() && beside.iter().next().is_none());
}

#[test]
fn what_is_kept_beside_shrinks_to_its_last() {
    let mut map = LocalHandleMap::new();
    let keys: Vec<_> = (0..100).map(|i| map.insert(i)).collect();
    let mut beside = SecondaryMap::new();
    for key in &keys {
        beside.insert(*key, map[*key]);
    }
    beside.retain(|_, value| *value < 10);
    beside.shrink_to_fit();
    assert!(beside.capacity() < 100 && beside.len() == 10);
    assert_eq!(
        (beside.get(keys[9]), beside.get(keys[10])),
        (Some(&9), None)
    );
    beside.insert(keys[99], 99);
    assert_eq!(beside.get(keys[99]), Some(&99));
    beside.clear();
    beside.shrink_to_fit();
    assert_eq!(beside.capacity(), 0);
}
