//! The parent: loops over rows, then repeats, then allocators in an order that rotates. Every
//! measurement is a child process.

use crate::allocators::Allocator;
use crate::machine;
use crate::measure::{measure, Effort, Sample, TRICKLE};
use crate::rows::Row;
use std::io::{IsTerminal, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A child that takes longer than this is killed.
const PATIENCE: Duration = Duration::from_secs(300);

/// The rows, allocators and settings of a run.
pub struct Plan {
    pub rows: Vec<Row>,
    pub allocators: Vec<Allocator>,
    pub repeats: usize,
    pub effort: Effort,
}

/// A sample with its row, allocator and repeat.
#[derive(Clone, Debug)]
pub struct Found {
    pub row: Row,
    pub allocator: &'static str,
    pub repeat: usize,
    pub sample: Sample,
}

/// A measurement that gave no figure.
#[derive(Clone, Debug)]
pub struct Failure {
    pub row: Row,
    pub allocator: &'static str,
    pub what: String,
}

/// Encodes a sample as one line of a child's answer.
pub fn encode(sample: &Sample) -> String {
    let trip = sample
        .round_trip
        .map_or_else(String::new, |ns| ns.to_string());
    format!(
        "{}\t{}\t{}\t{trip}",
        sample.metric, sample.layout, sample.value
    )
}

fn decode(line: &str) -> Option<Sample> {
    let mut fields = line.split('\t');
    let metric = fields.next()?;
    let layout = fields.next()?.parse().ok()?;
    let value = fields.next()?.parse().ok()?;
    let round_trip = match fields.next()? {
        "" => None,
        text => Some(text.parse().ok()?),
    };
    Some(Sample {
        metric: known_metric(metric)?,
        layout,
        value,
        round_trip,
    })
}

/// Every metric that a child reports; the tables show them in this order.
pub const METRICS: [&str; 28] = [
    "time",
    "alloc p50",
    "alloc p99",
    "alloc p99.9",
    "alloc p99.99",
    "alloc max",
    "free p50",
    "free p99",
    "free p99.9",
    "free p99.99",
    "free max",
    "per growth",
    "resident peak",
    "ratio",
    "left",
    "left later",
    "after a tenth",
    "while idle",
    "at the end",
    "mean of the peaks",
    "highest peak",
    "at the peak",
    "at the trough",
    "page bound",
    "ns of an operation",
    "faults of a thousand",
    "after a while",
    "purged",
];

fn known_metric(name: &str) -> Option<&'static str> {
    METRICS.into_iter().find(|metric| *metric == name)
}

/// Measures in the child, and prints one line for each sample.
pub fn child(row: Row, allocator: Allocator, layouts: &[usize], effort: &Effort, seed: u64) {
    let samples = measure(row, allocator, layouts, effort, seed);
    let lines: Vec<String> = samples.iter().map(encode).collect();
    println!("{}", lines.join("\n"));
}

/// The arguments of the child after `--child`.
fn child_arguments(
    row: &Row,
    allocator: &Allocator,
    repeat: usize,
    effort: &Effort,
) -> Vec<String> {
    let mut layouts: Vec<usize> = (0..crate::kernels::LAYOUTS).collect();
    layouts.rotate_left(repeat % crate::kernels::LAYOUTS);
    layouts.truncate(if row.one_layout() { 1 } else { layouts.len() });
    let layouts: Vec<String> = layouts.iter().map(usize::to_string).collect();
    vec![
        row.name(),
        allocator.name.to_owned(),
        layouts.join(","),
        effort.sample.as_micros().to_string(),
        effort.fewer_rounds.to_string(),
        effort.later.as_secs().to_string(),
        (repeat as u64 * 0x9e37_79b9 + 12345).to_string(),
    ]
}

/// Runs the child: parses `child_arguments` and measures.
pub fn run_child(arguments: &[String]) -> Option<()> {
    let [row, allocator, layouts, sample, fewer_rounds, later, seed] = arguments else {
        return None;
    };
    let allocator = crate::allocators::find(allocator)?;
    let layouts: Option<Vec<usize>> = layouts.split(',').map(|text| text.parse().ok()).collect();
    let effort = Effort {
        sample: Duration::from_micros(sample.parse().ok()?),
        fewer_objects: 1,
        fewer_rounds: fewer_rounds.parse().ok()?,
        later: Duration::from_secs(later.parse().ok()?),
        trickle: TRICKLE,
    };
    let row = crate::rows::find(row)?;
    child(row, allocator, &layouts?, &effort, seed.parse().ok()?);
    Some(())
}

