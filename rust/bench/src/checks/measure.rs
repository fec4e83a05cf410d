//! Measures a row, inside a process that does nothing else.

use super::contender::{Contender, Interface};
use super::kernels::{self, Done, Step, SIZE};
use crate::figure::Figure;
use crate::machine;
use core::ffi::c_void;
use core::ptr::{dangling_mut, null_mut};
use slabyard_sys as sys;
use std::time::Duration;

/// The rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Row {
    /// One object, again and again.
    Pair,
    /// Random objects of many, replaced.
    Steady,
    /// Resident memory of many objects.
    Memory,
}

pub const ROWS: [Row; 3] = [Row::Pair, Row::Steady, Row::Memory];

/// The extent of a measurement.
#[derive(Clone, Debug)]
pub struct Effort {
    /// Processor time of one sample.
    pub sample: Duration,
    /// The number of live objects in the rows about many objects.
    pub live: usize,
    /// Copies of the loops, in this order.
    pub layouts: Vec<usize>,
    /// The number of earlier repeats. Each repeat begins with another contender.
    pub repeat: usize,
}

/// Objects that are allocated and freed before pairs are measured. A lack of memory shows here.
const PAIR_LIVE: usize = 256;
/// Operations that are timed to see how many a sample needs.
const LEAST: u64 = 2_000;
/// Replacements of each object before the heap counts as shuffled.
const SHUFFLES: u64 = 2;

impl Row {
    pub fn name(self) -> &'static str {
        match self {
            Row::Pair => "pair",
            Row::Steady => "steady",
            Row::Memory => "memory",
        }
    }

    pub fn find(name: &str) -> Option<Row> {
        ROWS.into_iter().find(|row| row.name() == name)
    }

    pub fn describe(self) -> String {
        match self {
            Row::Pair => format!("alloc, touch, free of {SIZE} B; CPU ns per pair"),
            Row::Steady => {
                format!("random one of 100,000 live {SIZE} B objects replaced; CPU ns each")
            }
            Row::Memory => format!("resident bytes for each of 100,000 live objects of {SIZE} B"),
        }
    }

    /// The metric of the row's figures.
    pub fn metric(self) -> &'static str {
        match self {
            Row::Memory => "bytes",
            _ => "ns",
        }
    }

    fn step(self) -> Step {
        match self {
            Row::Pair => Step::Pair,
            _ => Step::Steady,
        }
    }

    fn live(self, effort: &Effort) -> usize {
        match self {
            Row::Pair => PAIR_LIVE,
            _ => effort.live,
        }
    }
}

/// A contender with its open cache and its objects.
struct Side {
    who: Contender,
    cache: *mut sys::sy_cache,
    objects: Vec<*mut c_void>,
    layouts: Vec<usize>,
    /// The number of live objects: the first ones of `objects`.
    live: usize,
}

impl Side {
    /// Opens a contender without objects. The array for objects is made resident first.
    fn open(who: Contender, live: usize, layouts: &[usize]) -> Result<Side, String> {
        let mut objects = vec![dangling_mut(); live];
        std::hint::black_box(objects.as_mut_ptr());
        objects.fill(null_mut());
        let mut side = Side {
            who,
            cache: null_mut(),
            objects,
            layouts: layouts.to_vec(),
            live: 0,
        };
        side.say_options()?;
        if who.interface == Interface::Cache {
            let config = sys::sy_cache_config {
                name: c"bench".as_ptr(),
                size: SIZE,
                flags: who.flags(),
                ..Default::default()
            };
            // SAFETY: a sensible configuration.
            side.cache = unsafe { sys::sy_cache_create(&config) };
            if side.cache.is_null() {
                return Err(format!("{}: the cache cannot be created", who.name()));
            }
        }
        Ok(side)
    }

    fn say_options(&self) -> Result<(), String> {
        // SAFETY: a C string.
        match unsafe { sys::sy_set_options(self.who.options().as_ptr()) } {
            0 => Ok(()),
            _ => Err(format!("{}: an option is unknown", self.who.name())),
        }
    }

