//! `slabyard faults`: runs a program again and again, lets the next allocation fail each time, and
//! reports the failures that the program does not survive.

mod run;
pub mod text;

use anyhow::{bail, Context, Result};
#[cfg(any(test, feature = "fuzz"))]
pub use run::sort_out;
pub use run::{End, Run};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// The program, and what to let fail.
pub struct Plan {
    pub command: Vec<OsString>,
    /// Names of caches, with * and ?; if there are none, all caches.
    pub only: Vec<String>,
    /// The name of a system call of the library, to fail instead of allocations.
    pub call: Option<String>,
    pub from: u64,
    pub every: u64,
    pub most: Option<u64>,
    pub time: Duration,
    pub jobs: usize,
    pub all: bool,
    pub leaks: bool,
    /// The value of SLABYARD in the tool's environment.
    pub settings: OsString,
}

impl Plan {
    /// The rule of the option `fail`, without its number.
    fn who(&self) -> String {
        match &self.call {
            Some(call) => format!("os:{call}"),
            None if self.only.is_empty() => "*".to_string(),
            None => self.only.join("|"),
        }
    }

    /// The value of SLABYARD for a run in which number `count` fails; `None`: no allocation fails.
    fn settings(&self, count: Option<u64>) -> OsString {
        let mut parts = vec![self.settings.clone()];
        if self.leaks {
            parts.push("leaks=exit".into());
        }
        if let Some(count) = count {
            parts.push(format!("fail={}:{count}", self.who()).into());
        }
        parts.retain(|part| !part.is_empty());
        parts.join(OsStr::new(","))
    }

    fn run(&self, count: Option<u64>, folder: &Path, wanted: &dyn Fn() -> bool) -> Result<Run> {
        run::run(
            &self.command,
            &self.settings(count),
            self.time,
            folder,
            wanted,
        )
    }

    /// The shell command that repeats the run.
    fn again(&self, count: u64) -> String {
        let settings = self.settings(Some(count));
        let words = self.command.iter().map(|word| text::quoted(word));
        let words: Vec<String> = words.collect();
        format!("SLABYARD={} {}", text::quoted(&settings), words.join(" "))
    }
}

/// A failure that the program did not survive.
#[derive(Debug, Serialize)]
pub struct Finding {
    pub count: u64,
    /// A short description.
    pub what: String,
    pub again: String,
    #[serde(flatten)]
    pub run: Run,
}

/// Why the search stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// No allocation was left to fail in the last run.
    AllTried,
    AtFirst,
    AtMost,
    Interrupted,
}

#[derive(Debug, Serialize)]
pub struct Faults {
    pub command: Vec<String>,
    /// The number of allocations, or calls, that were made to fail.
    pub tried: u64,
    /// The number to continue with.
    pub next: u64,
    pub stopped: Stopped,
    pub findings: Vec<Finding>,
}

/// A short description of a bad end of a run. `None`: the program survived.
fn complaint(run: &Run, time: Duration) -> Option<String> {
    let headline = run.report.lines().next().unwrap_or_default();
    let headline = headline.strip_prefix("slabyard: ").unwrap_or(headline);
    match run.end {
        _ if !headline.is_empty() => Some(headline.to_string()),
        End::Signal(signal) => Some(format!("killed by {}", crate::signals::name(signal))),
        End::TimeUp => Some(format!("still running after {} s", time.as_secs())),
        End::Exit(_) | End::Dropped => None,
    }
}

/// Runs the program once without a failure. This run must end well.
fn try_without(plan: &Plan, folder: &Path, interrupted: &AtomicBool) -> Result<()> {
    let run = plan.run(None, folder, &|| !interrupted.load(Ordering::Relaxed))?;
    if let Some(complaint) = complaint(&run, plan.time) {
        let program = plan.command[0].to_string_lossy();
        bail!("{program} does not end well even if nothing is made to fail: {complaint}");
    }
    Ok(())
}

