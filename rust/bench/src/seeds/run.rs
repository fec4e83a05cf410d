//! One row measured by one of those who are in it, in a process of its own.

use super::documents::{InRust, Row};
use super::originals;
use crate::alone::job::{Effort, Job};
use crate::alone::Row as _;
use crate::figure::{self, Figure};
use crate::kernels::layouts;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Whose figures stand beside each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// The system itself.
    Original,
    /// Slabyard, by the system's API.
    Slabyard,
    /// The C library.
    Peer,
}

impl Who {
    pub const ALL: [Who; 3] = [Who::Original, Who::Slabyard, Who::Peer];

    pub fn name(self, row: &Row) -> &'static str {
        match self {
            Who::Original => "original",
            Who::Slabyard => "slabyard",
            Who::Peer => row.peer,
        }
    }

    /// In the part about the Rust crate, which measures nexus-slab.
    pub fn name_in(self, names: InRust) -> &'static str {
        match self {
            Who::Original => names.original,
            Who::Slabyard => names.slabyard,
            Who::Peer => "Box on glibc",
        }
    }
}

/// How much is done in one process.
#[derive(Clone, Copy, Debug)]
pub struct Samples {
    /// Of C programs, where the row can be measured more than once in a process.
    pub count: usize,
    /// Of each copy of the loops in Rust.
    pub time: Duration,
}

/// nexus-slab's rows are some of those of the Rust part.
pub fn in_rust(
    row: &Row,
    who: &str,
    samples: Samples,
    round: usize,
) -> Result<Vec<Figure>, String> {
    let found = crate::rust::Row::find(row.name).ok_or("no such row")?;
    let job = Job {
        row: found,
        who: who.to_owned(),
        effort: Effort {
            sample: samples.time,
            layouts: layouts(round),
            seed: round as u64 + 1,
        },
    };
    job.in_child()
}

/// By the system's own program, or by that over Slabyard.
pub fn in_program(
    row: &Row,
    who: Who,
    samples: Samples,
    (system, original): (&str, Option<&Path>),
) -> Result<Vec<Figure>, String> {
    let program = match (who, original) {
        (Who::Original, Some(program)) => program.to_owned(),
        (Who::Original, None) => return Err(format!("no folder of {system} is given")),
        _ => originals::over_slabyard(system),
    };
    let name = who.name(row);
    let mut command = Command::new(program);
    command
        .args([row.name, name, &samples.count.to_string()])
        .env_remove("SLABYARD")
        .env_remove("LD_PRELOAD");
    figure::ask(command, &format!("{system}/{} of {name}", row.name))
}

/// The value of a metric: the least over copies of the loops. nexus-slab's document takes the best of
/// several runs too; of a program in C there is one.
pub fn value(figures: &[Figure], metric: &str) -> Option<f64> {
    let here = figures.iter().filter(|figure| figure.metric == metric);
    here.map(|figure| figure.value).min_by(f64::total_cmp)
}
