//! Checks what `slabyard compare` states of programs: the tool is asked as a user asks it, and the
//! programs run for real on each allocator, before and after that.
//!
//! * `programs`: the programs; `contender`: the allocators, as libraries to be preloaded
//!   (`preload`);
//! * `real`: runs programs without the tool; `stated`: asks the tool and reads its figures;
//! * `verdict`: whether the stated figures are true; `table`: the same as text;
//! * here: all programs in turn.
//!
//! The real runs surround the tool's. So if the machine changes slowly, the two halves differ.

pub mod contender;
pub mod programs;
pub mod real;
pub mod stated;
pub mod table;
pub mod verdict;

use crate::figure::{self, Figure};
use crate::machine;
use crate::part::{self, Common, Report};
use crate::programs::version_of;
use contender::Contender;
use programs::{Program, ALL};
use real::{Extent, Ready, Run};
use stated::{Answer, OURS};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use table::{Entry, Found, Runs};

/// What `slabyard compare` states only: whether the real CPU time and peak memory of programs lie
/// within the intervals that the tool states.
///
/// Figures are means with their intervals (95 %); raw data is kept as CSV.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    #[command(flatten)]
    common: Common<10, 3>,
    /// Only these programs, separated by commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only these allocators beside glibc, separated by commas
    #[arg(long, value_delimiter = ',')]
    allocators: Vec<String>,
    /// Seconds of the tool's runs of each program; the real runs before take as long, and so do
    /// those after [default: 24, quick: 1]
    #[arg(long)]
    seconds: Option<u64>,
    /// The tool [default: slabyard, in the folder of this program]
    #[arg(long)]
    tool: Option<PathBuf>,
}

/// The extent of a run.
struct Effort {
    quick: bool,
    /// Of the real rounds before the tool's, and of those after.
    extent: Extent,
    /// The tool's options.
    asked: Vec<String>,
    tool: PathBuf,
}

/// The tool's runs take at most half of `--within`.
const RUNS_PART: u64 = 2;

impl Options {
    fn effort(&self, folder: &Path) -> Result<Effort, String> {
        let seconds = self.common.or_default(self.seconds, 24, 1).max(1);
        let mut asked = vec!["--within".to_owned(), (seconds * RUNS_PART).to_string()];
        // Without the option, the tool adds rounds to its ten while it has time.
        if self.common.quick || self.common.repeats.is_some() {
            asked.extend(["--times".to_owned(), self.common.repeats().to_string()]);
        }
        Ok(Effort {
            quick: self.common.quick,
            extent: Extent {
                time: Duration::from_secs(seconds),
                least: self.common.or_default(None, 5, 2),
                most: 60,
            },
            asked,
            tool: part::tool(self.tool.as_deref(), folder)?,
        })
    }

    fn programs(&self) -> Result<Vec<Program>, String> {
        part::check_names("program", &self.only, &ALL.map(|program| program.name))?;
        let wanted = |program: &Program| part::is_among(program.name, &self.only);
        Ok(ALL.into_iter().filter(wanted).collect())
    }
}

/// Whether all runs wrote the same.
fn agree<'a>(mut runs: impl Iterator<Item = &'a Run>) -> bool {
    let first = runs.next();
    runs.all(|run| first.is_some_and(|first| first.output == run.output))
}

fn both(before: &[Run], after: &[Run], value: impl Fn(&Run) -> f64) -> Runs {
    let values = |runs: &[Run]| runs.iter().map(&value).collect();
    Runs {
        before: values(before),
        after: values(after),
    }
}

/// The figures of one allocator, or its error.
fn entry(
    who: &'static str,
    before: Result<Vec<Run>, String>,
    after: Result<Vec<Run>, String>,
    answer: &Answer,
) -> Result<Entry, String> {
    let (before, after) = (before?, after?);
    let missing = || Err("the tool did not run it".to_owned());
    let stated = answer.of.get(who).cloned().unwrap_or_else(missing);
    let stated = stated.map_err(|what| format!("{who}: {what}"))?;
    Ok(Entry {
        who,
        cpu: both(&before, &after, |run| run.cpu_ms),
        peak: both(&before, &after, |run| match answer.peaks_of_largest {
            true => run.largest_kib,
            false => run.together_kib,
        }),
        stated_cpu: stated.cpu,
        stated_peak: stated.peak,
        tool_cpu: stated.cpu_ms,
        tool_peak: stated.peak_kib,
    })
}

