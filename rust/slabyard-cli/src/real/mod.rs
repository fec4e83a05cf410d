//! `slabyard compare --run`: runs the program itself on each allocator in turn, and measures the
//! time and memory of its processes.
//!
//! [`contenders`] finds the allocators, [`tree`] samples memory, [`text`] writes the table. In each round every allocator
//! has one run. So a disturbance of the machine affects all allocators, and the figures of one
//! round can be compared.

pub mod contenders;
pub mod text;
mod tree;

use crate::machine::Machine;
use crate::preload::Library;
use crate::program::{self, Reach, Signals, Usage, LOOK_AGAIN};
use crate::replay::measure::Figure;
use crate::signals;
use crate::ui;
use anyhow::{bail, Context, Result};
use contenders::{Contender, GLIBC};
use indicatif::ProgressBar;
use serde::Serialize;
use slabyard_certainty::{self as certainty, Interval};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tree::Tree;

/// With fewer rounds, the figures are uncertain.
pub const ENOUGH_ROUNDS: usize = 5;

/// Runs that take less than this are mostly the start of the program.
const SHORT: Duration = Duration::from_millis(50);

/// Between fork and exec, a process has the tool's own memory of about 1.5 MiB, which counts in its
/// peak.
const PEAK_SEEN: f64 = (2 << 20) as f64;

/// On a quiet machine, glibc's CPU time varies by less than this fraction from round to round.
const BUSY_SPAN: f64 = 0.25;

/// The program to run, and the settings.
pub struct Plan {
    pub command: Vec<OsString>,
    pub rounds: usize,
    /// Rounds are added until the ratios of CPU time to glibc's are known to this fraction...
    pub precision: Option<f64>,
    /// ... or until this time has passed.
    pub within: Duration,
    /// Whether the program's standard output must be the same on all allocators.
    pub same_output: bool,
    /// The folder for the output of the runs.
    pub keep: Option<PathBuf>,
    /// How the program ended when it was recorded, and so must end again.
    pub ended: Option<ExitStatus>,
}

/// The figures of one run.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    usage: Usage,
    /// The mean of all processes together, over the program's life; `None` if it was too short.
    mean_resident: Option<f64>,
    /// The peak of several processes together: 0 if there was one; `None` if they were too short.
    peak_together: Option<u64>,
}

/// The ratio of an allocator's mean to glibc's.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ratio {
    pub ratio: f64,
    /// The 95 % confidence interval of the ratio, also at other times than that of these rounds;
    /// `None` for a single round.
    pub interval: Option<Interval>,
}

/// One figure in all rounds, in seconds, bytes, or page faults.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Kind {
    #[serde(flatten)]
    pub figure: Figure,
    /// `None` for glibc itself, and where glibc's figure may be 0.
    pub to_glibc: Option<Ratio>,
}

/// All figures of one allocator.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Measured {
    pub name: String,
    pub library: Option<String>,
    /// Why there are no figures.
    pub failure: Option<String>,
    pub wall_s: Kind,
    /// User and system time.
    pub cpu_s: Kind,
    pub user_s: Kind,
    pub system_s: Kind,
    pub peak_bytes: Kind,
    /// `None` if runs were too short to see it.
    pub mean_resident_bytes: Option<Kind>,
    pub page_faults: Kind,
}

/// All figures of a comparison.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RealRuns {
    pub machine: Machine,
    pub command: String,
    pub rounds: usize,
    /// How the program ends on glibc.
    pub ends: String,
    /// Whether peaks are those of the largest process, since several ran too briefly to be seen
    /// together.
    pub peaks_of_largest: bool,
    /// The signal that ended the measurement before its end.
    pub interrupted: Option<i32>,
    /// The gain of the program by Slabyard; `None` if it was not measured.
    pub answer: Option<String>,
    /// Why the figures may mislead.
    pub caveats: Vec<String>,
    pub allocators: Vec<Measured>,
}

/// The results of one allocator so far.
struct Record {
    runs: Vec<Run>,
    failure: Option<String>,
}

/// The result of a run.
enum Outcome {
    Took(Run),
    /// The program ended, or printed, otherwise than on glibc.
    Failed(String),
    Interrupted(i32),
}

/// The parts of a measurement that stay the same from run to run.
struct Race<'a> {
    plan: &'a Plan,
    contenders: &'a [Contender],
    signals: &'a Signals,
    /// The folder for output that is compared or kept.
    folder: Option<PathBuf>,
    /// The status and the output of the program's first run on glibc.
    model: Option<(ExitStatus, Vec<u8>)>,
}

