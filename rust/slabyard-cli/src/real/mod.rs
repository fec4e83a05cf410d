//! `slabyard compare --run`: runs the program itself on each allocator in turn, and measures the
//! time and memory of its processes.
//!
//! [`contenders`] finds the allocators, [`tree`] samples memory, [`answer`] and [`text`] write the
//! sentences and tables. In each round every allocator has one run. So a disturbance of the machine affects all allocators, and the figures of one
//! round can be compared.

pub mod answer;
pub mod contenders;
pub mod text;
mod tree;

use crate::caveat::Caveat;
use crate::machine::Machine;
use crate::preload::serving;
use crate::program::{self, Ended, Reach, Signals, Usage, Watch, LOOK_AGAIN};
use crate::replay::measure::Figure;
use crate::run;
use crate::service::readings::Better;
use crate::service::{Load, Served, Service};
use crate::signals;
use crate::ui;
use anyhow::{bail, Context, Result};
use contenders::Contender;
use indicatif::ProgressBar;
use serde::Serialize;
use slabyard_certainty::{self as certainty, Interval};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tree::Tree;

/// With fewer rounds, the figures are uncertain.
pub const ENOUGH_ROUNDS: usize = 5;

/// With fewer rounds, nothing is known.
pub const FEWEST_ROUNDS: usize = 3;

/// So many rounds if the time allows.
pub const USUAL_ROUNDS: usize = 10;

/// Runs that take less than this are mostly the start of the program.
const SHORT: Duration = Duration::from_millis(50);

/// Between fork and exec, a process has the tool's own memory of about 1.5 MiB, which counts in its
/// peak.
const PEAK_SEEN: f64 = (2 << 20) as f64;

/// At other times a peak is by this part higher or lower, though rounds agree: the environment has
/// another size, or the system has huge pages or has none. Measured by the truth bench.
const PEAK_ERROR: f64 = 0.01;

/// The user is told how long the runs take if it is longer than this.
const SAY_FROM: Duration = Duration::from_secs(10);

/// On a quiet machine, glibc's CPU time varies by less than this fraction from round to round.
const BUSY_SPAN: f64 = 0.25;

/// The program to run, and the settings.
pub struct Plan {
    pub command: Vec<OsString>,
    /// At least so many rounds. `None`: as many as fit into the time, from [`FEWEST_ROUNDS`] to
    /// [`USUAL_ROUNDS`].
    pub rounds: Option<usize>,
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
    /// The load on a server, which does not end by itself.
    pub load: Option<Load>,
    /// A command for the shell that runs before each run.
    pub before: Option<OsString>,
}

/// The figures of one run.
#[derive(Clone, Debug, Default)]
struct Run {
    usage: Usage,
    /// The mean of all processes together, over the program's life; `None` if it was too short.
    mean_resident: Option<f64>,
    served: Option<Served>,
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
    pub to_first: Option<Ratio>,
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
    /// The figures of a server under load.
    pub served: Option<ServedKinds>,
}

/// The figures of a server under load.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ServedKinds {
    /// How long the load took.
    pub load_s: Kind,
    /// Resident memory when the server had rested after the load.
    pub idle_bytes: Kind,
    /// What was read of the load's output.
    pub readings: Vec<Reading>,
}

/// A figure of the load's output.
#[derive(Clone, Debug, Serialize)]
pub struct Reading {
    pub name: String,
    pub better: Better,
    #[serde(flatten)]
    pub kind: Kind,
}

/// All figures of a comparison.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RealRuns {
    pub machine: Machine,
    pub command: String,
    /// The command that loads a server.
    pub load: Option<String>,
    pub rounds: usize,
    /// How the program ends on glibc.
    pub ends: String,
    /// Whether peaks are those of the largest process, since several ran too briefly to be seen
    /// together.
    pub peaks_of_largest: bool,
    /// The signal that ended the measurement before its end.
    pub interrupted: Option<i32>,
    /// The gain of the program by Slabyard; `None` if there were no runs.
    pub answer: Option<String>,
    /// A sentence on the allocators in `better`.
    pub others: Option<String>,
    /// The allocators that surely take less CPU time or memory than Slabyard.
    pub better: Vec<answer::Better>,
    /// Why the answer is doubtful, in a few words for each of these caveats.
    pub doubts: Vec<String>,
    /// Why the figures may mislead.
    pub caveats: Vec<Caveat>,
    pub allocators: Vec<Measured>,
}

