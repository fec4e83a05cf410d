//! Whole programs over each malloc: CPU time, wall-clock time, peak and idle memory, page faults.
//!
//! * `workloads`: the classic allocator programs, whose workloads are in the folder `programs`;
//! * `real`: real programs of the system, and the inputs that are made for them;
//! * `timed`: runs of `slabyard compare --run`, which measures a program over all allocators;
//! * `idle`: runs that read the memory of a workload which has freed everything; `waiting`: a
//!   process that works and then waits;
//! * `small`: the memory of a program that has just started;
//! * `table`: the text, the geometric means, and the rows in which Slabyard is behind;
//! * here: all programs in turn.
//!
//! Slabyard is `libslabyard-malloc.so`, which the tool carries: what a user preloads. Its peers are
//! the libraries in the folder `preload`, over the crates of `slabyard-peers`.

pub mod idle;
pub mod real;
pub mod small;
pub mod table;
pub mod timed;
pub mod waiting;
pub mod workloads;

use crate::figure::Found;
use crate::machine;
use crate::part::{self, Common, Report};
use crate::preloaded::{left_out, Choice, Contender, Preloaded, OURS};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// The workloads of published allocator benchmarks, and real programs, over each malloc only.
///
/// Figures are medians with quartiles; raw data is kept as CSV.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    #[command(flatten)]
    common: Common<5, 2>,
    /// Only these programs, separated by commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    #[command(flatten)]
    choice: Choice,
    /// Seconds for which a workload is idle before its memory is read [default: 5, quick: 1]
    #[arg(long)]
    idle: Option<u64>,
    /// Do not read idle memory
    #[arg(long, conflicts_with = "idle")]
    no_idle: bool,
}

/// The two groups of rows, each with a table and geometric means of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    Classic,
    Real,
}

/// A program that is ready to run.
pub struct Job {
    pub name: &'static str,
    pub says: &'static str,
    pub group: Group,
    pub command: Vec<OsString>,
}

/// The environment of all runs, besides the library: `command` runs in `folder`.
///
/// The programs of the system are Debian's, not others with the same names. Python asks malloc for
/// each object. The hashes of Perl and Python do not differ from run to run.
pub fn environment<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    command
        .current_dir(folder)
        .env("PATH", real::path())
        .env("HOME", folder)
        .env("LC_ALL", "C")
        .env("PYTHONMALLOC", "malloc")
        .env("PYTHONHASHSEED", "0")
        .env("PERL_HASH_SEED", "0")
        .env("PERL_PERTURB_KEYS", "0")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("LD_PRELOAD")
        .env_remove("SLABYARD")
}

/// A program and its arguments, over an allocator: Slabyard's by the tool, the others preloaded.
pub fn over(one: &Contender, tool: &Path, program: &[OsString], folder: &Path) -> Command {
    let mut command = if one.name == OURS {
        let mut command = Command::new(tool);
        command.args(["run", "--"]);
        command
    } else {
        Command::new(workloads::starter())
    };
    command.args(program);
    environment(&mut command, folder);
    if let Some(library) = one.library.as_ref().filter(|_| one.name != OURS) {
        command.env("LIBRARY", library);
    }
    command
}

impl Options {
    /// Seconds for which a workload is idle; none if its memory is not read.
    fn idle(&self) -> Option<u64> {
        (!self.no_idle).then(|| self.common.or_default(self.idle, 5, 1))
    }

    /// The programs that were chosen, and a line for each that cannot run here. Their inputs are in
    /// `folder` then.
    fn jobs(&self, folder: &Path) -> Result<(Vec<Job>, Vec<String>), String> {
        let classic = workloads::ALL.iter().map(|one| one.name);
        let names: Vec<&str> = classic
            .chain(real::ALL.iter().map(|one| one.name))
            .chain([small::NAME])
            .collect();
        part::check_names("program", &self.only, &names)?;
        let quick = self.common.quick;
        let is_wanted = |name: &str| part::is_among(name, &self.only);
        let mut jobs: Vec<Job> = workloads::ALL
            .iter()
            .filter(|one| is_wanted(one.name))
            .map(|one| one.job(quick))
            .collect();
        let mut missing = Vec::new();
        for one in real::ALL.iter().filter(|one| is_wanted(one.name)) {
            match one.job(folder, quick) {
                Ok(job) => jobs.push(job),
                Err(why) => missing.push(left_out(one.name, &why)),
            }
        }
        Ok((jobs, missing))
    }
}

/// All figures of one program.
fn measure(job: &Job, options: &Options, over: &Preloaded, folder: &Path) -> Found {
    let (who, tool) = (&over.who, &over.tool);
    let mut found = match timed::measure(job, who, tool, options.common.repeats(), folder) {
        Ok(found) => found,
        Err(what) => Found {
            failures: vec![format!("{}: {what}", job.name)],
            ..Found::default()
        },
    };
    if let Some(seconds) = options.idle().filter(|_| job.group == Group::Classic) {
        found.add(idle::measure(job, who, tool, seconds, folder));
    }
    found
}

/// More lines of the report's head: the versions of the real programs, those that are missing, and
/// the extent of the run.
fn head(jobs: &[Job], missing: Vec<String>, options: &Options) -> Vec<String> {
    let real = jobs.iter().filter(|job| job.group == Group::Real);
    let versions = real.map(|job| format!("{:<14} {}", job.name, real::version(job.name)));
    let idle = match options.idle() {
        Some(seconds) => format!("idle memory after {seconds} s"),
        None => "no idle memory".to_owned(),
    };
    let (programs, repeats) = (jobs.len(), options.common.repeats());
    let run = format!("run            {programs} programs, {repeats} repeats, {idle}");
    versions.chain(missing).chain([run]).collect()
}

/// Measures the programs that the options choose.
pub fn bench(options: &Options) -> Result<(), String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut preloaded = options.choice.preloaded(None)?;
    let (jobs, missing) = options.jobs(scratch.path())?;
    preloaded.head.extend(head(&jobs, missing, options));
    let mut report = Report::new(&preloaded.head);
    let names = preloaded.names();
    let (start, mut found) = (Instant::now(), Found::default());
    for job in &jobs {
        eprintln!("{} after {}", job.name, machine::elapsed(start));
        let of_job = measure(job, options, &preloaded, scratch.path());
        report.add(&table::block(job, &names, &of_job.figures));
        found.extend(of_job);
    }
    for group in [Group::Classic, Group::Real] {
        let here = jobs.iter().filter(|job| job.group == group);
        let rows: Vec<&str> = here.map(|job| job.name).collect();
        if !rows.is_empty() {
            report.add(&table::tables(group, &rows, &names, &found.figures));
        }
    }
    if part::is_among(small::NAME, &options.only) {
        let answer = small::measure(&preloaded.who, &preloaded.tool, scratch.path());
        if found.add(answer) {
            report.add(&table::small(&names, &found.figures));
        }
    }
    report.add_failures(&found);
    report.finish(("programs", &options.common), &found, &[])
}
