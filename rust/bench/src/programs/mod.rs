//! Whole programs over each malloc: CPU time, wall-clock time, peak and idle memory, page faults.
//!
//! * `workloads`: the classic allocator programs, whose workloads are in the folder `programs`;
//! * `real`: real programs of the system, and the inputs that are made for them;
//! * `timed`: runs of `slabyard compare --run`, which measures a program over all allocators;
//! * `idle`: runs that read the memory of a workload which has freed everything;
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
pub mod workloads;

use crate::figure::{self, Figure};
use crate::machine;
use crate::part::{self, Common, Report};
use crate::truth::contender::{self, Contender, PEER};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The contender that ratios are relative to.
pub const BASE: &str = PEER;

/// The contender that is measured as the drop-in malloc that the tool carries.
pub const OURS: &str = "slabyard";

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
    /// Only these allocators beside glibc, separated by commas
    #[arg(long, value_delimiter = ',')]
    allocators: Vec<String>,
    /// Seconds for which a workload is idle before its memory is read [default: 5, quick: 1]
    #[arg(long)]
    idle: Option<u64>,
    /// Do not read idle memory
    #[arg(long, conflicts_with = "idle")]
    no_idle: bool,
    /// The tool [default: slabyard, in the folder of this program]
    #[arg(long)]
    tool: Option<PathBuf>,
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

/// The extent of a run.
struct Effort {
    repeats: usize,
    /// Seconds; none if idle memory is not read.
    idle: Option<u64>,
    tool: PathBuf,
}

impl Options {
    fn effort(&self, folder: &Path) -> Result<Effort, String> {
        Ok(Effort {
            repeats: self.common.repeats(),
            idle: (!self.no_idle).then(|| self.common.or_default(self.idle, 5, 1)),
            tool: part::tool(self.tool.as_deref(), folder)?,
        })
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
                Err(why) => missing.push(format!("left out       {}: {why}", one.name)),
            }
        }
        Ok((jobs, missing))
    }
}

/// All figures of one program, and the failures.
fn measure(
    job: &Job,
    effort: &Effort,
    who: &[Contender],
    folder: &Path,
) -> (Vec<Figure>, Vec<String>) {
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    match timed::measure(job, who, &effort.tool, effort.repeats, folder) {
        Ok((figures, failed)) => {
            found.extend(figures);
            failures.extend(failed);
        }
        Err(what) => failures.push(format!("{}: {what}", job.name)),
    }
    if let Some(seconds) = effort.idle.filter(|_| job.group == Group::Classic) {
        match idle::measure(job, who, &effort.tool, seconds, folder) {
            Ok(figures) => found.extend(figures),
            Err(what) => failures.push(what),
        }
    }
    (found, failures)
}

/// An allocator's name with its version.
pub fn version_of(name: &str) -> String {
    match slabyard_peers::find(name) {
        Some(peer) => format!("{name} {}", (peer.version)()),
        None if name == OURS => format!("{name} {}", env!("CARGO_PKG_VERSION")),
        None => name.to_owned(),
    }
}

/// Lines of the report's head: the allocators and programs with their versions, those that are
/// missing, and the extent of the run.
fn head(who: &[Contender], jobs: &[Job], missing: &[String], effort: &Effort) -> Vec<String> {
    let versions: Vec<String> = who.iter().map(|one| version_of(one.name)).collect();
    let mut lines = vec![format!("allocators     {}", versions.join(", "))];
    let real = jobs.iter().filter(|job| job.group == Group::Real);
    lines.extend(real.map(|job| format!("{:<14} {}", job.name, real::version(job.name))));
    lines.extend_from_slice(missing);
    let idle = match effort.idle {
        Some(seconds) => format!("idle memory after {seconds} s"),
        None => "no idle memory".to_owned(),
    };
    lines.push(format!(
        "run            {} programs, {} repeats, {idle}",
        jobs.len(),
        effort.repeats
    ));
    lines
}

/// Measures the programs that the options choose.
pub fn bench(options: &Options) -> Result<(), String> {
    let output = part::output_folder()?;
    let effort = options.effort(&output)?;
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (jobs, mut missing) = options.jobs(scratch.path())?;
    let (who, absent) = contender::present(contender::chosen(&options.allocators, &output)?);
    missing.extend(absent);
    let mut report = Report::new(&head(&who, &jobs, &missing, &effort));
    let names: Vec<&str> = who.iter().map(|one| one.name).collect();
    let start = Instant::now();
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for job in &jobs {
        eprintln!("{} after {}", job.name, machine::elapsed(start));
        let (figures, failed) = measure(job, &effort, &who, scratch.path());
        report.add(&table::block(job, &names, &figures));
        found.extend(figures);
        failures.extend(failed);
    }
    for group in [Group::Classic, Group::Real] {
        let rows: Vec<&str> = jobs
            .iter()
            .filter(|job| job.group == group)
            .map(|job| job.name)
            .collect();
        if !rows.is_empty() {
            report.add(&table::tables(group, &rows, &names, &found));
        }
    }
    if part::is_among(small::NAME, &options.only) {
        match small::measure(&who, &effort.tool, scratch.path()) {
            Ok(figures) => {
                report.add(&table::small(&names, &figures));
                found.extend(figures);
            }
            Err(what) => failures.push(what),
        }
    }
    report.add_failures(&failures);
    let files = [("csv", figure::csv(&found))];
    report.finish(("programs", &options.common), &files, failures.len())
}
