//! The figures as tables for a document: one for each program, and one of what is left at the end.

use super::programs::Program;
use crate::figure::{self, least, median, Figure};
use crate::preloaded::{heads, version_of, OURS};
use crate::table::{cell, or_dash, ratio, Table};

/// The line of a program that is not a figure but the same in all runs.
pub const SUM: &str = "sum";

/// The unit of a figure, and that of a program's line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Mib,
    Ms,
}

impl Unit {
    /// The unit of the figure that a line of this name has.
    pub fn of(name: &str) -> Unit {
        if ["cpu", "cpu of the wait", "wall"].contains(&name) {
            Unit::Ms
        } else {
            Unit::Mib
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Unit::Mib => "MiB",
            Unit::Ms => "ms",
        }
    }

    /// Programs print memory in KiB.
    pub fn from_line(self, value: f64) -> f64 {
        match self {
            Unit::Mib => value / 1024.0,
            Unit::Ms => value,
        }
    }
}

/// The metrics of a program's figures, in the order in which it printed them.
fn metrics(found: &[Figure], program: &Program) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for figure in found.iter().filter(|figure| figure.row == program.name) {
        if !all.contains(&figure.metric) {
            all.push(figure.metric.clone());
        }
    }
    all
}

/// The metric that is the same for all: what is live when the rest is freed.
const LIVE: &str = "live MiB";

fn last_reading(found: &[Figure], program: &Program) -> Option<String> {
    let all = metrics(found, program);
    all.into_iter().rfind(|metric| metric.starts_with("after "))
}

/// A table of one program.
pub fn block(program: &Program, names: &[&str], found: &[Figure]) -> String {
    let live = names
        .iter()
        .find_map(|who| median(found, program.name, LIVE, who));
    let live = live.filter(|live| *live > 0.0);
    let live = live.map_or_else(String::new, |live| format!("; {live:.1} MiB stay live"));
    let mut metrics = metrics(found, program);
    metrics.retain(|metric| metric != LIVE);
    let mut table = Table::new(program.name, metrics.iter().cloned());
    for who in names {
        let value = |metric: &String| median(found, program.name, metric, who);
        if metrics.iter().any(|metric| value(metric).is_some()) {
            let cells = metrics.iter().map(|metric| cell(value(metric)));
            table.line(&version_of(who), cells);
        }
    }
    table.below(&format!("{}: {}{live}", program.name, program.says))
}

/// The widest range of the last reading of an allocator over the repeats, in MiB.
fn range(found: &[Figure], program: &Program, metric: &str, who: &str) -> Option<f64> {
    let here = found
        .iter()
        .filter(|one| one.row == program.name && one.metric == metric && one.who == who);
    let values: Vec<f64> = here.map(|one| one.value).collect();
    let least = values.iter().copied().reduce(f64::min)?;
    let most = values.iter().copied().reduce(f64::max)?;
    Some(most - least)
}

/// The last reading of each program and allocator, and Slabyard's beside the best of the others
/// into which an allocator is preloaded. Programs in which Slabyard has most of all come first.
pub fn summary(programs: &[Program], names: &[&str], found: &[Figure]) -> String {
    let ours = [
        "best peer".to_owned(),
        format!("{OURS} to it"),
        format!("range of {OURS}"),
    ];
    let mut table = Table::new("program", heads(names).chain(ours));
    let mut lines: Vec<(f64, String, Vec<String>)> = Vec::new();
    for program in programs {
        let Some(metric) = last_reading(found, program) else {
            continue;
        };
        let of = |who: &str| median(found, program.name, &metric, who);
        let peers = names.iter().copied().filter(|who| *who != OURS);
        let best = least(peers, of);
        let times = of(OURS).zip(best).map(|(ours, best)| ours / best.1);
        let seconds = metric.trim_start_matches("after ").replace(" MiB", " s");
        let ours = [
            or_dash(best, |best| best.0.to_owned()),
            ratio(times),
            cell(range(found, program, &metric, OURS)),
        ];
        let cells = names.iter().map(|who| cell(of(who))).chain(ours).collect();
        let name = format!("`{}`, {seconds}", program.name);
        lines.push((times.unwrap_or(0.0), name, cells));
    }
    lines.sort_by(|one, other| other.0.total_cmp(&one.0));
    for (_, name, cells) in lines {
        table.line(&name, cells);
    }
    table.below("Resident at the last reading, MiB")
}

/// How much figures of memory differ between repeats: the largest share of their median. Nothing if
/// there is one repeat.
pub fn variation(found: &[Figure]) -> String {
    if found.iter().all(|one| one.layout == 0) {
        return String::new();
    }
    let mut most: Option<(f64, &Figure)> = None;
    for one in found.iter().filter(|one| one.metric.ends_with("MiB")) {
        let Some(middle) = figure::of(found, &one.row, &one.metric, &one.who) else {
            continue;
        };
        let share = (one.value - middle.median).abs() / middle.median.max(1.0);
        if most.is_none_or(|before| share > before.0) {
            most = Some((share, one));
        }
    }
    most.map_or_else(String::new, |(share, one)| {
        format!(
            "\nMemory differs from its median by at most {:.0} %: {}, {}, {}\n",
            share * 100.0,
            one.row,
            one.metric,
            one.who
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::programs::ALL;
    use super::*;

    fn figures() -> Vec<Figure> {
        let mut all = Vec::new();
        for (program, ours, theirs) in [("spike-kept", 20.0, 40.0), ("idle", 9.0, 3.0)] {
            for (who, value) in [("glibc", theirs), (OURS, ours), ("mimalloc", theirs + 1.0)] {
                for (metric, value) in [
                    ("live MiB", 2.0),
                    ("freed MiB", 50.0),
                    ("after 4 MiB", value),
                ] {
                    all.push(Figure::new(program, metric, who, 0, value));
                }
            }
        }
        all.push(Figure::new("idle", "after 4 MiB", OURS, 1, 11.0));
        all
    }

    #[test]
    fn a_block_has_a_line_for_each_allocator_that_ran() {
        let text = block(&ALL[0], &["glibc", OURS, "musl"], &figures());
        assert!(text.contains("; 2.0 MiB stay live\n"), "{text}");
        assert!(
            text.contains("| spike-kept | freed MiB | after 4 MiB |\n"),
            "{text}"
        );
        assert!(text.contains("| 50.00 | 40.00 |\n"), "{text}");
        assert!(!text.contains("musl"), "{text}");
    }

    #[test]
    fn the_summary_begins_with_what_is_worst() {
        let names = ["glibc", OURS, "mimalloc"];
        let text = summary(&ALL, &names, &figures());
        let (idle, spike) = (text.find("| `idle`, 4 s"), text.find("| `spike-kept`, 4 s"));
        assert!(idle.is_some() && idle < spike, "{text}");
        assert!(text.contains("| glibc | 3.33 | 2.000 |"), "{text}");
        assert!(text.contains("| glibc | 0.50 | 0.000 |"), "{text}");
    }

    #[test]
    fn the_largest_difference_between_repeats_is_named() {
        let text = variation(&figures());
        assert!(
            text.ends_with("10 %: idle, after 4 MiB, slabyard\n"),
            "{text}"
        );
    }
}
