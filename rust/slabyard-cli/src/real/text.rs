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

pub const MEANING: &str = "\
Figures are those of all processes that the program starts, and medians of the runs; CPU is user \
and system. Peak: resident memory, of several processes together as far as samples show it. Mean: \
the same over the run, sampled every 10 ms; - if a run was too short. Both include code and \
libraries. A ratio compares the mean with glibc's. It lies between the \
two figures of its 95 % column, or is unknown if there are none; if 1.00 is between them, there \
may be no difference.";

pub fn render(all: &RealRuns) -> String {
    let mut text = String::from("\n");
    if let Some(answer) = &all.answer {
        let _ = writeln!(text, "{}\n", wrapped(answer, WIDTH));
    }
    let _ = writeln!(text, "{}\n{}", shortened(&all.command), tables(all));
    text
}

/// How many runs there were.
pub fn rounds(all: &RealRuns) -> String {
    let rounds = if all.rounds == 1 { "round" } else { "rounds" };
    format!(
        "{} {rounds}, in which each allocator has one run",
        all.rounds
    )
}

/// Everything but the answer and the command.
pub fn tables(all: &RealRuns) -> String {
    let mut text = rounds(all) + "\n\n";
    for caveat in &all.caveats {
        let _ = writeln!(text, "{}\n", wrapped(caveat, WIDTH));
    }
    lay_out(&mut text, &time_rows(all));
    text.push('\n');
    lay_out(&mut text, &memory_rows(all));
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
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn good(all: &RealRuns) -> impl Iterator<Item = &Measured> {
    all.allocators.iter().filter(|one| one.failure.is_none())
}

/// A row of heads, and one for each allocator.
pub fn time_rows(all: &RealRuns) -> Vec<[String; 7]> {
    let heads = TIMES.map(str::to_string);
    std::iter::once(heads).chain(good(all).map(times)).collect()
}

pub fn memory_rows(all: &RealRuns) -> Vec<[String; 10]> {
    let heads = MEMORY.map(str::to_string);
    let rows = good(all).map(memory);
    std::iter::once(heads).chain(rows).collect()
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

/// A sentence on the program's gain by Slabyard; `None` if Slabyard was not measured.
pub fn answer(all: &RealRuns) -> Option<String> {
    let ours = all.allocators.iter().find(|one| one.name == SLABYARD)?;
    let mut text = format!(
        "With Slabyard, the program's CPU time {}",
        difference(ours.cpu_s.to_glibc?, " than with glibc")
    );
    if let Some(peak) = ours.peak_bytes.to_glibc {
        let whose = match all.peaks_of_largest {
            true => "the peak memory of its largest process",
            false => "its peak memory",
        };
        let _ = write!(text, ", and {whose} {}", difference(peak, ""));
    }
    Some(text + ".")
}

/// Describes a ratio, such as `is 3.0 % less (2.1 to 3.9 %)`.
fn difference(ratio: Ratio, than: &str) -> String {
    let percent = |ratio: f64| (ratio - 1.0).abs() * 100.0;
    let Some(Interval { low, high }) = ratio.interval else {
        let once = ratio.ratio;
        return format!(
            "was {once:.2} of that with glibc, in runs that do not show how certain this is"
        );
    };
    if low <= 1.0 && 1.0 <= high {
        return format!(
            "cannot be distinguished from that with glibc ({low:.2} to {high:.2} of it)"
        );
    }
    let (word, least, most) = if high < 1.0 {
        ("less", high, low)
    } else {
        ("more", low, high)
    };
    format!(
        "is {:.1} % {word}{than} ({:.1} to {:.1} %)",
        percent(ratio.ratio),
        percent(least),
        percent(most)
    )
}
