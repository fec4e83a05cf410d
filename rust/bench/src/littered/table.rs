//! The figures of loops and programs as tables for a document: what a fragmented heap costs, and
//! what Slabyard's allocators for kinds and phases gain on it, also where that is nothing.

use super::loops::Row;
use super::programs::{ADDED, BEFORE, CPU};
use crate::alone::Row as _;
use crate::figure::{least, mean_of, median, paired, Figure};
use crate::preloaded::{heads, OURS, PEER};
use crate::stats::over;
use crate::table::{cell, ratio, Table};

/// A difference that is below this share is none.
const NOTHING: f64 = 0.03;

/// By how much less than `other` a figure is, in words.
fn gain(own: Option<f64>, other: Option<f64>) -> String {
    match over(own, other).map(|ratio| 1.0 - ratio) {
        None => "-".to_owned(),
        Some(share) if share.abs() < NOTHING => "nothing".to_owned(),
        Some(share) if share > 0.0 => format!("gains {:.0} %", share * 100.0),
        Some(share) => format!("loses {:.0} %", -share * 100.0),
    }
}

/// For each loop on a littered heap: each allocator that is no malloc, beside Slabyard's malloc and
/// the best one.
pub fn loops(rows: &[Row], found: &[Figure]) -> String {
    let mut table = Table::new(
        "loop",
        [
            "allocator",
            "ns, new heap",
            "ns, littered",
            "MiB added, littered",
            "to our malloc, new heap",
            "to our malloc, littered",
            "to the best malloc, littered",
        ],
    );
    for &row in rows.iter().filter(|row| row.littered) {
        let clean = Row {
            littered: false,
            ..row
        };
        let of = |row: Row, who: &str| median(found, &row.name(), "ns", who);
        let (ours, best) = ("heap", least(Row::mallocs(), |who| of(row, who)));
        for who in row.names() {
            // What is made after the litter is the same as on a new heap.
            let on_new = of(clean, who.trim_end_matches("-new"));
            let own = of(row, who);
            let is_custom = row.custom().contains(&who);
            let gain_of = |own, other| match is_custom {
                true => gain(own, other),
                false => "-".to_owned(),
            };
            let best = match best {
                Some((name, ns)) if is_custom => format!("{} ({name})", gain(own, Some(ns))),
                _ => "-".to_owned(),
            };
            let cells = [
                who.to_owned(),
                cell(on_new),
                cell(own),
                cell(median(found, &row.name(), "MiB", who)),
                gain_of(on_new, of(clean, ours)),
                gain_of(own, of(row, ours)),
                best,
            ];
            table.line(&format!("`{}`", row.base()), cells);
        }
    }
    table.below("What allocators for kinds and phases gain, time of an object to that of a malloc")
}

/// A table with a line for each program, and one of geometric means; `value` is the ratio of a
/// program and an allocator.
fn ratios(
    title: &str,
    programs: &[&str],
    names: &[&str],
    value: impl Fn(&str, &str) -> Option<f64>,
) -> String {
    let mut table = Table::new("program", heads(names));
    for program in programs {
        let cells = names.iter().map(|who| ratio(value(program, who)));
        table.line(&format!("`{program}`"), cells);
    }
    let mean = |who: &&str| ratio(mean_of(programs, |program| value(program, who)));
    table.line("geometric mean", names.iter().map(mean));
    table.below(title)
}

/// The tables of all programs.
pub fn programs(programs: &[&str], names: &[&str], found: &[Figure]) -> String {
    if programs.is_empty() {
        return String::new();
    }
    let [clean, littered] = CPU;
    let mut text = ratios(
        "CPU time on a littered heap, in times of glibc's on a littered heap",
        programs,
        names,
        |program, who| paired(found, program, (littered, who), (littered, PEER)),
    );
    text += &ratios(
        "CPU time on a new heap, in times of glibc's on a new heap",
        programs,
        names,
        |program, who| paired(found, program, (clean, who), (clean, PEER)),
    );
    text += &ratios(
        "CPU time on a littered heap, in times of the same allocator's on a new heap",
        programs,
        names,
        |program, who| paired(found, program, (littered, who), (clean, who)),
    );
    let mut memory = Table::new("program", heads(names).chain([format!("litter ({OURS})")]));
    for program in programs {
        let of = |metric, who: &str| cell(median(found, program, metric, who));
        let both = |who: &&str| format!("{} / {}", of(ADDED[0], who), of(ADDED[1], who));
        let cells = names.iter().map(both).chain([of(BEFORE, OURS)]);
        memory.line(&format!("`{program}`"), cells);
    }
    let title = "MiB that the program adds at its peak: on a new heap / on a littered one";
    text + &memory.below(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loop_figures() -> Vec<Figure> {
        let mut all = Vec::new();
        for (row, heap, glibc, cache, pool) in [
            ("phases/2000/clean", 20.0, 30.0, 19.8, 10.0),
            ("phases/2000/littered", 40.0, 36.0, 50.0, 30.0),
        ] {
            for (who, value) in [
                ("heap", heap),
                ("glibc", glibc),
                ("cache", cache),
                ("pool", pool),
            ] {
                all.push(Figure::new(row, "ns", who, 0, value));
            }
        }
        all.push(Figure::new(
            "phases/2000/littered",
            "ns",
            "cache-new",
            0,
            36.5,
        ));
        all
    }

    #[test]
    fn gains_losses_and_nothing_are_said_of_each_allocator() {
        let rows = [Row::find("phases/2000/littered").unwrap()];
        let text = loops(&rows, &loop_figures());
        for expected in [
            "| cache | 19.80 | 50.00 | - | nothing | loses 25 % | loses 39 % (glibc) |",
            "| cache-new | 19.80 | 36.50 | - | nothing | gains 9 % | nothing (glibc) |",
            "| pool | 10.00 | 30.00 | - | gains 50 % | gains 25 % | gains 17 % (glibc) |",
            "| heap | 20.00 | 40.00 | - | - | - | - |",
            "| epochs | - | - | - | - | - | - (glibc) |",
        ] {
            assert!(text.contains(expected), "{expected} is not in {text}");
        }
    }

    #[test]
    fn programs_are_compared_repeat_by_repeat() {
        let mut found = Vec::new();
        for (repeat, slow) in [(0, 1.0), (1, 2.0)] {
            for (who, clean, littered) in [("glibc", 10.0, 12.0), (OURS, 8.0, 9.0)] {
                found.push(Figure::new("map", CPU[0], who, repeat, slow * clean));
                found.push(Figure::new("map", CPU[1], who, repeat, slow * littered));
                found.push(Figure::new("map", ADDED[0], who, repeat, 5.0));
                found.push(Figure::new("map", ADDED[1], who, repeat, 1.5));
            }
        }
        let text = programs(&["map"], &["glibc", OURS], &found);
        for expected in [
            "| `map` | 1.00 | 0.75 |",
            "| `map` | 1.00 | 0.80 |",
            "| `map` | 1.20 | 1.12 |",
            "| geometric mean | 1.20 | 1.12 |",
            "| `map` | 5.000 / 1.500 | 5.000 / 1.500 | - |",
        ] {
            assert!(text.contains(expected), "{expected} is not in {text}");
        }
        assert!(programs(&[], &["glibc"], &found).is_empty());
    }
}
