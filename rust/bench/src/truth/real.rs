//! Runs a program for real, on each allocator in turn.
//!
//! The program is started by `programs/start.c`, which tells its CPU time and the peak of its largest
//! process. If several processes have memory at the same time, their memory is read while they run.

use super::programs::Program;
use crate::preloaded::Contender;
use crate::programs::{environment, workloads};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The result of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// CPU time in user and kernel, of all processes.
    pub cpu_ms: f64,
    /// The peak of resident memory: of the largest process, and of all processes together.
    pub largest_kib: f64,
    pub together_kib: f64,
    /// What the program wrote: the same on each allocator.
    pub output: Vec<u8>,
}

/// A program that is ready to run, in a folder of its own.
pub struct Ready<'a> {
    pub program: Program,
    pub command: Vec<OsString>,
    pub folder: &'a Path,
}

/// An environment in which `start` leaves TCMalloc as it is, as the tool does.
pub fn plain<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    environment(command, folder).env("GLIBC_TUNABLES", "")
}

/// Looks at memory are so far apart.
const PAUSE: Duration = Duration::from_millis(1);

fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let text = text.unwrap_or_default();
    text.split_whitespace().flat_map(str::parse).collect()
}

/// The resident memory of a process's descendants, in KiB; shared pages are shared out.
fn memory_kib(parent: u32) -> u64 {
    let share = |pid: u32| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        line.trim().strip_suffix(" kB")?.trim().parse().ok()
    };
    let sum = |pid| share(pid).unwrap_or(0) + memory_kib(pid);
    children(parent).into_iter().map(sum).sum()
}

/// The last line of `start`: the peak in KiB, and the CPU time in ms.
pub(crate) fn figures(complaint: &str) -> Option<(f64, f64)> {
    let mut words = complaint.lines().last()?.split_whitespace();
    let (peak, us): (f64, f64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some((peak, us / 1e3))
}

/// Runs a program on an allocator.
pub fn run(ready: &Ready, who: &Contender) -> Result<Run, String> {
    let failed = |what: &str| format!("{} on {}: {what}", ready.program.name, who.name);
    let plainly = |error: std::io::Error| failed(&error.to_string());
    let [output, complaint] = ["out", "err"].map(|ending| ready.folder.join(ending));
    let mut command = Command::new(workloads::starter());
    plain(&mut command, ready.folder)
        .args(&ready.command)
        .envs(who.library.iter().map(|library| ("LIBRARY", library)))
        .stdin(Stdio::null())
        .stdout(File::create(&output).map_err(plainly)?)
        .stderr(File::create(&complaint).map_err(plainly)?);
    let mut child = command.spawn().map_err(plainly)?;
    let mut most = 0;
    while ready.program.has_several_processes() && matches!(child.try_wait(), Ok(None)) {
        most = most.max(memory_kib(child.id()));
        std::thread::sleep(PAUSE);
    }
    let status = child.wait().map_err(plainly)?;
    let said = fs::read(&complaint).map_err(plainly)?;
    let said = String::from_utf8_lossy(&said);
    let (largest_kib, cpu_ms) = figures(&said)
        .filter(|_| status.success())
        .ok_or_else(|| failed(&format!("{status} {}", said.trim())))?;
    Ok(Run {
        cpu_ms,
        largest_kib,
        together_kib: largest_kib.max(most as f64),
        output: fs::read(&output).map_err(plainly)?,
    })
}

/// How many rounds there are: those that begin within a time, and no more and no fewer than this.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub time: Duration,
    pub least: usize,
    pub most: usize,
}

/// Runs a program on all allocators in turn, round after round. Each round begins with another
/// allocator. Returns the runs of each allocator, or its error.
pub fn rounds(ready: &Ready, who: &[Contender], extent: Extent) -> Vec<Result<Vec<Run>, String>> {
    let mut all: Vec<Result<Vec<Run>, String>> = who.iter().map(|_| Ok(Vec::new())).collect();
    let begin = Instant::now();
    for round in 0..extent.most {
        if round >= extent.least && begin.elapsed() > extent.time {
            break;
        }
        for index in (0..who.len()).map(|index| (index + round) % who.len()) {
            let Ok(runs) = &mut all[index] else { continue };
            match run(ready, &who[index]) {
                Ok(run) => runs.push(run),
                Err(what) => all[index] = Err(what),
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_start_is_read() {
        assert_eq!(figures("a word\n\n1024 2500\n"), Some((1024.0, 2.5)));
        assert_eq!(figures(""), None);
        assert_eq!(figures("ended by signal 11"), None);
    }
}