/// The most likely reason that the first run had no allocation to fail.
fn why_nothing(plan: &Plan) -> String {
    let program = plan.command[0].to_string_lossy();
    let less = match plan.from {
        1 => String::new(),
        from => format!("it has fewer than {from} of them, or "),
    };
    match &plan.call {
        Some(call) => format!(
            "nothing was made to fail: {program} makes no call of sy_os_{call}; {less}it does not \
             use Slabyard, or runs with raised privileges (setuid), where SLABYARD is not read"
        ),
        None => format!(
            "nothing was made to fail: {program} makes no allocation of \"{}\"; {less}it is not \
             linked with Slabyard, or runs with raised privileges (setuid), where SLABYARD is not \
             read",
            plan.who()
        ),
    }
}

/// Tries one number after the other, `jobs` at a time, and calls `seen` for each result in order.
pub fn find(
    plan: &Plan,
    interrupted: &AtomicBool,
    seen: &mut dyn FnMut(u64, &Run),
) -> Result<Faults> {
    let folder = tempfile::tempdir().context("cannot make a folder for the reports")?;
    try_without(plan, folder.path(), interrupted)?;
    let (next, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let wanted = || !over.load(Ordering::Relaxed) && !interrupted.load(Ordering::Relaxed);
    let (results, arrived) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs {
            let (results, next, folder, wanted) = (results.clone(), &next, folder.path(), &wanted);
            scope.spawn(move || {
                while wanted() {
                    let turn = next.fetch_add(1, Ordering::Relaxed);
                    let Some(count) = number(plan, turn) else {
                        break;
                    };
                    let run = plan.run(Some(count), folder, wanted);
                    if results.send((turn, count, run)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(results);
        let faults = judge(plan, &mut in_order(arrived), seen);
        over.store(true, Ordering::Relaxed);
        let mut faults = faults?;
        if interrupted.load(Ordering::Relaxed) {
            faults.stopped = Stopped::Interrupted;
        }
        Ok(faults)
    })
}

/// The number that fails in this turn; `None`: there are no more turns.
fn number(plan: &Plan, turn: u64) -> Option<u64> {
    if plan.most.is_some_and(|most| turn >= most) {
        return None;
    }
    plan.from.checked_add(turn.checked_mul(plan.every)?)
}

type Result1 = (u64, u64, Result<Run>);

/// Puts results, which arrive as runs end, in the order of their turns.
fn in_order(arrived: mpsc::Receiver<Result1>) -> impl Iterator<Item = (u64, Result<Run>)> {
    let mut early = BTreeMap::new();
    (0..).map_while(move |turn| loop {
        if let Some(ready) = early.remove(&turn) {
            return Some(ready);
        }
        let (turn, count, run) = arrived.recv().ok()?;
        early.insert(turn, (count, run));
    })
}

fn judge(
    plan: &Plan,
    runs: &mut dyn Iterator<Item = (u64, Result<Run>)>,
    seen: &mut dyn FnMut(u64, &Run),
) -> Result<Faults> {
    let mut faults = Faults {
        command: plan
            .command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        tried: 0,
        next: plan.from,
        stopped: Stopped::AtMost,
        findings: Vec::new(),
    };
    for (count, run) in runs {
        let run = run?;
        seen(count, &run);
        if run.end == End::Dropped {
            break;
        }
        if run.made.is_empty() {
            if faults.tried == 0 {
                bail!("{}", why_nothing(plan));
            }
            faults.stopped = Stopped::AllTried;
            break;
        }
        faults.tried += 1;
        faults.next = count.saturating_add(plan.every);
        let Some(what) = complaint(&run, plan.time) else {
            continue;
        };
        let again = plan.again(count);
        faults.findings.push(Finding {
            count,
            what,
            again,
            run,
        });
        if !plan.all {
            faults.stopped = Stopped::AtFirst;
            break;
        }
    }
    Ok(faults)
}

#[cfg(test)]
mod tests;