/// Runs all rounds. The first round is not measured: it shows whether the program runs on all
/// allocators, and brings its files into memory. A signal may end the measurement at any time.
pub fn measure(plan: &Plan, contenders: &[Contender], signals: &Signals) -> Result<RealRuns> {
    let scratch = match (&plan.keep, plan.same_output) {
        (None, true) => Some(tempfile::tempdir().context("cannot make a folder for the output")?),
        _ => None,
    };
    if let Some(folder) = &plan.keep {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    let mut race = Race {
        plan,
        contenders,
        signals,
        folder: plan
            .keep
            .clone()
            .or(scratch.as_ref().map(|folder| folder.path().into())),
        model: None,
    };
    let mut records: Vec<Record> = contenders.iter().map(|_| Record::new()).collect();
    let bar = ui::bar("running", ((plan.rounds + 1) * contenders.len()) as u64);
    let begin = Instant::now();
    let mut interrupted = race.round(0, &mut records, &bar)?;
    let mut rounds = 0;
    while interrupted.is_none() && wants_more(plan, rounds, &records, begin.elapsed()) {
        interrupted = race.round(rounds + 1, &mut records, &bar)?;
        rounds += usize::from(interrupted.is_none());
    }
    bar.finish_and_clear();
    let Some((status, _)) = race.model.filter(|_| rounds > 0) else {
        return Ok(RealRuns {
            interrupted,
            ..RealRuns::default()
        });
    };
    Ok(summarise(
        plan,
        contenders,
        records,
        rounds,
        status,
        interrupted,
    ))
}

fn wants_more(plan: &Plan, rounds: usize, records: &[Record], passed: Duration) -> bool {
    if rounds < plan.rounds {
        return true;
    }
    let Some(wanted) = plan.precision else {
        return false;
    };
    passed < plan.within && reached(records, rounds).is_none_or(|reached| reached > wanted)
}

/// The precision of the least certain ratio of CPU time in these rounds, as a fraction of the ratio.
fn reached(records: &[Record], rounds: usize) -> Option<f64> {
    let times = |record: &Record| values(&record.runs[..rounds], cpu);
    let (glibc, others) = records.split_first()?;
    let good = others.iter().filter(|record| record.failure.is_none());
    let ratios = good.map(|record| certainty::of_ratio(&times(record), &times(glibc)));
    ratios
        .map(|ratio| ratio.map(|ratio| ratio.precision()))
        .try_fold(0.0, |worst: f64, next| Some(worst.max(next?)))
}

/// The order of the allocators in a round. Each round begins with another one, and every other
/// round goes backward, so that none is always first, or always after the same one. Round 0 begins
/// with glibc, whose run is the model for the others.
fn order(count: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).map(|index| (index + round) % count).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

impl Record {
    fn new() -> Self {
        Record {
            runs: Vec::new(),
            failure: None,
        }
    }
}

impl Race<'_> {
    /// Runs all allocators once. Returns the signal if one ended the round early.
    fn round(
        &mut self,
        round: usize,
        records: &mut [Record],
        bar: &ProgressBar,
    ) -> Result<Option<i32>> {
        for index in order(self.contenders.len(), round) {
            let (record, contender) = (&mut records[index], &self.contenders[index]);
            bar.set_message(format!("running on {}", contender.name));
            bar.inc(1);
            if record.failure.is_some() {
                continue;
            }
            match self.run(contender, round)? {
                Outcome::Took(run) if round > 0 => record.runs.push(run),
                Outcome::Took(_) => (),
                Outcome::Failed(why) if contender.name == GLIBC => {
                    bail!("the runs on glibc itself differ: the program {why}")
                }
                Outcome::Failed(why) => record.failure = Some(why),
                Outcome::Interrupted(signal) => return Ok(Some(signal)),
            }
        }
        Ok(None)
    }

    fn run(&mut self, contender: &Contender, round: usize) -> Result<Outcome> {
        if let Some(signal) = self.signals.waiting() {
            return Ok(Outcome::Interrupted(signal));
        }
        let program = &self.plan.command[0];
        let mut command = Command::new(program);
        command.args(&self.plan.command[1..]).stdin(input());
        let name = format!("{}.{round}", contender.name.replace('/', "_"));
        let output = self.output("out", &name, &mut command, Command::stdout)?;
        self.output("err", &name, &mut command, Command::stderr)?;
        if let Some(library) = &contender.library {
            library.preload_into(&mut command);
        }
        let mut tree = Tree::default();
        let mut sample = |pid| tree.take(pid);
        let ended = program::run(command, self.signals, LOOK_AGAIN, Reach::All, &mut sample)?;
        if let Some(signal) = ended.signalled {
            return Ok(Outcome::Interrupted(signal));
        }
        let wrote = match &output {
            Some(path) if self.plan.same_output => {
                std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?
            }
            _ => Vec::new(),
        };
        if let Some(first) = self.plan.ended.filter(|first| *first != ended.status) {
            let (here, there) = (ending(ended.status), ending(first));
            let why = format!("{here}, and {there} when it was recorded");
            return Ok(Outcome::Failed(why));
        }
        let model = self
            .model
            .get_or_insert_with(|| (ended.status, wrote.clone()));
        if model.0 != ended.status {
            let (here, there) = (ending(ended.status), ending(model.0));
            return Ok(Outcome::Failed(format!("{here}, and {there} on glibc")));
        }
        if model.1 != wrote {
            let why = "wrote something else to standard output than on glibc";
            return Ok(Outcome::Failed(why.to_string()));
        }
        Ok(Outcome::Took(Run {
            usage: ended.usage,
            mean_resident: tree.mean(),
            peak_together: tree.peak_of_several(),
        }))
    }

    /// The destination of an output stream: a file if the output is compared or kept, else
    /// /dev/null.
    fn output(
        &self,
        kind: &str,
        name: &str,
        command: &mut Command,
        stream: fn(&mut Command, Stdio) -> &mut Command,
    ) -> Result<Option<PathBuf>> {
        let is_kept = self.plan.keep.is_some() || kind == "out";
        let Some(folder) = self.folder.as_ref().filter(|_| is_kept) else {
            stream(command, Stdio::null());
            return Ok(None);
        };
        let name = if self.plan.keep.is_some() {
            name
        } else {
            "last"
        };
        let path = folder.join(format!("{name}.{kind}"));
        let file =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        stream(command, file.into());
        Ok(Some(path))
    }
}

