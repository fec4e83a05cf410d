//! The command line of the tool: defines and checks the arguments of each subcommand, and calls the
//! module that does its work.

use crate::advise;
use crate::allocators;
use crate::faults::{self, Faults, Stopped};
use crate::inspect;
use crate::lifetimes;
use crate::machine::{self, Machine};
use crate::plan::{merge, Plan, ProcessPlan};
use crate::profile;
use crate::program::{self, Ended, Signals};
use crate::real::{self, contenders, RealRuns, FEWEST_ROUNDS, USUAL_ROUNDS};
use crate::record::{self, Recorded};
use crate::recording::{ReadError, Recording, Strictness};
use crate::replay::measure::{self, Measurement, Options};
use crate::replay::worker::{self, Pass};
use crate::report::{answer, html, info, table, Report};
use crate::run;
use crate::service::readings::{self, Reader};
use crate::service::{self, Load, Ready};
use crate::signals;
use crate::ui;
use anyhow::{bail, Context, Result};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};
use serde::Serialize;
use slabyard_peers::Allocator;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// Measures what your program's allocations cost on each allocator, runs programs on Slabyard, and
/// shows where the memory of running programs is
#[derive(Parser)]
#[command(name = "slabyard", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Ask,
}

const EXAMPLES: &str = "\
Examples:
  slabyard compare -- sqlite3 my.db 'select count(*) from t'   run and record, replay, report
  slabyard compare --load 'wrk -d 9 http://:80/' -- ./server   a server under load
  slabyard record -o build.syrec -- make -j4                   children are recorded too
  slabyard compare build.syrec --page build.html               replay what was recorded
  slabyard replay build.syrec -a mimalloc -a jemalloc          on these allocators, without a page
  slabyard info build.syrec                                    what is in the recording
  slabyard profile -- ./prog                                   whose memory its peak is, by stack
  slabyard advise prog.syrec                                   what a pool, a cache or epochs would save
  slabyard faults -- ./server --once                           each allocation fails in turn
  slabyard run -- ./server                                     with Slabyard as its malloc
  slabyard compare --replay -- ./once                          record one run, and replay it
  slabyard compare --run -- ./prog                             only run it, on each allocator
  slabyard account 4711                                        where the memory of a process is

Exit status: 0, or 1 for an error, 2 for a wrong command line, 3 when an allocator failed the
replay. `record` and `run` exit as the program did, or with 125 when they could not start it.
`faults` exits with 1 when a failure was not survived, 125 when nothing could be tried, 128 and
the signal's number when it was interrupted.";

#[derive(Subcommand)]
enum Ask {
    /// Run a program and record its calls of malloc
    Record(RecordArgs),
    /// Replay a recording on each allocator and show a table
    Replay(ReplayArgs),
    /// Run a program on each allocator, and replay its allocations; show tables and write a page
    Compare(Box<CompareArgs>),
    /// Show the contents of a recording
    Info(InfoArgs),
    /// Show whose memory it is, by stack: at the peak, at exit, allocated, freed at once
    Profile(profile::command::ProfileArgs),
    /// Show which places in a program would gain from a pool, a cache or epochs, and how much
    Advise(advise::AdviseArgs),
    /// Run a program again and again; each run lets another allocation fail. Show the failures that
    /// the program does not survive
    Faults(FaultsArgs),
    /// Run a program with Slabyard as its malloc
    Run(RunArgs),
    /// List the options of Slabyard, which the variable SLABYARD sets
    Options,
    #[command(flatten)]
    Inspect(inspect::commands::Ask),
    #[command(hide = true)]
    Worker(WorkerArgs),
}

