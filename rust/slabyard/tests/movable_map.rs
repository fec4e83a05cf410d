//! Tests what a map promises whose values move, one behaviour in each test.
#![cfg(not(miri))]

use std::mem::forget;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use slabyard::{
    caches, thread_flush, DefaultKey, GetError, HandleMap, MovableMap, RawKey, TakeError,
};

const COUNT: usize = 20_000;
const ONE_IN: usize = 20;

/// Owns memory, and is large enough that few values fill many slabs.
#[derive(Debug)]
struct Session(usize, String, [u8; 100]);

impl Session {
    fn new(number: usize) -> Self {
        Self(number, format!("user {number}"), [number as u8; 100])
    }

    fn verify(&self, number: usize) {
        assert_eq!((self.0, &self.1), (number, &format!("user {number}")));
        assert_eq!(self.2, [number as u8; 100]);
    }
}

/// A map of which one value in twenty is left, and the keys of these.
fn sparse(name: &str) -> (MovableMap<Session>, Vec<(usize, DefaultKey)>) {
    let map = HandleMap::builder().name(name).build_movable().unwrap();
    let all: Vec<_> = (0..COUNT)
        .map(|it| (it, map.insert(Session::new(it))))
        .collect();
    let (left, gone): (Vec<_>, Vec<_>) = all.into_iter().partition(|(it, _)| it % ONE_IN == 0);
    gone.iter().for_each(|(_, key)| assert!(map.remove(*key)));
    thread_flush();
    (map, left)
}

/// Nothing moves while a test is in `while_still`. The other tests wait for that.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(|it| it.into_inner())
}

/// The bytes of slabs that became empty because values moved, whoever moved them: a pass may have.
fn emptied(name: &str) -> u64 {
    let all = caches();
    let (_, stats) = all.iter().find(|(_, it)| it.name == name).unwrap();
    stats.move_bytes
}

/// Another thread may be moving values just then, so this tries more than once.
fn compact<T>(map: &MovableMap<T>, name: &str) -> u64 {
    for _ in 0..20 {
        map.compact(usize::MAX, u64::MAX);
    }
    emptied(name)
}

#[test]
fn memory_follows_what_is_live() {
    let _alone = one_at_a_time();
    let (map, left) = sparse("follows");
    assert!(compact(&map, "follows") > (COUNT * size_of::<Session>() / 2) as u64);
    for (number, key) in &left {
        map.get(*key).unwrap().verify(*number);
    }
    let mut found: Vec<_> = map.iter().map(|(key, it)| (it.0, key)).collect();
    found.sort();
    assert_eq!(found, left);
    assert_eq!((map.len(), map.keys().count()), (left.len(), left.len()));
    let (number, key) = left[3];
    map.take(key).unwrap().verify(number);
}

/// A trim folds the words of few values away. Whoever asks next finds the values.
#[test]
fn values_are_found_after_a_trim_whoever_asks() {
    let _alone = one_at_a_time();
    let (map, left) = sparse("folded");
    let trim = || while map.trim() > 0 {};
    for (number, key) in left.iter().step_by(7) {
        trim();
        map.get(*key).unwrap().verify(*number);
    }
    trim();
    assert_eq!(map.keys().count(), left.len());
    trim();
    map.for_each(|_, it| it.verify(it.0));
    trim();
    for (number, key) in left.iter().step_by(2) {
        map.take(*key).unwrap().verify(*number);
    }
    trim();
    assert!(left.iter().step_by(2).all(|(_, key)| !map.remove(*key)));
    map.retain(|_, it| it.0 % 3 == 0);
    trim();
    map.clear();
    assert_eq!(map.len(), 0);
}

#[test]
fn a_map_that_was_trimmed_drops_its_values() {
    let _alone = one_at_a_time();
    let shared = Arc::new(());
    let map = MovableMap::new();
    let keys: Vec<_> = (0..COUNT)
        .map(|_| map.insert((shared.clone(), [0u8; 100])))
        .collect();
    for (i, key) in keys.iter().enumerate() {
        assert!(i % ONE_IN == 0 || map.remove(*key));
    }
    thread_flush();
    map.trim();
    assert_eq!(Arc::strong_count(&shared), COUNT / ONE_IN + 1);
    drop(map);
    assert_eq!(Arc::strong_count(&shared), 1);
}

