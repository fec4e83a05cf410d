//! Tests what a map for all threads promises, one behaviour in each test.

use std::mem::forget;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use slabyard::handle::{MappedRef, OwnedRef, Ref};
use slabyard::{CreateError, DefaultKey, GetError, HandleMap, RawKey, TakeError};

/// Counts its drops, and has a number, so that a test knows which value was dropped.
#[derive(Debug)]
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
fn an_owned_guard_holds_the_map() {
    let (map, count) = counted();
    let map = Arc::new(map);
    let key = map.insert(Counted(1, count.clone()));
    let guard = HandleMap::get_owned(&map, key).unwrap();
    map.remove(key);
    drop(map);
    assert_eq!((drops(&count), guard.0), (0, 1));
    assert!(OwnedRef::key(&guard) == key && OwnedRef::owner(&guard).get(key).is_none());
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

/// The number of guards that `get` gives, as the documentation says.
const GUARDS: usize = 64_512;

/// Walks get guards of a value when the program gets no more, and drop it if its key is removed.
#[test]
#[cfg_attr(miri, ignore = "too many guards")]
fn a_value_with_all_guards_is_still_visited() {
    let (map, count) = counted();
    let map = Arc::new(map);
    let key = map.insert(Counted(1, count.clone()));
    let mut guards: Vec<_> = (0..GUARDS).map(|_| map.get(key).unwrap()).collect();
    assert_eq!(map.try_get(key).err(), Some(GetError::TooManyGuards));
    assert!(HandleMap::try_get_owned(&map, key).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| map.get(key))).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| Ref::clone(&guards[0]))).is_err());
    let mut seen = 0;
    map.for_each(|_, value| seen += value.0);
    assert_eq!((seen, map.iter().count(), map.keys().count()), (1, 1, 1));
    map.retain(|_, _| true);
    assert!(map.contains(key) && guards.pop().is_some());
    guards.push(map.try_get(key).unwrap());
    map.retain(|_, _| false);
    assert!(!map.contains(key) && map.try_get(key).err() == Some(GetError::Stale));
    assert_eq!((drops(&count), guards[0].0), (0, 1));
    drop(guards);
    assert_eq!((drops(&count), map.len()), (1, 0));
}

/// Walks that keep their guards end without a panic too.
#[test]
#[cfg_attr(miri, ignore = "too many guards")]
fn walks_leave_out_what_has_every_guard() {
    let (map, count) = counted();
    map.insert(Counted(1, count.clone()));
    let guards: Vec<_> = (0..70_000).map_while(|_| map.values().next()).collect();
    assert_eq!((guards.len(), map.iter().count()), (65_535, 0));
    map.for_each(|_, _| unreachable!());
    map.retain(|_, _| unreachable!());
    map.clear(); // which needs no guard
    assert_eq!((map.keys().count(), drops(&count)), (0, 0));
    drop(guards);
    assert_eq!(drops(&count), 1);
}

/// A value that inserts another one when it is dropped, as long as its family has children to come. It
/// is large, so that a slab has few.
struct Parent(*const HandleMap<Parent>, Arc<Family>, [u64; 1024]);

struct Family {
    drops: AtomicUsize,
    to_come: AtomicUsize,
}

// SAFETY: this thread alone uses the map.
unsafe impl Send for Parent {}
// SAFETY: as above.
unsafe impl Sync for Parent {}

impl Parent {
    fn of(map: *const HandleMap<Parent>, children: usize) -> Self {
        let family = Family {
            drops: AtomicUsize::new(0),
            to_come: AtomicUsize::new(children),
        };
        Self(map, Arc::new(family), [0; 1024])
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        self.1.drops.fetch_add(1, Ordering::SeqCst);
        let next = |left: usize| left.checked_sub(1);
        let to_come = &self.1.to_come;
        if to_come
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, next)
            .is_ok()
        {
            // SAFETY: the map lives until the drop of its last value has ended.
            let map = unsafe { &*self.0 };
            map.insert(Parent(self.0, self.1.clone(), self.2));
        }
    }
}

#[test]
fn clear_removes_what_drops_insert() {
    for children in [3, usize::MAX] {
        let map = HandleMap::new();
        let parent = Parent::of(&map, children);
        let family = parent.1.clone();
        map.insert(parent);
        map.clear(); // ends, however many children there are
        assert!(family.drops.load(Ordering::SeqCst) > 3);
        assert_eq!(map.is_empty(), children == 3);
        family.to_come.store(0, Ordering::SeqCst); // so that the drop of the map ends them
    }
}

#[test]
#[cfg_attr(
    miri,
    ignore = "the value uses the map beside the exclusive borrow of its drop"
)]
fn the_drop_of_a_map_drops_what_drops_insert() {
    for children in [3, usize::MAX] {
        let map = Box::into_raw(Box::new(HandleMap::new()));
        let parent = Parent::of(map, children);
        let family = parent.1.clone();
        // SAFETY: the map is alive, and dropped once.
        unsafe {
            (*map).insert(parent);
            drop(Box::from_raw(map));
        }
        assert!(family.drops.load(Ordering::SeqCst) > 3);
    }
}

#[test]
fn a_guard_of_a_part_keeps_the_whole() {
    let count = Arc::new(AtomicUsize::new(0));
    let map = Arc::new(HandleMap::new());
    let key = map.insert((vec![1, 2, 3], Counted(4, count.clone())));
    let list = Ref::map(map.get(key).unwrap(), |it| it.0.as_slice());
    let owned = OwnedRef::map(HandleMap::get_owned(&map, key).unwrap(), |it| &it.1);
    let none = Ref::filter_map(map.get(key).unwrap(), |it| it.0.get(3)).unwrap_err();
    let three = OwnedRef::filter_map(OwnedRef::clone(MappedRef::whole(&owned)), |it| it.0.get(2));
    let first = Ref::map(Ref::clone(MappedRef::whole(&list)), |it| &it.0[0]);
    let first = MappedRef::map(first, |it| it);
    assert!(Ref::key(MappedRef::whole(&first)) == key && map.remove(key));
    drop((list, Ref::clone(&none), none));
    assert_eq!((*first, *three.unwrap(), owned.0), (1, 3, 4));
    drop(first);
    assert_eq!(drops(&count), 0);
    std::thread::spawn(move || drop(owned)).join().unwrap();
    assert_eq!(drops(&count), 1);
}

#[test]
fn a_clone_of_a_guard_is_counted() {
    let (map, count) = counted();
    let key = map.insert(Counted(1, count.clone()));
    let guard = map.get(key).unwrap();
    map.remove(key);
    let other = Ref::clone(&guard);
    drop(guard);
    assert_eq!((other.0, drops(&count)), (1, 0));
    drop(other);
    assert_eq!(drops(&count), 1);
}

#[test]
fn a_map_is_made_of_values() {
    let mut map: HandleMap<u32> = (0..100).collect();
    map.extend(100..150);
    map.values_mut().for_each(|it| *it *= 2);
    let mut all: Vec<_> = map.values().map(|it| *it).collect();
    all.sort_unstable();
    assert!(all.into_iter().eq((0..150).map(|it| it * 2)));
    assert!(map.keys().all(|key| map.contains(key)));
}

#[test]
fn an_exact_limit_needs_a_limit() {
    let exact = HandleMap::<u8>::builder().exact().build();
    assert_eq!(exact.err(), Some(CreateError::Unsupported));
    let cache = slabyard::Cache::<u8>::builder().exact().build();
    assert_eq!(cache.err(), Some(CreateError::Unsupported));
    assert!(HandleMap::<u8>::builder().exact().limit(1).build().is_ok());
}
