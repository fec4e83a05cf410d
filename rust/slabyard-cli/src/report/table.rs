//! Writes the report as text for the terminal: the answer, the runs of the program, the replay, the
//! caveats, and the notes.

use super::{memory, ratio, Report};
use crate::real::text as runs;
use crate::replay::measure::Measured;
use crate::ui::nanoseconds;
use std::fmt::Write;

/// The text fits into a terminal of this width.
pub const WIDTH: usize = 80;

const COST: [&str; 7] = [
    "allocator",
    "rank",
    "ns/op",
    "ns ratio",
    "95 %",
    "peak",
    "peak ratio",
];

const CALLS: [&str; 6] = ["allocator", "p50", "p99", "p99.9", "p99.99", "final"];

pub fn render(report: &Report) -> String {
    let mut text = String::from("\n");
    for words in report.answers() {
        paragraph(&mut text, &words);
    }
    runs::paragraph_of_doubts(&mut text, &report.doubts());
    paragraph(&mut text, &shortened(&report.command));
    if let Some(all) = &report.runs {
        text += &runs::in_words(all);
    }
    paragraph(&mut text, report.title_of_replay());
    for words in report.explanation() {
        paragraph(&mut text, &words);
    }
    let ranked = report.ranked();
    table(&mut text, COST, ranked.iter().map(|one| cost(report, one)));
    table(
        &mut text,
        CALLS,
        ranked.iter().map(|one| calls(report, one)),
    );
    for one in report.failed() {
        let why = one.failure.as_deref().unwrap_or("");
        paragraph(&mut text, &format!("{} FAILED: {why}", one.name));
    }
    let caveats = report.all_caveats().into_iter();
    let caveats: Vec<_> = caveats.map(|caveat| caveat.text).collect();
    list(&mut text, "Caveats", &caveats);
    list(&mut text, "Notes", &notes(report));
    text
}

/// Shortens a command line, and replaces control characters, which could move the cursor.
pub fn shortened(command: &str) -> String {
    let command = command.replace(char::is_control, "?");
    if command.chars().count() <= WIDTH {
        return command;
    }
    let start = command.chars().take(WIDTH - 3);
    start.chain("...".chars()).collect()
}

/// Adds a paragraph, and an empty line.
pub fn paragraph(text: &mut String, words: &str) {
    let _ = writeln!(text, "{}\n", wrapped(words, WIDTH));
}

/// Adds a list, unless it is empty.
pub fn list(text: &mut String, title: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let before = text.trim_end().len();
    text.truncate(before);
    let _ = writeln!(text, "\n\n{title}");
    for item in items {
        let lines = wrapped(item, WIDTH - 2).replace('\n', "\n  ");
        let _ = writeln!(text, "- {lines}");
    }
}

pub fn wrapped(sentence: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in super::words(sentence) {
        let line = lines.last_mut().expect("never empty");
        let length = line.chars().count();
        if length > 0 && length + 1 + word.chars().count() > width {
            lines.push(word);
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
    }
    lines.join("\n")
}

/// Adds a table of allocators, and an empty line.
fn table<const N: usize>(
    text: &mut String,
    heads: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) {
    let heads = std::iter::once(heads.map(str::to_string));
    let rows: Vec<_> = heads.chain(rows).map(Vec::from).collect();
    lay_out(text, &rows);
    text.push('\n');
}

fn cost(report: &Report, one: &Measured) -> [String; 7] {
    [
        starred(one),
        report.rank(one),
        nanoseconds(one.ns_per_op.mean),
        report.time_ratio(one),
        report.time_interval(one),
        memory(one.peak_resident.median),
        ratio(one.peak_resident.median, report.best_peak()),
    ]
}

fn calls(report: &Report, one: &Measured) -> [String; 6] {
    [
        starred(one),
        report.percentile(one.all.p50),
        report.percentile(one.all.p99),
        report.percentile(one.all.p999),
        report.percentile(one.all.p9999),
        memory(one.final_resident.median),
    ]
}

/// An allocator's name, with a sign if it has a note.
fn starred(one: &Measured) -> String {
    let sign = if one.note.is_some() { "*" } else { "" };
    format!("{}{sign}", one.name)
}

/// Lays out a table: the first column to the left, all others to the right.
pub fn lay_out(text: &mut String, rows: &[Vec<String>]) {
    let columns = rows.first().map_or(0, Vec::len);
    let length = |cell: &String| cell.chars().count();
    let width = |column: usize| {
        rows.iter()
            .map(|row| length(&row[column]))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for (number, row) in rows.iter().enumerate() {
        let _ = write!(text, "{:<w$}", row[0], w = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(text, "  {cell:>width$}");
        }
        text.push('\n');
        if number == 0 {
            let line: usize = widths.iter().sum::<usize>() + 2 * (columns - 1);
            let _ = writeln!(text, "{}", "-".repeat(line));
        }
    }
}

fn notes(report: &Report) -> Vec<String> {
    let summary = &report.summary;
    let mut notes = report.runs.as_ref().map_or(Vec::new(), runs::notes);
    notes.push(format!("The recording: {}.", report.what()));
    let in_words = |[name, peak, to_glibc]: [String; 3]| match to_glibc.as_str() {
        "-" => format!("{name} {peak}"),
        _ => format!("{name} {peak} ({to_glibc})"),
    };
    let foretold: Vec<_> = report.foretold().into_iter().map(in_words).collect();
    if !foretold.is_empty() {
        notes.push(format!(
            "The program's own peak, foretold: {}.",
            foretold.join(", ")
        ));
    }
    notes.push(format!(
        "ns/op is the CPU time of the replay per operation, less the {} ns of the replay itself. {}",
        nanoseconds(report.measurement.replay_ns.mean),
        report.certainty()
    ));
    notes.push(report.about_clock());
    notes.push(
        "peak and final are anonymous memory in RAM, at the peak and at the end.".to_string(),
    );
    for one in report.ranked() {
        let note = one.note.map(|note| format!("* {}: {note}.", one.name));
        notes.extend(note);
    }
    if summary.peak_resident > 0 {
        let real = summary.real_peak();
        notes.push(format!(
            "The program had at its peak {real}, when it was recorded."
        ));
    }
    notes.push(report.about_slabyard());
    notes.push(report.versions());
    notes.extend(report.left_out());
    notes
}
