//! Few survivors of many objects, by name: resident memory after the others were freed at random,
//! and what objects that move cost.
//!
//! The contenders are maps whose values move, maps whose values stay, and each malloc with plain
//! pointers. A value is written whole.

use crate::allocators::{Allocator, ALL};
use crate::alone::job::{Job, Sampled};
use crate::kernels::LAYOUTS;
use crate::loops::{enter, hide, Random};
use crate::machine::{cpu_ns, resident};
use core::ffi::c_void;
use core::hint::black_box;
use slabyard::{DefaultKey, HandleMap, MovableMap};
use slabyard_sys as sys;
use slotmap::SlotMap;
use std::time::Instant;

const SIZES: [usize; 4] = [64, 128, 256, 1024];
const SHARES: [usize; 5] = [1, 5, 10, 20, 50];
/// Objects at the peak: so many, or as many as have so many bytes.
const OBJECTS: usize = 1_000_000;
const PEAK_BYTES: usize = 256 << 20;
/// Objects of the rows about time.
const FEW: usize = 1_000;

/// An operation by handle, in a cache whose objects stay and in one whose objects move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    Get,
    Pin,
    Replace,
    Guard,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Row {
    Left { bytes: usize, percent: usize },
    Compact { bytes: usize, percent: usize },
    Cost(Cost),
}

const MOVE: &str = "MovableMap";
const STAY: &str = "HandleMap";

impl crate::alone::Row for Row {
    const COMMAND: &'static str = "survivors";
    const TABLES: &'static [&'static str] = &["left", "GiB/s", "ns"];

    fn all() -> Vec<Row> {
        let mut rows = Vec::new();
        for bytes in SIZES {
            rows.extend(SHARES.map(|percent| Row::Left { bytes, percent }));
        }
        for bytes in SIZES {
            rows.extend([1, 20, 50].map(|percent| Row::Compact { bytes, percent }));
        }
        rows.extend([Cost::Get, Cost::Pin, Cost::Replace, Cost::Guard].map(Row::Cost));
        rows
    }

    fn conditions() -> Vec<String> {
        vec![format!(
            "survivors      {OBJECTS} objects at the peak, at most {} MiB",
            PEAK_BYTES >> 20
        )]
    }

    fn name(self) -> String {
        match self {
            Row::Left { bytes, percent } => format!("memory-random/{bytes}/{percent}"),
            Row::Compact { bytes, percent } => format!("compact/{bytes}/{percent}"),
            Row::Cost(cost) => format!("handle-{}", format!("{cost:?}").to_lowercase()),
        }
    }

    fn describe(self) -> String {
        match self {
            Row::Left { bytes, percent } => format!(
                "{percent} % of objects of {bytes} B survive at random; resident, % of the peak"
            ),
            Row::Compact { bytes, percent } => format!(
                "{percent} % of objects of {bytes} B survive; GiB of slabs emptied in a second"
            ),
            Row::Cost(Cost::Get) => format!("look-up of one of {FEW} objects by handle"),
            Row::Cost(Cost::Pin) => format!("pin and unpin of one of {FEW} objects"),
            Row::Cost(Cost::Replace) => format!("one of {FEW} objects freed, another allocated"),
            Row::Cost(Cost::Guard) => "a read guard begun and ended".to_owned(),
        }
    }

    fn names(self) -> Vec<&'static str> {
        match self {
            Row::Left { .. } => {
                let mallocs = ALL.iter().filter(|one| one.any_size().is_some());
                let maps = [MOVE, STAY, "sharded-slab", "slotmap"].into_iter();
                maps.chain(mallocs.map(|one| one.name)).collect()
            }
            Row::Compact { .. } | Row::Cost(Cost::Guard) => vec![MOVE],
            Row::Cost(_) => vec![STAY, MOVE],
        }
    }

    fn peer(self) -> &'static str {
        match self {
            Row::Compact { .. } | Row::Cost(Cost::Guard) => MOVE,
            _ => STAY,
        }
    }

    fn metrics(self) -> &'static [&'static str] {
        match self {
            Row::Left { .. } => &["left"],
            Row::Compact { .. } => &["GiB/s"],
            Row::Cost(_) => &["ns"],
        }
    }

    fn copies(self) -> usize {
        if matches!(self, Row::Cost(_)) {
            LAYOUTS
        } else {
            1
        }
    }

    fn repeats(self, wanted: usize) -> usize {
        if matches!(self, Row::Left { .. }) {
            wanted.min(3) // memory hardly varies
        } else {
            wanted
        }
    }

    fn run(self, job: &Job<Row>) -> Option<Vec<Sampled>> {
        match self {
            Row::Cost(cost) => Some(costs(cost, job)),
            Row::Left { bytes, .. } | Row::Compact { bytes, .. } => match bytes {
                64 => survive::<8>(self, job),
                128 => survive::<16>(self, job),
                256 => survive::<32>(self, job),
                _ => survive::<128>(self, job),
            },
        }
    }
}

