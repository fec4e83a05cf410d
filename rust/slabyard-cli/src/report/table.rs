//! Writes the report as a table for the terminal.

use super::{memory, named, ratio, Report};
use crate::real;
use crate::replay::measure::Measured;
use crate::ui::nanoseconds;
use std::fmt::Write;

const HEADS: [&str; 12] = [
    "allocator",
    "rank",
    "ns/op",
    "ns ratio",
    "95 %",
    "p50",
    "p99",
    "p99.9",
    "p99.99",
    "peak",
    "peak ratio",
    "final",
];

pub fn render(report: &Report) -> String {
    let mut rows = vec![HEADS.map(str::to_string)];
    rows.extend(report.ranked().into_iter().map(|one| row(report, one)));
    let mut text = String::from("\n");
    for words in report.answers() {
        let _ = writeln!(text, "{}\n", wrapped(&words, 96));
    }
    let _ = writeln!(text, "{}\n", shortened(&report.command));
    if let Some(runs) = &report.runs {
        let _ = writeln!(
            text,
            "The program itself: {}\nIts allocations, replayed alone:\n",
            real::text::tables(runs)
        );
    }
    let _ = writeln!(text, "{}\n", wrapped(&report.what(), 96));
    for caveat in report.caveats() {
        let _ = writeln!(text, "{}\n", wrapped(&caveat, 96));
    }
    lay_out(&mut text, &rows);
    footnotes(&mut text, report);
    text
}

/// Shortens a command line, and replaces control characters, which could move the cursor.
pub fn shortened(command: &str) -> String {
    let command = command.replace(char::is_control, "?");
    if command.chars().count() <= 96 {
        return command;
    }
    command.chars().take(93).chain("...".chars()).collect()
}

pub fn wrapped(sentence: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in sentence.split(' ') {
        let line = lines.last_mut().expect("never empty");
        if !line.is_empty() && line.len() + 1 + word.len() > width {
            lines.push(word.to_string());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

fn row(report: &Report, one: &Measured) -> [String; 12] {
    [
        named(one),
        report.rank(one),
        nanoseconds(one.ns_per_op.mean),
        report.time_ratio(one),
        report.time_interval(one),
        report.percentile(one.all.p50),
        report.percentile(one.all.p99),
        report.percentile(one.all.p999),
        report.percentile(one.all.p9999),
        memory(one.peak_resident.median),
        ratio(one.peak_resident.median, report.best_peak()),
        memory(one.final_resident.median),
    ]
}

/// Lays out a table: the first column to the left, all others to the right.
pub fn lay_out<const N: usize>(text: &mut String, rows: &[[String; N]]) {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    for (number, row) in rows.iter().enumerate() {
        let _ = write!(text, "{:<w$}", row[0], w = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(text, "  {cell:>width$}");
        }
        text.push('\n');
        if number == 0 {
            let line: usize = widths.iter().sum::<usize>() + 2 * (N - 1);
            let _ = writeln!(text, "{}", "-".repeat(line));
        }
    }
}

fn footnotes(text: &mut String, report: &Report) {
    let measurement = &report.measurement;
    let _ = writeln!(
        text,
        "\nns/op: CPU time less the {} ns of the replay itself.\n{}\n\
         peak, final: anonymous memory in RAM.",
        nanoseconds(measurement.replay_ns.mean),
        report.about_clock()
    );
    if report.summary.peak_resident > 0 {
        let real = report.summary.real_peak();
        let _ = writeln!(text, "The program itself had at its peak {real}.");
    }
    let foretold: Vec<_> = report
        .foretold()
        .into_iter()
        .map(|[name, peak, to_glibc]| match to_glibc.as_str() {
            "-" => format!("{name} {peak}"),
            _ => format!("{name} {peak} ({to_glibc})"),
        })
        .collect();
    if !foretold.is_empty() {
        let words = format!("The program's own peak, foretold: {}.", foretold.join(", "));
        let _ = writeln!(text, "{}", wrapped(&words, 96));
    }
    let _ = writeln!(text, "{}", wrapped(&report.certainty(), 96));
    let _ = writeln!(text, "{}", wrapped(&report.about_slabyard(), 96));
    let _ = writeln!(text, "{}", wrapped(&report.versions(), 96));
    for one in report.failed() {
        let why = one.failure.as_deref().unwrap_or("");
        let _ = writeln!(text, "{} FAILED: {why}", one.name);
    }
    for one in report.ranked().into_iter().filter(|one| one.refused > 0) {
        let _ = writeln!(text, "{} refused {} allocations.", one.name, one.refused);
    }
    let summary = &report.summary;
    if summary.unknown_frees + summary.unseen_frees > 0 {
        let _ = writeln!(
            text,
            "Left out: {} frees of objects whose allocation was not seen; {} objects were never \
             seen freed.",
            summary.unknown_frees, summary.unseen_frees
        );
    }
    if let Some(damage) = &report.damage {
        let _ = writeln!(
            text,
            "The recording is {damage}; the part before the damage was used."
        );
    }
}
