//! Runs a program for real, as a process of its own.

use super::contender::Contender;
use super::programs::Program;
use std::io::Read;
use std::process::{Child, Command, Stdio};

/// The executable with all programs, built with this one from kernels/truth.
pub const PROGRAMS: &str = env!("BENCH_TRUTH");

/// The result of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// CPU time in user and kernel.
    pub cpu_ms: f64,
    /// The peak of its resident anonymous memory.
    pub peak_kib: f64,
    /// The result of its work: the same on each allocator.
    pub result: String,
}

/// The output of a program: the result, and the peak.
fn words(output: &str) -> Option<(String, f64)> {
    let (result, peak) = output.trim().split_once(' ')?;
    Some((result.to_owned(), peak.parse().ok()?))
}

/// Waits for the child's end: whether it succeeded, and its CPU time.
fn usage(child: &Child) -> (bool, f64) {
    // SAFETY: all zero is a value of a plain structure.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    let mut status = 0;
    // SAFETY: a child that was not waited for yet, and two variables of this function.
    let ended = unsafe { libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage) };
    let ms = |time: libc::timeval| time.tv_sec as f64 * 1e3 + time.tv_usec as f64 / 1e3;
    (
        ended > 0 && status == 0,
        ms(usage.ru_utime) + ms(usage.ru_stime),
    )
}

/// Runs a program on an allocator.
pub fn run(program: &Program, size: u64, who: &Contender) -> Result<Run, String> {
    let failed = |what: &str| format!("{} on {}: {what}", program.name, who.name);
    let mut child = Command::new(PROGRAMS)
        .args([program.name, &size.to_string()])
        .env_remove("LD_PRELOAD")
        .env_remove("SLABYARD")
        .envs(who.library.iter().map(|library| ("LD_PRELOAD", library)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error.to_string()))?;
    let mut output = String::new();
    if let Some(stdout) = &mut child.stdout {
        let _ = stdout.read_to_string(&mut output);
    }
    let (succeeded, cpu_ms) = usage(&child);
    let (result, peak_kib) = words(&output)
        .filter(|_| succeeded)
        .ok_or_else(|| failed("it did not end well"))?;
    Ok(Run {
        cpu_ms,
        peak_kib,
        result,
    })
}

/// The programs that the executable has.
pub fn listed() -> Result<Vec<String>, String> {
    let output = Command::new(PROGRAMS)
        .output()
        .map_err(|error| format!("{PROGRAMS}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().map(str::to_owned).collect())
}
