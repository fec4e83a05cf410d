//! The figures as text: a block for each program; for each group tables for a document, the rows in
//! which Slabyard is behind first; geometric means, and whether they reach the goals.

use super::idle::{FREED, IDLE};
use super::small::{ANONYMOUS, NAME as SMALL, RESIDENT};
use super::timed::{CPU, FAULTS, PEAK, WALL};
use super::{Group, Job};
use crate::figure::{self, least, mean_of, median, paired, Figure};
use crate::preloaded::{heads, version_of, OURS, PEER};
use crate::table::{cell, figure as shown, or_dash, ratio, spread, Table};

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

    /// A figure in times of glibc's.
    fn to_base(&self, row: &str, metric: &str, who: &str) -> Option<f64> {
        paired(self.figures, row, (metric, who), (metric, PEER))
    }

    /// The peer with the least CPU time in a row, in times of glibc's.
    fn best_peer(&self, row: &str) -> Option<&str> {
        let peers = self.names.iter().copied().filter(|name| *name != OURS);
        least(peers, |name| self.to_base(row, CPU, name)).map(|best| best.0)
    }

    /// By which share Slabyard's CPU time is above that of the best peer.
    fn behind(&self, row: &str) -> Option<f64> {
        let best = self.best_peer(row)?;
        let ratio = paired(self.figures, row, (CPU, OURS), (CPU, best));
        ratio.map(|ratio| ratio - 1.0)
    }

    fn mean(&self, rows: &[&str], metric: &str, who: &str) -> Option<f64> {
        mean_of(rows, |row| self.to_base(row, metric, who))
    }
}

fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

/// One program as text.
pub fn block(job: &Job, names: &[&str], figures: &[Figure]) -> String {
    let found = Found { names, figures };
    let over = format!("/{PEER}");
    let heads = [
        CPU,
        "quartiles",
        &over,
        WALL,
        &over,
        PEAK,
        &over,
        FAULTS,
        FREED,
        IDLE,
    ];
    let mut table = Table::new("", heads);
    for name in names {
        let of = |metric| found.of(job.name, metric, name);
        let Some(summary) = figure::of(figures, job.name, CPU, name) else {
            continue;
        };
        let to_base = |metric| ratio(found.to_base(job.name, metric, name));
        let cells = [
            shown(summary.median),
            spread(&summary),
            to_base(CPU),
            cell(of(WALL)),
            to_base(WALL),
            cell(of(PEAK)),
            to_base(PEAK),
            whole(of(FAULTS)),
            cell(of(FREED)),
            cell(of(IDLE)),
        ];
        table.line(name, cells);
    }
    let best = found.best_peer(job.name).zip(found.behind(job.name));
    let best = best
        .map(|(peer, behind)| format!("  {OURS} to the best peer, {peer}: {}\n", percent(behind)));
    let (name, says, best) = (job.name, job.says, best.unwrap_or_default());
    format!("\n{name}: {says}\n{}{best}", table.text())
}

/// CPU time: glibc's figure, the other allocators' ratios to it, and the best peer.
fn cpu_table(found: &Found, rows: &[&str]) -> String {
    let others: Vec<&str> = found
        .names
        .iter()
        .copied()
        .filter(|name| *name != PEER)
        .collect();
    let peer = [format!("{}, ms", version_of(PEER))].into_iter();
    let ours = ["best peer".to_owned(), format!("{OURS} to it")];
    let mut table = Table::new("CPU", peer.chain(heads(&others)).chain(ours));
    for row in rows {
        let peer = [cell(found.of(row, CPU, PEER))].into_iter();
        let ratios = others.iter().map(|who| ratio(found.to_base(row, CPU, who)));
        let behind = or_dash(found.behind(row), |behind| match behind > MAY_BE_BEHIND {
            true => format!("**{}**", percent(behind)),
            false => percent(behind),
        });
        let ours = [found.best_peer(row).unwrap_or("-").to_owned(), behind];
        table.line(&format!("`{row}`"), peer.chain(ratios).chain(ours));
    }
    let means = others.iter().map(|who| ratio(found.mean(rows, CPU, who)));
    let empty = || [String::new()].into_iter();
    let means = empty().chain(means).chain(empty()).chain(empty());
    table.line("geometric mean", means);
    table.markdown()
}

fn whole(value: Option<f64>) -> String {
    or_dash(value, |value| format!("{value:.0}"))
}

/// A metric's figures of all allocators. With `means`, a line with the means of the ratios.
fn plain_table(found: &Found, rows: &[&str], metric: &str, means: bool) -> String {
    let shown = if metric == FAULTS { whole } else { cell };
    let mut table = Table::new(metric, heads(found.names));
    let names = found.names.iter();
    for row in rows {
        let cells = names.clone().map(|who| shown(found.of(row, metric, who)));
        table.line(&format!("`{row}`"), cells);
    }
    if means {
        let means = names.map(|who| ratio(found.mean(rows, metric, who)));
        table.line(&format!("geometric mean, of {PEER}'s"), means);
    }
    table.markdown()
}

/// The memory of a program that has just started: all of it, and by how much it is above glibc's.
pub fn small(names: &[&str], figures: &[Figure]) -> String {
    let found = Found { names, figures };
    let mut table = Table::new("KiB", heads(names));
    for metric in [RESIDENT, ANONYMOUS] {
        let of = |who: &str| found.of(SMALL, metric, who);
        let more = |who: &&str| {
            let both = of(who).zip(of(PEER));
            or_dash(both, |(one, base)| format!("{:+.0}", one - base))
        };
        let name = metric.trim_end_matches(" KiB");
        table.line(name, names.iter().map(|who| whole(of(who))));
        table.line(&format!("{name}, beyond {PEER}'s"), names.iter().map(more));
    }
    table.below("a program that has just started")
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
            "CPU time to {PEER}'s: {}, {}",
            verdict(cpu, group.goal()),
            if first { "first of all" } else { "not first" }
        ),
        format!(
            "peak memory to {PEER}'s: {}",
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
