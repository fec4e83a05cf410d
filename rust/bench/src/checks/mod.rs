//! The cost of checks: a cache and the heap with each check, beside the same without checks.
//!
//! * `contender`: caches, heaps and peers; `kernels`: the loops, in C++ (`kernels/checks.h`);
//! * `measure`: measures a row inside a process;
//! * here: the processes, and the tables.
//!
//! The checks of caches are flags, so all caches share a process and take turns in it. The checks
//! of the heap cannot change in a process, so the heap with each check has a process of its own.
//! The processes take turns.

pub mod contender;
pub mod kernels;
pub mod measure;

use crate::figure::{self, in_turn, median, Figure, Found};
use crate::kernels::{decode_layouts, encode_layouts, layouts};
use crate::part::{self, Common, Report, Sampling};
use crate::stats::over;
use crate::table::{self, ratio, Table};
use contender::{Contender, Interface, CHECKS, OFF, PEERS};
use measure::{Effort, Row, ROWS};
use std::time::Duration;

/// The cost of checks only: a cache and the heap with each check.
///
/// Caches share a process and take turns; the heap with each check has a process of its own.
/// Figures are medians, and ratios to the same without checks; raw data is kept as CSV.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    #[command(flatten)]
    common: Common<7, 2>,
    #[command(flatten)]
    sampling: Sampling,
    /// Only these checks and peers, separated by commas, beside no checks at all
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// Live objects of the rows `steady` and `memory`.
const LIVE: usize = 100_000;
/// Memory hardly varies.
const MEMORY_REPEATS: usize = 3;

impl Options {
    fn repeats(&self, row: Row) -> usize {
        let most = match row {
            Row::Memory => MEMORY_REPEATS,
            _ => usize::MAX,
        };
        self.common.repeats().min(most)
    }

    fn effort(&self, repeat: usize) -> Effort {
        Effort {
            sample: self.sampling.time(self.common.quick),
            live: LIVE,
            layouts: layouts(repeat),
            repeat,
        }
    }

    fn chosen(&self) -> Result<Vec<Contender>, String> {
        let names: Vec<&str> = what().collect();
        part::check_names("check or peer", &self.only, &names)?;
        let wanted = |who: &Contender| who.what == OFF || part::is_among(who.what, &self.only);
        Ok(contender::all().into_iter().filter(wanted).collect())
    }
}

/// The names of all checks and peers, in the order of the tables.
fn what() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|check| check.name).chain(PEERS)
}

/// The contenders that share a process, for each process.
fn groups(row: Row, all: &[Contender]) -> Vec<Vec<Contender>> {
    let alone = |who: &&Contender| row == Row::Memory || who.alone();
    let together: Vec<Contender> = all.iter().filter(|who| !alone(who)).copied().collect();
    let single = all.iter().filter(alone).map(|&who| vec![who]);
    let shared = (!together.is_empty()).then_some(together);
    shared.into_iter().chain(single).collect()
}

fn names(all: &[Contender]) -> String {
    let names: Vec<String> = all.iter().map(Contender::name).collect();
    names.join(",")
}

fn arguments(row: Row, all: &[Contender], effort: &Effort) -> [String; 6] {
    [
        row.name().to_owned(),
        names(all),
        encode_layouts(&effort.layouts),
        effort.sample.as_micros().to_string(),
        effort.live.to_string(),
        effort.repeat.to_string(),
    ]
}

/// Parses the result of `arguments`.
fn parse(arguments: &[String]) -> Option<(Row, Vec<Contender>, Effort)> {
    let [row, names, layouts, sample, live, repeat] = arguments else {
        return None;
    };
    let effort = Effort {
        sample: Duration::from_micros(sample.parse().ok()?),
        live: live.parse().ok()?,
        layouts: decode_layouts(layouts)?,
        repeat: repeat.parse().ok()?,
    };
    let all: Option<_> = names.split(',').map(contender::find).collect();
    Some((Row::find(row)?, all?, effort))
}

/// Runs a measuring process: measures, and prints the figures.
fn run_child(arguments: &[String]) -> Result<(), String> {
    let (row, all, effort) = parse(arguments).ok_or("no such row")?;
    figure::print(&measure::measure(row, &all, &effort)?);
    Ok(())
}

fn in_child(row: Row, all: &[Contender], effort: &Effort) -> Result<Vec<Figure>, String> {
    let command = part::child("checks", &arguments(row, all, effort))?;
    figure::ask(command, row.name())
}

fn to_off(found: &[Figure], row: Row, who: &Contender) -> Option<f64> {
    let of = |name: String| median(found, row.name(), row.metric(), &name);
    over(of(who.name()), of(who.off()))
}

/// One row as text.
fn block(row: Row, all: &[Contender], found: &Found) -> String {
    let names: Vec<[String; 2]> = all.iter().map(|who| [who.name(), who.off()]).collect();
    let shown: Vec<&str> = names.iter().map(|both| both[0].as_str()).collect();
    let off = |who: &str| {
        let both = names.iter().find(|both| both[0] == who);
        both.map(|both| both[1].as_str())
    };
    let table = table::block(
        &found.figures,
        row.name(),
        &shown,
        &[row.metric()],
        &[("/off", &off)],
    );
    let failed = part::failures("    ", &found.failures);
    let (name, says) = (row.name(), row.describe());
    format!("\n{name}: {says}\n{}{failed}", table.text())
}