#[derive(Args)]
struct RecordArgs {
    /// The file to write [default: PROGRAM.syrec]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(short, long)]
    force: bool,
    /// End the program after this time (60s, 5m), and keep what was recorded until then
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    window: Option<Duration>,
    /// Record the stack of each allocation too, for `slabyard profile` and `slabyard advise`
    #[arg(long)]
    stacks: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

#[derive(Args)]
struct MeasureArgs {
    /// Number of timed runs of each allocator [default: 5 replays, 10 runs of the program]
    #[arg(short, long, visible_alias = "times", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: Option<u16>,
    /// Add timed runs until the ratios of their times are known to PERCENT
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    precision: Option<f64>,
    /// Seconds that a replay may take; if all of it takes longer, there are fewer rounds, then no
    /// check of contents, then only the first part of the recording. With --run: seconds after which
    /// no further round is started beyond the least number
    #[arg(long, value_name = "S", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..))]
    within: u64,
    /// Do not check that every object keeps its contents (saves one run of each allocator)
    #[arg(long)]
    no_verify: bool,
    /// Use the part of a damaged recording before the damage
    #[arg(long)]
    salvage: bool,
    /// Write all figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace files that exist
    #[arg(short, long)]
    force: bool,
    /// Folder for the replay's temporary plan, 16 bytes per operation [default: the system's]
    #[arg(long, value_name = "FOLDER")]
    scratch: Option<PathBuf>,
}

#[derive(Args)]
struct ReplayArgs {
    /// The recording
    file: PathBuf,
    /// Only this allocator; may be given several times
    #[arg(short, long = "allocator", value_name = "NAME", value_parser = allocator_named)]
    allocators: Vec<&'static Allocator>,
    #[command(flatten)]
    measure: MeasureArgs,
}

#[derive(Args)]
struct CompareArgs {
    /// The recording, unless a program follows after `--`
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    file: Option<PathBuf>,
    /// The page to write [default: the recording's name with .html]
    #[arg(short, long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// The recording of the program to write [default: PROGRAM.syrec]
    #[arg(short, long, value_name = "FILE", requires = "command")]
    output: Option<PathBuf>,
    /// Only run the program itself on each installed allocator, in turn; do not record and replay it
    #[arg(long, requires = "command",
          conflicts_with_all = ["file", "page", "output", "no_verify", "salvage", "scratch"])]
    run: bool,
    /// Only record and replay the program, which then runs once
    #[arg(long, requires = "command", conflicts_with_all = ["file", "run"])]
    replay: bool,
    /// Only this allocator; NAME=PATH adds a library for the runs; may be given several times
    #[arg(short, long = "allocator", value_name = "NAME", value_parser = wanted)]
    allocators: Vec<contenders::Wanted>,
    /// An allocator fails if the program's standard output differs from that with glibc
    #[arg(long, requires = "command", conflicts_with_all = ["file", "replay"])]
    same_output: bool,
    /// Keep the output of the runs in FOLDER
    #[arg(
        long,
        value_name = "FOLDER",
        requires = "command",
        conflicts_with = "replay"
    )]
    keep: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
    /// Run this command of the shell before each run, for example to restore the program's input
    #[arg(long, value_name = "COMMAND", conflicts_with = "file")]
    before: Option<OsString>,
    /// End the program after this time (60s, 5m), record and replay what it did until then; for
    /// programs that run for hours
    #[arg(long = "for", value_name = "TIME", value_parser = time,
          conflicts_with_all = ["run", "load", "file"])]
    window: Option<Duration>,
    #[command(flatten)]
    measure: MeasureArgs,
    /// The program to record or run, and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

#[derive(Args)]
#[command(next_help_heading = "Options for a server, which does not end by itself")]
struct ServerArgs {
    /// When the program is ready, run this command of the shell, then end the program by SIGTERM
    #[arg(long, value_name = "COMMAND", conflicts_with = "file")]
    load: Option<OsString>,
    /// It is ready when a connection to PORT or HOST:PORT succeeds, or when the file PATH exists; the
    /// path has a slash [default: when it waits for connections]
    #[arg(long, value_name = "WHEN", requires = "load", value_parser = ready_when)]
    ready: Option<Ready>,
    /// Seconds after which a server that is not ready is not waited for
    #[arg(long, value_name = "S", requires = "load", default_value_t = 60)]
    ready_within: u64,
    /// Seconds of rest after the load, before the server's memory is read and the server is ended
    #[arg(long, value_name = "S", requires = "load", default_value_t = 3)]
    rest: u64,
    /// Read a figure from the load's output; the regular expression has one group, as in
    /// 'p99=p99: ([0-9.]+)'. Requests per second and p99 of the usual load generators are read anyway
    #[arg(long, value_name = "NAME=REGEX", requires = "load", value_parser = reader)]
    read: Vec<Reader>,
}

impl ServerArgs {
    fn load(&self) -> Option<Load> {
        let mut readers = readings::usual();
        readers.extend(self.read.iter().cloned());
        Some(Load {
            command: self.load.clone()?,
            ready: self.ready.clone().unwrap_or(Ready::Listens),
            ready_within: Duration::from_secs(self.ready_within),
            rest: Duration::from_secs(self.rest),
            readers,
        })
    }
}

