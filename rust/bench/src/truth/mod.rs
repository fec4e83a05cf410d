//! Checks what `slabyard compare` states of programs: the tool is asked as a user asks it, and the
//! programs run for real on each allocator, before and after that.
//!
//! * `programs`: the programs;
//! * `real`: runs programs without the tool; `stated`: asks the tool and reads its figures;
//! * `verdict`: whether the stated figures are true; `table`: the same as text;
//! * here: all programs in turn.
//!
//! The real runs surround the tool's. So if the machine changes slowly, the two halves differ.

pub mod programs;
pub mod real;
pub mod stated;
pub mod table;
pub mod verdict;

use crate::figure::{self, Figure};
use crate::machine;
use crate::part::{self, Common, Report};
use crate::preloaded::{left_out, Choice, Preloaded};
use programs::{Program, ALL};
use real::{Extent, Ready, Run};
use stated::Answer;
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
    #[command(flatten)]
    choice: Choice,
    /// Seconds of the tool's runs of each program; the real runs before take as long, and so do
    /// those after [default: 24, quick: 1]
    #[arg(long)]
    seconds: Option<u64>,
}

/// The extent of a run.
struct Effort {
    quick: bool,
    /// Of the real rounds before the tool's, and of those after.
    extent: Extent,
    /// The tool's options.
    asked: Vec<String>,
}

/// The tool's runs take at most half of `--within`.
const RUNS_PART: u64 = 2;

impl Options {
    fn effort(&self) -> Effort {
        let seconds = self.common.or_default(self.seconds, 24, 1).max(1);
        let mut asked = vec!["--within".to_owned(), (seconds * RUNS_PART).to_string()];
        // Without the option, the tool adds rounds to its ten while it has time.
        if self.common.quick || self.common.repeats.is_some() {
            asked.extend(["--times".to_owned(), self.common.repeats().to_string()]);
        }
        Effort {
            quick: self.common.quick,
            extent: Extent {
                time: Duration::from_secs(seconds),
                least: self.common.or_default(None, 5, 2),
                most: 60,
            },
            asked,
        }
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

/// Measures one program: real, stated, real again. Adds the errors of allocators to `failures`.
fn measure(
    ready: &Ready,
    effort: &Effort,
    over: &Preloaded,
    failures: &mut Vec<String>,
) -> Result<Found, String> {
    let name = ready.program.name;
    let who = over.who.as_slice();
    let before = real::rounds(ready, who, effort.extent);
    let answer = stated::ask(&over.tool, ready, who, &effort.asked)?;
    let after = real::rounds(ready, who, effort.extent);
    if !agree(before.iter().chain(&after).flatten().flatten()) {
        return Err(format!("{name}: allocators lead to different results"));
    }
    let mut entries = Vec::new();
    for (one, (before, after)) in who.iter().zip(before.into_iter().zip(after)) {
        match entry(one.name, before, after, &answer) {
            Ok(entry) => entries.push(entry),
            Err(what) => failures.push(format!("{name}: {what}")),
        }
    }
    Ok(Found {
        program: ready.program,
        sentence: answer.sentence,
        replayed: answer.replayed,
        entries,
    })
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

/// Asks the tool about the programs that the options choose, and runs them.
pub fn bench(options: &Options) -> Result<(), String> {
    let programs = options.programs()?;
    let effort = options.effort();
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let scratch = scratch.path();
    let mut preloaded = options.choice.preloaded(Some(scratch))?;
    let mut jobs = Vec::new();
    for program in programs {
        match program.command(scratch, effort.quick) {
            Ok(command) => jobs.push(Ready {
                program,
                command,
                folder: scratch,
            }),
            Err(why) => preloaded.head.push(left_out(program.name, &why)),
        }
    }
    preloaded.head.extend([
        "tcmalloc       without per-CPU caches".to_owned(),
        format!(
            "run            slabyard compare {}; real rounds for {} s before and after",
            effort.asked.join(" "),
            effort.extent.time.as_secs()
        ),
    ]);
    let mut report = Report::new(&preloaded.head);
    let start = Instant::now();
    let (mut all, mut raw) = (Vec::new(), figure::Found::default());
    for job in &jobs {
        eprintln!("{} after {}", job.program.name, machine::elapsed(start));
        match measure(job, &effort, &preloaded, &mut raw.failures) {
            Ok(found) => {
                report.add(&table::block(&found));
                all.push(found);
            }
            Err(what) => raw.failures.push(what),
        }
    }
    report.add(&table::table(&all));
    report.add(&table::summary(&all));
    report.add(&table::models(&all));
    report.add_failures(&raw);
    raw.figures = figures(&all);
    report.finish(("truth", &options.common), &raw, &[])
}
