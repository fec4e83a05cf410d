//! Loops and whole programs on a heap that was fragmented first: by each malloc, and the loops by
//! caches, epochs, pools and regions too.
//!
//! * `loops`: the loops, in which each contender has a process of its own (`alone`); `makers`:
//!   their contenders;
//! * `programs`: whole programs over each malloc that can be preloaded;
//! * `table`: the same as text;
//! * here: all of them in turn.
//!
//! A paper of 2026 (arXiv 2605.17119) says that allocators for kinds gain nothing over the best
//! malloc of today, and regions up to 15 %, if the heap was fragmented. The tables say of each of
//! ours whether that is so.

pub mod loops;
pub mod makers;
pub mod programs;
pub mod table;

use crate::alone::{self, Row as _};
use crate::figure::Found;
use crate::machine;
use crate::part::{self, Report};
use crate::preloaded::{left_out, Choice, Preloaded};
use loops::Row;
use programs::Ready;
use std::path::Path;
use std::time::Instant;

/// Loops and whole programs on a fragmented heap only: what caches, epochs, pools and regions gain
/// over each malloc, and what the heap costs each malloc.
///
/// Figures are medians; raw data is kept as CSV.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    #[command(flatten)]
    alone: alone::Options,
    #[command(flatten)]
    choice: Choice,
}

fn measure_loops(rows: &[Row], options: &alone::Options, report: &mut Report) -> Found {
    let mut found = Found::default();
    for &row in rows {
        let of_row = alone::measure_row(row, options);
        report.add(&alone::block(row, &of_row));
        found.extend(of_row);
    }
    if !rows.is_empty() {
        for metric in Row::TABLES {
            report.add(&alone::tables(rows, &found.figures, metric));
        }
        report.add(&table::loops(rows, &found.figures));
    }
    found
}

/// The programs that can run here, and a line for each of the others.
fn ready_programs(options: &alone::Options, folder: &Path) -> (Vec<Ready>, Vec<String>) {
    let wanted = |name: &str| part::begins_with(name, &options.only);
    let (mut ready, mut missing) = (Vec::new(), Vec::new());
    for program in programs::all().filter(|one| wanted(one.name)) {
        match Ready::new(program, folder, options.common.quick) {
            Ok(one) => ready.push(one),
            Err(why) => missing.push(left_out(program.name, &why)),
        }
    }
    (ready, missing)
}

fn measure_programs(
    all: &[Ready],
    preloaded: &Preloaded,
    repeats: usize,
    report: &mut Report,
) -> Found {
    let (start, mut found) = (Instant::now(), Found::default());
    for ready in all {
        eprintln!("{} after {}", ready.program.name, machine::elapsed(start));
        let of_program = programs::measure(ready, &preloaded.who, repeats);
        report.add_failures(&of_program);
        found.extend(of_program);
    }
    let programs: Vec<&str> = all.iter().map(|one| one.program.name).collect();
    report.add(&table::programs(
        &programs,
        &preloaded.names(),
        &found.figures,
    ));
    found
}

/// Measures what the options choose, or serves as a measuring process.
pub fn bench(options: &Options) -> Result<(), String> {
    let of_loops = &options.alone;
    if let Some(arguments) = &of_loops.sampling.child {
        return alone::serve::<Row>(arguments);
    }
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut preloaded = options.choice.preloaded(Some(scratch.path()))?;
    let (ready, absent) = ready_programs(of_loops, scratch.path());
    // No row is chosen if the names are those of programs.
    let rows: Vec<Row> = match of_loops.chosen() {
        Ok(rows) => rows,
        Err(_) if !ready.is_empty() => Vec::new(),
        Err(what) => return Err(what),
    };
    let head = &mut preloaded.head;
    head.extend(absent);
    let litter = ready
        .iter()
        .map(|one| format!("{} {}", one.program.name, one.litter));
    if !ready.is_empty() {
        let litter: Vec<String> = litter.collect();
        head.push(format!("litter, blocks {}", litter.join(", ")));
    }
    let repeats = of_loops.common.repeats();
    head.push(format!("run            {repeats} repeats"));
    let mut report = Report::new(head);
    let mut found = measure_loops(&rows, of_loops, &mut report);
    found.extend(measure_programs(&ready, &preloaded, repeats, &mut report));
    report.finish(("littered", &of_loops.common), &found, &[])
}