const RUN_NOTES: &str = "\
The tool contains libslabyard-malloc.so, and puts it first in LD_PRELOAD. Processes that the program
starts use it too. Some options are debug and guard=all (to find misuse), and stats (memory by size,
at exit); --options help lists all options.

The exit status is the program's. If a signal ends the program, the same signal ends this command.
Status 125 means that the program could not be started with the library; the message says why.

With a limit, the program is recorded instead, and has its own malloc. The exit status is 1 if a
process exceeds the limit, and the message names the place with the most.";

#[derive(Args)]
#[command(after_help = RUN_NOTES)]
struct RunArgs {
    /// Options separated by commas, as in the environment variable SLABYARD
    #[arg(
        long,
        value_name = "OPTIONS",
        default_value = "",
        hide_default_value = true
    )]
    options: String,
    /// Print the program's time and memory on stderr when it has ended
    #[arg(long)]
    summary: bool,
    /// The library to preload, instead of the one inside the tool
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    #[command(flatten)]
    limits: profile::budget::Limits,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

#[derive(Args)]
struct InfoArgs {
    /// The recording
    file: PathBuf,
    /// Show how much memory long-lived objects keep by lying between short-lived ones
    #[arg(long)]
    lifetimes: bool,
    /// Show the part of a damaged recording before the damage
    #[arg(long)]
    salvage: bool,
}

#[derive(Args)]
struct FaultsArgs {
    /// Number of the first allocation to fail
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    from: u64,
    /// Then test only every K-th allocation
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Maximum number of runs [default: until a run has no allocation left to fail]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max: Option<u64>,
    /// Only allocations of this cache; * and ? match any text and any letter; may be given several
    /// times
    #[arg(long, value_name = "CACHE", value_parser = cache_name)]
    only: Vec<String>,
    /// Let the library's system calls fail instead of allocations: commit, reserve, ... or * for
    /// all
    #[arg(long, value_name = "CALL", conflicts_with = "only")]
    os: Option<String>,
    /// Seconds after which a run is killed and counts as not survived
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Number of runs at the same time
    #[arg(short, long, value_name = "J", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// Continue after a failure that the program does not survive
    #[arg(long)]
    all: bool,
    /// Count a run as not survived if objects are not freed at exit
    #[arg(long)]
    leaks: bool,
    /// Write the findings as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace the JSON file if it exists
    #[arg(short, long)]
    force: bool,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

#[derive(Args)]
struct WorkerArgs {
    folder: PathBuf,
    allocator: String,
    pass: Pass,
}

fn allocator_named(name: &str) -> Result<&'static Allocator, String> {
    let all = allocators::all();
    let found = all.iter().find(|allocator| allocator.name == name);
    found.copied().ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|allocator| allocator.name).collect();
        let there = format!("there are {}", names.join(", "));
        let more = allocators::how_to_get_peers();
        more.map_or(there.clone(), |more| format!("{there}; {more}"))
    })
}

/// Parses `NAME` or `NAME=PATH`.
fn wanted(text: &str) -> Result<contenders::Wanted, String> {
    contenders::parse(text).map_err(|error| error.to_string())
}

/// Parses `5%` or `5` to the fraction 0.05.
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end().parse();
    let percent = number
        .ok()
        .filter(|percent| (0.1..=100.0).contains(percent));
    let percent: f64 = percent.ok_or("from 0.1% to 100%")?;
    Ok(percent / 100.0)
}

/// Parses `60s`, `5m`, `2h`, or a number of seconds.
pub fn time(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let seconds = match unit {
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("a time, such as 60s, 5m or 2h".to_string()),
    };
    let time = number.parse::<f64>().ok().map(|number| number * seconds);
    let within = time.filter(|time| (0.1..=1e7).contains(time));
    within
        .map(Duration::from_secs_f64)
        .ok_or("from 0.1s to 2777h".to_string())
}

