//! Maps that give out keys, used by one thread: the loops, and their contenders.

#![allow(deprecated)] // HopSlotMap is no longer maintained, but still in use

use super::makers::Object;
use super::rows::{Local, Row};
use crate::alone::job::{Effort, Job, Sampled};
use crate::loops::{enter, hide, Random};
use crate::machine::cpu_ns;
use core::hint::black_box;
use slabyard::LocalHandleMap;
use slotmap::{DefaultKey, DenseSlotMap, HopSlotMap, SlotMap};

/// A value in the maps.
type Value = Object<8>;

/// A map.
pub trait Map {
    type Key: Copy;
    fn with_capacity(capacity: usize) -> Self;
    fn insert(&mut self, value: Value) -> Self::Key;
    fn remove(&mut self, key: Self::Key) -> Option<Value>;
    fn get(&self, key: Self::Key) -> Option<&Value>;
    /// Reads all values.
    fn visit(&self, look: impl FnMut(&Value));
}

macro_rules! maps {
    ($($map:ty, $key:ty;)+) => {$(
        impl Map for $map {
            type Key = $key;

            fn with_capacity(capacity: usize) -> Self {
                <$map>::with_capacity(capacity)
            }

            #[inline(always)]
            fn insert(&mut self, value: Value) -> Self::Key {
                self.insert(value)
            }

            #[inline(always)]
            fn remove(&mut self, key: Self::Key) -> Option<Value> {
                self.remove(key)
            }

            #[inline(always)]
            fn get(&self, key: Self::Key) -> Option<&Value> {
                self.get(key)
            }

            #[inline(always)]
            fn visit(&self, mut look: impl FnMut(&Value)) {
                for (_, value) in self.iter() {
                    look(value);
                }
            }
        }
    )+};
}

maps! {
    LocalHandleMap<Value>, slabyard::DefaultKey;
    SlotMap<DefaultKey, Value>, DefaultKey;
    HopSlotMap<DefaultKey, Value>, DefaultKey;
    DenseSlotMap<DefaultKey, Value>, DefaultKey;
}

impl Map for slab::Slab<Value> {
    type Key = usize;

    fn with_capacity(capacity: usize) -> Self {
        slab::Slab::with_capacity(capacity)
    }

    #[inline(always)]
    fn insert(&mut self, value: Value) -> usize {
        self.insert(value)
    }

    #[inline(always)]
    fn remove(&mut self, key: usize) -> Option<Value> {
        self.try_remove(key)
    }

    #[inline(always)]
    fn get(&self, key: usize) -> Option<&Value> {
        self.get(key)
    }

    #[inline(always)]
    fn visit(&self, mut look: impl FnMut(&Value)) {
        for (_, value) in self.iter() {
            look(value);
        }
    }
}

/// Reads a value in a way that the compiler cannot leave out.
#[inline(always)]
fn see(value: &Value) {
    hide(core::ptr::from_ref(value).cast_mut().cast());
}

/// Only whether a value was removed is passed to `black_box`: the value itself would be copied.
#[inline(never)]
fn pairs<M: Map, const LAYOUT: usize>(map: &mut M, count: u64) {
    enter!(LAYOUT);
    for i in 0..count {
        let key = map.insert(Object::new(i));
        hide(core::ptr::from_mut(map).cast());
        black_box(map.remove(key).is_some());
    }
}

#[inline(never)]
fn replace<M: Map, const LAYOUT: usize>(
    map: &mut M,
    keys: &mut [M::Key],
    count: u64,
    random: &mut Random,
) {
    enter!(LAYOUT);
    for i in 0..count {
        let index = random.below(keys.len());
        // SAFETY: the index is below the length.
        let place = unsafe { keys.get_unchecked_mut(index) };
        black_box(map.remove(*place).is_some());
        *place = map.insert(Object::new(i));
    }
}

#[inline(never)]
fn gets<M: Map, const LAYOUT: usize>(map: &M, keys: &[M::Key], order: &[u32], rounds: u64) {
    enter!(LAYOUT);
    for _ in 0..rounds {
        for &index in order {
            // SAFETY: the order is a permutation of the keys' indices.
            if let Some(value) = map.get(unsafe { *keys.get_unchecked(index as usize) }) {
                see(value);
            }
        }
    }
}

#[inline(never)]
fn visits<M: Map, const LAYOUT: usize>(map: &M, rounds: u64) {
    enter!(LAYOUT);
    for _ in 0..rounds {
        map.visit(see);
    }
}

/// Runs the operation of a row in one copy of the loops, often enough to be timed. Returns how
/// often.
fn run<M: Map, const L: usize>(
    what: Local,
    map: &mut M,
    keys: &mut [M::Key],
    order: &[u32],
    rounds: u64,
    random: &mut Random,
) -> u64 {
    let count = keys.len() as u64 * rounds;
    match what {
        Local::Pair => pairs::<M, L>(map, count),
        Local::Replace => replace::<M, L>(map, keys, count, random),
        Local::Get => gets::<M, L>(map, keys, order, rounds),
        Local::Iterate => visits::<M, L>(map, rounds),
    }
    count
}

fn measure<M: Map>(what: Local, live: usize, effort: &Effort) -> Vec<Sampled> {
    let mut random = Random(effort.seed);
    let total = if what == Local::Iterate {
        live + live / 2
    } else {
        live
    };
    let mut map = M::with_capacity(total + 1);
    let mut keys: Vec<M::Key> = (0..total)
        .map(|i| map.insert(Object::new(i as u64)))
        .collect();
    while keys.len() > live {
        let gone = keys.swap_remove(random.below(keys.len()));
        map.remove(gone);
    }
    let mut order: Vec<u32> = (0..live as u32).collect();
    for last in (1..live).rev() {
        order.swap(last, random.below(last + 1));
    }
    let mut timed = |layout: usize, rounds: u64| {
        let before = cpu_ns();
        let (map, keys, random) = (&mut map, &mut keys[..], &mut random);
        let count = match layout {
            0 => run::<M, 0>(what, map, keys, &order, rounds, random),
            1 => run::<M, 1>(what, map, keys, &order, rounds, random),
            _ => run::<M, 2>(what, map, keys, &order, rounds, random),
        };
        (cpu_ns() - before) as f64 / count as f64
    };
    let mut all = Vec::new();
    for &layout in &effort.layouts {
        let each = timed(layout, 2).max(0.01);
        let rounds = effort.sample.as_nanos() as f64 / (each * live as f64);
        all.push(Sampled::of_time(timed(layout, (rounds as u64).max(1))));
    }
    all
}

type Measure = fn(Local, usize, &Effort) -> Vec<Sampled>;

const ALL: [(&str, Measure); 5] = [
    ("LocalHandleMap", measure::<LocalHandleMap<Value>>),
    ("slotmap", measure::<SlotMap<DefaultKey, Value>>),
    ("slotmap hop", measure::<HopSlotMap<DefaultKey, Value>>),
    ("slotmap dense", measure::<DenseSlotMap<DefaultKey, Value>>),
    ("slab", measure::<slab::Slab<Value>>),
];

pub fn names() -> Vec<&'static str> {
    ALL.map(|(name, _)| name).to_vec()
}

/// Measures in this process, which does nothing else.
pub fn run_job(job: &Job<Row>, what: Local, live: usize) -> Option<Vec<Sampled>> {
    let (_, measure) = ALL.into_iter().find(|(name, _)| *name == job.who)?;
    Some(measure(what, live, &job.effort))
}