/// Measures one program: real, stated, real again. Returns the figures and the errors.
fn measure(
    ready: &Ready,
    effort: &Effort,
    who: &[Contender],
) -> Result<(Found, Vec<String>), String> {
    let name = ready.program.name;
    let before = real::rounds(ready, who, effort.extent);
    let answer = stated::ask(&effort.tool, ready, who, &effort.asked)?;
    let after = real::rounds(ready, who, effort.extent);
    if !agree(before.iter().chain(&after).flatten().flatten()) {
        return Err(format!("{name}: allocators lead to different results"));
    }
    let (mut entries, mut failures) = (Vec::new(), Vec::new());
    for (one, (before, after)) in who.iter().zip(before.into_iter().zip(after)) {
        match entry(one.name, before, after, &answer) {
            Ok(entry) => entries.push(entry),
            Err(what) => failures.push(format!("{name}: {what}")),
        }
    }
    let found = Found {
        program: ready.program,
        sentence: answer.sentence,
        replayed: answer.replayed,
        entries,
    };
    Ok((found, failures))
}

/// The raw data: a value for each round.
fn figures(found: &[Found]) -> Vec<Figure> {
    let mut all = Vec::new();
    for one in found {
        for entry in &one.entries {
            for (metric, values) in [
                ("before ms", &entry.cpu.before),
                ("tool ms", &entry.tool_cpu),
                ("after ms", &entry.cpu.after),
                ("before peak KiB", &entry.peak.before),
                ("tool peak KiB", &entry.tool_peak),
                ("after peak KiB", &entry.peak.after),
            ] {
                all.extend(Figure::rounds(one.program.name, metric, entry.who, values));
            }
        }
    }
    all
}

/// The contenders that are here, with the tool's own library for Slabyard, and a line for each of
/// the others.
fn contenders(
    options: &Options,
    folder: &Path,
    tool: &Path,
    scratch: &Path,
) -> Result<(Vec<Contender>, Vec<String>), String> {
    let mut wanted = contender::chosen(&options.allocators, folder)?;
    for one in wanted.iter_mut().filter(|one| one.name == OURS) {
        one.library = Some(stated::carried(tool, scratch)?);
    }
    Ok(contender::present(wanted))
}

/// Lines of the report's head: the allocators, what is missing, and the extent of the run.
fn head(who: &[Contender], missing: &[String], effort: &Effort) -> Vec<String> {
    let names: Vec<String> = who.iter().map(|one| version_of(one.name)).collect();
    let mut lines = vec![format!("allocators     {}", names.join(", "))];
    lines.extend_from_slice(missing);
    lines.push("tcmalloc       without per-CPU caches".to_owned());
    lines.push(format!(
        "run            slabyard compare {}; real rounds for {} s before and after",
        effort.asked.join(" "),
        effort.extent.time.as_secs()
    ));
    lines
}

/// Asks the tool about the programs that the options choose, and runs them.
pub fn bench(options: &Options) -> Result<(), String> {
    let programs = options.programs()?;
    let folder = part::output_folder()?;
    let effort = options.effort(&folder)?;
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let scratch = scratch.path();
    let (who, mut missing) = contenders(options, &folder, &effort.tool, scratch)?;
    let mut jobs = Vec::new();
    for program in programs {
        match program.command(scratch, effort.quick) {
            Ok(command) => jobs.push(Ready {
                program,
                command,
                folder: scratch,
            }),
            Err(why) => missing.push(format!("left out       {}: {why}", program.name)),
        }
    }
    let mut report = Report::new(&head(&who, &missing, &effort));
    let start = Instant::now();
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for job in &jobs {
        eprintln!("{} after {}", job.program.name, machine::elapsed(start));
        match measure(job, &effort, &who) {
            Ok((found, failed)) => {
                report.add(&table::block(&found));
                all.push(found);
                failures.extend(failed);
            }
            Err(what) => failures.push(what),
        }
    }
    report.add(&table::table(&all));
    report.add(&table::summary(&all));
    report.add(&table::models(&all));
    report.add_failures(&failures);
    let files = [("csv", figure::csv(&figures(&all)))];
    report.finish(("truth", &options.common), &files, failures.len())
}
