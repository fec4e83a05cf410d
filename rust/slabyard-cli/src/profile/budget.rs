//! Budgets: `slabyard run --limit-peak 64M -- PROGRAM` fails if a process of the program takes more.
//!
//! The program is recorded with stacks, so the message can name the place with the most.

use super::data::Profile;
use super::formats::{self, flame, text};
use super::weigh::Weights;
use super::{Which, MEASURES};
use crate::cli::{may_replace, size, write_whole};
use crate::program::Ended;
use crate::record;
use crate::recording::{Process, Recording, Strictness};
use crate::{signals, ui};
use anyhow::{Context, Result};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Args)]
#[command(
    next_help_heading = "Limits, for tests (with these, the program is recorded, and has its own malloc)"
)]
pub struct Limits {
    /// Fail if a process ever has more bytes in use (64M, 1.5G)
    #[arg(long, value_name = "BYTES", value_parser = size, conflicts_with_all = ["options", "library"])]
    limit_peak: Option<u64>,
    /// Fail if a process ends with more bytes that it has not freed
    #[arg(long, value_name = "BYTES", value_parser = size, conflicts_with_all = ["options", "library"])]
    limit_live_at_exit: Option<u64>,
    /// Fail if a process allocates more often
    #[arg(long, value_name = "N", conflicts_with_all = ["options", "library"])]
    limit_allocations: Option<u64>,
    /// The limits hold for the processes of this name only [default: all]
    #[arg(long, value_name = "NAME")]
    limit_of: Option<String>,
    /// If a limit is exceeded, write a flame graph of what exceeds it
    #[arg(long, value_name = "FILE.svg")]
    flame: Option<PathBuf>,
}

/// A limit that a process exceeds.
struct Excess<'a> {
    process: &'a Process,
    measure: usize,
    value: u64,
    limit: u64,
    profile: Profile,
}

impl Limits {
    pub fn any(&self) -> bool {
        let limits = [
            self.limit_peak,
            self.limit_live_at_exit,
            self.limit_allocations,
        ];
        limits.iter().any(Option::is_some)
    }

    /// What the parser cannot find: an option that means nothing without a limit.
    pub fn check(&self) -> Result<(), &'static str> {
        if !self.any() && (self.limit_of.is_some() || self.flame.is_some()) {
            return Err("--limit-of and --flame need a limit, such as --limit-peak 64M");
        }
        Ok(())
    }

    /// The limits, each with the measure that it is for.
    fn each(&self) -> impl Iterator<Item = (usize, u64)> {
        let limits = [
            (Which::Peak.measure(false), self.limit_peak),
            (Which::Leaked.measure(false), self.limit_live_at_exit),
            (Which::Allocated.measure(true), self.limit_allocations),
        ];
        limits
            .into_iter()
            .filter_map(|(measure, limit)| Some((measure, limit?)))
    }

    fn excesses<'a>(&self, recording: &Recording, process: &'a Process) -> Vec<Excess<'a>> {
        let weights = Weights::of(recording, process);
        let mut profile = super::profile_of(process, &weights);
        forget_libraries(&mut profile);
        let over = self.each().filter_map(|(measure, limit)| {
            let value = profile.total(measure) as u64;
            (value > limit).then(|| Excess {
                process,
                measure,
                value,
                limit,
                profile: profile.clone(),
            })
        });
        over.collect()
    }
}

/// Objects that libraries keep on purpose for the whole run do not count as left at exit: the buffers
/// of stdio, and what the loader let them allocate before main.
fn forget_libraries(profile: &mut Profile) {
    let leaked = [Which::Leaked.measure(false), Which::Leaked.measure(true)];
    for stack in &mut profile.stacks {
        let frames = stack.frames.iter().map(|&at| &profile.frames[at as usize]);
        let mut frames = frames.peekable();
        let by_loader = frames.peek().is_some_and(|outermost| {
            let file = outermost.module.rsplit('/').next().unwrap_or("");
            file.starts_with("ld-")
        });
        if by_loader || frames.any(|frame| frame.function == "_IO_file_doallocate") {
            leaked.iter().for_each(|&measure| stack.values[measure] = 0);
        }
    }
}

impl Excess<'_> {
    fn sentence(&self) -> String {
        let what = MEASURES[self.measure];
        let amount = |value: u64| text::amount(value as i64, what.unit, false);
        let table = formats::text::render(&self.profile, self.measure, 1);
        let most = table.lines().skip(2).take_while(|line| !line.is_empty());
        let most = most.collect::<Vec<_>>().join("\n");
        format!(
            "{} (process {}) has {} {}, over the limit of {}. The place with the most:\n{most}",
            self.process.name(),
            self.process.pid,
            amount(self.value),
            what.title,
            amount(self.limit)
        )
    }
}

/// Runs the program and checks the limits. Returns whether they hold, and how it ended.
pub fn run(command: &[OsString], limits: &Limits) -> Result<(bool, Ended)> {
    if let Some(flame) = &limits.flame {
        may_replace(flame, true)?;
    }
    let scratch = tempfile::tempdir().context("cannot make a folder for the recording")?;
    signals::remove_when_ended(scratch.path().to_path_buf());
    let file = scratch.path().join("limits.syrec");
    let plan = record::Plan {
        command,
        stacks: true,
        may_be_empty: true,
        ..record::Plan::default()
    };
    let recorded = record::record(&plan, &file)?;
    if recorded.operations == 0 {
        return Ok((true, recorded.ended));
    }
    let recording = Recording::open(&file, Strictness::Whole)?;
    let processes = recording.processes.iter().filter(|process| {
        limits
            .limit_of
            .as_deref()
            .is_none_or(|name| process.name() == name)
    });
    let excesses: Vec<Excess> = processes
        .flat_map(|process| limits.excesses(&recording, process))
        .collect();
    for excess in &excesses {
        ui::warn(&excess.sentence());
    }
    if let (Some(path), Some(first)) = (&limits.flame, excesses.first()) {
        write_whole(path, flame::render(&first.profile, first.measure)?)?;
        ui::warn(&format!("flame graph in {}", path.display()));
    }
    Ok((excesses.is_empty(), recorded.ended))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024() {
        let sizes = ["0", "64k", "64M", "1.5G", "64MiB"].map(|text| size(text).unwrap());
        assert_eq!(sizes, [0, 64 << 10, 64 << 20, 3 << 29, 64 << 20]);
        for wrong in ["", "M", "-1", "64X", "1e30"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
