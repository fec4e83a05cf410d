//! Runs of a program with each allocator, and the figures that they print.
//!
//! The processes of a round wait at the same time, as many as half of the machine's free memory
//! holds: the next one is started when the one before has done its work. So no process works while
//! another one does, and an hour of waiting takes minutes.

use super::programs::{Program, Variant};
use super::table::{Unit, SUM};
use crate::figure::Figure;
use crate::programs::{environment, workloads};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// The line after which a program waits.
const LAST_OF_WORK: &str = "freed";

/// The lines that a process printed: names and numbers.
type Lines = Vec<(String, f64)>;

fn line(text: &str) -> Option<(String, f64)> {
    let (name, number) = text.trim_end().split_once('\t')?;
    Some((name.to_owned(), number.parse().ok()?))
}

/// A process that waits.
struct Waiting {
    what: String,
    who: &'static str,
    child: Child,
    output: BufReader<ChildStdout>,
    lines: Lines,
}

/// Starts a process, and returns when it has done its work.
fn start(
    program: &Program,
    variant: &Variant,
    quick: bool,
    folder: &Path,
) -> Result<Waiting, String> {
    let what = format!("{} on {}", program.name, variant.who);
    let mut command = Command::new(workloads::starter());
    environment(&mut command, folder)
        .arg(&variant.executable)
        .args(program.arguments(quick))
        .envs(variant.library.iter().map(|library| ("LIBRARY", library)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|error| format!("{what}: {error}"))?;
    let output = child.stdout.take();
    let output = output.ok_or_else(|| format!("{what}: no output"))?;
    let mut waiting = Waiting {
        what,
        who: variant.who,
        child,
        output: BufReader::new(output),
        lines: Vec::new(),
    };
    waiting.read_until(Some(LAST_OF_WORK))?;
    Ok(waiting)
}

impl Waiting {
    /// Reads lines until one of that name, or to the end.
    fn read_until(&mut self, last: Option<&str>) -> Result<(), String> {
        loop {
            let mut text = String::new();
            let read = self.output.read_line(&mut text);
            let length = read.map_err(|error| format!("{}: {error}", self.what))?;
            if length == 0 {
                return match last {
                    None => Ok(()),
                    Some(_) => Err(self.complaint()),
                };
            }
            let found = line(&text).ok_or_else(|| format!("{}: unclear: {text}", self.what))?;
            let is_last = Some(found.0.as_str()) == last;
            self.lines.push(found);
            if is_last {
                return Ok(());
            }
        }
    }

    /// Waits for the process's end. Returns what it said of its error.
    fn complaint(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut stream) = self.child.stderr.take() {
            let _ = stream.read_to_string(&mut text);
        }
        let status = self.child.wait();
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        let said: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        format!("{}: {status} {}", self.what, said.join("; "))
    }

    /// Waits until the process has waited. Returns all its lines.
    fn finish(mut self) -> Result<Lines, String> {
        self.read_until(None)?;
        let complaint = self.complaint();
        let is_success = matches!(self.child.wait(), Ok(status) if status.success());
        if is_success {
            Ok(self.lines)
        } else {
            Err(complaint)
        }
    }
}

/// What all runs of a program found.
#[derive(Default)]
pub struct Found {
    sum: Option<f64>,
    pub figures: Vec<Figure>,
    pub failures: Vec<String>,
}

impl Found {
    fn add(&mut self, program: &Program, who: &str, repeat: usize, lines: Result<Lines, String>) {
        let lines = match lines {
            Ok(lines) => lines,
            Err(what) => return self.failures.push(what),
        };
        let sum = lines.iter().find(|line| line.0 == SUM).map(|line| line.1);
        if sum.is_none() || *self.sum.get_or_insert(sum.unwrap_or(0.0)) != sum.unwrap_or(0.0) {
            let what = format!("{} on {who}: another sum than the others", program.name);
            return self.failures.push(what);
        }
        for (name, value) in lines.iter().filter(|line| line.0 != SUM) {
            let unit = Unit::of(name);
            let metric = format!("{name} {}", unit.name());
            let value = unit.from_line(*value);
            let figure = Figure::new(program.name, &metric, who, repeat, value);
            self.figures.push(figure);
        }
    }
}

/// MiB that the system can give without taking them from others.
fn available_mib() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

/// How many processes of a program may wait at a time.
fn together(program: &Program, available_mib: u64) -> usize {
    (available_mib / 2 / program.mib).max(1) as usize
}

/// Runs a program once with each allocator.
pub fn round(
    program: &Program,
    turn: &[&Variant],
    quick: bool,
    repeat: usize,
    folder: &Path,
    found: &mut Found,
) {
    for part in turn.chunks(together(program, available_mib())) {
        let started: Vec<Result<Waiting, String>> = part
            .iter()
            .map(|variant| start(program, variant, quick, folder))
            .collect();
        for one in started {
            match one {
                Ok(one) => {
                    let who = one.who;
                    found.add(program, who, repeat, one.finish());
                }
                Err(what) => found.failures.push(what),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::programs::ALL;
    use super::*;

    #[test]
    fn lines_become_figures_in_mib_and_ms() {
        let lines = |text: &str| text.lines().map(line).collect::<Option<Lines>>();
        let mut found = Found::default();
        let run = lines("peak\t2048\ncpu\t30\nfreed\t1024\nafter 5\t512\nsum\t7");
        found.add(&ALL[0], "glibc", 0, Ok(run.unwrap()));
        let all: Vec<(&str, f64)> = found
            .figures
            .iter()
            .map(|figure| (figure.metric.as_str(), figure.value))
            .collect();
        assert_eq!(
            all,
            [
                ("peak MiB", 2.0),
                ("cpu ms", 30.0),
                ("freed MiB", 1.0),
                ("after 5 MiB", 0.5)
            ]
        );
        assert_eq!(lines("peak 2048"), None);
    }

    #[test]
    fn a_run_with_another_sum_or_none_is_a_failure() {
        let mut found = Found::default();
        let run = |sum: f64| Ok(vec![("peak".to_owned(), 1.0), (SUM.to_owned(), sum)]);
        found.add(&ALL[0], "glibc", 0, run(7.0));
        found.add(&ALL[0], "musl", 0, run(8.0));
        found.add(&ALL[0], "mimalloc", 0, Ok(vec![("peak".to_owned(), 1.0)]));
        found.add(&ALL[0], "jemalloc", 0, Err("it crashed".to_owned()));
        assert_eq!(found.failures.len(), 3);
        assert!(found.failures[0].starts_with("spike-kept on musl: another sum"));
        assert!(found.figures.iter().all(|one| one.who == "glibc"));
    }

    #[test]
    fn processes_wait_together_if_there_is_memory_for_them() {
        assert_eq!(together(&ALL[0], 20_000), 5);
        assert_eq!(together(&ALL[0], 100), 1);
        assert!(available_mib() > 0);
    }
}
