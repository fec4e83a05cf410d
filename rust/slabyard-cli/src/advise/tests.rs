//! Tests of lives: on recordings made by hand, whose phases and threads are known.

use super::*;
use crate::recording::tests::{free, malloc, recording_of, Sketch};
use crate::recording::Record;

/// The life of all objects of 48 bytes.
fn life_of(blocks: Vec<(u32, Vec<Record>)>) -> Life {
    let records = blocks.iter().flat_map(|(_, records)| records);
    let last = records.map(|record| record.stamp).max().unwrap();
    let sketch = Sketch {
        blocks,
        ..Sketch::default()
    };
    let recording = recording_of(&[sketch]);
    let of_stack = HashMap::from([((0, 48), 0)]);
    lives::collect(&recording, &recording.processes[0], &of_stack, 1, last).remove(0)
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

/// Connections take objects in turn, and are closed one after the other, at even times.
fn connections(count: u64, objects: u64) -> Vec<Record> {
    let address = |connection: u64, object: u64| 0x10000 + (object * count + connection) * 64;
    let mut records = Vec::new();
    for object in 0..objects {
        let at = object * count;
        records.extend((0..count).map(|one| malloc(at + one, address(one, object), 48)));
    }
    for one in 0..count {
        let at = (one + 1) * 1_000_000;
        records.extend((0..objects).map(|object| free(at, address(one, object))));
        records.push(malloc(at, 0x100 + 64 * one, 48));
    }
    records
}

#[test]
fn epochs_for_connections_save_the_memory_that_the_other_connections_hold() {
    let life = life_of(vec![(0, connections(10, 5000))]);
    assert_eq!(life.moments.len(), 100);
    let epochs = epochs::best(&life, 48).unwrap().expect("they save");
    assert_eq!((epochs.way, epochs.count), (groups::Way::Together, 10));
    // All live objects need 2.4 MB. They go in equal steps to 0, so half of that is needed on average.
    let (without, with) = (epochs.without, epochs.with);
    assert!((2.4e6..2.9e6).contains(&without.most), "{without:?}");
    assert!((2.4e6..3.2e6).contains(&with.most), "{with:?}");
    assert!(without.mean > 1.8e6 && with.mean < 1.6e6, "{epochs:?}");
    assert!(epochs.ns.is_some_and(|ns| ns > 0.0));
    let whole = Whole {
        ns: 1e9,
        peak_bytes: 3_000_000,
        allocations: 50_010,
    };
    assert!(epochs.is_worth(whole));
    let of_much = Whole {
        peak_bytes: 1 << 30,
        ..whole
    };
    assert!(!epochs.is_worth(of_much));
}

#[test]
fn epochs_for_the_phases_of_two_threads_save_what_the_longer_phase_holds_of_the_shorter() {
    const OBJECTS: u64 = 20_000;
    let mut threads = [Vec::new(), Vec::new()];
    for phase in 1..=10 {
        let begin = phase * 1_000_000;
        for (thread, length) in threads.iter_mut().zip([200_000, 900_000]) {
            let address = |object: u64| 0x10000 + length + object * 64 * 1024;
            let begins = (0..OBJECTS).map(|object| malloc(begin + object, address(object), 48));
            thread.extend(begins);
            let ends = (0..OBJECTS).map(|object| free(begin + length, address(object)));
            thread.extend(ends);
        }
    }
    let lives = (0..).zip(threads).collect();
    let life = life_of(lives);
    let epochs = epochs::best(&life, 48).unwrap().expect("they save");
    assert_eq!((epochs.way, epochs.count), (groups::Way::Phase, 20));
    assert_eq!((epochs.apart, epochs.ns), (0.0, None));
    // Without epochs, 1.9 MB are held for nine tenths of a phase; with them, 0.96 MB for seven tenths,
    // and nothing before the first phase.
    let (without, with) = (epochs.without.mean, epochs.with.mean);
    assert!(without > 1.5e6 && with < 1.25e6, "{epochs:?}");
}

#[test]
fn where_no_memory_is_held_epochs_save_none() {
    let life = life_of(vec![(0, phases(50, 0))]);
    let epochs = epochs::best(&life, 48).unwrap();
    assert!(epochs.is_none_or(|epochs| epochs.saved() < WORTH_SLABS));
}
