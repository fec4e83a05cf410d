//! `slabyard advise`: which places in a program would gain from a pool or a cache.
//!
//! A place is a line of a function that allocates objects of one size. [`lives`] collects when the
//! objects of the busiest places began and ended, and in which threads; [`trial`] repeats just this
//! with glibc's malloc, a cache and a pool, and measures the time; this file compares and tells.
//!
//! It advises no epochs. Their gain depends on which objects of several places belong to one request
//! or frame, and a recording does not say that.
//!
//! Above: `cli`. Below: `profile`, which counts and names, and `plan::order`.

mod lives;
mod text;
mod trial;

use crate::cli::open;
use crate::profile::data::{Frame, Profile, Stack};
use crate::profile::formats::text::{from_site, is_plumbing};
use crate::profile::names::Names;
use crate::profile::weigh::{Figures, Weights};
use crate::profile::{must_have_stacks, process_of};
use crate::recording::{Process, Recording};
use crate::ui;
use anyhow::Result;
use clap::Args;
use lives::Life;
use std::collections::HashMap;
use std::path::PathBuf;
use trial::Measured;

/// Larger objects have slabs of few slots, in which a cache gains little.
const SIZE_MOST: u64 = 4096;
/// A place with a smaller share of all allocations is not tried.
const SHARE_LEAST: f64 = 0.01;
/// Nor one with fewer: a trial of them measures noise.
const ALLOCATIONS_LEAST: u64 = 1000;
/// A change of the program is worth this share of its time, or of its peak.
const WORTH_TIME: f64 = 0.005;
const WORTH_MEMORY: f64 = 0.01;

#[derive(Args)]
pub struct AdviseArgs {
    /// The recording (slabyard record --stacks)
    file: PathBuf,
    /// Try at most so many places
    #[arg(short = 'n', long, value_name = "N", default_value_t = 8)]
    most: usize,
    /// The process, if there are several [default: the one with the most operations]
    #[arg(long, value_name = "PID")]
    process: Option<u32>,
    /// Use the part of a damaged recording before the damage
    #[arg(long)]
    salvage: bool,
}

/// A place, and its figures.
struct Place {
    site: Frame,
    /// The library function that the site calls, if it does not allocate itself.
    through: Option<String>,
    size: u64,
    figures: Figures,
}

/// A place that was tried.
struct Tried {
    place: Place,
    life: Life,
    measured: Measured,
}

/// What a place would gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pool,
    /// A pool whose objects are freed together, each time when none is needed any more.
    Reset,
    Cache,
}

#[derive(Clone, Copy, Debug)]
struct Gain {
    kind: Kind,
    /// Nanoseconds of the whole run.
    time: f64,
    /// Bytes of the peak.
    bytes: i64,
}

/// The time and the peak of the whole process.
#[derive(Clone, Copy, Debug)]
struct Whole {
    ns: f64,
    peak_bytes: u64,
    allocations: u64,
}

impl Gain {
    fn is_worth(&self, whole: Whole) -> bool {
        self.time >= WORTH_TIME * whole.ns
            || self.bytes as f64 >= WORTH_MEMORY * whole.peak_bytes as f64
    }
}

pub fn show(args: &AdviseArgs) -> Result<u8> {
    let recording = open(&args.file, args.salvage)?;
    let process = process_of(&recording, args.process)?;
    must_have_stacks(process)?;
    let weights = Weights::of(&recording, process);
    let whole = Whole {
        ns: duration(&recording, process),
        peak_bytes: weights.all.peak_bytes,
        allocations: weights.all.allocations,
    };
    let (places, of_stack) = places(process, &weights, args.most);
    let lives = lives::collect(&recording, process, &of_stack, places.len());
    let mut tried = Vec::new();
    for (place, life) in places.into_iter().zip(lives) {
        let measured = trial::measure(&life, place.size as usize)?;
        tried.push(Tried {
            place,
            life,
            measured,
        });
    }
    ui::print(&text::render(process, whole, &tried))?;
    Ok(0)
}