// ---- memory ----

/// What has objects by name.
trait Holder<const WORDS: usize> {
    type Name: Copy;
    fn insert(&mut self, value: [u64; WORDS]) -> Self::Name;
    fn remove(&mut self, name: Self::Name);
    /// Makes the strongest call to give memory back.
    fn purge(&mut self) {
        // SAFETY: any thread may call it. These crates use the C library's malloc.
        unsafe { libc::malloc_trim(0) };
    }
}

fn purge_own() {
    slabyard::thread_flush();
    slabyard::trim();
}

macro_rules! own {
    ($($map:ident),+) => {$(
        impl<const WORDS: usize> Holder<WORDS> for $map<[u64; WORDS]> {
            type Name = DefaultKey;

            fn insert(&mut self, value: [u64; WORDS]) -> DefaultKey {
                $map::insert(self, value)
            }

            fn remove(&mut self, name: DefaultKey) {
                $map::remove(self, name);
            }

            fn purge(&mut self) {
                purge_own();
            }
        }
    )+};
}

own!(MovableMap, HandleMap);

impl<const WORDS: usize> Holder<WORDS> for SlotMap<slotmap::DefaultKey, [u64; WORDS]> {
    type Name = slotmap::DefaultKey;

    fn insert(&mut self, value: [u64; WORDS]) -> slotmap::DefaultKey {
        SlotMap::insert(self, value)
    }

    fn remove(&mut self, name: slotmap::DefaultKey) {
        SlotMap::remove(self, name);
    }
}

impl<const WORDS: usize> Holder<WORDS> for sharded_slab::Slab<[u64; WORDS]> {
    type Name = usize;

    fn insert(&mut self, value: [u64; WORDS]) -> usize {
        sharded_slab::Slab::insert(self, value).expect("there is room")
    }

    fn remove(&mut self, name: usize) {
        sharded_slab::Slab::remove(self, name);
    }
}

/// Objects by pointer.
impl<const WORDS: usize> Holder<WORDS> for Allocator {
    type Name = *mut c_void;

    fn insert(&mut self, value: [u64; WORDS]) -> *mut c_void {
        let (malloc, _) = self.any_size().expect("it is a malloc");
        // SAFETY: the object has the size of the value.
        unsafe {
            let object = malloc(size_of_val(&value));
            object.cast::<[u64; WORDS]>().write(value);
            object
        }
    }

    fn remove(&mut self, name: *mut c_void) {
        let (_, free) = self.any_size().expect("it is a malloc");
        // SAFETY: it is live, and freed once.
        unsafe { free(name) }
    }

    fn purge(&mut self) {
        if let Some(purge) = Allocator::purge(self) {
            // SAFETY: any thread may call it.
            unsafe { purge() }
        }
    }
}

fn survive<const WORDS: usize>(row: Row, job: &Job<Row>) -> Option<Vec<Sampled>> {
    let (count, seed) = (OBJECTS.min(PEAK_BYTES / (WORDS * 8)), job.effort.seed);
    let (Row::Left { percent, .. } | Row::Compact { percent, .. }) = row else {
        return None;
    };
    let kept = count * percent / 100;
    let one = match (row, job.who.as_str()) {
        (Row::Compact { .. }, _) => ("GiB/s", compact::<WORDS>(count, kept, seed)),
        (_, MOVE) => ("left", left::<WORDS, _>(MovableMap::new, count, kept, seed)),
        (_, STAY) => ("left", left::<WORDS, _>(HandleMap::new, count, kept, seed)),
        (_, "sharded-slab") => (
            "left",
            left::<WORDS, _>(sharded_slab::Slab::new, count, kept, seed),
        ),
        (_, "slotmap") => {
            let make = || SlotMap::<slotmap::DefaultKey, [u64; WORDS]>::with_capacity(count);
            ("left", left::<WORDS, _>(make, count, kept, seed))
        }
        (_, malloc) => {
            let allocator = crate::allocators::find(malloc)?;
            let _thread = allocator.enter_thread();
            ("left", left::<WORDS, _>(|| allocator, count, kept, seed))
        }
    };
    Some(vec![Sampled(vec![one])])
}

/// Inserts `count` values.
fn fill<const WORDS: usize, H: Holder<WORDS>>(holder: &mut H, names: &mut Vec<H::Name>) {
    for i in 0..names.capacity() {
        names.push(holder.insert([i as u64; WORDS]));
    }
}

/// Removes values at random until `kept` are left.
fn thin_out<const WORDS: usize, H: Holder<WORDS>>(
    holder: &mut H,
    names: &mut Vec<H::Name>,
    kept: usize,
    seed: u64,
) {
    let mut random = Random(seed);
    while names.len() > kept {
        holder.remove(names.swap_remove(random.below(names.len())));
    }
}