    /// Runs a step in one of the layouts, given by its index.
    fn run(&mut self, index: usize, step: Step, count: u64, seed: u64) -> Done {
        let loops = kernels::loops(self.layouts[index], self.who.loops());
        let loops = loops.expect("every layout has the loops");
        let objects = match step {
            Step::Drain => &mut self.objects[..self.live],
            _ => &mut self.objects[..],
        };
        // SAFETY: the loops of the cache get the cache, and the others ignore their state. The row
        // runs steady only between fill and drain, when all objects are live.
        unsafe { kernels::run(loops, self.cache.cast(), objects, step, count, seed) }
    }

    fn fill(&mut self) -> Result<(), String> {
        self.live = self.run(0, Step::Fill, 0, 0).filled;
        if self.live == self.objects.len() {
            return Ok(());
        }
        let (name, live) = (self.who.name(), self.live);
        Err(format!("{name}: memory for only {live} objects"))
    }

    fn drain(&mut self) {
        self.run(0, Step::Drain, 0, 0);
        self.live = 0;
    }

    /// Brings the objects into the state in which the row begins.
    fn settle(&mut self, row: Row, seed: u64) -> Result<(), String> {
        self.fill()?;
        if row == Row::Pair {
            self.drain();
        } else {
            let count = SHUFFLES * self.live as u64;
            self.run(0, Step::Steady, count, seed);
        }
        Ok(())
    }

    /// The number of operations of a sample, estimated from the time of a few warm ones.
    fn count(&mut self, step: Step, wanted: Duration, seed: u64) -> u64 {
        self.run(0, step, LEAST, seed);
        let took = self.run(0, step, LEAST, seed + 1).ns;
        let factor = wanted.as_nanos() as f64 / took.max(1) as f64;
        ((LEAST as f64 * factor.min(1e6)) as u64).max(LEAST / 10)
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.drain();
        if !self.cache.is_null() {
            // SAFETY: the cache has no live objects, and no other thread uses it.
            unsafe { sys::sy_cache_destroy_all(self.cache) };
        }
    }
}

fn figure(row: Row, who: &Contender, layout: usize, value: f64) -> Figure {
    Figure::new(row.name(), row.metric(), &who.name(), layout, value)
}

/// Raises the process's limit of locked memory to the maximum that it may set.
fn lift_lock_limit() {
    // SAFETY: a struct of numbers, which both calls are given.
    unsafe {
        let mut limit: libc::rlimit = core::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit);
        }
    }
}

/// Measures memory of one contender, which is alone in the process.
fn memory(who: Contender, effort: &Effort) -> Result<Vec<Figure>, String> {
    let row = Row::Memory;
    let mut side = Side::open(who, row.live(effort), &effort.layouts[..1])?;
    side.run(0, Step::Drain, 0, 0); // drains nothing, but starts the thread of the loops
    let before = machine::resident();
    side.settle(row, effort.repeat as u64)?;
    let used = machine::resident().saturating_sub(before);
    let each = used as f64 / side.live as f64;
    Ok(vec![figure(row, &who, effort.layouts[0], each)])
}

fn times(row: Row, all: &[Contender], effort: &Effort) -> Result<Vec<Figure>, String> {
    let mut sides = Vec::new();
    for &who in all {
        let mut side = Side::open(who, row.live(effort), &effort.layouts)?;
        side.settle(row, effort.repeat as u64)?;
        let count = side.count(row.step(), effort.sample, effort.repeat as u64);
        sides.push((side, count));
    }
    let turn = effort.repeat % sides.len().max(1);
    sides.rotate_left(turn);
    let mut figures = Vec::new();
    for (index, &layout) in effort.layouts.iter().enumerate() {
        for (side, count) in &mut sides {
            side.say_options()?;
            let seed = effort.repeat as u64 + 2;
            side.run(index, row.step(), side.objects.len() as u64, seed); // others ran meanwhile
            let took = side
                .run(index, row.step(), *count, *count ^ index as u64)
                .ns;
            let each = took as f64 / *count as f64;
            figures.push(figure(row, &side.who, layout, each));
        }
    }
    Ok(figures)
}

/// Measures a row for all contenders in turn.
pub fn measure(row: Row, all: &[Contender], effort: &Effort) -> Result<Vec<Figure>, String> {
    lift_lock_limit();
    match (row, all) {
        (Row::Memory, &[who]) => memory(who, effort),
        (Row::Memory, _) => Err("memory is measured alone".to_owned()),
        _ => times(row, all, effort),
    }
}