/// Parses `64M`, `1.5G`, `100k` or a number of bytes; units are of 1,024.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || "a number of bytes, such as 65536, 64k, 64M or 1.5G".to_string();
    let text = text.trim_end_matches('B').trim_end_matches('i');
    let (number, shift) = match text.chars().last().map(|unit| unit.to_ascii_lowercase()) {
        Some('k') => (&text[..text.len() - 1], 10),
        Some('m') => (&text[..text.len() - 1], 20),
        Some('g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let bytes = number * f64::from(1u32 << shift);
    (0.0..1e18)
        .contains(&bytes)
        .then_some(bytes as u64)
        .ok_or_else(wrong)
}

fn ready_when(text: &str) -> Result<Ready, String> {
    service::ready_when(text).map_err(|error| error.to_string())
}

fn reader(text: &str) -> Result<Reader, String> {
    readings::parse(text).map_err(|error| format!("{error:#}"))
}

/// Checks a cache's name for the option `fail`: refuses the letters that separate names there.
fn cache_name(name: &str) -> Result<String, String> {
    match name.find([',', '+', '|']) {
        None if !name.is_empty() => Ok(name.to_string()),
        _ => Err("a cache's name cannot contain , + or | here: write ? instead".to_string()),
    }
}

/// The number of timed replays of each allocator.
const REPLAYS: u16 = 5;

/// Before a replay, the program itself is run until the ratios of its times are known so well, for
/// at most this part of the time that the user gives.
const RUNS_PRECISION: f64 = 0.02;
const RUNS_PART: u32 = 2;
/// The replay has what the runs leave of that time, and at least this part of it.
const REPLAY_PART: u32 = 4;

/// Parses a command line and discards it, for the fuzzers.
#[cfg(any(test, feature = "fuzz"))]
pub fn try_command_line(words: &mut dyn Iterator<Item = &str>) {
    if let Err(error) = Cli::try_parse_from(std::iter::once("slabyard").chain(words)) {
        assert!(!error.to_string().is_empty());
    }
}

pub fn main() -> ExitCode {
    program::note_early_memory();
    signals::make_the_size_limit_an_error();
    let answer = match Cli::parse().command {
        Ask::Record(args) => return record_only(&args),
        Ask::Faults(args) => return find_faults(args),
        Ask::Run(args) => return run_program(args),
        Ask::Replay(args) => replay(&args),
        Ask::Compare(args) if args.run => compare_runs(*args),
        Ask::Compare(args) => compare(&args),
        Ask::Info(args) => show_info(&args),
        Ask::Profile(args) => profile::command::show(&args),
        Ask::Advise(args) => advise::show(&args),
        Ask::Options => run::options_of_library()
            .and_then(|text| ui::print(&text))
            .map(|()| 0),
        Ask::Inspect(ask) => inspect::commands::run(&ask),
        Ask::Worker(args) => worker::main(&args.folder, &args.allocator, args.pass).map(|()| 0),
    };
    match answer {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            ui::warn(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn default_recording(command: &[OsString]) -> PathBuf {
    let program = command.first().map(Path::new).and_then(Path::file_name);
    let mut name = program.map_or_else(|| OsString::from("program"), OsString::from);
    name.push(".syrec");
    PathBuf::from(name)
}

/// Refuses to replace an existing file without `force`.
pub fn may_replace(file: &Path, force: bool) -> Result<()> {
    match file.metadata() {
        Ok(about) if about.is_file() && !force => {
            bail!("{} exists; --force replaces it", file.display())
        }
        _ => Ok(()),
    }
}

/// A recording is first written under another name, so its path cannot be a device or a pipe.
fn may_record_to(file: &Path, force: bool) -> Result<()> {
    if file.metadata().is_ok_and(|about| !about.is_file()) {
        bail!("{} is not a file", file.display());
    }
    may_replace(file, force)
}

fn record_to(file: &Path, force: bool, plan: &record::Plan) -> Result<Recorded> {
    may_record_to(file, force)?;
    let recorded = record::record(plan, file)?;
    ui::warn(&format!(
        "{} operations in {} ({})",
        ui::grouped(recorded.operations),
        file.display(),
        ui::bytes(recorded.bytes)
    ));
    Ok(recorded)
}

fn record_only(args: &RecordArgs) -> ExitCode {
    let file = args
        .output
        .clone()
        .unwrap_or_else(|| default_recording(&args.command));
    let plan = record::Plan {
        command: &args.command,
        window: args.window,
        stacks: args.stacks,
        ..record::Plan::default()
    };
    match record_to(&file, args.force, &plan) {
        Ok(recorded) if recorded.is_cut => ExitCode::SUCCESS,
        Ok(recorded) => ExitCode::from(recorded.ended.code()),
        Err(error) => {
            ui::warn(&format!("{error:#}"));
            ExitCode::from(125)
        }
    }
}

pub fn open(file: &Path, salvage: bool) -> Result<Recording> {
    let strictness = if salvage {
        Strictness::Salvage
    } else {
        Strictness::Whole
    };
    let recording = Recording::open(file, strictness).map_err(|error| {
        let hint = match &error {
            ReadError::Io(_) => "",
            ReadError::Damaged(damage) if damage.offset == 0 => {
                " (slabyard record -- PROGRAM makes a recording)"
            }
            ReadError::Damaged(_) if salvage => "",
            ReadError::Damaged(_) => " (--salvage uses the part before the damage)",
        };
        anyhow::Error::new(error).context(format!("cannot use {}{hint}", file.display()))
    })?;
    if let Some(damage) = &recording.damage {
        ui::warn(&format!(
            "{} is {damage}; using the {} operations before it",
            file.display(),
            ui::grouped(recording.operations())
        ));
    }
    Ok(recording)
}

/// Opens and replays a recording; returns all figures. `runs`: those of the program itself, or why
/// there are none although they were wanted. `spent`: the time that they took, which the replay does
/// not have any more.
fn measure_file(
    file: &Path,
    wanted: &[&'static Allocator],
    args: &MeasureArgs,
    runs: Option<Result<RealRuns>>,
    spent: Duration,
) -> Result<Report> {
    let within = Duration::from_secs(args.within);
    let recording = open(file, args.salvage)?;
    if recording.operations() == 0 {
        bail!("{} holds no operations", file.display());
    }
    let scratch = match &args.scratch {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    let scratch = scratch.context("cannot make a folder for the plan")?;
    signals::remove_when_ended(scratch.path().to_path_buf());
    let plan = make_plan(&recording, scratch.path())?;
    must_fit(&plan, machine::available_bytes())?;
    let mut wanted = wanted.to_vec();
    if wanted.is_empty() {
        wanted = allocators::all();
    }
    if plan.summary.hot.is_empty() {
        wanted.retain(|allocator| allocator.name != allocators::SLABYARD_CACHES);
    }
    let options = Options {
        allocators: wanted,
        repeats: usize::from(args.repeats.unwrap_or(REPLAYS)),
        verify: !args.no_verify,
        precision: args.precision,
        within: within.saturating_sub(spent).max(within / REPLAY_PART),
    };
    let measurement = measure::measure(scratch.path(), &options)?;
    Ok(make_report(file, &recording, plan, measurement, runs))
}

/// Refuses a replay that needs more memory than is available: a replay writes to the memory that
/// the program asks for, even where the program did not.
fn must_fit(plan: &Plan, available: Option<u64>) -> Result<()> {
    let needed = plan.processes.iter().map(ProcessPlan::sure_peak).max();
    let (needed, available) = (needed.unwrap_or(0), available.unwrap_or(u64::MAX));
    if needed > available {
        bail!(
            "a replay needs {} of memory, because it writes to all memory that the program asked \
             for; this machine has {} available",
            ui::bytes(needed),
            ui::bytes(available)
        );
    }
    Ok(())
}

fn make_plan(recording: &Recording, folder: &Path) -> Result<Plan> {
    let bar = ui::bar("reading the recording", recording.operations());
    let plan = merge::make_plan(recording, folder, &mut |done| bar.set_position(done))?;
    bar.finish_and_clear();
    Ok(plan)
}

fn make_report(
    file: &Path,
    recording: &Recording,
    plan: Plan,
    measurement: Measurement,
    runs: Option<Result<RealRuns>>,
) -> Report {
    let (runs, no_runs) = match runs {
        Some(Ok(runs)) => (Some(runs), None),
        Some(Err(why)) => (None, Some(format!("{why:#}"))),
        None => (None, None),
    };
    Report {
        machine: Machine::look(),
        file: file.display().to_string(),
        file_bytes: recording.file_bytes(),
        command: recording.processes[0].command.join(" "),
        program: recording.processes[0].name().to_string(),
        python: recording
            .processes
            .iter()
            .any(|process| is_python(process.name()))
            && !std::env::var("PYTHONMALLOC").is_ok_and(|which| which.starts_with("malloc")),
        damage: recording.damage.as_ref().map(ToString::to_string),
        answer: answer::of(
            &plan.summary,
            &measurement,
            runs.as_ref().and_then(answer::Program::of),
        ),
        runs,
        no_runs,
        summary: plan.summary,
        measurement,
    }
}

/// Whether this is `python`, `python3`, `python3.11` or similar.
fn is_python(name: &str) -> bool {
    let version = name.strip_prefix("python");
    version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// Writes the whole file or nothing: the file is renamed to its path when it is complete.
pub fn write_whole(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    if path.metadata().is_ok_and(|about| !about.is_file()) {
        return std::fs::write(path, text.as_ref()).with_context(cannot);
    }
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let file = tempfile::Builder::new()
        .prefix(".slabyard-")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(parent.unwrap_or(Path::new(".")));
    let mut file = file.with_context(cannot)?;
    std::io::Write::write_all(&mut file, text.as_ref()).with_context(cannot)?;
    file.persist(path).with_context(cannot)?;
    Ok(())
}

fn write_json(figures: &impl Serialize, path: Option<&Path>) -> Result<()> {
    let Some(path) = path else {
        return Ok(());
    };
    write_whole(path, serde_json::to_string_pretty(figures)?)?;
    ui::warn(&format!("figures in {}", path.display()));
    Ok(())
}

/// The exit status: 3 if an allocator failed.
fn verdict(report: &Report) -> u8 {
    let failed = report
        .measurement
        .allocators
        .iter()
        .any(|one| one.failure.is_some());
    if failed {
        3
    } else {
        0
    }
}

fn replay(args: &ReplayArgs) -> Result<u8> {
    may_write_json(&args.measure)?;
    let report = measure_file(
        &args.file,
        &args.allocators,
        &args.measure,
        None,
        Duration::ZERO,
    )?;
    ui::print(&table::render(&report))?;
    write_json(&report.figures(), args.measure.json.as_deref())?;
    Ok(verdict(&report))
}

fn may_write_json(args: &MeasureArgs) -> Result<()> {
    let json = args.json.as_deref();
    json.map_or(Ok(()), |json| may_replace(json, args.force))
}

/// The allocators that a replay can run on. If the program is run too, a library is for its runs.
fn replayed(
    wanted: &[contenders::Wanted],
    and_run: bool,
) -> Result<Vec<&'static Allocator>, String> {
    let one = |one: &contenders::Wanted| match one {
        contenders::Wanted::Named(name) => {
            let found = allocator_named(name);
            if found.is_err() && and_run && contenders::is_known(name) {
                return None; // the system may have a library of it
            }
            Some(found.map_err(|there| format!("there is no allocator {name}; {there}")))
        }
        contenders::Wanted::At(..) if and_run => None,
        contenders::Wanted::At(name, path) => Some(Err(format!(
            "{name}={}: a replay has no libraries; give one with --run",
            path.display()
        ))),
    };
    wanted.iter().filter_map(one).collect()
}

/// Reports an error in the command line that the parser cannot find, and exits as the parser does.
fn wrong_words(why: impl std::fmt::Display) -> ! {
    Cli::command().error(ErrorKind::InvalidValue, why).exit()
}

fn compare(args: &CompareArgs) -> Result<u8> {
    let and_run = !args.command.is_empty() && !args.replay && args.window.is_none();
    let wanted = replayed(&args.allocators, and_run).unwrap_or_else(|why| wrong_words(why));
    let file = args.file.clone().or_else(|| args.output.clone());
    let file = file.unwrap_or_else(|| default_recording(&args.command));
    let page = args.page.clone();
    let page = page.unwrap_or_else(|| file.with_extension("html"));
    may_replace(&page, args.measure.force)?;
    may_write_json(&args.measure)?;
    may_keep(args)?;
    let (mut runs, mut spent) = (None, Duration::ZERO);
    if !args.command.is_empty() {
        let load = args.server.load();
        let plan = record::Plan {
            command: &args.command,
            window: args.window,
            load: load.as_ref(),
            before: args.before.as_deref(),
            ..record::Plan::default()
        };
        let recorded = record_to(&file, args.measure.force, &plan)?;
        let passed_on = recorded.ended.passed_on;
        if let Some(code) = passed_on.and_then(|signal| must_end(signal, &file)) {
            return Ok(code);
        }
        let begin = Instant::now();
        runs = and_run.then(|| run_as_well(args, &recorded.ended));
        spent = begin.elapsed();
    }
    let ended_runs = runs
        .as_ref()
        .and_then(|runs| runs.as_ref().ok()?.interrupted);
    if let Some(code) = ended_runs.and_then(|signal| must_end(signal, &file)) {
        return Ok(code);
    }
    let report = measure_file(&file, &wanted, &args.measure, runs, spent)?;
    ui::print(&table::render(&report))?;
    write_whole(&page, html::render(&report))?;
    write_json(&report.figures(), args.measure.json.as_deref())?;
    ui::print(&format!("\nThe page: {}\n", page.display()))?;
    if let Some(how) = allocators::how_to_get_peers().filter(|_| wanted.is_empty()) {
        ui::warn(&how);
    }
    let of_runs = report.runs.as_ref().map_or(0, verdict_of_runs);
    Ok(verdict(&report).max(of_runs))
}

/// Runs a program that was recorded on each allocator. The error says why it cannot be.
fn run_as_well(args: &CompareArgs, recorded: &Ended) -> Result<RealRuns> {
    if recorded.signalled.is_some() {
        bail!("a signal ended it when it was recorded, so it does not end by itself");
    }
    let is_run = |one: &&contenders::Wanted| !contenders::Wanted::is_only_replayed(one);
    let wanted: Vec<_> = args.allocators.iter().filter(is_run).cloned().collect();
    if wanted.is_empty() && !args.allocators.is_empty() {
        bail!("the allocators that you name are only replayed");
    }
    contenders::Wanted::check(&wanted)?;
    let signals = Signals::hold();
    let mut all = contenders::of(&wanted, &args.command[0])?;
    let within = Duration::from_secs(args.measure.within) / RUNS_PART;
    let rounds = |count: usize| real::rounds_within(within, recorded.usage.wall, count);
    if rounds(all.len()) < FEWEST_ROUNDS && wanted.is_empty() {
        all.truncate(2);
    }
    let rounds = match args.measure.repeats {
        Some(rounds) => usize::from(rounds),
        None => rounds(all.len()).min(USUAL_ROUNDS),
    };
    if rounds < FEWEST_ROUNDS && args.measure.repeats.is_none() {
        bail!(
            "a run takes {}, so {FEWEST_ROUNDS} rounds take longer than half of --within {}",
            run::seconds(recorded.usage.wall),
            args.measure.within
        );
    }
    ui::warn(&format!(
        "running the program itself on {} allocators, in at least {rounds} rounds; at most {} in all",
        all.len(),
        run::seconds(within.max(recorded.usage.wall * (all.len() * (rounds + 1)) as u32))
    ));
    // A user who gives the number of rounds wants no more of them.
    let by_itself = args.measure.repeats.is_none().then_some(RUNS_PRECISION);
    let plan = real::Plan {
        rounds: Some(rounds),
        precision: args.measure.precision.or(by_itself),
        within,
        same_output: args.same_output,
        keep: args.keep.clone(),
        command: args.command.clone(),
        ended: Some(recorded.status),
        load: args.server.load(),
        before: args.before.clone(),
    };
    let runs = real::measure(&plan, &all, &signals)?;
    if runs.rounds == 0 && runs.interrupted.is_none_or(|signal| signal == libc::SIGINT) {
        bail!("a signal ended the runs before the first round was complete");
    }
    Ok(runs)
}

fn may_keep(args: &CompareArgs) -> Result<()> {
    let kept = args.keep.as_deref();
    kept.map_or(Ok(()), |folder| {
        real::may_keep_in(folder, args.measure.force)
    })
}

/// The exit status if the tool received this signal and must end. After an interrupt (Ctrl-C) the
/// user still wants the figures.
fn must_end(signal: i32, file: &Path) -> Option<u8> {
    if signal != libc::SIGTERM && signal != libc::SIGHUP {
        return None;
    }
    ui::warn(&format!(
        "ended by {}; slabyard compare {} continues",
        signals::described(signal),
        file.display()
    ));
    Some((128 + signal) as u8)
}

fn show_info(args: &InfoArgs) -> Result<u8> {
    let recording = open(&args.file, args.salvage)?;
    if args.lifetimes {
        ui::print(&lifetimes::render(&recording))?;
        return Ok(0);
    }
    let scratch = tempfile::tempdir().context("cannot make a folder for the plan")?;
    signals::remove_when_ended(scratch.path().to_path_buf());
    let plan = make_plan(&recording, scratch.path())?;
    ui::print(&info::render(&recording, &plan.summary))?;
    Ok(0)
}

/// The exit status is 1 if a limit is exceeded, and else the program's.
fn run_within_limits(args: &RunArgs) -> ExitCode {
    match profile::budget::run(&args.command, &args.limits) {
        Ok((holds, ended)) => {
            if args.summary {
                ui::warn(&run::summary(&ended));
            }
            if holds {
                ExitCode::from(ended.code())
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            ui::warn(&format!("{error:#}"));
            ExitCode::from(125)
        }
    }
}

fn run_program(args: RunArgs) -> ExitCode {
    args.limits.check().unwrap_or_else(|why| wrong_words(why));
    if args.limits.any() {
        return run_within_limits(&args);
    }
    let plan = run::Plan {
        command: args.command,
        options: args.options,
        library: args.library,
    };
    match run::run(&plan) {
        Ok(ended) => {
            if args.summary {
                ui::warn(&run::summary(&ended));
            }
            if let Some(signal) = ended.status.signal() {
                signals::end_by(signal);
            }
            ExitCode::from(ended.code())
        }
        Err(error) => {
            ui::warn(&format!("{error:#}"));
            ExitCode::from(125)
        }
    }
}

fn compare_runs(args: CompareArgs) -> Result<u8> {
    may_write_json(&args.measure)?;
    may_keep(&args)?;
    let (measure, program) = (&args.measure, &args.command[0]);
    contenders::Wanted::check(&args.allocators).unwrap_or_else(|why| wrong_words(why));
    // From here on, a signal does not end the tool before it has removed the libraries' files.
    let signals = Signals::hold();
    let contenders = contenders::of(&args.allocators, program)?;
    let plan = real::Plan {
        rounds: measure.repeats.map(usize::from),
        precision: measure.precision,
        within: Duration::from_secs(measure.within),
        same_output: args.same_output,
        keep: args.keep,
        load: args.server.load(),
        command: args.command,
        ended: None,
        before: args.before,
    };
    let all = real::measure(&plan, &contenders, &signals)?;
    if all.rounds == 0 {
        ui::warn("interrupted before the first round was complete");
        return Ok(verdict_of_runs(&all));
    }
    ui::print(&real::text::render(&all))?;
    write_json(&all, measure.json.as_deref())?;
    Ok(verdict_of_runs(&all))
}

/// The exit status: 3 if an allocator failed.
fn verdict_of_runs(all: &RealRuns) -> u8 {
    let failed = all.allocators.iter().any(|one| one.failure.is_some());
    match all.interrupted {
        Some(signal) => (128 + signal) as u8,
        None => 3 * u8::from(failed),
    }
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static INTERRUPTED_BY: AtomicI32 = AtomicI32::new(libc::SIGINT);

extern "C" fn note_interrupt(signal: libc::c_int) {
    INTERRUPTED_BY.store(signal, Ordering::Relaxed);
    INTERRUPTED.store(true, Ordering::Relaxed);
}

fn find_faults(args: FaultsArgs) -> ExitCode {
    match try_failures(args) {
        Ok(faults) if faults.stopped == Stopped::Interrupted => {
            ExitCode::from(128 + INTERRUPTED_BY.load(Ordering::Relaxed) as u8)
        }
        Ok(faults) => ExitCode::from(u8::from(!faults.findings.is_empty())),
        Err(error) => {
            ui::warn(&format!("{error:#}"));
            ExitCode::from(125)
        }
    }
}

fn try_failures(args: FaultsArgs) -> Result<Faults> {
    let json = args.json.clone();
    json.as_deref()
        .map_or(Ok(()), |json| may_replace(json, args.force))?;
    let plan = faults::Plan {
        command: args.command,
        only: args.only,
        call: args.os,
        from: args.from,
        every: args.every,
        most: args.max,
        time: Duration::from_secs(args.timeout),
        jobs: usize::from(args.jobs),
        all: args.all,
        leaks: args.leaks,
        settings: std::env::var_os("SLABYARD").unwrap_or_default(),
    };
    let handler = note_interrupt as extern "C" fn(libc::c_int);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        if !signals::is_ignored(signal) {
            // SAFETY: the handler performs only atomic stores.
            unsafe { libc::signal(signal, handler as libc::sighandler_t) };
        }
    }
    let line = ui::line();
    let faults = faults::find(&plan, &INTERRUPTED, &mut |_, run| {
        if let Some(made) = run.made.first() {
            line.set_message(made.clone());
            line.tick();
        }
    })?;
    line.finish_and_clear();
    ui::print(&faults::text::render(&faults))?;
    write_json(&faults, json.as_deref())?;
    Ok(faults)
}