impl RealRuns {
    /// Whose malloc the program has without a library; the others are compared with it.
    pub fn base(&self) -> &str {
        self.allocators
            .first()
            .map_or(serving::LIBC, |one| &one.name)
    }
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
    /// Programs that it started in the first round, as far as samples saw them.
    others: BTreeSet<PathBuf>,
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
        others: BTreeSet::new(),
    };
    let mut records: Vec<Record> = contenders.iter().map(|_| Record::new()).collect();
    let usual = plan.rounds.unwrap_or(USUAL_ROUNDS);
    let bar = ui::bar("running", ((usual + 1) * contenders.len()) as u64);
    let begin = Instant::now();
    let mut interrupted = race.round(0, &mut records, &bar)?;
    if plan.ended.is_none() && interrupted.is_none() {
        say_how_long(plan, begin.elapsed());
    }
    let mut rounds = 0;
    while interrupted.is_none() && wants_more(plan, rounds, &records, begin.elapsed()) {
        interrupted = race.round(rounds + 1, &mut records, &bar)?;
        rounds += usize::from(interrupted.is_none());
    }
    bar.finish_and_clear();
    let others = std::mem::take(&mut race.others);
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
        (status, &others),
        interrupted,
    ))
}

/// Says before the measured rounds how long they will take.
fn say_how_long(plan: &Plan, round: Duration) {
    let least = round * plan.rounds.unwrap_or(FEWEST_ROUNDS) as u32;
    let all = match plan.rounds {
        Some(_) if plan.precision.is_none() => least,
        _ => least.max(plan.within.min(round * USUAL_ROUNDS as u32)),
    };
    if all >= SAY_FROM {
        ui::warn(&format!(
            "a round of runs takes {}, all of them {} or less; Ctrl-C ends earlier, with the figures so far",
            run::seconds(round),
            run::seconds(all)
        ));
    }
}

fn wants_more(plan: &Plan, rounds: usize, records: &[Record], passed: Duration) -> bool {
    match plan.rounds {
        Some(least) if rounds < least => return true,
        None if rounds < FEWEST_ROUNDS => return true,
        None if rounds < USUAL_ROUNDS => {
            return passed + passed / (rounds as u32 + 1) < plan.within
        }
        _ => (),
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
                Outcome::Failed(why) if contender.library.is_none() => bail!(
                    "the runs on {} itself differ: the program {why}{}",
                    contender.name,
                    self.hint()
                ),
                Outcome::Failed(why) => record.failure = Some(why),
                Outcome::Interrupted(signal) => return Ok(Some(signal)),
            }
        }
        Ok(None)
    }

    /// What a user can do if the program does not do the same in each run.
    fn hint(&self) -> &'static str {
        match self.plan.before {
            None => ". If it changes its own input, --before COMMAND restores it before each run",
            Some(_) => "",
        }
    }

    fn run(&mut self, contender: &Contender, round: usize) -> Result<Outcome> {
        if let Some(signal) = self.signals.waiting() {
            return Ok(Outcome::Interrupted(signal));
        }
        if let Some(before) = &self.plan.before {
            program::prepare_input(before, self.signals)?;
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
        let (ended, served) = self.watched(command, &mut tree)?;
        if let Some(signal) = ended.signalled {
            return Ok(Outcome::Interrupted(signal));
        }
        if round == 0 {
            self.others.append(&mut tree.programs);
        }
        let served = match served {
            Some(Err(why)) => return Ok(Outcome::Failed(why)),
            Some(Ok(served)) => Some(served),
            None => None,
        };
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
            let base = &self.contenders[0].name;
            return Ok(Outcome::Failed(format!("{here}, and {there} on {base}")));
        }
        if model.1 != wrote {
            let base = &self.contenders[0].name;
            let why = format!("wrote something else to standard output than on {base}");
            return Ok(Outcome::Failed(why));
        }
        Ok(Outcome::Took(Run {
            usage: ended.usage,
            mean_resident: tree.mean(),
            served,
            peak_together: tree.peak_of_several(),
        }))
    }

    /// Runs the program, and under load if it is a server.
    fn watched(
        &self,
        command: Command,
        tree: &mut Tree,
    ) -> Result<(Ended, Option<Result<Served, String>>)> {
        let run = |watch: &mut dyn Watch| {
            program::run(command, self.signals, LOOK_AGAIN, Reach::All, watch)
        };
        let Some(load) = &self.plan.load else {
            let mut sample = |pid| {
                tree.take(pid, None);
            };
            return Ok((run(&mut sample)?, None));
        };
        let mut sample = |pid, apart, now| {
            if now {
                tree.look_now();
            }
            tree.take(pid, apart)
        };
        let mut service = Service::new(load, self.signals, &mut sample)?;
        let ended = run(&mut service)?;
        Ok((ended, Some(service.result())))
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
    (status, others): (ExitStatus, &BTreeSet<PathBuf>),
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
            library: described(contender, plan),
            ..figures(plan, record, base)
        }
    };
    let words = plan.command.iter().map(|word| word.to_string_lossy());
    let mut all = RealRuns {
        machine: Machine::look(),
        command: words.collect::<Vec<_>>().join(" "),
        load: plan
            .load
            .as_ref()
            .map(|load| load.command.to_string_lossy().into_owned()),
        rounds,
        ends: ending(status),
        peaks_of_largest,
        interrupted,
        allocators: contenders.iter().zip(records).map(measured).collect(),
        ..RealRuns::default()
    };
    all.caveats = caveats(&all, status, plan.precision, reached);
    all.caveats.extend(of_mallocs(plan, others));
    if !answer::is_failure(&all) {
        all.doubts = Caveat::doubts(&all.caveats);
    }
    all.answer = answer::sentence(&all);
    all.better = answer::better(&all);
    all.others = answer::others(&all.better);
    all
}

