//! The tables of `compare --run` for the terminal, and a sentence on the program's gain by
//! Slabyard.

use super::contenders::SLABYARD;
use super::{Kind, Measured, Ratio, RealRuns};
use crate::report::table::{lay_out, shortened, wrapped};
use crate::run;
use crate::ui;
use slabyard_certainty::Interval;
use std::fmt::Write;
use std::time::Duration;

const WIDTH: usize = 96;

const TIMES: [&str; 7] = ["allocator", "wall", "ratio", "95 %", "CPU", "ratio", "95 %"];

const MEMORY: [&str; 10] = [
    "allocator",
    "peak",
    "ratio",
    "95 %",
    "mean",
    "ratio",
    "95 %",
    "page faults",
    "ratio",
    "95 %",
];

const MEANING: &str = "\
Time and page faults are those of the program and the children that it waited for; CPU is user and \
system. Peak: resident memory of the largest of these processes. Mean: resident memory of the \
first process, over its life, sampled every 10 ms; - if a run was too short. Both include code \
and libraries. Figures are medians. A ratio compares the mean with glibc's. It lies between the \
two figures of its 95 % column, or is unknown if there are none; if 1.00 is between them, there \
may be no difference.";

pub fn render(all: &RealRuns) -> String {
    let mut text = String::from("\n");
    if let Some(answer) = answer(all) {
        let _ = writeln!(text, "{}\n", wrapped(&answer, WIDTH));
    }
    let rounds = if all.rounds == 1 { "round" } else { "rounds" };
    let _ = writeln!(
        text,
        "{}\n{} {rounds}, in which each allocator has one run\n",
        shortened(&all.command),
        all.rounds
    );
    for caveat in &all.caveats {
        let _ = writeln!(text, "{}\n", wrapped(caveat, WIDTH));
    }
    let good = || all.allocators.iter().filter(|one| one.failure.is_none());
    let mut rows = vec![TIMES.map(str::to_string)];
    rows.extend(good().map(times));
    lay_out(&mut text, &rows);
    text.push('\n');
    let mut rows = vec![MEMORY.map(str::to_string)];
    rows.extend(good().map(memory));
    lay_out(&mut text, &rows);
    let _ = writeln!(text, "\n{}", wrapped(MEANING, WIDTH));
    for one in &all.allocators {
        if let Some(library) = &one.library {
            let _ = writeln!(text, "{}: {library}", one.name);
        }
    }
    for one in &all.allocators {
        if let Some(why) = &one.failure {
            let _ = writeln!(text, "{} FAILED: the program {why}", one.name);
        }
    }
    text
}

fn times(one: &Measured) -> [String; 7] {
    let [wall, wall_ratio, wall_interval] = cells(Some(&one.wall_s), seconds);
    let [cpu, cpu_ratio, cpu_interval] = cells(Some(&one.cpu_s), seconds);
    let name = one.name.clone();
    [
        name,
        wall,
        wall_ratio,
        wall_interval,
        cpu,
        cpu_ratio,
        cpu_interval,
    ]
}

fn memory(one: &Measured) -> [String; 10] {
    let bytes = |value: f64| ui::bytes(value as u64);
    let [peak, peak_ratio, peak_interval] = cells(Some(&one.peak_bytes), bytes);
    let mean = one.mean_resident_bytes.as_ref();
    let [mean, mean_ratio, mean_interval] = cells(mean, bytes);
    let faults = |value: f64| ui::grouped(value as u64);
    let [faults, faults_ratio, faults_interval] = cells(Some(&one.page_faults), faults);
    [
        one.name.clone(),
        peak,
        peak_ratio,
        peak_interval,
        mean,
        mean_ratio,
        mean_interval,
        faults,
        faults_ratio,
        faults_interval,
    ]
}

/// The cells of a figure: the figure, its ratio to glibc's, and the ratio's interval.
fn cells(kind: Option<&Kind>, unit: impl Fn(f64) -> String) -> [String; 3] {
    let ratio = kind.and_then(|kind| kind.to_glibc);
    let interval = ratio.and_then(|ratio| ratio.interval);
    let cells = [
        kind.map(|kind| unit(kind.figure.median)),
        ratio.map(|ratio| format!("{:.2}", ratio.ratio)),
        interval.map(|interval| format!("{:.2} to {:.2}", interval.low, interval.high)),
    ];
    cells.map(|cell| cell.unwrap_or("-".to_string()))
}

pub fn seconds(seconds: f64) -> String {
    run::seconds(Duration::from_secs_f64(seconds.max(0.0)))
}

/// A sentence on the program's gain by Slabyard; `None` for a single round.
fn answer(all: &RealRuns) -> Option<String> {
    let ours = all.allocators.iter().find(|one| one.name == SLABYARD)?;
    let time = difference(ours.cpu_s.to_glibc?, " than with glibc")?;
    let memory = difference(ours.peak_bytes.to_glibc?, "")?;
    Some(format!(
        "With Slabyard, the program's CPU time {time}, and its peak memory {memory}."
    ))
}

/// Describes a ratio, such as `is 3.0 % less (2.1 to 3.9 %)`.
fn difference(ratio: Ratio, than: &str) -> Option<String> {
    let Interval { low, high } = ratio.interval?;
    if low <= 1.0 && 1.0 <= high {
        return Some(format!(
            "cannot be distinguished from that with glibc ({low:.2} to {high:.2} of it)"
        ));
    }
    let percent = |ratio: f64| (ratio - 1.0).abs() * 100.0;
    let (word, least, most) = if high < 1.0 {
        ("less", high, low)
    } else {
        ("more", low, high)
    };
    Some(format!(
        "is {:.1} % {word}{than} ({:.1} to {:.1} %)",
        percent(ratio.ratio),
        percent(least),
        percent(most)
    ))
}