/// What each run reads: the file that is the tool's standard input, from its beginning. Of what can
/// be read only once, a run gets nothing.
fn input() -> Stdio {
    let path = Path::new("/proc/self/fd/0");
    let is_file = path.metadata().is_ok_and(|about| about.is_file());
    let file = is_file.then(|| File::open(path).ok()).flatten();
    file.map_or_else(Stdio::null, Stdio::from)
}

/// How many rounds of runs of this length fit into a time, with the first round, which is not
/// measured.
pub fn rounds_within(time: Duration, run: Duration, allocators: usize) -> usize {
    let round = run.as_secs_f64().max(0.001) * allocators as f64;
    ((time.as_secs_f64() / round) as usize).saturating_sub(1)
}

/// Describes how a program ended, as a verb.
fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ends with status {code}"),
        (None, signal) => format!("is ended by {}", signals::described(signal.unwrap_or(0))),
    }
}

fn cpu(run: &Run) -> f64 {
    (run.usage.user + run.usage.system).as_secs_f64()
}

fn values(runs: &[Run], value: impl Fn(&Run) -> f64) -> Vec<f64> {
    runs.iter().map(value).collect()
}

fn summarise(
    plan: &Plan,
    contenders: &[Contender],
    mut records: Vec<Record>,
    rounds: usize,
    status: ExitStatus,
    interrupted: Option<i32>,
) -> RealRuns {
    for record in &mut records {
        record.runs.truncate(rounds);
    }
    let reached = reached(&records, rounds);
    let mut runs = records.iter().flat_map(|record| &record.runs);
    let peaks_of_largest = runs.any(|run| run.peak_together.is_none());
    let runs = records.iter_mut().flat_map(|record| &mut record.runs);
    for run in runs.filter(|_| !peaks_of_largest) {
        let together = run.peak_together.unwrap_or_default();
        run.usage.peak_bytes = run.usage.peak_bytes.max(together);
    }
    let glibc = records[0].runs.clone();
    let measured = |(contender, record): (&Contender, Record)| {
        let base = contender.library.is_some().then_some(&glibc[..]);
        Measured {
            name: contender.name.clone(),
            library: contender.library.as_ref().map(Library::described),
            ..figures(record, base)
        }
    };
    let words = plan.command.iter().map(|word| word.to_string_lossy());
    let mut all = RealRuns {
        machine: Machine::look(),
        command: words.collect::<Vec<_>>().join(" "),
        rounds,
        ends: ending(status),
        peaks_of_largest,
        interrupted,
        answer: None,
        caveats: Vec::new(),
        allocators: contenders.iter().zip(records).map(measured).collect(),
    };
    all.caveats = caveats(&all, status, plan.precision, reached);
    let mut libraries = contenders.iter().filter_map(|one| one.library.as_ref());
    let doubt = libraries.find_map(|library| library.doubt(&plan.command[0]));
    all.caveats.extend(doubt);
    all.answer = text::answer(&all);
    all
}