#[test]
fn a_guard_keeps_its_value_where_it_is() {
    let _alone = one_at_a_time();
    let (map, left) = sparse("held");
    let held: Vec<_> = left.iter().step_by(100).collect();
    let guards: Vec<_> = held.iter().map(|(_, key)| map.get(*key).unwrap()).collect();
    let places: Vec<_> = guards.iter().map(|it| std::ptr::from_ref(&**it)).collect();
    assert!(compact(&map, "held") > 0);
    for ((guard, place), (number, _)) in guards.iter().zip(&places).zip(held) {
        assert_eq!(std::ptr::from_ref(&**guard), *place);
        guard.verify(*number);
    }
}

#[test]
fn nothing_moves_while_a_map_is_still() {
    let _alone = one_at_a_time();
    let (mut map, left) = sparse("still");
    let (other, _) = sparse("other");
    let inserted = map.while_still(|map| {
        let before: Vec<_> = left
            .iter()
            .map(|it| std::ptr::from_ref(map.get(it.1).unwrap()))
            .collect();
        let so_far = emptied("other");
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(compact(&other, "other"), so_far));
        });
        let mut inner: MovableMap<u8> = MovableMap::new();
        inner.while_still(|_| ());
        slabyard::trim();
        for ((number, key), place) in left.iter().zip(before) {
            let value = map.get_mut(*key).unwrap();
            assert_eq!(std::ptr::from_ref(&*value), place);
            value.verify(*number);
            value.1.push('!');
        }
        assert!(map.remove(left[0].1) && map.get(left[0].1).is_none() && !map.remove(left[0].1));
        map.insert(Session::new(7))
    });
    assert!(compact(&map, "still") > 0 && compact(&other, "other") > 0);
    map.get(inserted).unwrap().verify(7);
    let (number, key) = left[1];
    assert_eq!(map.get(key).unwrap().1, format!("user {number}!"));
    let panicked = catch_unwind(AssertUnwindSafe(|| map.while_still(|_| panic!("enough"))));
    assert!(panicked.is_err());
    let (after, _) = sparse("after");
    assert!(compact(&after, "after") > 0, "a panic ends the read guard");
}

/// Counts its drops.
#[derive(Debug)]
struct Counted(u64, Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        assert_ne!(self.0, u64::MAX, "dropped twice");
        let number = std::mem::replace(&mut self.0, u64::MAX);
        self.1.fetch_add(1, Ordering::SeqCst);
        assert_ne!(number, 13, "unlucky");
    }
}

#[test]
fn keys_and_guards_are_those_of_a_handle_map() {
    let drops = Arc::new(AtomicUsize::new(0));
    let map = MovableMap::new();
    let other: MovableMap<Counted> = MovableMap::new();
    let key: DefaultKey = map.insert(Counted(1, drops.clone()));
    assert!(map.contains(key) && !other.contains(key));
    assert!(other.get(key).is_none() && !other.remove(key));
    let guard = map.get(key).unwrap();
    assert_eq!(slabyard::handle::Ref::key(&guard), key);
    assert_eq!(map.take(key).unwrap_err(), TakeError::Held);
    assert!(map.remove(key) && !map.remove(key) && map.get(key).is_none() && !map.contains(key));
    assert_eq!(
        (guard.0, drops.load(Ordering::SeqCst), map.len()),
        (1, 0, 1)
    );
    drop(guard);
    assert_eq!((drops.load(Ordering::SeqCst), map.len()), (1, 0));
    assert_eq!(map.take(key).unwrap_err(), TakeError::Stale);
    let bits = RawKey::from(key).to_bits();
    for near in 1..4096 {
        let forged: DefaultKey = RawKey::from_bits(bits + near).unwrap().into();
        assert!(map.get(forged).is_none() && !map.remove(forged) && !map.contains(forged));
    }
    let named = map.insert_with_key(|key| Counted(RawKey::from(key).to_bits(), drops.clone()));
    assert_eq!(map.get(named).unwrap().0, RawKey::from(named).to_bits());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        map.insert_with_key(|_| panic!("no value"))
    }));
    assert!(panicked.is_err() && map.len() == 1);
    map.retain(|key, _| key != named);
    assert!(map.is_empty() && drops.load(Ordering::SeqCst) == 2);
}

