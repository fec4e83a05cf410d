//! The figures as text: a block for each program; for each group tables for a document, the rows in
//! which Slabyard is behind first; geometric means, and whether they reach the goals.

use super::idle::{FREED, IDLE};
use super::small::{ANONYMOUS, NAME as SMALL, RESIDENT};
use super::timed::{CPU, FAULTS, PEAK, WALL};
use super::{version_of, Group, Job, BASE, OURS};
use crate::cells::{cell, figure as shown, over, ratio, spread};
use crate::figure::{self, median, Figure};
use crate::stats::{self, geometric_mean};
use std::fmt::Write;

/// Slabyard may take this much more CPU time than the best peer.
const MAY_BE_BEHIND: f64 = 0.03;

impl Group {
    fn name(self) -> &'static str {
        match self {
            Group::Classic => "classic",
            Group::Real => "real",
        }
    }

    /// The goal for the geometric mean of CPU time, in times of glibc's.
    fn goal(self) -> f64 {
        match self {
            Group::Classic => 0.65,
            Group::Real => 0.88,
        }
    }
}

/// The figures of all allocators in all rows.
struct Found<'a> {
    names: &'a [&'a str],
    figures: &'a [Figure],
}

impl Found<'_> {
    fn of(&self, row: &str, metric: &str, who: &str) -> Option<f64> {
        median(self.figures, row, metric, who)
    }

    /// The median of the ratios of two allocators' figures, round by round. The runs of a round
    /// follow each other closely, so a machine that is slow for some rounds slows down both.
    fn paired(&self, row: &str, metric: &str, who: &str, other: &str) -> Option<f64> {
        let of = |name: &str| -> Vec<(usize, f64)> {
            let here = |one: &&Figure| one.row == row && one.metric == metric && one.who == name;
            let figures = self.figures.iter().filter(here);
            figures.map(|one| (one.layout, one.value)).collect()
        };
        let others = of(other);
        let in_round = |round| others.iter().find(|one| one.0 == round).map(|one| one.1);
        let ratios: Vec<f64> = of(who)
            .into_iter()
            .filter_map(|(round, value)| over(Some(value), in_round(round)))
            .collect();
        stats::median(&ratios)
    }

    /// A figure in times of glibc's.
    fn to_base(&self, row: &str, metric: &str, who: &str) -> Option<f64> {
        self.paired(row, metric, who, BASE)
    }

    /// The peer with the least CPU time in a row, in times of glibc's.
    fn best_peer(&self, row: &str) -> Option<&str> {
        let peers = self.names.iter().filter(|name| **name != OURS);
        peers
            .filter_map(|name| Some((*name, self.to_base(row, CPU, name)?)))
            .min_by(|one, other| one.1.total_cmp(&other.1))
            .map(|best| best.0)
    }

    /// By which share Slabyard's CPU time is above that of the best peer.
    fn behind(&self, row: &str) -> Option<f64> {
        let best = self.best_peer(row)?;
        self.paired(row, CPU, OURS, best).map(|ratio| ratio - 1.0)
    }

    fn mean(&self, rows: &[&str], metric: &str, who: &str) -> Option<f64> {
        let ratios: Option<Vec<f64>> = rows
            .iter()
            .map(|row| self.to_base(row, metric, who))
            .collect();
        ratios.and_then(|ratios| geometric_mean(&ratios))
    }
}

fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

/// One program as text.
pub fn block(job: &Job, names: &[&str], figures: &[Figure]) -> String {
    let found = Found { names, figures };
    let mut text = format!("\n{}: {}\n", job.name, job.says);
    let _ = writeln!(
        text,
        "  {:<12} {CPU:>8} {:>19} {:>7} {WALL:>8} {:>7} {PEAK:>9} {:>7} {FAULTS:>11} {FREED:>10} {IDLE:>9}",
        "", "quartiles", "/glibc", "/glibc", "/glibc"
    );
    for name in names {
        let of = |metric| found.of(job.name, metric, name);
        let Some(summary) = figure::of(figures, job.name, CPU, name) else {
            continue;
        };
        let to_base = |metric| ratio(found.to_base(job.name, metric, name));
        let _ = writeln!(
            text,
            "    {name:<10} {:>8} {:>19} {:>7} {:>8} {:>7} {:>9} {:>7} {:>11} {:>10} {:>9}",
            shown(summary.median),
            spread(&summary),
            to_base(CPU),
            cell(of(WALL)),
            to_base(WALL),
            cell(of(PEAK)),
            to_base(PEAK),
            of(FAULTS).map_or("-".to_owned(), |faults| format!("{faults:.0}")),
            cell(of(FREED)),
            cell(of(IDLE)),
        );
    }
    if let (Some(peer), Some(behind)) = (found.best_peer(job.name), found.behind(job.name)) {
        let _ = writeln!(
            text,
            "  {OURS} to the best peer, {peer}: {}",
            percent(behind)
        );
    }
    text
}

