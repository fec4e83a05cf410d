//! A quantum cache beside an object cache. Both are called to allocate and free one object at a
//! time. They take turns in one process.

use super::{kernels, Effort};
use crate::allocators::{self, State};
use crate::figure::Figure;
use crate::kernels::Kernels;
use crate::machine::{self, team, wall_of};
use crate::table;
use core::ffi::CStr;

/// Bytes of an object, and the size that has a quantum cache.
const SIZE: usize = 64;
/// Pairs in one round of the loop that holds more than one object.
const CHURN_PAIRS: u64 = 64;
/// The side that the ratios are relative to.
const MEASURE: &str = "cache-called";

/// The loop of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loop {
    /// One object, again and again.
    Pair,
    /// 64 allocated, 64 freed.
    Churn,
}

/// A loop on a number of threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    pub kind: Loop,
    pub threads: usize,
}

impl Row {
    pub fn name(&self) -> String {
        let kind = match self.kind {
            Loop::Pair => "pair",
            Loop::Churn => "churn",
        };
        format!("{kind}/{}", self.threads)
    }

    fn describe(&self) -> String {
        let what = match self.kind {
            Loop::Pair => "alloc, write, free",
            Loop::Churn => "64 allocated, 64 freed",
        };
        let threads = match self.threads {
            1 => "1 thread".to_owned(),
            more => format!("{more} threads"),
        };
        format!("{what}, {SIZE} B, {threads}; CPU ns per alloc and free")
    }

    fn run(&self, kernels: &Kernels, state: &State, count: u64) {
        // SAFETY: the state is of this table, which any thread may use.
        unsafe {
            match self.kind {
                Loop::Pair => (kernels.pair)(state.pointer(), count),
                Loop::Churn => (kernels.churn)(state.pointer(), count.div_ceil(CHURN_PAIRS)),
            }
        }
    }

    /// CPU time of `count` pairs on each thread, and the time that passed on the clock.
    fn time(&self, kernels: &Kernels, state: &State, count: u64) -> (u64, u64) {
        let warm = |_| self.run(kernels, state, count / 8);
        let times = team(
            self.threads,
            || (),
            warm,
            |_| self.run(kernels, state, count),
        );
        (machine::cpu_of(&times), wall_of(&times))
    }
}

pub fn rows(quick: bool) -> Vec<Row> {
    let threads: &[usize] = if quick { &[1, 2] } else { &[1, 2, 4, 8] };
    let of = |kind| threads.iter().map(move |&threads| Row { kind, threads });
    of(Loop::Pair).chain(of(Loop::Churn)).collect()
}

/// One side of the comparison: an open state and the copies of its loops.
struct Side {
    name: &'static str,
    layouts: Vec<(usize, Kernels)>,
    state: State,
}

impl Side {
    fn open(layouts: &[usize], table: impl Fn(usize) -> Option<Kernels>) -> Side {
        let of = |&layout: &usize| table(layout).map(|kernels| (layout, kernels));
        let layouts: Vec<(usize, Kernels)> = layouts.iter().filter_map(of).collect();
        let kernels = layouts.first().expect("every layout has the table").1;
        // SAFETY: every table carries a static string.
        let name = unsafe { CStr::from_ptr(kernels.name) };
        Side {
            name: name.to_str().expect("a name is ASCII"),
            layouts,
            state: State::open(kernels, SIZE, 1024).expect("the allocator can be opened"),
        }
    }
}

/// The sides that are called, and the cache with its inlined functions.
fn sides(layouts: &[usize]) -> Vec<Side> {
    let called = 0..kernels::pairs(0).len();
    let called = called
        .map(|index| Side::open(layouts, |layout| kernels::pairs(layout).get(index).copied()));
    let inlined = allocators::find("cache").expect("the cache is measured");
    let inlined = Side::open(layouts, |layout| inlined.kernels(layout, SIZE));
    called.chain([inlined]).collect()
}

/// Measures a row with these copies of the loops, in this order.
pub fn measure(row: &Row, layouts: &[usize], effort: &Effort) -> Vec<Figure> {
    let mut sides = sides(layouts);
    let turn = effort.repeat % sides.len();
    sides.rotate_left(turn);
    let wanted = effort.sample.as_nanos() as f64;
    let least = 64 * 100;
    let counts = sides.iter().map(|side| {
        let (_, took) = row.time(&side.layouts[0].1, &side.state, least);
        (least as f64 * (wanted / took.max(1) as f64).clamp(1.0, 1e6)) as u64
    });
    let counts: Vec<u64> = counts.collect();
    let mut figures = Vec::new();
    for (index, &layout) in layouts.iter().enumerate() {
        for (side, &count) in sides.iter().zip(&counts) {
            let (cpu, _) = row.time(&side.layouts[index].1, &side.state, count);
            let each = cpu as f64 / (count * row.threads as u64) as f64;
            figures.push(Figure::new(&row.name(), "ns", side.name, layout, each));
        }
    }
    figures
}

/// A row as text.
pub fn block(row: &Row, found: &[Figure]) -> String {
    let called = kernels::pairs(0).iter();
    // SAFETY: every table carries a static string.
    let called = called.map(|kernels| unsafe { CStr::from_ptr(kernels.name) });
    let names = called.filter_map(|name| name.to_str().ok());
    let names: Vec<&str> = names.chain(["cache"]).collect();
    let wholes: [table::Whole; 1] = [("/called", &|_| Some(MEASURE))];
    let table = table::block(found, &row.name(), &names, &["ns"], &wholes);
    format!("\n{}: {}\n{}", row.name(), row.describe(), table.text())
}