fn start(
    row: &Row,
    allocator: &Allocator,
    repeat: usize,
    effort: &Effort,
) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .arg("--child")
        .args(child_arguments(row, allocator, repeat, effort))
        .envs(allocator.environment())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// Waits for a child. Returns its samples, or an error.
fn finish(mut child: Child) -> Result<Vec<Sample>, String> {
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("no answer within {} s", PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let (mut answer, mut complaint) = (String::new(), String::new());
    if let (Some(mut out), Some(mut err)) = (child.stdout.take(), child.stderr.take()) {
        let read = out
            .read_to_string(&mut answer)
            .and(err.read_to_string(&mut complaint));
        read.map_err(|error| error.to_string())?;
    }
    if !status.success() {
        let line = complaint.lines().next().unwrap_or("");
        return Err(format!("{status} {line}").trim().to_owned());
    }
    answer
        .lines()
        .map(|line| decode(line).ok_or(format!("unclear: {line}")))
        .collect()
}

/// Runs the plan. After each row, `shown` is called with the samples of the row.
pub fn run(
    plan: &Plan,
    mut shown: impl FnMut(&Row, &[Found], &[Failure]),
) -> (Vec<Found>, Vec<Failure>) {
    let started = Instant::now();
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for (number, row) in plan.rows.iter().enumerate() {
        let suited: Vec<_> = plan
            .allocators
            .iter()
            .filter(|one| row.suits(one))
            .collect();
        let (first, failed) = (all.len(), failures.len());
        for repeat in 0..row.repeats(plan.repeats) {
            let place = format!("row {} of {}, {}", number + 1, plan.rows.len(), row.name());
            progress(&format!(
                "{} {place}, repeat {}",
                machine::elapsed(started),
                repeat + 1
            ));
            let mut turn = suited.clone();
            turn.rotate_left(repeat % suited.len().max(1));
            one_repeat(plan, row, repeat, &turn, &mut all, &mut failures);
        }
        progress("");
        shown(row, &all[first..], &failures[failed..]);
    }
    (all, failures)
}

/// Measures every allocator once. If a row waits for a purge to take effect, all its children wait
/// at the same time.
fn one_repeat(
    plan: &Plan,
    row: &Row,
    repeat: usize,
    turn: &[&Allocator],
    all: &mut Vec<Found>,
    failures: &mut Vec<Failure>,
) {
    let failed = |allocator: &Allocator, failures: &[Failure]| {
        failures
            .iter()
            .any(|f| f.row == *row && f.allocator == allocator.name)
    };
    let turn: Vec<_> = turn.iter().filter(|one| !failed(one, failures)).collect();
    let together = row.waits() && !plan.effort.later.is_zero();
    let begin = |allocator: &Allocator| {
        start(row, allocator, repeat, &plan.effort).map_err(|error| error.to_string())
    };
    let early = if together {
        turn.iter().map(|one| begin(one)).collect()
    } else {
        vec![]
    };
    let mut early = early.into_iter();
    for allocator in turn {
        let child = early.next().unwrap_or_else(|| begin(allocator));
        match child.and_then(finish) {
            Ok(samples) => all.extend(samples.into_iter().map(|sample| Found {
                row: *row,
                allocator: allocator.name,
                repeat,
                sample,
            })),
            Err(what) => failures.push(Failure {
                row: *row,
                allocator: allocator.name,
                what,
            }),
        }
    }
}

/// A line on the terminal that the next one replaces.
fn progress(text: &str) {
    let mut terminal = std::io::stderr();
    if terminal.is_terminal() {
        let _ = write!(terminal, "\r\x1b[K{text}");
        let _ = terminal.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_survive_the_pipe() {
        for round_trip in [None, Some(123.5)] {
            let sample = Sample {
                metric: "alloc p99.9",
                layout: 2,
                value: 0.125,
                round_trip,
            };
            assert_eq!(decode(&encode(&sample)), Some(sample));
        }
        assert_eq!(decode("nonsense\t1\t2\t"), None);
        assert_eq!(decode("time\t1"), None);
    }

    #[test]
    fn repeats_rotate_the_layouts() {
        let effort = Effort {
            sample: Duration::ZERO,
            fewer_objects: 1,
            fewer_rounds: 1,
            later: Duration::ZERO,
            trickle: TRICKLE,
        };
        let allocator = crate::allocators::find("cache").unwrap();
        let layouts = |name: &str, repeat| {
            let row = crate::rows::find(name).unwrap();
            child_arguments(&row, &allocator, repeat, &effort)[2].clone()
        };
        assert_eq!(layouts("pair/64", 0), "0,1,2");
        assert_eq!(layouts("pair/64", 4), "1,2,0");
        assert_eq!(layouts("cold/64", 2), "2");
    }
}
