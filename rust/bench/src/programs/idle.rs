//! Idle memory: what a workload's process still has in RAM after it freed everything, at once and
//! some seconds later.
//!
//! Each workload is run once more over each allocator, with the seconds as second argument:
//! `finish` in `programs/program.h` prints the anonymous memory of its own process twice. So memory
//! of code and libraries is not counted, nothing samples from outside, and the times of the measured
//! runs do not include the wait. Real programs end with their work, so they have no such figure.
//!
//! The processes wait at the same time: the next one is started when the one before has done its
//! work.

use super::Job;
use crate::figure::Figure;
use crate::truth::contender::Contender;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

pub const FREED: &str = "freed MiB";
pub const IDLE: &str = "idle MiB";

/// A process that waits.
struct Waiting {
    who: &'static str,
    child: Child,
    output: BufReader<ChildStdout>,
    freed_mib: f64,
}

fn line(output: &mut impl BufRead) -> Option<f64> {
    let mut text = String::new();
    output.read_line(&mut text).ok()?;
    text.trim().parse().ok()
}

fn mib(kib: f64) -> f64 {
    kib / 1024.0
}

/// Starts a workload, and returns when it has freed everything.
fn start(
    job: &Job,
    one: &Contender,
    tool: &Path,
    seconds: u64,
    folder: &Path,
) -> Result<Waiting, String> {
    let failed = |what: &str| format!("{} on {}, idle: {what}", job.name, one.name);
    let mut command = super::over(one, &job.command, tool, folder);
    let mut child = command
        .arg(seconds.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(&error.to_string()))?;
    let output = child.stdout.take().ok_or_else(|| failed("no output"))?;
    let mut output = BufReader::new(output);
    let numbers = line(&mut output).and_then(|_| line(&mut output));
    match numbers {
        Some(kib) => Ok(Waiting {
            who: one.name,
            child,
            output,
            freed_mib: mib(kib),
        }),
        None => {
            let _ = child.wait();
            Err(failed("it did not end well"))
        }
    }
}

/// The figures of all allocators.
pub fn measure(
    job: &Job,
    who: &[Contender],
    tool: &Path,
    seconds: u64,
    folder: &Path,
) -> Result<Vec<Figure>, String> {
    let all: Vec<Result<Waiting, String>> = who
        .iter()
        .map(|one| start(job, one, tool, seconds, folder))
        .collect();
    let mut figures = Vec::new();
    let mut failure = None;
    for one in all {
        match one {
            Ok(mut one) => {
                let later = line(&mut one.output);
                let _ = one.output.read_to_end(&mut Vec::new());
                let _ = one.child.wait();
                let later = later.ok_or_else(|| format!("{} on {}: no figure", job.name, one.who));
                figures.push(Figure::new(job.name, FREED, one.who, 0, one.freed_mib));
                figures.push(Figure::new(job.name, IDLE, one.who, 0, mib(later?)));
            }
            Err(what) => failure = Some(what),
        }
    }
    failure.map_or(Ok(figures), Err)
}
