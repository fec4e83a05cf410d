//! `slabyard profile`: whose memory it is, by stack, by thread and by size, and when.
//!
//! [`weigh`] counts what each stack of a recording has allocated, [`names`] finds the names of the
//! functions, and [`formats`] writes the result, which [`data`] describes. [`live`] takes it from the
//! samples of a running process, and [`leaks`] says from their ages what may leak.
//!
//! Above: `cli`. Below: `recording`, and `plan::order`, which merges the records of all threads.

pub mod budget;
pub mod command;
pub mod data;
pub mod formats;
mod growth;
pub mod leaks;
pub mod live;
pub mod names;
mod tables;
pub mod weigh;

use crate::recording::{Process, Recording};
use crate::ui;
use anyhow::{bail, Context, Result};
use clap::ValueEnum;
use data::{Measure, Profile, Stack};
use names::Names;
use std::collections::HashMap;
use weigh::{Figures, Weights};

/// Which objects count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// Those in use when the process had the most bytes
    Peak,
    /// Those that it had not freed when it ended
    Leaked,
    /// All that it allocated
    Allocated,
    /// Those that were freed before their thread allocated anything else
    Temporary,
    /// Of a running process: those that are in use now
    Live,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    Stack,
    Thread,
    Size,
    /// Equal parts of the run
    Time,
}

const fn measure(name: &'static str, unit: &'static str, title: &'static str) -> Measure {
    Measure { name, unit, title }
}

/// The measures of every profile of a recording: bytes and objects of each [`Which`].
pub const MEASURES: [Measure; 8] = [
    measure("peak_bytes", "bytes", "in use at the peak"),
    measure("peak_objects", "count", "objects in use at the peak"),
    measure("leaked_bytes", "bytes", "not freed at exit"),
    measure("leaked_objects", "count", "objects not freed at exit"),
    measure("allocated_bytes", "bytes", "allocated in all"),
    measure("allocated_objects", "count", "allocations"),
    measure("temporary_bytes", "bytes", "allocated and freed at once"),
    measure("temporary_objects", "count", "allocations freed at once"),
];

impl Which {
    /// The index in [`MEASURES`].
    pub fn measure(self, in_objects: bool) -> usize {
        2 * self as usize + usize::from(in_objects)
    }

    /// The index in [`live::MEASURES`]; `None`: samples do not say it.
    pub fn measure_of_samples(self, in_objects: bool) -> Option<usize> {
        match self {
            Which::Live => Some(usize::from(in_objects)),
            Which::Allocated => Some(2 + usize::from(in_objects)),
            Which::Peak | Which::Leaked | Which::Temporary => None,
        }
    }
}

/// The values of [`MEASURES`].
fn values(figures: &Figures) -> Vec<i64> {
    let values = [
        figures.peak_bytes,
        figures.peak,
        figures.live_bytes,
        figures.live,
        figures.bytes,
        figures.allocations,
        figures.temporary_bytes,
        figures.temporary,
    ];
    let signed = |value| i64::try_from(value).unwrap_or(i64::MAX);
    values.into_iter().map(signed).collect()
}

/// The process of a recording that is asked for, or else the one with the most operations.
pub fn process_of(recording: &Recording, pid: Option<u32>) -> Result<&Process> {
    let processes = &recording.processes;
    let found = match pid {
        Some(pid) => processes.iter().find(|process| process.pid == pid),
        None => processes.iter().max_by_key(|process| process.records()),
    };
    let found = found.with_context(|| {
        let known = processes
            .iter()
            .map(|one| format!("{} ({})", one.pid, one.name()));
        let known = known.collect::<Vec<_>>().join(", ");
        format!(
            "there is no process {}; there are {known}",
            pid.unwrap_or(0)
        )
    })?;
    Ok(found)
}

/// Refuses a recording without stacks.
pub fn must_have_stacks(process: &Process) -> Result<()> {
    if !process.has_stacks {
        bail!(
            "the recording has no stacks: slabyard record --stacks -- PROGRAM records them; \
             --by thread, --by size and --by time need none"
        );
    }
    Ok(())
}

/// The profile of a process, by stack.
pub fn profile_of(process: &Process, weights: &Weights) -> Profile {
    let mut names = Names::of_recording(process);
    let mut stacks: HashMap<Vec<u32>, Vec<i64>> = HashMap::new();
    let mut sorted: Vec<_> = weights.stacks.iter().collect();
    sorted.sort_by_key(|(stack, _)| **stack);
    let mut cut = 0;
    for (&stack, figures) in sorted {
        let frames = names.of(stack);
        if names.cut.contains(&stack) {
            cut += figures.allocations;
        }
        let sums = stacks
            .entry(frames)
            .or_insert_with(|| vec![0; MEASURES.len()]);
        for (sum, value) in sums.iter_mut().zip(values(figures)) {
            *sum += value;
        }
    }
    say_what_is_missing(&names, cut, weights.all.allocations);
    let stacks = stacks.into_iter();
    let mut stacks: Vec<Stack> = stacks
        .map(|(frames, values)| Stack { frames, values })
        .collect();
    stacks.sort_by(|a, b| a.frames.cmp(&b.frames));
    Profile {
        title: process.name().to_string(),
        measures: MEASURES.to_vec(),
        frames: names.frames,
        stacks,
        is_difference: false,
    }
}

fn say_what_is_missing(names: &Names, cut: u64, allocations: u64) {
    for path in &names.changed {
        ui::warn(&format!(
            "{path} is not the file that the program used any more: its functions have no names"
        ));
    }
    if cut > 0 {
        ui::warn(&format!(
            "the stacks of {} of {} allocations are cut: their outermost functions could not be found",
            ui::grouped(cut),
            ui::grouped(allocations)
        ));
    }
}

/// What to show of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Show {
    pub which: Which,
    pub in_objects: bool,
    pub by: By,
    pub rows: usize,
    pub pid: Option<u32>,
}

/// A table by thread, by size or by time.
pub fn table_of(recording: &Recording, show: &Show) -> Result<String> {
    let process = process_of(recording, show.pid)?;
    let weights = Weights::of(recording, process);
    Ok(match show.by {
        By::Thread => tables::by_thread(process, &weights, show),
        By::Time => growth::by_time(recording, process, &weights, show),
        By::Size | By::Stack => tables::by_size(process, &weights, show),
    })
}

/// The profile by stack of a recording.
pub fn of_recording(recording: &Recording, pid: Option<u32>) -> Result<Profile> {
    let process = process_of(recording, pid)?;
    must_have_stacks(process)?;
    let weights = Weights::of(recording, process);
    Ok(profile_of(process, &weights))
}

#[cfg(test)]
mod tests;
