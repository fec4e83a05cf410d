//! The worker: a process that replays a plan on one allocator once, and writes its results to
//! standard output.
//!
//! Each recorded process is replayed in a fork of the worker, so that it begins with an untouched
//! heap. The worker itself never uses the allocator.

use super::caches::Caches;
use super::clock;
use super::crew::{Crew, Done, Progress};
use super::histogram::Histogram;
use super::memory::{Resident, Shared};
use super::mode::{Call, Mode, Timed, Touch, Verify, CALLS, SIZES};
use super::startup;
use super::turns::Baton;
use crate::allocators::{self, NOTHING};
use crate::plan::{MappedPlan, ProcessPlan};
use crate::signals::end_with_parent;
use anyhow::{bail, Context, Result};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use slabyard_peers::Allocator;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::path::Path;
use std::sync::atomic::AtomicU64;

/// What a run of a worker measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pass {
    /// The time of the whole replay.
    Speed,
    /// The time of each call.
    Latency,
    /// Resident memory.
    Memory,
    /// Whether every object keeps its contents.
    Verify,
}

impl Pass {
    /// The word for it on a worker's command line.
    pub const fn name(self) -> &'static str {
        match self {
            Pass::Speed => "speed",
            Pass::Latency => "latency",
            Pass::Memory => "memory",
            Pass::Verify => "verify",
        }
    }
}

/// The results of one process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessResult {
    pub operations: u64,
    /// The CPU time without waiting. It can be negative if waiting was nearly all of it.
    pub cpu_ns: i64,
    pub wall_ns: u64,
    pub refused: u64,
    /// Nanoseconds per tick; set by a latency pass only.
    pub ns_per_tick: f64,
    pub step_ticks: u64,
    /// The total ticks of the calls of a kind (see [`Call`]) with a size of a class.
    pub ticks: Vec<Vec<i64>>,
    pub allocate: Histogram,
    pub free: Histogram,
    pub reallocate: Histogram,
    /// (operation, bytes), ascending, without the memory that the process had before its first
    /// operation. Values are negative if the tool has given memory back meanwhile.
    pub resident: Vec<(u64, i64)>,
    /// After the last operation, and after the allocator was asked to give memory back.
    pub final_resident: i64,
    pub purged_resident: i64,
    pub checked: u64,
    pub wrong: u64,
    pub first_wrong: Option<String>,
}

/// Replays all processes and prints a JSON array of results.
pub fn main(folder: &Path, allocator: &str, pass: Pass) -> Result<()> {
    let plan = MappedPlan::open(folder)?;
    let allocator = allocators::find(allocator).context("no such allocator")?;
    if allocator.name == NOTHING {
        allocators::prepare_nothing(plan.plan.largest)?;
    }
    let mut results = Vec::new();
    for process in &plan.plan.processes {
        results.push(in_a_fork(&plan, process, allocator, pass)?);
    }
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &results)?;
    out.flush()?;
    Ok(())
}

fn in_a_fork(
    plan: &MappedPlan,
    process: &ProcessPlan,
    allocator: &'static Allocator,
    pass: Pass,
) -> Result<ProcessResult> {
    let mut ends = [0; 2];
    // SAFETY: two descriptors are written into the array.
    if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
        bail!("cannot make a pipe: {}", std::io::Error::last_os_error());
    }
    let worker = std::process::id();
    // SAFETY: the worker has one thread, so the child has all of its threads.
    let child = unsafe { libc::fork() };
    if child < 0 {
        bail!("cannot fork: {}", std::io::Error::last_os_error());
    }
    // SAFETY: both descriptors were just created, and each has one owner.
    let (reader, writer) = unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) };
    if child == 0 {
        drop(reader);
        end_with_parent(worker);
        be_the_child(writer, || run(plan, process, allocator, pass));
    }
    drop(writer);
    gather(child, reader).with_context(|| {
        format!(
            "replay of process {} ({}) on {}",
            process.pid, process.name, allocator.name
        )
    })
}

/// Writes the result, or the error as text, and leaves without running destructors.
fn be_the_child(mut writer: File, run: impl FnOnce() -> Result<ProcessResult>) -> ! {
    let (text, status) = match run() {
        Ok(result) => (serde_json::to_vec(&result).unwrap_or_default(), 0),
        Err(error) => (format!("{error:#}").into_bytes(), 1),
    };
    let written = writer.write_all(&text).is_ok();
    // SAFETY: it ends this process, and no data has to be flushed.
    unsafe { libc::_exit(if written { status } else { 2 }) }
}

fn gather(child: libc::pid_t, mut reader: File) -> Result<ProcessResult> {
    let mut text = Vec::new();
    reader.read_to_end(&mut text)?;
    let mut status = 0;
    // SAFETY: the child is this process's, and the status is a local value.
    while unsafe { libc::waitpid(child, &mut status, 0) } < 0 {
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error.into());
        }
    }
    if libc::WIFSIGNALED(status) {
        bail!("killed by signal {}", libc::WTERMSIG(status));
    }
    if libc::WEXITSTATUS(status) != 0 {
        bail!("{}", String::from_utf8_lossy(&text));
    }
    Ok(serde_json::from_slice(&text)?)
}

