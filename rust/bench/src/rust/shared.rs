//! Maps that give out keys, shared by threads: the loops, and their contenders.

use super::makers::Object;
use super::rows::{Row, Shared};
use crate::alone::job::{Effort, Job, Sampled};
use crate::loops::{enter, hide};
use crate::machine::{cpu_of, team};
use core::hint::black_box;
use slabyard::HandleMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::Mutex;
use std::time::Duration;

type Value = Object<8>;

/// Values whose keys threads look up.
const KEYS: usize = 1_000;

/// A map.
pub trait Map: Sync {
    type Key: Copy + Send + Sync;
    fn new() -> Self;
    fn insert(&self, value: Value) -> Self::Key;
    fn remove(&self, key: Self::Key) -> bool;
    /// Gets a value, reads it, and drops the guard.
    fn look(&self, key: Self::Key) -> bool;
}

impl Map for HandleMap<Value> {
    type Key = slabyard::DefaultKey;

    fn new() -> Self {
        HandleMap::new()
    }

    #[inline(always)]
    fn insert(&self, value: Value) -> Self::Key {
        self.insert(value)
    }

    #[inline(always)]
    fn remove(&self, key: Self::Key) -> bool {
        self.remove(key)
    }

    #[inline(always)]
    fn look(&self, key: Self::Key) -> bool {
        self.get(key).is_some_and(|value| see(&value))
    }
}

impl Map for sharded_slab::Slab<Value> {
    type Key = usize;

    fn new() -> Self {
        sharded_slab::Slab::new()
    }

    #[inline(always)]
    fn insert(&self, value: Value) -> usize {
        self.insert(value).expect("there is room")
    }

    #[inline(always)]
    fn remove(&self, key: usize) -> bool {
        self.remove(key)
    }

    #[inline(always)]
    fn look(&self, key: usize) -> bool {
        self.get(key).is_some_and(|value| see(&value))
    }
}

/// Not a map: the cost of counting guards alone, two locked instructions on a cache line of each
/// value.
struct Counts {
    lines: Box<[Line]>,
    taken: AtomicUsize,
}

#[derive(Default)]
#[repr(align(64))]
struct Line(AtomicU64);

impl Map for Counts {
    type Key = usize;

    fn new() -> Self {
        Counts {
            lines: (0..1 << 15).map(|_| Line::default()).collect(),
            taken: AtomicUsize::new(0),
        }
    }

    #[inline(always)]
    fn insert(&self, _: Value) -> usize {
        self.taken.fetch_add(1, Relaxed) % self.lines.len()
    }

    #[inline(always)]
    fn remove(&self, _: usize) -> bool {
        true
    }

    #[inline(always)]
    fn look(&self, key: usize) -> bool {
        let count = &self.lines[key].0;
        let before = count.load(Relaxed);
        let got = count.compare_exchange(before, before.wrapping_add(1), Acquire, Relaxed);
        hide(core::ptr::from_ref(count).cast_mut().cast());
        count.fetch_sub(1, Release);
        got.is_ok()
    }
}

#[inline(always)]
fn see(value: &Value) -> bool {
    !hide(core::ptr::from_ref(value).cast_mut().cast()).is_null()
}

#[inline(never)]
fn pairs<M: Map, const LAYOUT: usize>(map: &M, count: u64) {
    enter!(LAYOUT);
    for i in 0..count {
        let key = map.insert(Object::new(i));
        black_box(map.remove(key));
    }
}

#[inline(never)]
fn looks<M: Map, const LAYOUT: usize>(map: &M, keys: &[M::Key], rounds: u64) {
    enter!(LAYOUT);
    for _ in 0..rounds {
        for &key in keys {
            black_box(map.look(key));
        }
    }
}

fn timed<M: Map>(map: &M, what: Shared, layout: usize, threads: usize, rounds: u64) -> f64 {
    let put = |_: usize| -> Vec<M::Key> {
        let values = (0..KEYS as u64).map(Object::new);
        values.map(|value| map.insert(value)).collect()
    };
    let same = put(0);
    let own: Vec<Mutex<Vec<M::Key>>> = (0..threads).map(|_| Mutex::default()).collect();
    let warm = |index: usize| match what {
        Shared::Get { same: true } => *own[index].lock().expect("no thread panics") = same.clone(),
        Shared::Get { same: false } => *own[index].lock().expect("no thread panics") = put(index),
        Shared::Pair => pairs::<M, 0>(map, KEYS as u64),
    };
    let work = |index: usize| {
        let keys = own[index].lock().expect("no thread panics");
        let count = KEYS as u64 * rounds;
        match (what, layout) {
            (Shared::Pair, 0) => pairs::<M, 0>(map, count),
            (Shared::Pair, 1) => pairs::<M, 1>(map, count),
            (Shared::Pair, _) => pairs::<M, 2>(map, count),
            (_, 0) => looks::<M, 0>(map, &keys, rounds),
            (_, 1) => looks::<M, 1>(map, &keys, rounds),
            (_, _) => looks::<M, 2>(map, &keys, rounds),
        }
    };
    let times = team(threads, || (), warm, work);
    for keys in own {
        let keys = keys.into_inner().expect("no thread panics");
        keys.into_iter().for_each(|key| {
            map.remove(key);
        });
    }
    same.into_iter().for_each(|key| {
        map.remove(key);
    });
    cpu_of(&times) as f64 / (threads as u64 * KEYS as u64 * rounds) as f64
}

fn measure<M: Map>(what: Shared, threads: usize, effort: &Effort) -> Vec<Sampled> {
    let map = M::new();
    // All threads together get the time of a sample. If threads share a processor, each gets at
    // least some time slices.
    let least = Duration::from_millis(2) * threads as u32;
    let wanted = effort.sample.max(least).as_nanos() as f64;
    let mut all = Vec::new();
    for &layout in &effort.layouts {
        let each = timed(&map, what, layout, threads, 20);
        let rounds = (wanted / (each * (threads * KEYS) as f64)) as u64;
        let value = timed(&map, what, layout, threads, rounds.max(1));
        all.push(Sampled::of_time(value));
    }
    all
}

type Measure = fn(Shared, usize, &Effort) -> Vec<Sampled>;

const ALL: [(&str, Measure); 3] = [
    ("HandleMap", measure::<HandleMap<Value>>),
    ("sharded-slab", measure::<sharded_slab::Slab<Value>>),
    (COUNTS, measure::<Counts>),
];
const COUNTS: &str = "two locked instructions";

pub fn names(what: Shared) -> Vec<&'static str> {
    let names = ALL.into_iter().map(|(name, _)| name);
    names
        .filter(|&name| name != COUNTS || matches!(what, Shared::Get { .. }))
        .collect()
}

/// Measures in this process, which does nothing else.
pub fn run_job(job: &Job<Row>, what: Shared, threads: usize) -> Option<Vec<Sampled>> {
    let (_, measure) = ALL.into_iter().find(|(name, _)| *name == job.who)?;
    Some(measure(what, threads, &job.effort))
}
