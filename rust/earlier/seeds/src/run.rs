//! Measures one row for one contender, in a process of its own.

use crate::documents::{InRust, Row};
use crate::originals;
use slabyard_bench::alone::job::{Effort, Job};
use slabyard_bench::alone::Row as _;
use slabyard_bench::figure::{self, Figure};
use slabyard_bench::kernels::layouts;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The contenders of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contender {
    /// The system itself.
    Original,
    /// Slabyard, by the system's API.
    Slabyard,
    /// The C library.
    Peer,
}

impl Contender {
    pub const ALL: [Contender; 3] = [Contender::Original, Contender::Slabyard, Contender::Peer];

    pub fn name(self, row: &Row) -> &'static str {
        match self {
            Contender::Original => "original",
            Contender::Slabyard => "slabyard",
            Contender::Peer => row.peer,
        }
    }

    /// The contender's name in the part about the Rust crate, which measures nexus-slab.
    pub fn name_in(self, names: InRust) -> &'static str {
        match self {
            Contender::Original => names.original,
            Contender::Slabyard => names.slabyard,
            Contender::Peer => "Box on glibc",
        }
    }
}

/// The extent of one process.
#[derive(Clone, Copy, Debug)]
pub struct Samples {
    /// Samples of a C program, if it can measure the row more than once.
    pub count: usize,
    /// Time of each copy of the loops in Rust.
    pub time: Duration,
}

/// Measures a row of nexus-slab, which is a row of the part about the Rust crate.
pub fn in_rust(
    row: &Row,
    who: &str,
    samples: Samples,
    round: usize,
) -> Result<Vec<Figure>, String> {
    let found = slabyard_bench::rust::Row::find(row.name).ok_or("no such row")?;
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

/// Measures a row of a C system, by the program over the system itself or over Slabyard.
pub fn in_program(
    row: &Row,
    who: Contender,
    samples: Samples,
    (system, original): (&str, Option<&Path>),
) -> Result<Vec<Figure>, String> {
    let program = match (who, original) {
        (Contender::Original, Some(program)) => program.to_owned(),
        (Contender::Original, None) => return Err(format!("no folder of {system} is given")),
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

/// The value of a metric: the least of all copies of the loops, as nexus-slab's document takes the
/// best of several runs. A C program gives one value.
pub fn value(figures: &[Figure], metric: &str) -> Option<f64> {
    let here = figures.iter().filter(|figure| figure.metric == metric);
    here.map(|figure| figure.value).min_by(f64::total_cmp)
}