/// Where the malloc of a row is, unless it is the C library's and the program's own.
fn described(contender: &Contender, plan: &Plan) -> Option<String> {
    let own = || serving::of(&plan.command[0]).ok()??.described();
    match &contender.library {
        Some(library) => {
            let built = slabyard_peers::find(&contender.name);
            let version = built
                .filter(|_| library.is_built_with_tool())
                .map(|peer| format!("{}, ", (peer.version)()));
            Some(version.unwrap_or_default() + &library.described())
        }
        None => own(),
    }
}

/// What a reader must know of the mallocs inside the program and those that it starts.
fn of_mallocs(plan: &Plan, others: &BTreeSet<PathBuf>) -> Vec<Caveat> {
    let own = serving::of(&plan.command[0]).ok().flatten();
    let name = plan.command[0].to_string_lossy();
    let doubt = |text| Caveat::doubtful("the program has a malloc of its own", text);
    let of_own = own.and_then(|own| own.caveat(&name)).map(doubt);
    let mut found: Vec<Caveat> = of_own.into_iter().collect();
    for program in others {
        let Ok(Some(serving)) = serving::of_executable(program) else {
            continue;
        };
        let name = program.display();
        if let Some(place) = serving.described().filter(|_| !serving.is_program) {
            let text = format!(
                "It starts {name}, which has the malloc of {place}, if no library replaces it."
            );
            found.push(text.into());
        }
        found.extend(serving.caveat(&name.to_string()).map(doubt));
    }
    found
}