/// Replays a process, in the child. Everything that the replay needs is made before the allocator
/// is used.
fn run(
    plan: &MappedPlan,
    process: &ProcessPlan,
    allocator: &'static Allocator,
    pass: Pass,
) -> Result<ProcessResult> {
    let mut result = ProcessResult {
        operations: process.operations,
        ..ProcessResult::default()
    };
    if process.threads.is_empty() {
        return Ok(result);
    }
    if allocator.name == NOTHING {
        allocators::prepare_nothing(plan.plan.largest)?;
    }
    let slots = Shared::<AtomicU64>::new(process.slots as usize)?;
    slots.populate()?;
    let baseline = Baseline::of(pass)?;
    let crew = Crew {
        plan,
        process,
        allocator,
        caches: Caches::of(allocator, &plan.plan.summary.hot)?,
        slots: &slots,
        progress: Progress::new(&process.threads),
        baton: (pass == Pass::Memory && process.threads.len() > 1)
            .then(|| Baton::new(plan.turns(process), process.threads.len())),
        sampling: pass == Pass::Memory,
    };
    match pass {
        Pass::Speed | Pass::Memory => run_touching(&crew, baseline, &mut result)?,
        Pass::Latency => run_timed(&crew, &mut result)?,
        Pass::Verify => run_verifying(&crew, &mut result)?,
    }
    Ok(result)
}

fn add_up<M: Mode>(result: &mut ProcessResult, done: &[Done<M>]) {
    for thread in done {
        result.refused += thread.refused;
        let samples = thread.samples.iter();
        let signed = samples.map(|&(x, bytes)| (x, bytes as i64));
        result.resident.extend(signed);
    }
}

/// The memory that this process has in RAM without the allocator; measured by a memory pass only.
struct Baseline {
    resident: Option<Resident>,
    bytes: i64,
}

impl Baseline {
    fn of(pass: Pass) -> Result<Self> {
        let mut resident = (pass == Pass::Memory).then(Resident::open).transpose()?;
        // Otherwise glibc's malloc would reuse the free memory of this tool, which is not counted.
        slabyard_peers::libc_malloc::trim();
        let bytes = resident.as_mut().map_or(0, Resident::bytes);
        Ok(Baseline {
            resident,
            bytes: bytes as i64 - startup::bytes() as i64,
        })
    }
}

fn run_touching(crew: &Crew, baseline: Baseline, result: &mut ProcessResult) -> Result<()> {
    let Baseline {
        mut resident,
        bytes: baseline,
    } = baseline;
    crew.inherit(|_| Ok(Touch))?;
    let start = clock::wall_ns();
    let (done, cpu_ns) = crew.run(&|_| Ok(Touch))?;
    result.wall_ns = clock::wall_ns() - start;
    result.cpu_ns = cpu_ns;
    add_up(result, &done);
    if let Some(resident) = &mut resident {
        result.final_resident = resident.bytes() as i64 - baseline;
        crew.purge();
        result.purged_resident = resident.bytes() as i64 - baseline;
    }
    result.resident.sort_unstable();
    for (_, bytes) in &mut result.resident {
        *bytes -= baseline;
    }
    Ok(())
}

fn run_timed(crew: &Crew, result: &mut ProcessResult) -> Result<()> {
    result.ns_per_tick = clock::ns_per_tick();
    result.step_ticks = clock::step_ticks();
    let overhead = clock::overhead_ticks();
    crew.inherit(|_| Timed::new(overhead))?;
    let (done, _) = crew.run(&|_| Timed::new(overhead))?;
    add_up(result, &done);
    result.ticks = vec![vec![0; SIZES]; CALLS];
    for Done { mode, .. } in &done {
        for call in [Call::Allocate, Call::Free, Call::Reallocate] {
            let sums = result.ticks[call as usize].iter_mut();
            sums.zip(mode.sums(call))
                .for_each(|(sum, ticks)| *sum += ticks);
        }
        result
            .allocate
            .add(&Histogram::from_dense(mode.counts(Call::Allocate)));
        result
            .free
            .add(&Histogram::from_dense(mode.counts(Call::Free)));
        result
            .reallocate
            .add(&Histogram::from_dense(mode.counts(Call::Reallocate)));
    }
    Ok(())
}

fn run_verifying(crew: &Crew, result: &mut ProcessResult) -> Result<()> {
    let sizes = Shared::<AtomicU64>::new(crew.process.slots as usize)?;
    crew.inherit(|_| Ok(Verify::new(sizes.as_slice())))?;
    let (done, _) = crew.run(&|_| Ok(Verify::new(sizes.as_slice())))?;
    add_up(result, &done);
    for Done { mode: verify, .. } in &done {
        result.checked += verify.checked;
        result.wrong += verify.wrong;
        if result.first_wrong.is_none() {
            result.first_wrong.clone_from(&verify.first_wrong);
        }
    }
    Ok(())
}
