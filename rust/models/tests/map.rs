//! Tests of maps of keys: a value is dropped once, by one thread, after its last guard and before
//! its slot gets the next value.

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use slabyard_models::map::{Map, Removal, Rules, RULES};
use std::sync::Arc;

/// `readers` threads get the value while this thread removes it and inserts another one.
fn guards_beside_remove(rules: Rules, readers: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = (readers > 1).then_some(3);
    model.check(move || {
        let map = Arc::new(Map::new(rules));
        let key = map.insert(1).unwrap();
        let readers: Vec<_> = (0..readers)
            .map(|_| {
                let map = map.clone();
                thread::spawn(move || {
                    if map.pin(key) {
                        assert_eq!(map.read(), 1);
                        map.unpin();
                    }
                })
            })
            .collect();
        assert_ne!(map.remove(key), Removal::Stale);
        assert!(!map.pin(key), "a removed value is not got");
        let next = map.insert(2);
        readers.into_iter().for_each(|it| it.join().unwrap());
        assert_eq!(map.drops.load(Ordering::Relaxed), 1);
        match next {
            Some(next) => assert!(next != key && map.remove(next) == Removal::Ours),
            None => assert!(map.insert(3).is_some(), "the last guard gave it back"),
        }
    });
}

/// Two threads remove the value; one of them has a guard.
fn two_removes(rules: Rules) {
    loom::model(move || {
        let map = Arc::new(Map::new(rules));
        let key = map.insert(1).unwrap();
        let other = {
            let map = map.clone();
            thread::spawn(move || {
                let held = map.pin(key);
                let removed = map.remove(key);
                if held {
                    assert_eq!(map.read(), 1);
                    map.unpin();
                }
                removed
            })
        };
        let here = map.remove(key);
        let there = other.join().unwrap();
        let times = [here, there]
            .iter()
            .filter(|it| **it != Removal::Stale)
            .count();
        assert_eq!(times, 1, "removed once");
        assert_eq!(map.drops.load(Ordering::Relaxed), 1);
        assert!(map.insert(2).is_some());
    });
}

/// A thread inserts a value, and publishes the key by a store that orders nothing.
fn key_told(rules: Rules) {
    loom::model(move || {
        let map = Arc::new(Map::new(rules));
        let told = Arc::new(AtomicU64::new(0));
        let other = {
            let (map, told) = (map.clone(), told.clone());
            thread::spawn(move || {
                let key = told.load(Ordering::Relaxed);
                // If the key is not published yet, 1 is a guess.
                if map.pin(key.max(1)) {
                    assert_eq!(map.read(), 1);
                    map.unpin();
                }
            })
        };
        told.store(map.insert(1).unwrap(), Ordering::Relaxed);
        other.join().unwrap();
    });
}

/// A guard is cloned, and its clone goes to another thread, while the value is removed.
#[test]
fn a_clone_of_a_guard_keeps_the_value() {
    loom::model(|| {
        let map = Arc::new(Map::new(RULES));
        let key = map.insert(1).unwrap();
        let remover = {
            let map = map.clone();
            thread::spawn(move || assert_ne!(map.remove(key), Removal::Stale))
        };
        if map.pin(key) {
            map.pin_again();
            let reader = {
                let map = map.clone();
                thread::spawn(move || {
                    assert_eq!(map.read(), 1);
                    map.unpin();
                })
            };
            map.unpin();
            reader.join().unwrap();
        }
        remover.join().unwrap();
        assert_eq!(map.drops.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_value_is_dropped_after_its_guard() {
    guards_beside_remove(RULES, 1);
}

#[test]
fn the_last_of_two_guards_drops() {
    guards_beside_remove(RULES, 2);
}

#[test]
fn a_value_is_removed_once() {
    two_removes(RULES);
}

#[test]
fn a_guard_sees_the_value_whole() {
    key_told(RULES);
}

#[test]
#[should_panic]
fn remove_has_to_leave_it_to_the_guards() {
    let one_owner = false;
    guards_beside_remove(Rules { one_owner, ..RULES }, 1);
}

#[test]
#[should_panic]
fn a_dying_word_takes_no_guards() {
    let no_way_back = false;
    guards_beside_remove(
        Rules {
            no_way_back,
            ..RULES
        },
        1,
    );
}

#[test]
#[should_panic]
fn the_value_has_to_be_there_first() {
    let value_first = false;
    key_told(Rules {
        value_first,
        ..RULES
    });
}

#[test]
#[should_panic]
fn an_insertion_has_to_release() {
    let enliven = Ordering::Relaxed;
    key_told(Rules { enliven, ..RULES });
}

#[test]
#[should_panic]
fn a_guard_has_to_acquire() {
    let pin = Ordering::Relaxed;
    key_told(Rules { pin, ..RULES });
}

#[test]
#[should_panic]
fn the_end_of_a_guard_has_to_release() {
    let unpin = Ordering::Acquire;
    guards_beside_remove(Rules { unpin, ..RULES }, 1);
}

#[test]
#[should_panic]
fn the_last_guard_has_to_acquire() {
    let unpin = Ordering::Release;
    guards_beside_remove(Rules { unpin, ..RULES }, 2);
}

#[test]
#[should_panic]
fn a_remove_has_to_acquire() {
    let remove = Ordering::Relaxed;
    guards_beside_remove(Rules { remove, ..RULES }, 1);
}

#[test]
#[should_panic]
fn the_slot_has_to_be_free_last() {
    let value_last = false;
    two_then_next(Rules {
        value_last,
        ..RULES
    });
}

/// A thread removes the value while this thread inserts the next one.
fn two_then_next(rules: Rules) {
    loom::model(move || {
        let map = Arc::new(Map::new(rules));
        let key = map.insert(1).unwrap();
        let other = {
            let map = map.clone();
            thread::spawn(move || map.remove(key))
        };
        let next = map.insert(2);
        other.join().unwrap();
        if let Some(next) = next {
            assert!(map.pin(next));
            assert_eq!(map.read(), 2);
            map.unpin();
        }
    });
}

#[test]
fn the_next_value_comes_after_the_drop() {
    two_then_next(RULES);
}
