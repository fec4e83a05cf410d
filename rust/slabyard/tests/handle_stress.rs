//! Threads insert, get, hold and remove the values of one map.

mod values;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::thread;

use slabyard::{DefaultKey, HandleMap};
use values::{Ledger, Random, Value};

const THREADS: usize = 4;
const ROUNDS: u64 = if cfg!(miri) { 12 } else { 30_000 };
const SHARED: usize = if cfg!(miri) { 2 } else { 64 };

/// The keys that all threads try. A stale key stays until it is replaced.
type Keys = Vec<AtomicU64>;

fn key_at(keys: &Keys, at: usize) -> Option<DefaultKey> {
    slabyard::RawKey::from_bits(keys[at].load(Ordering::Relaxed)).map(Into::into)
}

fn work<'a>(map: &HandleMap<Value<'a>>, keys: &Keys, ledger: &'a Ledger, thread: u64) -> u64 {
    let mut random = Random(thread * 7919 + 1);
    let mut held = Vec::new();
    let mut removed = 0;
    for round in 0..ROUNDS {
        let at = random.below(keys.len() as u64) as usize;
        let number = thread * ROUNDS + round;
        let key = map.insert(Value::new(number, ledger));
        keys[at].store(slabyard::RawKey::from(key).to_bits(), Ordering::Relaxed);
        for _ in 0..3 {
            let at = random.below(keys.len() as u64) as usize;
            let Some(key) = key_at(keys, at) else {
                continue;
            };
            match random.below(6) {
                0 => removed += u64::from(map.remove(key)),
                1 => {
                    if let Ok(value) = map.take(key) {
                        value.verify();
                        removed += 1;
                    }
                }
                2 => held.extend(map.get(key)),
                _ => {
                    if let Some(value) = map.get(key) {
                        value.verify();
                    }
                }
            }
        }
        if held.len() > 8 {
            held.swap_remove(random.below(9) as usize).verify();
        }
        if round % 4096 == 4095 {
            map.iter().for_each(|(_, value)| value.verify());
        }
    }
    held.iter().for_each(|value| value.verify());
    removed
}

#[test]
fn every_value_is_dropped_once_and_never_while_it_is_held() {
    let all = THREADS as u64 * ROUNDS;
    let ledger = Ledger::new(all);
    let keys: Keys = (0..SHARED).map(|_| AtomicU64::new(0)).collect();
    let map = HandleMap::new();
    let removed: u64 = thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS as u64)
            .map(|thread| {
                let (map, keys, ledger) = (&map, &keys, &ledger);
                scope.spawn(move || work(map, keys, ledger, thread))
            })
            .collect();
        workers.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert_eq!(map.len() as u64, all - removed);
    assert_eq!(ledger.drops(), removed);
    assert_eq!(map.iter().count() as u64, all - removed);
    drop(map);
    assert!(ledger.each_was_dropped_once());
}

/// Few values and many threads, so that the last guard and the removal of a value often coincide.
#[test]
fn the_last_guard_and_the_remover_meet() {
    let rounds = if cfg!(miri) { 4 } else { 4_000 };
    let ledger = Ledger::new(rounds);
    let map = HandleMap::new();
    let current = AtomicU64::new(0);
    let removals = Mutex::new(0_u64);
    thread::scope(|scope| {
        for _ in 0..THREADS - 1 {
            scope.spawn(|| {
                let mut mine = 0;
                loop {
                    let bits = current.load(Ordering::Acquire);
                    if bits == u64::MAX {
                        break;
                    }
                    let Some(raw) = slabyard::RawKey::from_bits(bits) else {
                        continue;
                    };
                    let key = DefaultKey::from(raw);
                    let guard = map.get(key);
                    if let Some(value) = &guard {
                        Value::verify(value);
                    }
                    mine += u64::from(map.remove(key));
                    if let Some(value) = &guard {
                        Value::verify(value);
                    }
                }
                *removals.lock().unwrap() += mine;
            });
        }
        for number in 0..rounds {
            let key: DefaultKey = map.insert(Value::new(number, &ledger));
            current.store(slabyard::RawKey::from(key).to_bits(), Ordering::Release);
            while map.get(key).is_some() {
                thread::yield_now();
            }
        }
        current.store(u64::MAX, Ordering::Release);
    });
    assert_eq!(*removals.lock().unwrap(), rounds);
    assert!(map.is_empty());
    assert!(ledger.each_was_dropped_once());
}