/// All ratios to the figures without checks: a line for each check, a column for each row of caches
/// and of the heap. Peers are compared with the heap.
fn relative(all: &[Contender], found: &[Figure]) -> String {
    let columns =
        ROWS.map(|row| [Interface::Cache, Interface::Heap].map(|interface| (row, interface)));
    let columns = columns.as_flattened();
    let head = |(row, interface): &(Row, Interface)| {
        format!("{} {interface:?}", row.name()).to_lowercase()
    };
    let mut table = Table::new("", columns.iter().map(head));
    for what in what().filter(|what| all.iter().any(|who| who.what == *what)) {
        let ratio_of = |&(row, column): &(Row, Interface)| {
            let fits = |who: &&Contender| {
                who.what == what
                    && (who.interface == Interface::Cache) == (column == Interface::Cache)
            };
            let who = all.iter().find(fits);
            ratio(who.and_then(|who| to_off(found, row, who)))
        };
        table.line(what, columns.iter().map(ratio_of));
    }
    format!("\nrelative to off\n{}", table.text())
}

/// Measures the checks that the options choose, or serves as a measuring process.
pub fn bench(options: &Options) -> Result<(), String> {
    if let Some(arguments) = &options.sampling.child {
        return run_child(arguments);
    }
    let all = options.chosen()?;
    let mut report = Report::new(&[]);
    let mut found = Found::default();
    for row in ROWS {
        let of_row = in_turn(options.repeats(row), groups(row, &all), |group, repeat| {
            in_child(row, group, &options.effort(repeat))
        });
        report.add(&block(row, &all, &of_row));
        found.extend(of_row);
    }
    report.add(&relative(&all, &found.figures));
    report.finish(("checks", &options.common), &found, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(row: Row, who: &str, value: f64) -> Figure {
        Figure::new(row.name(), row.metric(), who, 0, value)
    }

    #[test]
    fn a_child_is_told_everything() {
        let (all, effort) = (contender::all(), Options::default().effort(4));
        let (row, told, same) = parse(&arguments(Row::Steady, &all, &effort)).unwrap();
        assert_eq!((row, names(&told)), (Row::Steady, names(&all)));
        assert_eq!((same.sample, same.live), (effort.sample, LIVE));
        assert_eq!((same.layouts, same.repeat), (vec![1, 2, 0], 4));
        let mut wrong = arguments(Row::Pair, &all, &effort);
        wrong[1] = "cache/chekc".to_owned();
        assert!(parse(&wrong).is_none());
    }

    #[test]
    fn caches_take_turns_and_the_heap_is_alone() {
        let all = contender::all();
        let times = groups(Row::Pair, &all);
        assert!(times[0].len() > 10 && times[0].iter().all(|who| !who.alone()));
        assert!(times[1..].iter().all(|group| group.len() == 1));
        assert_eq!(times.iter().map(Vec::len).sum::<usize>(), all.len());
        let memory = groups(Row::Memory, &all);
        assert_eq!(memory.len(), all.len());
    }

    #[test]
    fn what_is_chosen_is_beside_off() {
        let mut options = Options {
            only: vec!["poison".to_owned(), "glibc".to_owned()],
            ..Options::default()
        };
        let chosen = names(&options.chosen().unwrap());
        assert_eq!(chosen, "cache/off,cache/poison,heap/off,heap/poison,glibc");
        options.only = vec!["poisson".to_owned()];
        assert!(options.chosen().is_err());
    }

    #[test]
    fn tables_are_relative_to_the_same_function() {
        let all: Vec<Contender> = ["cache/off", "cache/zero", "heap/off", "heap/zero", "glibc"]
            .map(|name| contender::find(name).unwrap())
            .into();
        let figures = vec![
            found(Row::Pair, "cache/off", 2.0),
            found(Row::Pair, "cache/zero", 5.0),
            found(Row::Pair, "heap/off", 4.0),
            found(Row::Pair, "heap/zero", 6.0),
            found(Row::Pair, "glibc", 16.0),
        ];
        let failures = vec!["heap/lock: no".to_owned()];
        let found = Found { figures, failures };
        let text = block(Row::Pair, &all, &found);
        let last = |line: &str| line.split_whitespace().last().unwrap().to_owned();
        let ratios: Vec<String> = text.lines().skip(3).map(last).collect();
        assert_eq!(ratios, ["1.00", "2.50", "1.00", "1.50", "4.00", "no"]);
        let text = relative(&all, &found.figures);
        let line = |what| text.lines().find(|line| line.contains(what)).unwrap();
        let words = |what| line(what).split_whitespace().collect::<Vec<_>>();
        assert_eq!(words(" zero")[1..], ["2.50", "1.50", "-", "-", "-", "-"]);
        assert_eq!(words("glibc")[1..], ["-", "4.00", "-", "-", "-", "-"]);
    }
}
