//! One run of the program. The program has its own process group, and writes its output and reports
//! to files. When its time is up, the whole group is killed.

use crate::signals::restore_the_size_limit;
use anyhow::{Context, Result};
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The end of the output is kept, up to this length.
const OUTPUT_BYTES: u64 = 4096;
const OUTPUT_LINES: usize = 20;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Exit(i32),
    Signal(i32),
    TimeUp,
    /// The result was no longer needed.
    Dropped,
}

/// The result of a run.
#[derive(Debug, Serialize)]
pub struct Run {
    pub end: End,
    /// The failures that were made, one line each.
    pub made: Vec<String>,
    /// Everything else that Slabyard reported.
    pub report: String,
    /// The end of the program's output.
    pub output: String,
}

/// Runs `command` with these settings for at most `time`. The run is ended when `wanted`, which is
/// called repeatedly, returns false.
pub fn run(
    command: &[OsString],
    settings: &OsStr,
    time: Duration,
    folder: &Path,
    wanted: &dyn Fn() -> bool,
) -> Result<Run> {
    let scratch = tempfile::tempdir_in(folder)?;
    let told = scratch.path().join("report");
    let mut output = tempfile::tempfile_in(folder)?;
    let mut settings = settings.to_os_string();
    settings.push(if settings.is_empty() {
        "report="
    } else {
        ",report="
    });
    settings.push(&told);
    let mut program = Command::new(&command[0]);
    // SAFETY: the closure calls only functions that may be called between fork and exec.
    unsafe {
        program.pre_exec(|| {
            restore_the_size_limit();
            Ok(())
        });
    }
    let child = program
        .args(&command[1..])
        .env("SLABYARD", settings)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run {}", command[0].to_string_lossy()))?;
    let end = wait(child, time, wanted)?;
    let (made, report) = sort_out(&text_of(&told)?);
    Ok(Run {
        end,
        made,
        report,
        output: tail(&mut output)?,
    })
}

/// Whether the process has ended. It is not waited for yet, so no other process can get its id.
fn has_ended(child: &Child) -> Result<bool> {
    // SAFETY: a siginfo_t may be all zero, and waitid writes only there.
    let (result, info) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let result = libc::waitid(libc::P_PID, child.id(), &mut info, flags);
        (result, info)
    };
    if result != 0 {
        return Err(std::io::Error::last_os_error()).context("cannot wait for the program");
    }
    // SAFETY: waitid filled it, or left it all zero.
    Ok(unsafe { info.si_pid() } != 0)
}

/// Waits for the child, then kills the processes of its group that still run.
fn wait(mut child: Child, time: Duration, wanted: &dyn Fn() -> bool) -> Result<End> {
    let begin = Instant::now();
    let mut pause = Duration::from_micros(200);
    let early = loop {
        if has_ended(&child)? {
            break None;
        } else if !wanted() {
            break Some(End::Dropped);
        } else if begin.elapsed() >= time {
            break Some(End::TimeUp);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    };
    // SAFETY: kill touches no memory; the group is the child's, as the child is not waited for yet.
    unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
    let status = child.wait().context("cannot wait for the program")?;
    Ok(early.unwrap_or_else(|| how(status)))
}

fn how(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exit(code),
        (None, signal) => End::Signal(signal.unwrap_or(0)),
    }
}

fn text_of(path: &Path) -> Result<String> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// `slabyard: made allocation 7 of cache "order" (64 bytes) fail` becomes `allocation 7 of ...`.
fn made_to_fail(line: &str) -> Option<&str> {
    line.strip_prefix("slabyard: made ")?.strip_suffix(" fail")
}

/// Separates the lines about failures that were made from the rest of a report.
pub fn sort_out(told: &str) -> (Vec<String>, String) {
    let (made, rest): (Vec<&str>, Vec<&str>) =
        told.lines().partition(|line| made_to_fail(line).is_some());
    let made = made.into_iter().filter_map(made_to_fail);
    (made.map(str::to_string).collect(), rest.join("\n"))
}

fn tail(output: &mut File) -> Result<String> {
    let length = output.metadata()?.len();
    output.seek(SeekFrom::Start(length.saturating_sub(OUTPUT_BYTES)))?;
    let mut bytes = Vec::new();
    output.take(OUTPUT_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(OUTPUT_LINES)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_told_from_what_was_found() {
        let told = "slabyard: made allocation 7 of cache \"made order fail\" (64 bytes) fail\n\
                    slabyard: double free: 0x10 in cache \"order\" (64 bytes)\n  \
                    next: look\n\
                    slabyard: made call 3 of sy_os_commit fail\n";
        let (made, report) = sort_out(told);
        let first = "allocation 7 of cache \"made order fail\" (64 bytes)";
        assert_eq!(made, [first, "call 3 of sy_os_commit"]);
        let rest = "slabyard: double free: 0x10 in cache \"order\" (64 bytes)\n  next: look";
        assert_eq!(report, rest);
    }
}