/// The figures of one allocator's runs, and their ratios to glibc's.
fn figures(plan: &Plan, record: Record, glibc: Option<&[Run]>) -> Measured {
    if record.failure.is_some() {
        return Measured {
            failure: record.failure,
            ..Measured::default()
        };
    }
    let kind = |value: &dyn Fn(&Run) -> f64| {
        let ours = values(&record.runs, value);
        Kind {
            to_first: glibc.and_then(|glibc| ratio(&ours, &values(glibc, value))),
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
        peak_bytes: of_peaks(kind(&|run| run.usage.peak_bytes as f64)),
        mean_resident_bytes: seen.then(|| kind(&|run| run.mean_resident.unwrap_or_default())),
        page_faults: kind(&|run| run.usage.faults as f64),
        served: plan.load.as_ref().map(|load| ServedKinds {
            load_s: kind(&|run| served(run).map_or(0.0, |served| served.load.as_secs_f64())),
            idle_bytes: kind(&|run| served(run).map_or(0.0, |served| served.idle_bytes as f64)),
            readings: readings(load, &record.runs, glibc, &kind),
        }),
        ..Measured::default()
    }
}

/// Figures of peaks, which differ more from time to time than from round to round.
fn of_peaks(mut kind: Kind) -> Kind {
    if let Some(ratio) = &mut kind.to_first {
        let error = PEAK_ERROR * ratio.ratio;
        ratio.interval = ratio.interval.map(|interval| interval.with_error(error));
    }
    kind
}

fn served(run: &Run) -> Option<&Served> {
    run.served.as_ref()
}

/// Makes a figure of the values that a function gives for each run.
type Summed<'a> = dyn Fn(&dyn Fn(&Run) -> f64) -> Kind + 'a;

/// The figures that were read in each run, also in those on glibc.
fn readings(load: &Load, runs: &[Run], glibc: Option<&[Run]>, kind: &Summed) -> Vec<Reading> {
    let read = |run: &Run, index: usize| served(run)?.readings[index];
    let everyone = || runs.iter().chain(glibc.unwrap_or_default());
    let named = load.readers.iter().enumerate();
    let seen = named.filter(|(index, _)| everyone().all(|run| read(run, *index).is_some()));
    seen.map(|(index, reader)| Reading {
        name: reader.name.clone(),
        better: reader.better,
        kind: kind(&|run| read(run, index).unwrap_or_default()),
    })
    .collect()
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
) -> Vec<Caveat> {
    let mut found = Vec::new();
    let glibc = &all.allocators[0];
    let cpu = &glibc.cpu_s.figure;
    let (least, most) = answer::range(&cpu.runs);
    if most - least > cpu.median * BUSY_SPAN {
        found.push(Caveat::doubtful(
            "the times vary from run to run",
            format!(
                "The machine was busy with other programs, or the program differs from run to run: \
                 its CPU time on {} was {} to {}.",
                serving::LIBC,
                text::seconds(least),
                text::seconds(most)
            ),
        ));
    }
    if all.rounds < ENOUGH_ROUNDS {
        let (doubt, few) = match all.rounds {
            1 => ("there was one round only".into(), "One round is".into()),
            few => (
                format!("there were {few} rounds only"),
                format!("{few} rounds are"),
            ),
        };
        let text = format!(
            "{few} too few to distinguish small differences from chance: use --times {} or more.",
            2 * ENOUGH_ROUNDS
        );
        found.push(Caveat::doubtful(doubt, text));
    }
    if glibc.wall_s.figure.median < SHORT.as_secs_f64() {
        found.push(
            "The program runs only briefly, so its start and that of the allocators take a large \
             part of all times. Let it do more work."
                .into(),
        );
    }
    if glibc.peak_bytes.figure.median < PEAK_SEEN {
        found.push(
            format!(
                "Peaks below {} cannot be measured, because a process begins with memory of this \
                 tool.",
                ui::round_bytes(PEAK_SEEN as u64)
            )
            .into(),
        );
    }
    if all.peaks_of_largest {
        found.push(
            "Several processes of the program ran too briefly to be seen together, so peaks are \
             those of its largest process."
                .into(),
        );
    }
    // A server under load is ended by a signal.
    if status.code() != Some(0) && all.load.is_none() {
        let base = all.base();
        found.push(Caveat::doubtful(
            format!("the program {} on {base}", ending(status)),
            format!(
                "The program {} on {base}, so it may not have done its work.",
                ending(status)
            ),
        ));
    }
    if let Some(wanted) = wanted.filter(|wanted| reached.is_none_or(|reached| reached > *wanted)) {
        let reached = reached.map_or("unknown".to_string(), |reached| {
            format!("known to {:.1} %", reached * 100.0)
        });
        found.push(
            format!(
                "After {} rounds the least certain ratio of CPU time is {reached}, where {:.1} % \
                 was requested. A larger --within gives it more time.",
                all.rounds,
                wanted * 100.0
            )
            .into(),
        );
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
