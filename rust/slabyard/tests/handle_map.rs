//! Tests what a map for all threads promises, one behaviour in each test.

use std::mem::forget;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use slabyard::handle::{OwnedRef, Ref};
use slabyard::{DefaultKey, HandleMap, RawKey, TakeError};

/// Counts its drops, and has a number, so that a test knows which value was dropped.
struct Counted(u64, Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        assert_ne!(self.0, u64::MAX, "dropped twice");
        self.0 = u64::MAX;
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

fn counted() -> (HandleMap<Counted>, Arc<AtomicUsize>) {
    (HandleMap::new(), Arc::new(AtomicUsize::new(0)))
}

fn drops(count: &AtomicUsize) -> usize {
    count.load(Ordering::SeqCst)
}

#[test]
fn a_key_is_stale_once_its_value_is_removed() {
    let map = HandleMap::new();
    let mut stale: Vec<DefaultKey> = Vec::new();
    for i in 0..if cfg!(miri) { 20 } else { 300 } {
        let key = map.insert(i);
        assert_eq!(*map.get(key).unwrap(), i);
        for old in &stale {
            assert!(map.get(*old).is_none() && !map.contains(*old) && !map.remove(*old));
            assert_eq!(map.take(*old), Err(TakeError::Stale));
        }
        assert_eq!(map.len(), 1);
        assert!(map.remove(key));
        stale.push(key);
    }
    assert!(map.is_empty());
}

#[test]
fn what_never_was_a_key_is_refused() {
    let map = HandleMap::new();
    let other = HandleMap::new();
    let key: DefaultKey = map.insert(1_u64);
    let theirs: DefaultKey = other.insert(2_u64);
    if !cfg!(miri) {
        assert!(map.get(theirs).is_none() && !map.remove(theirs));
    }
    let raw = RawKey::from(key);
    for ordinal in [raw.ordinal(), raw.ordinal() ^ 1, 0, 1 << 20, u32::MAX] {
        for generation in [1, 2, raw.generation(), 7, u32::MAX] {
            let forged = RawKey::new(ordinal, generation).unwrap();
            assert_eq!(map.get(forged.into()).is_some(), forged == raw);
        }
    }
    assert_eq!(
        (*map.get(key).unwrap(), *other.get(theirs).unwrap()),
        (1, 2)
    );
}

#[test]
fn a_removed_value_is_dropped_by_its_last_guard() {
    let (map, count) = counted();
    let key = map.insert(Counted(1, count.clone()));
    let (first, second) = (map.get(key).unwrap(), map.get(key).unwrap());
    assert!(matches!(map.take(key), Err(TakeError::Held)));
    assert!(map.remove(key) && !map.remove(key));
    assert!(map.get(key).is_none() && matches!(map.take(key), Err(TakeError::Stale)));
    assert!(Ref::key(&first) == key && first.0 == 1);
    drop(first);
    assert_eq!((drops(&count), second.0, map.len()), (0, 1, 1));
    drop(second);
    assert_eq!((drops(&count), map.len()), (1, 0));
}

#[test]
fn a_removed_value_without_guards_is_dropped_at_once() {
    let (map, count) = counted();
    let key = map.insert(Counted(1, count.clone()));
    drop(map.get(key));
    assert!(map.remove(key));
    assert_eq!(drops(&count), 1);
    let key = map.insert(Counted(2, count.clone()));
    let value = map.take(key).ok().unwrap();
    assert_eq!((value.0, drops(&count), map.len()), (2, 1, 0));
}

#[test]
fn values_are_dropped_with_the_map() {
    let (map, count) = counted();
    let keys: Vec<_> = (0..150)
        .map(|i| map.insert(Counted(i, count.clone())))
        .collect();
    map.remove(keys[7]);
    drop(map);
    assert_eq!(drops(&count), 150);
}

#[test]
fn a_leaked_guard_delays_the_drop_to_the_end_of_the_map() {
    let (mut map, count) = counted();
    let keys: Vec<_> = (0..4)
        .map(|i| map.insert(Counted(i, count.clone())))
        .collect();
    for key in &keys {
        forget(map.get(*key));
    }
    assert!(map.remove(keys[0]));
    assert_eq!(drops(&count), 0);
    map.get_mut(keys[1]).unwrap().0 = 10;
    let drained: Vec<_> = map.drain().map(|(_, value)| value.0).collect();
    assert_eq!((drained.len(), drops(&count)), (3, 3));
    let again = map.insert(Counted(5, count.clone()));
    assert!(map.contains(again) && !keys.contains(&again));
    drop(map);
    assert_eq!(drops(&count), 5);
}

#[test]
fn a_drop_that_panics_frees_the_slot() {
    struct Bomb(#[allow(dead_code)] Box<u8>);
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("as the test wants");
        }
    }
    let map = HandleMap::new();
    for held in [false, true] {
        let key = map.insert(Bomb(Box::new(1)));
        let guard = held.then(|| map.get(key));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            map.remove(key);
            drop(guard);
        }));
        assert!(panicked.is_err() && map.is_empty() && !map.contains(key));
    }
    assert!(map.try_vacant_entry().is_some());
}

#[test]
fn a_drop_that_panics_at_the_end_keeps_no_other_value_alive() {
    struct Bomb(bool, Arc<AtomicUsize>);
    impl Drop for Bomb {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::SeqCst);
            assert!(!self.0, "as the test wants");
        }
    }
    for drain in [false, true] {
        let count = Arc::new(AtomicUsize::new(0));
        let mut map: HandleMap<Bomb> = HandleMap::new();
        for i in 0..20 {
            map.insert(Bomb(i == 7, count.clone()));
        }
        let panicked = catch_unwind(AssertUnwindSafe(move || {
            if drain {
                drop(map.drain());
            }
        }));
        assert!(panicked.is_err());
        assert_eq!(drops(&count), 20);
    }
}

