//! Checks the predictions of `slabyard compare`: programs run for real on each allocator, and their
//! recordings are replayed.
//!
//! * `programs`: the programs (sources in `kernels/truth`); `contender`: the allocators, as
//!   libraries to be preloaded (`preload`), which are the same builds that the tool replays on;
//! * `real`: runs a program once; `replay`: runs the tool and reads its figures;
//! * `verdict`: the errors of the predictions; `table`: the same as text;
//! * here: all programs in turn.
//!
//! Each round goes over all allocators, so that drift of the machine is the same for all. The peak
//! is that of anonymous memory, less that of a process that does no work, as in the tool.

pub mod contender;
pub mod programs;
pub mod real;
pub mod replay;
pub mod table;
pub mod verdict;

use crate::figure::{self, Figure};
use crate::machine;
use crate::part::{self, Common, Report};
use contender::Contender;
use programs::{Program, ALL, NOTHING};
use real::Run;
use std::path::{Path, PathBuf};
use std::time::Instant;
use table::{Entry, Found};
use verdict::Pair;

/// The predictions of `slabyard compare` only: CPU time and peak memory, beside those of programs
/// that run for real on each allocator.
///
/// Figures are means with their intervals (95 %); raw data is kept as CSV.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    #[command(flatten)]
    common: Common<7, 3>,
    /// Only these programs, separated by commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only these allocators beside glibc, separated by commas
    #[arg(long, value_delimiter = ',')]
    allocators: Vec<String>,
    /// How often each program runs for real on each allocator; --repeats counts replays [default:
    /// 10, quick: 3]
    #[arg(long)]
    rounds: Option<usize>,
    /// The tool [default: slabyard, in the folder of this program]
    #[arg(long)]
    tool: Option<PathBuf>,
}

/// The extent of a run.
struct Effort {
    quick: bool,
    rounds: usize,
    repeats: usize,
    tool: PathBuf,
}

impl Options {
    fn effort(&self, folder: &Path) -> Result<Effort, String> {
        Ok(Effort {
            quick: self.common.quick,
            rounds: self.common.or_default(self.rounds, 10, 3).max(2),
            repeats: self.common.repeats().max(2),
            tool: part::tool(self.tool.as_deref(), folder)?,
        })
    }

    fn programs(&self) -> Result<Vec<Program>, String> {
        part::check_names("program", &self.only, &ALL.map(|program| program.name))?;
        let wanted = |program: &Program| part::is_among(program.name, &self.only);
        Ok(ALL.into_iter().filter(wanted).collect())
    }
}

/// Runs a program on all allocators in turn, round after round. Each round begins with another
/// allocator. Returns the runs of each allocator, or its error.
fn run_rounds(
    program: &Program,
    effort: &Effort,
    who: &[Contender],
) -> Vec<Result<Vec<Run>, String>> {
    let mut all: Vec<Result<Vec<Run>, String>> = who.iter().map(|_| Ok(Vec::new())).collect();
    let size = program.size(effort.quick);
    for round in 0..effort.rounds {
        for index in (0..who.len()).map(|index| (index + round) % who.len()) {
            let Ok(runs) = &mut all[index] else { continue };
            match real::run(program, size, &who[index]) {
                Ok(run) => runs.push(run),
                Err(what) => all[index] = Err(what),
            }
        }
    }
    all
}

/// Whether all runs have the same result.
fn agree<'a>(runs: impl Iterator<Item = &'a Run>) -> bool {
    let results: Vec<&String> = runs.map(|run| &run.result).collect();
    results.windows(2).all(|two| two[0] == two[1])
}

/// The peak memory of a process that does no work.
fn empty_kib(effort: &Effort, who: &[Contender]) -> Result<f64, String> {
    let glibc = &who[..1];
    let runs = run_rounds(&NOTHING, effort, glibc).remove(0)?;
    let peaks: Vec<f64> = runs.iter().map(|run| run.peak_kib).collect();
    Ok(slabyard_certainty::mean(&peaks))
}