/// The percentage of the peak that stays resident.
fn left<const WORDS: usize, H: Holder<WORDS>>(
    make: impl FnOnce() -> H,
    count: usize,
    kept: usize,
    seed: u64,
) -> f64 {
    let mut names: Vec<H::Name> = Vec::with_capacity(count);
    // SAFETY: within the capacity. So the vector's memory is resident before the objects'.
    unsafe { names.as_mut_ptr().write_bytes(1, count) };
    let before = resident();
    let mut holder = make();
    fill(&mut holder, &mut names);
    let peak = resident().saturating_sub(before);
    thin_out(&mut holder, &mut names, kept, seed);
    holder.purge();
    100.0 * resident().saturating_sub(before) as f64 / peak.max(1) as f64
}

fn compact<const WORDS: usize>(count: usize, kept: usize, seed: u64) -> f64 {
    let mut map = MovableMap::<[u64; WORDS]>::new();
    let mut names = Vec::with_capacity(count);
    fill(&mut map, &mut names);
    thin_out(&mut map, &mut names, kept, seed);
    slabyard::thread_flush();
    let began = Instant::now();
    let emptied = map.compact(usize::MAX, u64::MAX);
    emptied as f64 / (1 << 30) as f64 / began.elapsed().as_secs_f64()
}

// ---- time ----

/// A cache of objects of 64 bytes, and handles of its live objects in random order.
struct Cache {
    cache: *mut sys::sy_cache,
    moves: bool,
    handles: Vec<u64>,
}

impl Cache {
    fn new(moves: bool, seed: u64) -> Cache {
        let flag = if moves { sys::SY_MOVABLE } else { 0 };
        let config = sys::sy_cache_config {
            size: 64,
            flags: sys::SY_HANDLES | flag,
            ..Default::default()
        };
        // SAFETY: the configuration is valid.
        let cache = unsafe { sys::sy_cache_create(&config) };
        let mut all = Cache {
            cache,
            moves,
            handles: Vec::new(),
        };
        all.handles = (0..FEW).map(|_| all.alloc()).collect();
        let mut random = Random(seed);
        for last in (1..FEW).rev() {
            all.handles.swap(last, random.below(last + 1));
        }
        all
    }

    #[inline(always)]
    fn alloc(&self) -> u64 {
        let mut handle = 0;
        // SAFETY: the cache has handles.
        unsafe {
            if self.moves {
                hide(sys::sy_handle_prepare(self.cache, &mut handle));
                sys::sy_handle_publish(self.cache, handle);
            } else {
                hide(sys::sy_handle_alloc_inline(self.cache, &mut handle));
            }
        }
        handle
    }
}

/// Does the operation once for each object, so many times.
#[inline(never)]
fn run<const LAYOUT: usize>(cost: Cost, of: &mut Cache, rounds: u64) {
    enter!(LAYOUT);
    let cache = of.cache;
    for at in (0..rounds).flat_map(|_| 0..FEW) {
        let handle = of.handles[at];
        // SAFETY: the cache has handles. Look-ups of objects that move are in a guard.
        unsafe {
            match cost {
                Cost::Get if of.moves => {
                    hide(sys::sy_read_get_inline(cache, handle));
                }
                Cost::Get => {
                    hide(sys::sy_handle_get_inline(cache, handle));
                }
                Cost::Pin => {
                    hide(sys::sy_handle_pin(cache, handle));
                    sys::sy_handle_unpin(cache, handle);
                }
                Cost::Replace => {
                    black_box(sys::sy_handle_free_inline(cache, handle));
                    of.handles[at] = of.alloc();
                }
                Cost::Guard => sys::sy_read_leave(black_box(sys::sy_read_enter())),
            }
        }
    }
}

fn costs(cost: Cost, job: &Job<Row>) -> Vec<Sampled> {
    let mut cache = Cache::new(job.who == MOVE, job.effort.seed);
    let mut timed = |layout: usize, rounds: u64| {
        // SAFETY: guards nest, and this one ends below.
        let guard = (cost == Cost::Get).then(|| unsafe { sys::sy_read_enter() });
        let before = cpu_ns();
        match layout {
            0 => run::<0>(cost, &mut cache, rounds),
            1 => run::<1>(cost, &mut cache, rounds),
            _ => run::<2>(cost, &mut cache, rounds),
        }
        let each = (cpu_ns() - before) as f64 / (rounds * FEW as u64) as f64;
        // SAFETY: it is this thread's last one.
        guard
            .into_iter()
            .for_each(|it| unsafe { sys::sy_read_leave(it) });
        each
    };
    let sampled = job.effort.layouts.iter().map(|&layout| {
        let each = timed(layout, 10).max(0.01);
        let rounds = job.effort.sample.as_nanos() as f64 / (each * FEW as f64);
        Sampled::of_time(timed(layout, (rounds as u64).max(1)))
    });
    sampled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::Row as _;

    #[test]
    fn rows_are_found_by_their_names() {
        for row in Row::all() {
            assert_eq!(Row::find(&row.name()), Some(row));
            assert!(row.names().contains(&row.peer()));
        }
    }
}
