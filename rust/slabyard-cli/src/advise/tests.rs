//! Tests of lives: on recordings made by hand, whose phases and threads are known.

use super::*;
use crate::recording::tests::{file_of, free, malloc, Sketch};
use crate::recording::{Record, Strictness};

/// The life of all objects of 48 bytes.
fn life_of(blocks: Vec<(u32, Vec<Record>)>) -> Life {
    let sketch = Sketch {
        blocks,
        ..Sketch::default()
    };
    let recording = Recording::from_bytes(file_of(&[sketch]), Strictness::Whole).unwrap();
    let of_stack = HashMap::from([((0, 48), 0)]);
    lives::collect(&recording, &recording.processes[0], &of_stack, 1).remove(0)
}

/// Phases of 100 objects, of which some stay.
fn phases(count: u64, staying: u64) -> Vec<Record> {
    let mut records = Vec::new();
    let mut stamp = 0;
    let mut next = || {
        stamp += 1;
        stamp
    };
    for phase in 0..count {
        let address = |object: u64| 0x10000 + (phase * 100 + object) * 64;
        records.extend((0..100).map(|object| malloc(next(), address(object), 48)));
        records.extend((staying..100).map(|object| free(next(), address(object))));
    }
    records
}

#[test]
fn objects_that_are_all_freed_before_the_next_one_go_together() {
    let life = life_of(vec![(0, phases(3, 0))]);
    assert_eq!((life.freed, life.most_live, life.phases), (300, 100, 3));
    assert!(life.ends_together() && life.in_one_thread);
    assert_eq!(life.slots(), 100);
    let life = life_of(vec![(0, phases(3, 1))]);
    assert_eq!((life.freed, life.most_live, life.phases), (297, 102, 0));
    assert!(!life.ends_together());
}

#[test]
fn objects_that_another_thread_frees_are_not_in_one_thread() {
    let life = life_of(vec![
        (0, vec![malloc(1, 0x1000, 48), malloc(2, 0x2000, 99)]),
        (1, vec![free(3, 0x1000), free(4, 0x2000)]),
    ]);
    assert_eq!(
        (life.freed, life.most_live, life.in_one_thread),
        (1, 1, false)
    );
}

#[test]
fn trials_measure_what_is_possible() {
    let life = life_of(vec![(0, phases(5, 1))]);
    let measured = trial::measure(&life, 48).unwrap();
    assert!(measured.malloc_ns > 0.0 && measured.cache_ns > 0.0);
    assert!(measured.pool_ns.is_some_and(|ns| ns > 0.0));
    assert_eq!((measured.cache_slot, measured.pool_slot), (48, 48));
}