/// Measures one program, real and predicted. Returns the figures and the errors.
fn measure(
    program: &Program,
    effort: &Effort,
    (who, empty_kib): (&[Contender], f64),
    folder: &Path,
) -> Result<(Found, Vec<String>), String> {
    let mut failures = Vec::new();
    let all = run_rounds(program, effort, who);
    if !agree(all.iter().flatten().flatten()) {
        return Err(format!(
            "{}: allocators lead to different results",
            program.name
        ));
    }
    let size = program.size(effort.quick);
    let mut predicted =
        replay::predict(&effort.tool, folder, (program, size), who, effort.repeats)?;
    let mut entries = Vec::new();
    for (one, runs) in who.iter().zip(all) {
        let missing = || Err("no replay".to_owned());
        let replayed = predicted.remove(one.name).unwrap_or_else(missing);
        match (runs, replayed) {
            (Ok(runs), Ok(replayed)) => entries.push(Entry {
                who: one.name,
                cpu: Pair {
                    real: runs.iter().map(|run| run.cpu_ms).collect(),
                    replayed: replayed.cpu_ms,
                },
                peak: Pair {
                    real: runs.iter().map(|run| run.peak_kib - empty_kib).collect(),
                    replayed: replayed.peak_kib,
                },
            }),
            (Err(what), _) => failures.push(what),
            (_, Err(what)) => failures.push(format!("{} on {}: {what}", program.name, one.name)),
        }
    }
    let found = Found {
        program: program.name,
        says: program.says,
        entries,
    };
    Ok((found, failures))
}

/// The raw data: a value for each round.
fn figures(found: &[Found]) -> Vec<Figure> {
    let mut all = Vec::new();
    for (program, entry) in found
        .iter()
        .flat_map(|one| one.entries.iter().map(|entry| (one.program, entry)))
    {
        let lists = [
            ("real ms", &entry.cpu.real),
            ("replayed ms", &entry.cpu.replayed),
            ("real peak KiB", &entry.peak.real),
            ("replayed peak KiB", &entry.peak.replayed),
        ];
        for (metric, values) in lists {
            all.extend(Figure::rounds(program, metric, entry.who, values));
        }
    }
    all
}

/// Lines of the report's head: the allocators, those that are missing, and the extent of the run.
fn head(who: &[Contender], missing: &[String], effort: &Effort) -> Vec<String> {
    let names: Vec<&str> = who.iter().map(|one| one.name).collect();
    let mut lines = vec![format!("allocators     {}", names.join(", "))];
    lines.extend_from_slice(missing);
    lines.push("tcmalloc       without per-CPU caches, for real and in the replay".to_owned());
    lines.push(format!(
        "run            {} real rounds, {} replays",
        effort.rounds, effort.repeats
    ));
    lines
}

/// Runs and replays the programs that the options choose.
pub fn bench(options: &Options) -> Result<(), String> {
    let programs = options.programs()?;
    let folder = part::output_folder()?;
    let effort = options.effort(&folder)?;
    let (who, missing) = contender::present(contender::chosen(&options.allocators, &folder)?);
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut report = Report::new(&head(&who, &missing, &effort));
    let empty_kib = empty_kib(&effort, &who)?;
    let start = Instant::now();
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for program in &programs {
        eprintln!("{} after {}", program.name, machine::elapsed(start));
        match measure(program, &effort, (&who, empty_kib), scratch.path()) {
            Ok((found, failed)) => {
                report.add(&table::block(&found));
                all.push(found);
                failures.extend(failed);
            }
            Err(what) => failures.push(what),
        }
    }
    report.add(&table::tables(&all));
    report.add(&table::summary(&all));
    report.add_failures(&failures);
    let files = [("csv", figure::csv(&figures(&all)))];
    report.finish(("truth", &options.common), &files, failures.len())
}
