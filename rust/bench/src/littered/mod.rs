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
use crate::figure::{self, Figure};
use crate::machine;
use crate::part::{self, Report};
use crate::programs::version_of;
use crate::truth::contender::{self, Contender};
use crate::truth::stated;
use loops::Row;
use programs::Ready;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Loops and whole programs on a fragmented heap only: what caches, epochs, pools and regions gain
/// over each malloc, and what the heap costs each malloc.
///
/// Figures are medians; raw data is kept as CSV.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    #[command(flatten)]
    alone: alone::Options,
    /// Over whole programs: only these allocators beside glibc, separated by commas
    #[arg(long, value_delimiter = ',')]
    allocators: Vec<String>,
    /// The tool [default: slabyard, in the folder of this program]
    #[arg(long)]
    tool: Option<PathBuf>,
}

/// What a part of the run found.
#[derive(Default)]
struct Found {
    figures: Vec<Figure>,
    failures: usize,
}

fn measure_loops(rows: &[Row], options: &alone::Options, report: &mut Report) -> Found {
    let mut found = Found::default();
    for &row in rows {
        let (figures, failures) = alone::measure_row(row, options);
        report.add(&alone::block(row, &figures, &failures));
        found.figures.extend(figures);
        found.failures += failures.len();
    }
    if !rows.is_empty() {
        for metric in Row::TABLES {
            report.add(&alone::table(rows, &found.figures, metric));
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
            Err(why) => missing.push(format!("left out       {}: {why}", program.name)),
        }
    }
    (ready, missing)
}

fn measure_programs(
    all: &[Ready],
    who: &[Contender],
    repeats: usize,
    report: &mut Report,
) -> Found {
    let start = Instant::now();
    let mut found = Found::default();
    for ready in all {
        eprintln!("{} after {}", ready.program.name, machine::elapsed(start));
        let runs = programs::measure(ready, who, repeats);
        report.add_failures(&runs.failures);
        found.figures.extend(runs.figures);
        found.failures += runs.failures.len();
    }
    let programs: Vec<&str> = all.iter().map(|one| one.program.name).collect();
    let names: Vec<&str> = who.iter().map(|one| one.name).collect();
    report.add(&table::programs(&programs, &names, &found.figures));
    found
}

/// The contenders of whole programs that are here, and a line for each of the others.
fn contenders(options: &Options, scratch: &Path) -> Result<(Vec<Contender>, Vec<String>), String> {
    let output = part::output_folder()?;
    let tool = part::tool(options.tool.as_deref(), &output)?;
    let mut wanted = contender::chosen(&options.allocators, &output)?;
    for one in &mut wanted {
        if one.name == crate::programs::OURS {
            one.library = Some(stated::carried(&tool, scratch)?);
        }
    }
    Ok(contender::present(wanted))
}

/// Lines of the report's head.
fn head(who: &[Contender], missing: &[String], programs: &[Ready], repeats: usize) -> Vec<String> {
    let versions: Vec<String> = who.iter().map(|one| version_of(one.name)).collect();
    let mut lines = vec![format!("allocators     {}", versions.join(", "))];
    lines.extend_from_slice(missing);
    let litter: Vec<String> = programs
        .iter()
        .map(|one| format!("{} {}", one.program.name, one.litter))
        .collect();
    if !litter.is_empty() {
        lines.push(format!("litter, blocks {}", litter.join(", ")));
    }
    lines.push(format!("run            {repeats} repeats"));
    lines
}

/// Measures what the options choose, or serves as a measuring process.
pub fn bench(options: &Options) -> Result<(), String> {
    let of_loops = &options.alone;
    if let Some(arguments) = &of_loops.sampling.child {
        return alone::serve::<Row>(arguments);
    }
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (who, mut missing) = contenders(options, scratch.path())?;
    let (ready, absent) = ready_programs(of_loops, scratch.path());
    // No row is chosen if the names are those of programs.
    let rows: Vec<Row> = match of_loops.chosen() {
        Ok(rows) => rows,
        Err(_) if !ready.is_empty() => Vec::new(),
        Err(what) => return Err(what),
    };
    missing.extend(absent);
    let repeats = of_loops.common.repeats();
    let mut report = Report::new(&head(&who, &missing, &ready, repeats));
    let mut found = measure_loops(&rows, of_loops, &mut report);
    let of_programs = measure_programs(&ready, &who, repeats, &mut report);
    found.figures.extend(of_programs.figures);
    let files = [("csv", figure::csv(&found.figures))];
    let failures = found.failures + of_programs.failures;
    report.finish(("littered", &of_loops.common), &files, failures)
}
