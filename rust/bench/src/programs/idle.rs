//! Idle memory: what a workload's process still has in RAM after it freed everything, at once and
//! some seconds later.
//!
//! Each workload is run once more over each allocator, with the seconds as second argument:
//! `finish` in `programs/program.h` prints the anonymous memory of its own process twice. So memory
//! of code and libraries is not counted, nothing samples from outside, and the times of the measured
//! runs do not include the wait. Real programs end with their work, so they have no such figure.

use super::waiting::Waiting;
use super::{over, Job};
use crate::figure::Figure;
use crate::preloaded::Contender;
use std::path::Path;

pub const FREED: &str = "freed MiB";
pub const IDLE: &str = "idle MiB";

/// Lines of a workload before it waits: its result, and the memory when it has freed everything.
const BEFORE: usize = 2;

/// The figures of all allocators.
pub fn measure(
    job: &Job,
    who: &[Contender],
    tool: &Path,
    seconds: u64,
    folder: &Path,
) -> Result<Vec<Figure>, String> {
    let start = |one: &Contender| {
        let mut command = over(one, tool, &job.command, folder);
        command.arg(seconds.to_string());
        let what = format!("{} on {}, idle", job.name, one.name);
        Waiting::start(command, what, |lines| lines.len() == BEFORE)
    };
    let all: Vec<Result<Waiting, String>> = who.iter().map(start).collect();
    let mut figures = Vec::new();
    for (one, waiting) in who.iter().zip(all) {
        let lines = waiting?.finish()?;
        let kib: Option<Vec<f64>> = lines[1..].iter().map(|line| line.parse().ok()).collect();
        let Some([freed, later]) = kib.as_deref() else {
            return Err(format!("{} on {}: no figure", job.name, one.name));
        };
        for (metric, kib) in [(FREED, freed), (IDLE, later)] {
            figures.push(Figure::new(job.name, metric, one.name, 0, kib / 1024.0));
        }
    }
    Ok(figures)
}