/// The figures of one allocator's runs, and their ratios to glibc's.
fn figures(record: Record, glibc: Option<&[Run]>) -> Measured {
    if record.failure.is_some() {
        return Measured {
            failure: record.failure,
            ..Measured::default()
        };
    }
    let kind = |value: &dyn Fn(&Run) -> f64| {
        let ours = values(&record.runs, value);
        Kind {
            to_glibc: glibc.and_then(|glibc| ratio(&ours, &values(glibc, value))),
            figure: Figure::of(ours),
        }
    };
    let mut everyone = record.runs.iter().chain(glibc.unwrap_or_default());
    let seen = everyone.all(|run| run.mean_resident.is_some());
    Measured {
        wall_s: kind(&|run| run.usage.wall.as_secs_f64()),
        cpu_s: kind(&cpu),
        user_s: kind(&|run| run.usage.user.as_secs_f64()),
        system_s: kind(&|run| run.usage.system.as_secs_f64()),
        peak_bytes: kind(&|run| run.usage.peak_bytes as f64),
        mean_resident_bytes: seen.then(|| kind(&|run| run.mean_resident.unwrap_or_default())),
        page_faults: kind(&|run| run.usage.faults as f64),
        ..Measured::default()
    }
}

fn ratio(ours: &[f64], glibc: &[f64]) -> Option<Ratio> {
    let mean = certainty::mean(glibc);
    (mean > 0.0).then(|| Ratio {
        ratio: certainty::mean(ours) / mean,
        interval: certainty::of_ratio_at_any_time(ours, glibc),
    })
}

/// Why the figures may mislead.
fn caveats(
    all: &RealRuns,
    status: ExitStatus,
    wanted: Option<f64>,
    reached: Option<f64>,
) -> Vec<String> {
    let mut found = Vec::new();
    let glibc = &all.allocators[0];
    let cpu = &glibc.cpu_s.figure;
    let least = cpu.runs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = cpu.runs.iter().copied().fold(0.0, f64::max);
    if most - least > cpu.median * BUSY_SPAN {
        found.push(format!(
            "The machine was busy with other programs, or the program differs from run to run: its CPU \
             time on glibc was {} to {}.",
            text::seconds(least),
            text::seconds(most)
        ));
    }
    if all.rounds < ENOUGH_ROUNDS {
        found.push(format!(
            "{} too few to distinguish small differences from chance: use --times {} or more.",
            if all.rounds == 1 {
                "One round is".into()
            } else {
                format!("{} rounds are", all.rounds)
            },
            2 * ENOUGH_ROUNDS
        ));
    }
    if glibc.wall_s.figure.median < SHORT.as_secs_f64() {
        found.push(
            "The program runs only briefly, so its start and that of the allocators take a large \
             part of all times. Let it do more work."
                .to_string(),
        );
    }
    if glibc.peak_bytes.figure.median < PEAK_SEEN {
        found.push(format!(
            "Peaks below {} cannot be measured, because a process begins with memory of this tool.",
            ui::round_bytes(PEAK_SEEN as u64)
        ));
    }
    if all.peaks_of_largest {
        found.push(
            "Several processes of the program ran too briefly to be seen together, so peaks are \
             those of its largest process."
                .to_string(),
        );
    }
    if status.code() != Some(0) {
        found.push(format!(
            "The program {} on glibc, so it may not have done its work.",
            ending(status)
        ));
    }
    if let Some(wanted) = wanted.filter(|wanted| reached.is_none_or(|reached| reached > *wanted)) {
        let reached = reached.map_or("unknown".to_string(), |reached| {
            format!("known to {:.1} %", reached * 100.0)
        });
        found.push(format!(
            "After {} rounds the least certain ratio of CPU time is {reached}, where {:.1} % was \
             requested. A larger --within gives it more time.",
            all.rounds,
            wanted * 100.0
        ));
    }
    found
}

/// Refuses a folder with files, which may be the output of an earlier comparison, without `force`.
pub fn may_keep_in(folder: &Path, force: bool) -> Result<()> {
    let Ok(mut entries) = std::fs::read_dir(folder) else {
        return Ok(());
    };
    if entries.next().is_some() && !force {
        bail!("{} is not empty; --force writes to it", folder.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
