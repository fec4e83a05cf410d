//! Starts a worker, waits for its results, and ends it if it takes too long.

use super::worker::{Pass, ProcessResult};
use crate::preload::options;
use crate::signals::end_with_parent;
use anyhow::{bail, Context, Result};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The command that runs `tool` as a worker in an environment whose SLABYARD is `options`. The worker
/// does not get the option `tools`, which is for the recorded program only: with `tools=malloc`
/// Slabyard's rows would be those of `malloc`, with more work for each call.
fn worker_command(tool: &Path, options: Option<OsString>) -> Command {
    let mut worker = Command::new(tool);
    worker.arg("worker").env_remove("LD_PRELOAD");
    match options::without("tools", options) {
        Some(options) => worker.env("SLABYARD", options),
        None => worker.env_remove("SLABYARD"),
    };
    worker
}

/// Replays the plan in `folder`. `None`: it took longer than `limit`, and was ended.
pub fn run_worker(
    folder: &Path,
    allocator: &str,
    pass: Pass,
    limit: Duration,
) -> Result<Option<Vec<ProcessResult>>> {
    let tool = std::env::current_exe().context("cannot find this program again")?;
    let mut worker = worker_command(&tool, std::env::var_os("SLABYARD"));
    let parent = std::process::id();
    // SAFETY: the closure calls only functions that may be called between fork and exec.
    unsafe {
        worker.pre_exec(move || {
            end_with_parent(parent);
            Ok(())
        });
    }
    worker.arg(folder).args([allocator, pass.name()]);
    let Some(ended) = run_for(worker, limit)? else {
        return Ok(None);
    };
    if !ended.status.success() {
        let complaint = String::from_utf8_lossy(&ended.err);
        let last = complaint
            .lines()
            .last()
            .unwrap_or("")
            .trim_start_matches("slabyard: ");
        bail!(
            "{}",
            if last.is_empty() {
                ended.status.to_string()
            } else {
                last.to_string()
            }
        );
    }
    let results = serde_json::from_slice(&ended.out).context("a worker's answer cannot be read")?;
    Ok(Some(results))
}

struct Ended {
    status: ExitStatus,
    out: Vec<u8>,
    err: Vec<u8>,
}

/// Runs a command until both of its outputs are closed. `None`: it was killed after `limit`. Its
/// children must end with it.
fn run_for(mut command: Command, limit: Duration) -> Result<Option<Ended>> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let deadline = Instant::now() + limit;
    let mut child = command.spawn().context("cannot start a worker")?;
    let (closed, closing) = mpsc::channel();
    let out = read_all(child.stdout.take(), closed.clone());
    let err = read_all(child.stderr.take(), closed);
    let mut in_time = true;
    for _ in [&out, &err] {
        let left = deadline.saturating_duration_since(Instant::now());
        in_time &= closing.recv_timeout(left).is_ok();
    }
    if !in_time {
        child.kill().context("cannot end a worker")?;
    }
    let status = child.wait().context("cannot wait for a worker")?;
    let text = |reader: JoinHandle<Vec<u8>>| reader.join().expect("reading does not panic");
    let (out, err) = (text(out), text(err));
    Ok(in_time.then_some(Ended { status, out, err }))
}

/// Reads a stream to its end in a thread, and says when it is closed.
fn read_all(
    stream: Option<impl Read + Send + 'static>,
    closed: mpsc::Sender<()>,
) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut stream) = stream {
            // If a read fails, the answer is not whole, which its reader notices.
            let _ = stream.read_to_end(&mut text);
        }
        let _ = closed.send(());
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_gets_the_options_except_tools() {
        let setting = |options: Option<&str>| {
            let command = worker_command(Path::new("tool"), options.map(OsString::from));
            let mut changes = command.get_envs().filter(|(name, _)| *name == "SLABYARD");
            let (_, value) = changes.next().expect("SLABYARD is set or removed");
            value.map(|value| value.to_str().unwrap().to_string())
        };
        assert_eq!(setting(None), None);
        assert_eq!(setting(Some("tools=malloc")), None);
        assert_eq!(
            setting(Some("decay=off, tools=malloc,limit=1G")).as_deref(),
            Some("decay=off,limit=1G")
        );
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_takes_too_long_is_ended_and_the_rest_is_read_whole() {
        let late = run_for(shell("exec sleep 1000"), Duration::from_millis(50)).unwrap();
        assert!(late.is_none());
        let script = "seq 1 200000; echo no >&2; exit 3";
        let ended = run_for(shell(script), Duration::from_secs(500)).unwrap();
        let ended = ended.expect("it ends by itself");
        assert_eq!(ended.status.code(), Some(3));
        assert!(ended.out.ends_with(b"\n200000\n") && ended.err == b"no\n");
    }
}