#[test]
fn a_value_has_so_many_guards_and_walks_get_more() {
    let map = MovableMap::new();
    let key = map.insert(1);
    let mut guards = Vec::new();
    while let Ok(guard) = map.try_get(key) {
        guards.push(guard);
    }
    assert_eq!(
        (guards.len(), map.try_get(key).unwrap_err()),
        (64_512, GetError::TooManyGuards)
    );
    assert!(catch_unwind(AssertUnwindSafe(|| map.get(key))).is_err());
    let mut seen = 0;
    map.for_each(|_, value| seen += value);
    assert_eq!(seen, 1);
    assert_eq!(format!("{map:?}").matches(": 1").count(), 1);
}

#[test]
fn a_drop_that_panics_frees_its_place() {
    let drops = Arc::new(AtomicUsize::new(0));
    let map = MovableMap::new();
    let unlucky = map.insert(Counted(13, drops.clone()));
    assert!(catch_unwind(AssertUnwindSafe(|| map.remove(unlucky))).is_err());
    assert!(map.is_empty() && map.get(unlucky).is_none());
    for number in 10..20 {
        map.insert(Counted(number, drops.clone()));
    }
    assert!(catch_unwind(AssertUnwindSafe(|| drop(map))).is_err());
    assert_eq!(drops.load(Ordering::SeqCst), 11);
}

#[test]
fn the_drop_of_a_map_drops_what_leaked_guards_hold() {
    let drops = Arc::new(AtomicUsize::new(0));
    let map = MovableMap::new();
    let (live, removed) = (
        map.insert(Counted(1, drops.clone())),
        map.insert(Counted(2, drops.clone())),
    );
    forget(map.get(live));
    forget(map.get(removed));
    map.remove(removed);
    drop(map);
    assert_eq!(
        drops.load(Ordering::SeqCst),
        1,
        "a removed value with a leaked guard is leaked"
    );
}

/// Its drop inserts another one, as often as it says.
struct Parent(Weak<MovableMap<Parent>>, u32);

impl Drop for Parent {
    fn drop(&mut self) {
        if let (Some(map), 1..) = (self.0.upgrade(), self.1) {
            map.insert(Parent(self.0.clone(), self.1 - 1));
        }
    }
}

#[test]
fn a_clear_removes_what_drops_insert() {
    let map = Arc::new(MovableMap::new());
    map.insert(Parent(Arc::downgrade(&map), 5));
    map.clear();
    assert!(map.is_empty());
}

struct Large([u64; 2000]);

#[test]
fn values_of_all_sizes_have_keys() {
    let (nothing, large) = (MovableMap::new(), MovableMap::new());
    let keys: Vec<DefaultKey> = (0..1000).map(|_| nothing.insert(())).collect();
    assert!(keys.iter().all(|key| nothing.get(*key).is_some()));
    let key: DefaultKey = large.insert(Large([7; 2000]));
    assert_eq!(
        large.compact(usize::MAX, u64::MAX),
        0,
        "values over 8 KiB stay where they are"
    );
    assert_eq!(large.get(key).unwrap().0[1999], 7);
    assert!(large.remove(key) && large.is_empty() && large.iter().next().is_none());
}

#[test]
fn limits_and_names_are_those_of_the_builder() {
    let map: MovableMap<u64> = HandleMap::builder()
        .name("ports")
        .limit(2)
        .exact()
        .build_movable()
        .unwrap();
    let first = map.insert(1);
    map.insert(2);
    assert_eq!(map.try_insert(3).unwrap_err().into_inner(), 3);
    assert!(catch_unwind(AssertUnwindSafe(|| map.insert(3))).is_err());
    map.remove(first);
    assert!(map.try_insert(3).is_ok() && format!("{map:?}").contains("\"ports\""));
    assert!(HandleMap::<u64>::builder().exact().build_movable().is_err());
}

/// A map in a static, as a program has it.
#[test]
fn a_map_is_shared() {
    static SESSIONS: OnceLock<MovableMap<Session>> = OnceLock::new();
    let map = SESSIONS.get_or_init(MovableMap::default);
    let key = std::thread::spawn(|| SESSIONS.get().unwrap().insert(Session::new(1)))
        .join()
        .unwrap();
    map.get(key).unwrap().verify(1);
}
