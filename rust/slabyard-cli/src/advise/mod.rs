//! `slabyard advise`: which places in a program would gain from a pool, a cache or epochs.
//!
//! A place is a line of a function that allocates objects of one size. [`lives`] collects when the
//! objects of the busiest places began and ended, and in which threads; [`trial`] repeats just this
//! with glibc's malloc, a cache and a pool, and measures the time; [`groups`] finds objects that could
//! be in one epoch, and [`epochs`] counts the memory with them; this file compares, [`text`] tells.
//!
//! Above: `cli`. Below: `profile`, which counts and names, and `plan::order`.

mod code;
mod epochs;
mod groups;
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
use epochs::Epochs;
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
/// What epochs save is counted in slabs. Less is chance.
const WORTH_SLABS: f64 = 4.0 * 65536.0;

const ADVISE_NOTES: &str = "\
Epochs are tried for the phases of a thread, and for 64 or more objects that a thread frees without an
allocation between. A recording does not say which objects belong to one request. Check that your
program knows an object's group when it allocates the object.";

#[derive(Args)]
#[command(after_help = ADVISE_NOTES)]
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
    epochs: Option<Epochs>,
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

impl Epochs {
    /// Whether they save more on average than they cost when most objects are live.
    fn is_worth(&self, whole: Whole) -> bool {
        let least = WORTH_SLABS.max(WORTH_MEMORY * whole.peak_bytes as f64);
        self.saved() >= least.max(self.with.most - self.without.most)
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
    let lives = lives::collect(&recording, process, &of_stack, places.len(), weights.last);
    let mut tried = Vec::new();
    for (place, life) in places.into_iter().zip(lives) {
        let size = place.size as usize;
        // A container of a library does not say which epoch its next object belongs to.
        let epochs = match place.through {
            None => epochs::best(&life, size)?,
            Some(_) => None,
        };
        tried.push(Tried {
            measured: trial::measure(&life, size)?,
            place,
            life,
            epochs,
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