#[test]
fn the_key_of_an_abandoned_entry_comes_never_again() {
    let map = HandleMap::new();
    let mut told: Vec<DefaultKey> = Vec::new();
    for _ in 0..20 {
        let entry = map.vacant_entry();
        told.push(entry.key());
        assert!(!map.contains(entry.key()));
        drop(entry);
        let made = catch_unwind(AssertUnwindSafe(|| {
            map.insert_with_key(|key| {
                told.push(key);
                panic!("as the test wants")
            })
        }));
        assert!(made.is_err() && map.is_empty());
        let key = map.insert(1);
        assert!(!told.contains(&key) && told.iter().all(|it| map.get(*it).is_none()));
        map.remove(key);
    }
}

/// Few values of this size fit into a slab, so the number of slabs grows from a few to many.
#[test]
fn values_are_found_in_however_many_slabs() {
    const ALL: usize = if cfg!(miri) { 20 } else { 400 };
    let map: HandleMap<[usize; 1024]> = HandleMap::new();
    for count in 0..ALL {
        let mut found: Vec<_> = map.iter().map(|(_, value)| value[0]).collect();
        found.sort_unstable();
        assert!(found.into_iter().eq(0..count));
        map.insert([count; 1024]);
    }
}

#[test]
fn values_are_found_by_all_walks() {
    let mut map = HandleMap::new();
    let keys: Vec<DefaultKey> = (0..200_u64).map(|i| map.insert(i)).collect();
    for key in keys.iter().skip(1).step_by(2) {
        map.remove(*key);
    }
    let mut seen: Vec<u64> = map
        .iter()
        .map(|(key, value)| {
            assert_eq!(key, keys[*value as usize]);
            *value
        })
        .collect();
    seen.sort_unstable();
    assert!(seen.iter().copied().eq((0..200).step_by(2)));
    for (_, value) in &mut map {
        *value += 1000;
    }
    map.retain(|_, value| *value < 1100);
    let mut left = 0;
    map.for_each(|key, value| {
        assert_eq!(key, keys[*value as usize - 1000]);
        left += 1;
    });
    assert_eq!((left, map.len()), (50, 50));
    assert_eq!(map.drain().take(10).count(), 10);
    assert!(map.is_empty(), "the rest was dropped");
    map.insert(1);
    map.clear();
    assert!(map.is_empty());
}

#[test]
fn a_limit_gives_the_value_back() {
    let map: HandleMap<String> = HandleMap::builder().limit(3).exact().build().unwrap();
    let keys: Vec<_> = (0..3).map(|i| map.insert(i.to_string())).collect();
    assert_eq!(
        map.try_insert("more".into()).unwrap_err().into_inner(),
        "more"
    );
    assert!(map.try_vacant_entry().is_none());
    let guard = map.get(keys[0]);
    map.remove(keys[0]);
    assert!(
        map.try_insert("more".into()).is_err(),
        "a held value counts"
    );
    drop(guard);
    assert!(map.try_insert("more".into()).is_ok());
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn guards_are_counted_up_to_their_limit() {
    let map = HandleMap::new();
    let key: DefaultKey = map.insert(1);
    let guards: Vec<_> = (0..65_535).map(|_| map.get(key).unwrap()).collect();
    assert!(catch_unwind(AssertUnwindSafe(|| map.get(key).is_some())).is_err());
    drop(guards);
    assert!(map.get(key).is_some() && map.take(key) == Ok(1));
}

#[test]
fn an_owned_guard_holds_the_map() {
    let (map, count) = counted();
    let map = Arc::new(map);
    let key = map.insert(Counted(1, count.clone()));
    let guard = HandleMap::get_owned(&map, key).unwrap();
    map.remove(key);
    drop(map);
    assert_eq!((drops(&count), guard.0), (0, 1));
    assert!(OwnedRef::key(&guard) == key && OwnedRef::map(&guard).get(key).is_none());
    drop(guard);
    assert_eq!(drops(&count), 1);
}

#[test]
fn a_value_may_use_the_map_in_its_drop() {
    struct Chained(Option<DefaultKey>, std::sync::Weak<HandleMap<Chained>>);
    impl Drop for Chained {
        fn drop(&mut self) {
            if let (Some(next), Some(map)) = (self.0, self.1.upgrade()) {
                assert!(map.remove(next));
            }
        }
    }
    let map: Arc<HandleMap<Chained>> = Arc::new(HandleMap::new());
    let mut last = None;
    for _ in 0..30 {
        last = Some(map.insert(Chained(last, Arc::downgrade(&map))));
    }
    map.remove(last.unwrap());
    assert!(map.is_empty());
}

#[test]
fn sizes_and_alignments_are_kept() {
    #[repr(align(256))]
    struct Wide(u8);
    let (wide, empty) = (HandleMap::new(), HandleMap::new());
    for i in 0..100 {
        let key: DefaultKey = wide.insert(Wide(i));
        let guard = wide.get(key).unwrap();
        assert_eq!(std::ptr::from_ref(&*guard).addr() % 256, 0);
        assert_eq!(guard.0, i);
    }
    let keys: Vec<DefaultKey> = (0..100).map(|_| empty.insert(())).collect();
    assert!(keys.iter().all(|key| empty.remove(*key)));
}
