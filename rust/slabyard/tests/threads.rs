//! Boxes pass between threads. Each owner writes its own pattern, and must find it until it passes
//! the box on; so an object with two owners is found at once.

use slabyard::{Cache, CacheArc, CacheBox, Counted};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};

const WORDS: usize = 12;
const THREADS: usize = 4;
const ROUNDS: usize = if cfg!(miri) { 60 } else { 60_000 };

static DROPS: AtomicUsize = AtomicUsize::new(0);
static MADE: AtomicUsize = AtomicUsize::new(0);

struct Pattern([u64; WORDS]);

impl Pattern {
    fn new(stamp: u64) -> Self {
        MADE.fetch_add(1, Relaxed);
        Pattern(std::array::from_fn(|n| stamp ^ n as u64))
    }

    fn check(&self, stamp: u64) {
        for (n, word) in self.0.iter().enumerate() {
            assert_eq!(*word, stamp ^ n as u64, "somebody else wrote here");
        }
    }

    fn stamp(&mut self, stamp: u64) {
        for (n, word) in self.0.iter_mut().enumerate() {
            *word = stamp ^ n as u64;
        }
    }
}

impl Drop for Pattern {
    fn drop(&mut self) {
        DROPS.fetch_add(1, Relaxed);
        self.0 = [u64::MAX; WORDS];
    }
}

type Sent<'c> = (u64, CacheBox<'c, Pattern>);

fn work<'c>(
    me: u64,
    cache: &'c Cache<Pattern>,
    next: &SyncSender<Sent<'c>>,
    mine: &Receiver<Sent<'c>>,
) {
    let mut kept: Vec<Sent<'c>> = Vec::new();
    let mut random = me.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for round in 0..ROUNDS as u64 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let stamp = me << 48 | round << 8;
        match random >> 60 {
            0..=7 => kept.push((stamp, cache.insert(Pattern::new(stamp)))),
            8..=11 => {
                if let Some((stamp, object)) = kept.pop() {
                    object.check(stamp);
                    let _ = next.try_send((stamp, object)).map_err(drop);
                }
            }
            _ if !kept.is_empty() => {
                let (stamp, object) = kept.swap_remove((random >> 20) as usize % kept.len());
                object.check(stamp);
            }
            _ => {}
        }
        while let Ok((stamp, mut object)) = mine.try_recv() {
            object.check(stamp);
            let stamp = me << 48 | round << 8 | 1;
            object.stamp(stamp);
            kept.push((stamp, object));
        }
        if kept.len() > 500 {
            kept.drain(..300)
                .for_each(|(stamp, object)| object.check(stamp));
        }
    }
    kept.iter().for_each(|(stamp, object)| object.check(*stamp));
}

#[test]
fn an_object_has_one_owner() {
    let cache = Cache::new("pattern");
    std::thread::scope(|scope| {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| sync_channel(64)).unzip();
        for (n, mine) in receivers.into_iter().enumerate() {
            let (next, cache) = (senders[(n + 1) % THREADS].clone(), &cache);
            scope.spawn(move || work(n as u64 + 1, cache, &next, &mine));
        }
    });
    assert_eq!(cache.in_use(), 0);
    assert_eq!(DROPS.load(Relaxed), MADE.load(Relaxed));
    assert!(MADE.load(Relaxed) > ROUNDS);
}

#[test]
fn shared_objects_are_dropped_by_the_last_owner() {
    struct Dropped<'a>(&'a AtomicUsize, [usize; 6]);
    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            assert_eq!(self.1, [7; 6]);
            self.1 = [0; 6];
            self.0.fetch_add(1, Relaxed);
        }
    }

    let drops = AtomicUsize::new(0);
    let cache = Cache::<Counted<Dropped>>::new("shared");
    for _ in 0..ROUNDS / 60 {
        let object = cache.insert_arc(Dropped(&drops, [7; 6]));
        let watcher = CacheArc::downgrade(&object);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let (object, watcher) = (object.clone(), watcher.clone());
                scope.spawn(move || {
                    let other = object.clone();
                    drop(object);
                    assert_eq!(other.1, [7; 6]);
                    drop(other);
                    watcher.upgrade().map(|object| assert_eq!(object.1, [7; 6]))
                });
            }
            drop(object);
        });
        assert!(watcher.upgrade().is_none());
    }
    assert_eq!((drops.load(Relaxed), cache.in_use()), (ROUNDS / 60, 0));
}

#[test]
#[cfg(not(miri))]
fn threads_come_and_go_without_growth() {
    let cache = Cache::new("visitors");
    let mut before = 0;
    for round in 0..2000 {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let objects: Vec<_> = (0..50).map(|n| cache.insert([n; 16])).collect();
                assert!(objects
                    .iter()
                    .enumerate()
                    .all(|(n, object)| **object == [n; 16]));
                slabyard::thread_idle();
            });
        });
        if round == 100 {
            before = cache.stats().mapped;
        }
    }
    assert_eq!(cache.in_use(), 0);
    assert_eq!(cache.stats().mapped, before);
}
