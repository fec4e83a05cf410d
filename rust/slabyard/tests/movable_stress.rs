//! Threads insert, get, hold and remove the values of one map, while another one moves them as often
//! as it can.
#![cfg(not(miri))]

mod values;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use slabyard::{thread_flush, DefaultKey, MovableMap, RawKey};
use values::{Ledger, Random, Value};

const THREADS: u64 = 3;
const ROUNDS: u64 = 12;
/// Values that a thread inserts in a round; it then removes most of them.
const VALUES: u64 = 4_000;
const KEPT_ONE_IN: u64 = 20;
const SHARED: usize = 64;

type Map<'a> = MovableMap<Value<'a>>;

/// Looks a value of any thread up, and may hold or remove it.
fn meddle<'m, 'a>(
    map: &'m Map<'a>,
    shared: &[AtomicU64],
    random: &mut Random,
    held: &mut Vec<slabyard::handle::Ref<'m, Value<'a>, DefaultKey>>,
) -> u64 {
    let at = random.below(shared.len() as u64) as usize;
    let Some(key) = RawKey::from_bits(shared[at].load(Ordering::Relaxed)).map(DefaultKey::from)
    else {
        return 0;
    };
    match random.below(6) {
        0 => return u64::from(map.remove(key)),
        1 => return u64::from(map.take(key).map(|it| it.verify()).is_ok()),
        2 => held.extend(map.get(key)),
        _ => {
            if let Some(value) = map.get(key) {
                value.verify();
            }
        }
    }
    if held.len() > 8 {
        held.swap_remove(random.below(9) as usize).verify();
    }
    0
}

/// Returns how many values it removed.
fn work<'a>(map: &Map<'a>, shared: &[AtomicU64], ledger: &'a Ledger, thread: u64) -> u64 {
    let mut random = Random(thread * 7919 + 1);
    let (mut held, mut own, mut removed) = (Vec::new(), Vec::new(), 0);
    for round in 0..ROUNDS {
        for i in 0..VALUES {
            let number = (thread * ROUNDS + round) * VALUES + i;
            own.push((number, map.insert(Value::new(number, ledger))));
            let key = RawKey::from(own[own.len() - 1].1).to_bits();
            if i % 16 == 0 {
                let at = random.below(shared.len() as u64) as usize;
                shared[at].store(key, Ordering::Relaxed);
            }
            removed += meddle(map, shared, &mut random, &mut held);
        }
        own.retain(|(_, key)| {
            let kept = random.below(KEPT_ONE_IN) == 0;
            removed += u64::from(!kept && map.remove(*key));
            kept
        });
        thread_flush();
        for (number, key) in &own {
            let Some(value) = map.get(*key) else { continue };
            assert_eq!(value.number, *number, "a key leads to its value");
            value.verify();
        }
    }
    held.iter().for_each(|value| value.verify());
    removed
}

#[test]
fn values_are_whole_wherever_they_move() {
    let all = THREADS * ROUNDS * VALUES;
    let ledger = Ledger::new(all);
    let shared: Vec<_> = (0..SHARED).map(|_| AtomicU64::new(0)).collect();
    let (map, over) = (MovableMap::new(), AtomicBool::new(false));
    let (removed, emptied) = thread::scope(|scope| {
        let mover = scope.spawn(|| {
            let mut emptied = 0;
            while !over.load(Ordering::Relaxed) {
                emptied += map.compact(usize::MAX, u64::MAX);
            }
            emptied
        });
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (map, shared, ledger) = (&map, &shared, &ledger);
                scope.spawn(move || work(map, shared, ledger, thread))
            })
            .collect();
        let removed: u64 = workers.into_iter().map(|it| it.join().unwrap()).sum();
        over.store(true, Ordering::Relaxed);
        (removed, mover.join().unwrap())
    });
    assert_eq!((map.len() as u64, ledger.drops()), (all - removed, removed));
    assert_eq!(
        map.iter().inspect(|(_, value)| value.verify()).count() as u64,
        all - removed
    );
    let last = map.compact(usize::MAX, u64::MAX);
    assert!(emptied + last > 0, "values were moved");
    map.for_each(|_, value| value.verify());
    drop(map);
    assert!(ledger.each_was_dropped_once());
}