/// A line of a table.
pub fn table_line(text: &mut String, cells: &[String]) {
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// The heading of a table: columns of text, then columns of figures.
pub fn table_head(text: &mut String, cells: &[String]) {
    table_line(text, cells);
    let bars = "---:|".repeat(cells.len() - 1);
    let _ = writeln!(text, "|---|{bars}");
}

/// CPU time: glibc's figure, the other allocators' ratios to it, and the best peer.
fn cpu_table(found: &Found, rows: &[&str]) -> String {
    let mut text = String::new();
    let others: Vec<&str> = found
        .names
        .iter()
        .copied()
        .filter(|name| *name != BASE)
        .collect();
    let mut head = vec!["CPU".to_owned(), format!("{}, ms", version_of(BASE))];
    head.extend(others.iter().map(|name| version_of(name)));
    head.extend(["best peer".to_owned(), format!("{OURS} to it")]);
    table_head(&mut text, &head);
    for row in rows {
        let mut cells = vec![format!("`{row}`"), cell(found.of(row, CPU, BASE))];
        cells.extend(others.iter().map(|who| ratio(found.to_base(row, CPU, who))));
        cells.push(found.best_peer(row).unwrap_or("-").to_owned());
        cells.push(match found.behind(row) {
            Some(behind) if behind > MAY_BE_BEHIND => format!("**{}**", percent(behind)),
            Some(behind) => percent(behind),
            None => "-".to_owned(),
        });
        table_line(&mut text, &cells);
    }
    let mut cells = vec!["geometric mean".to_owned(), String::new()];
    cells.extend(others.iter().map(|who| ratio(found.mean(rows, CPU, who))));
    cells.extend([String::new(), String::new()]);
    table_line(&mut text, &cells);
    text
}

/// A metric's figures of all allocators. With `means`, a line with the means of the ratios.
fn plain_table(found: &Found, rows: &[&str], metric: &str, means: bool) -> String {
    let mut text = String::new();
    let mut head = vec![metric.to_owned()];
    head.extend(found.names.iter().map(|name| version_of(name)));
    table_head(&mut text, &head);
    for row in rows {
        let mut cells = vec![format!("`{row}`")];
        let figures = found.names.iter().map(|who| found.of(row, metric, who));
        cells.extend(figures.map(|figure| match figure {
            Some(figure) if metric == FAULTS => format!("{figure:.0}"),
            other => cell(other),
        }));
        table_line(&mut text, &cells);
    }
    if means {
        let mut cells = vec![format!("geometric mean, of {BASE}'s")];
        cells.extend(
            found
                .names
                .iter()
                .map(|who| ratio(found.mean(rows, metric, who))),
        );
        table_line(&mut text, &cells);
    }
    text
}

/// The memory of a program that has just started: all of it, and by how much it is above glibc's.
pub fn small(names: &[&str], figures: &[Figure]) -> String {
    let found = Found { names, figures };
    let mut text = "\na program that has just started\n\n".to_owned();
    let mut head = vec!["KiB".to_owned()];
    head.extend(names.iter().map(|name| version_of(name)));
    table_head(&mut text, &head);
    for metric in [RESIDENT, ANONYMOUS] {
        let of = |who: &str| found.of(SMALL, metric, who);
        let whole = |value: Option<f64>| value.map_or("-".to_owned(), |kib| format!("{kib:.0}"));
        let more = |who: &str| match (of(who), of(BASE)) {
            (Some(one), Some(base)) => format!("{:+.0}", one - base),
            _ => "-".to_owned(),
        };
        let name = metric.trim_end_matches(" KiB");
        let mut cells = vec![name.to_owned()];
        cells.extend(names.iter().map(|who| whole(of(who))));
        table_line(&mut text, &cells);
        let mut cells = vec![format!("{name}, beyond {BASE}'s")];
        cells.extend(names.iter().map(|who| more(who)));
        table_line(&mut text, &cells);
    }
    text
}

fn verdict(value: Option<f64>, goal: f64) -> String {
    let word = match value {
        Some(value) if value <= goal => "reached",
        Some(_) => "missed",
        None => "-",
    };
    format!("{} (goal: {goal:.2} at most; {word})", ratio(value))
}

/// The rows in which Slabyard is behind its best peer by more than it may be.
fn losses(found: &Found, rows: &[&str]) -> Vec<String> {
    let lost = rows.iter().filter_map(|row| {
        let behind = found.behind(row).filter(|behind| *behind > MAY_BE_BEHIND)?;
        Some(format!("{row} {}", percent(behind)))
    });
    lost.collect()
}

fn summary(group: Group, found: &Found, rows: &[&str]) -> String {
    let cpu = found.mean(rows, CPU, OURS);
    let first = found
        .names
        .iter()
        .filter(|name| **name != OURS)
        .filter_map(|name| found.mean(rows, CPU, name))
        .all(|mean| Some(mean) >= cpu);
    let lost = losses(found, rows);
    let lines = [
        format!(
            "CPU time to {BASE}'s: {}, {}",
            verdict(cpu, group.goal()),
            if first { "first of all" } else { "not first" }
        ),
        format!(
            "peak memory to {BASE}'s: {}",
            verdict(found.mean(rows, PEAK, OURS), 1.0)
        ),
        format!(
            "rows in which {OURS} is more than {:.0} % behind its best peer: {} of {}{}{}",
            MAY_BE_BEHIND * 100.0,
            lost.len(),
            rows.len(),
            if lost.is_empty() { "" } else { ": " },
            lost.join(", ")
        ),
    ];
    format!("\nsummary, {}:\n  {}\n", group.name(), lines.join("\n  "))
}

/// The tables and the summary of a group.
pub fn tables(group: Group, rows: &[&str], names: &[&str], figures: &[Figure]) -> String {
    let found = Found { names, figures };
    let mut sorted = rows.to_vec();
    let key = |row: &str| found.behind(row).unwrap_or(f64::INFINITY);
    sorted.sort_by(|one, other| key(other).total_cmp(&key(one)));
    let mut text = format!("\n{} programs\n\n", group.name());
    text += &cpu_table(&found, &sorted);
    for (metric, means) in [(PEAK, true), (WALL, true), (FAULTS, false), (IDLE, false)] {
        if figures
            .iter()
            .any(|one| one.metric == metric && rows.contains(&one.row.as_str()))
        {
            text += "\n";
            text += &plain_table(&found, &sorted, metric, means);
        }
    }
    text + &summary(group, &found, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    const NAMES: [&str; 3] = ["glibc", "slabyard", "other"];

    fn figures() -> Vec<Figure> {
        let rows = [
            ("first", [100.0, 50.0, 80.0], [10.0, 5.0, 20.0]),
            ("lost", [200.0, 190.0, 100.0], [10.0, 20.0, 20.0]),
        ];
        let mut all = Vec::new();
        for (row, times, peaks) in rows {
            for (who, (time, peak)) in NAMES.iter().zip(times.into_iter().zip(peaks)) {
                all.extend(Figure::rounds(
                    row,
                    CPU,
                    who,
                    &[time, time + 1.0, time - 1.0],
                ));
                all.extend(Figure::rounds(row, PEAK, who, &[peak]));
            }
        }
        all
    }

    #[test]
    fn losses_are_first_and_the_means_are_compared_with_the_goals() {
        let text = tables(Group::Classic, &["first", "lost"], &NAMES, &figures());
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(at("| `lost` | 200.0 | 0.95 | 0.50 | other | **+90.0 %** |") < at("| `first` |"));
        at("| `first` | 100.0 | 0.50 | 0.80 | other | -37.5 % |");
        at("| geometric mean |  | 0.69 | 0.63 |  |  |");
        at("CPU time to glibc's: 0.69 (goal: 0.65 at most; missed), not first");
        at("peak memory to glibc's: 1.00 (goal: 1.00 at most; reached)");
        at("best peer: 1 of 2: lost +90.0 %");
        at(&format!(
            "slabyard {} | other | best peer",
            env!("CARGO_PKG_VERSION")
        ));
        assert!(!text.contains(IDLE));
    }

    #[test]
    fn a_block_has_a_line_for_each_allocator() {
        let job = Job {
            name: "lost",
            says: "a test",
            group: Group::Real,
            command: vec![OsString::from("true")],
        };
        let text = block(&job, &NAMES, &figures());
        assert!(text.starts_with("\nlost: a test\n"));
        assert_eq!(text.lines().count(), 3 + NAMES.len() + 1);
        assert!(
            text.ends_with("slabyard to the best peer, other: +90.0 %\n"),
            "{text}"
        );
    }

    #[test]
    fn ratios_are_those_of_the_runs_of_one_round() {
        let rounds = |who, values: &[f64]| Figure::rounds("row", CPU, who, values).collect();
        let all: [Vec<Figure>; 2] = [
            rounds("glibc", &[100.0, 200.0, 300.0]),
            rounds("slabyard", &[120.0, 150.0, 330.0]),
        ];
        let figures = all.concat();
        let found = Found {
            names: &["glibc", "slabyard"],
            figures: &figures,
        };
        assert_eq!(found.to_base("row", CPU, "slabyard"), Some(1.1));
        assert_eq!(found.to_base("row", CPU, "absent"), None);
    }

    #[test]
    fn the_memory_of_a_small_program_is_compared_with_that_on_glibc() {
        let of = |metric, who, value| Figure::new(SMALL, metric, who, 0, value);
        let figures = [
            of(RESIDENT, "glibc", 1100.0),
            of(RESIDENT, "slabyard", 1300.4),
            of(ANONYMOUS, "glibc", 90.0),
        ];
        let text = small(&["glibc", "slabyard"], &figures);
        assert!(text.contains("| resident | 1100 | 1300 |\n"), "{text}");
        assert!(text.contains("| resident, beyond glibc's | +0 | +200 |\n"));
        assert!(text.contains("| anonymous, beyond glibc's | +0 | - |\n"));
    }

    #[test]
    fn a_row_without_figures_does_not_hide_in_a_mean() {
        let text = tables(Group::Real, &["first", "absent"], &NAMES, &figures());
        assert!(text.contains("| `absent` | - | - | - | - | - |"), "{text}");
        assert!(text.contains("CPU time to glibc's: - (goal"), "{text}");
    }
}