/// The time of the recorded run in nanoseconds.
fn duration(recording: &Recording, process: &Process) -> f64 {
    let end = process.end.map_or_else(
        || {
            let blocks = process.threads.iter().flat_map(|thread| &thread.blocks);
            let last = blocks.map(|block| block.stamp).max().unwrap_or(0);
            last.saturating_sub(process.birth_ticks) as f64 * recording.ns_per_tick()
        },
        |(_, ns)| ns.saturating_sub(process.birth_ns) as f64,
    );
    end.max(1.0)
}

/// The busiest places; and for each stack and size, the index of its place.
fn places(
    process: &Process,
    weights: &Weights,
    most: usize,
) -> (Vec<Place>, HashMap<(u32, u64), usize>) {
    let mut names = Names::of_recording(process);
    let mut found: HashMap<(Frame, u64), (Place, Vec<u32>)> = HashMap::new();
    for (&(stack, size), figures) in &weights.sites {
        if size > SIZE_MOST {
            continue;
        }
        let (site, through) = site_of(&mut names, stack);
        let (place, stacks) = found.entry((site.clone(), size)).or_insert_with(|| {
            let figures = Figures::default();
            let place = Place {
                site,
                through,
                size,
                figures,
            };
            (place, Vec::new())
        });
        place.figures.allocations += figures.allocations;
        place.figures.peak += figures.peak;
        stacks.push(stack);
    }
    let least = (SHARE_LEAST * weights.all.allocations as f64) as u64;
    let least = least.max(ALLOCATIONS_LEAST);
    let mut busiest: Vec<_> = found.into_values().collect();
    busiest.retain(|(place, _)| place.figures.allocations >= least);
    busiest.sort_by(|(a, _), (b, _)| {
        let key = |one: &Place| (std::cmp::Reverse(one.figures.allocations), one.size);
        key(a).cmp(&key(b))
    });
    busiest.truncate(most);
    let mut of_stack = HashMap::new();
    let mut kept = Vec::new();
    for (index, (place, stacks)) in busiest.into_iter().enumerate() {
        of_stack.extend(stacks.iter().map(|&stack| ((stack, place.size), index)));
        kept.push(place);
    }
    (kept, of_stack)
}

/// The place that a stack allocates in, and what it calls for that.
fn site_of(names: &mut Names, stack: u32) -> (Frame, Option<String>) {
    let frames = names.of(stack);
    let profile = Profile {
        frames: frames
            .iter()
            .map(|&at| names.frames[at as usize].clone())
            .collect(),
        ..Profile::default()
    };
    let stack = Stack {
        frames: (0..frames.len() as u32).collect(),
        values: Vec::new(),
    };
    let from = from_site(&profile, &stack);
    let inner = (profile.frames.len() - from.len()).checked_sub(1);
    let called = inner.map(|_| &profile.frames[from.len()]);
    let called =
        called.filter(|frame| is_plumbing(frame) && !frame.function.starts_with("operator new"));
    (from[0].clone(), called.map(|frame| frame.function.clone()))
}

/// The bytes that glibc's malloc takes for an object: a header of 8 bytes, in units of 16.
fn malloc_bytes(size: u64) -> u64 {
    (size + 8).next_multiple_of(16).max(32)
}

/// The gains of a place, the best one first.
fn gains(tried: &Tried) -> Vec<Gain> {
    let (place, life, measured) = (&tried.place, &tried.life, &tried.measured);
    let (allocations, frees) = (place.figures.allocations as f64, life.freed as f64);
    let before = measured.malloc_ns * (allocations + frees);
    let gain = |kind, after: f64, slot: u64| Gain {
        kind,
        time: before - after,
        bytes: (malloc_bytes(place.size) as i64 - slot as i64) * place.figures.peak as i64,
    };
    let cache = measured.cache_ns * (allocations + frees);
    let mut gains = vec![gain(Kind::Cache, cache, measured.cache_slot)];
    // The library's containers take an allocator with caches, and none with a pool.
    if let Some(ns) = measured.pool_ns.filter(|_| place.through.is_none()) {
        let pool = ns * (allocations + frees);
        gains.push(gain(Kind::Pool, pool, measured.pool_slot));
        if life.ends_together() {
            gains.push(gain(Kind::Reset, ns * allocations, measured.pool_slot));
        }
    }
    gains.sort_by(|a, b| b.time.total_cmp(&a.time));
    gains
}

#[cfg(test)]
mod tests;
