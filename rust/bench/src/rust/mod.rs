//! The Rust crate beside other crates for the same, and beside `Box` over the peers.
//!
//! * `rows`: what is measured, as a list;
//! * `makers`, `locals`: who makes objects, by value and by name; `owned`: the loops over them;
//! * `maps`: maps of one owner; `shared`: maps of all threads;
//! * `job`: what one measuring process does;
//! * here: all of them in turn, and the tables.
//!
//! One measurement is one process, in which one of them is alone, with every copy of the loops in
//! turn; the processes of a row take turns.

mod job;
mod locals;
mod makers;
mod maps;
mod owned;
mod rows;
mod shared;

use crate::kernels::LAYOUTS;
use crate::machine;
use crate::report::{self, figure as shown};
use crate::vmem::figure::{self, Figure};
use job::{Effort, Job};
use rows::Row;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The Rust crate only: pools, caches and maps beside nexus-slab, slotmap, sharded-slab and others,
/// and beside `Box` over the peers.
///
/// Every measurement is a process of its own. Figures are medians; raw data is kept as CSV.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    /// Fewer repeats, shorter samples
    #[arg(long)]
    pub quick: bool,
    /// Only rows whose name begins with one of these, separated by commas
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// How often everything is measured [default: 7, quick: 2]
    #[arg(long)]
    pub repeats: Option<usize>,
    /// Milliseconds of one sample [default: 20, quick: 4]
    #[arg(long)]
    pub sample_ms: Option<u64>,
    /// Where the files go, their names but for the endings [default: new ones in out/bench]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// What the parent tells a measuring process
    #[arg(long, hide = true, num_args = 5)]
    pub child: Option<Vec<String>>,
}

impl Options {
    fn repeats(&self) -> usize {
        let wanted = self.repeats.unwrap_or(if self.quick { 2 } else { 7 });
        wanted.max(1)
    }

    fn effort(&self, repeat: usize) -> Effort {
        let default = if self.quick { 4 } else { 20 };
        let mut layouts: Vec<usize> = (0..LAYOUTS).collect();
        layouts.rotate_left(repeat % LAYOUTS);
        Effort {
            sample: Duration::from_millis(self.sample_ms.unwrap_or(default).max(1)),
            layouts,
            seed: repeat as u64 + 1,
        }
    }

    fn chosen(&self) -> Result<Vec<Row>, String> {
        let wanted = |row: &Row| {
            let begins = |part: &String| row.name().starts_with(part.as_str());
            self.only.is_empty() || self.only.iter().any(begins)
        };
        let rows: Vec<Row> = rows::all().into_iter().filter(wanted).collect();
        if rows.is_empty() {
            let names: Vec<String> = rows::all().into_iter().map(Row::name).collect();
            return Err(format!("no row has such a name; there are {names:?}"));
        }
        Ok(rows)
    }
}

/// All repeats of a row, in an order that rotates; and what went wrong.
fn measure_row(row: Row, options: &Options) -> (Vec<Figure>, Vec<String>) {
    let (mut figures, mut failures) = (Vec::new(), Vec::new());
    let mut names = row.names();
    for repeat in 0..options.repeats() {
        names.retain(|name| {
            let job = Job {
                row,
                who: (*name).to_owned(),
                effort: options.effort(repeat),
            };
            match job.in_child() {
                Ok(found) => figures.extend(found),
                Err(what) => {
                    failures.push(what);
                    return false;
                }
            }
            true
        });
        let turn = 1.min(names.len());
        names.rotate_left(turn);
    }
    (figures, failures)
}

fn median(found: &[Figure], row: Row, metric: &str, who: &str) -> Option<f64> {
    figure::of(found, &row.name(), metric, who).map(|summary| summary.median)
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), shown)
}

/// One row as text.
fn block(row: Row, found: &[Figure], failures: &[String]) -> String {
    let mut text = format!("\n{}: {}\n", row.name(), row.describe());
    let _ = writeln!(
        text,
        "  {:<24} {:>9}  {:>19} {:>9} {:>9}  {:>6}",
        "", "ns", "quartiles", "p50", "p99.9", "/peer"
    );
    let peer = median(found, row, "ns", row.peer());
    for who in row.names() {
        let Some(summary) = figure::of(found, &row.name(), "ns", who) else {
            continue;
        };
        let spread = format!("{} .. {}", shown(summary.low), shown(summary.high));
        let ratio = peer.map_or_else(
            || "-".to_owned(),
            |peer| format!("{:.2}", summary.median / peer),
        );
        let _ = writeln!(
            text,
            "    {who:<22} {:>9}  {spread:>19} {:>9} {:>9}  {ratio:>6}",
            shown(summary.median),
            cell(median(found, row, "p50", who)),
            cell(median(found, row, "p99.9", who)),
        );
    }
    for failure in failures {
        let _ = writeln!(text, "    FAILED: {failure}");
    }
    text
}

/// Everything as a table for a document: a line a row, a column for each who is in it.
fn table(rows: &[Row], found: &[Figure]) -> String {
    let mut text = String::new();
    let mut before: Vec<&str> = Vec::new();
    for &row in rows {
        let names = row.names();
        if names != before {
            let bars = "---|".repeat(names.len() + 1);
            let _ = write!(text, "\n| ns | {} |\n|{bars}\n", names.join(" | "));
            before.clone_from(&names);
        }
        let values = names
            .iter()
            .map(|who| cell(median(found, row, "ns", who)))
            .collect::<Vec<_>>();
        let _ = writeln!(text, "| `{}` | {} |", row.name(), values.join(" | "));
    }
    text
}

/// Runs what was asked for, and keeps it beside `default`, a path without an ending, if the options
/// name none.
pub fn bench(options: &Options, default: &Path) -> Result<(), String> {
    if let Some(arguments) = &options.child {
        let figures = Job::parse(arguments).and_then(|job| job.figures());
        for figure in figures.ok_or("no such row, or nobody of that name")? {
            println!("{}", figure.encode());
        }
        return Ok(());
    }
    let rows = options.chosen()?;
    let mut text = machine::conditions().join("\n") + "\n";
    print!("{text}");
    let (mut found, mut failed) = (Vec::new(), 0);
    for &row in &rows {
        let (figures, failures) = measure_row(row, options);
        let block = block(row, &figures, &failures);
        print!("{block}");
        text += &block;
        found.extend(figures);
        failed += failures.len();
    }
    let last = table(&rows, &found);
    print!("{last}");
    text += &last;
    let base = options.out.as_deref().unwrap_or(default);
    println!("\nkept:");
    report::keep(&base.with_extension("txt"), &text)?;
    report::keep(&base.with_extension("csv"), &figure::csv(&found))?;
    match failed {
        0 => Ok(()),
        _ => Err(format!("{failed} measurements gave no figure")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_told_everything() {
        for row in rows::all() {
            let job = Job {
                row,
                who: row.names()[0].to_owned(),
                effort: Options::default().effort(4),
            };
            let same = Job::parse(&job.arguments()).unwrap();
            assert_eq!((same.row, &same.who), (row, &job.who));
            assert_eq!(same.effort.layouts, [1, 2, 0]);
            assert_eq!(
                (same.effort.sample, same.effort.seed),
                (job.effort.sample, 5)
            );
        }
        assert!(Job::parse(&["churn/33", "CacheBox", "0", "1", "1"].map(String::from)).is_none());
    }

    #[test]
    fn everyone_has_a_figure_in_every_kind_of_row() {
        for name in ["churn/64", "alloc/32", "free-lifo/128", "free-random/512"]
            .into_iter()
            .chain(["contended/4096", "replace/64/1000", "map-pair/1000"])
            .chain(["map-replace/1000", "map-get/1000", "map-iterate/1000"])
            .chain(["shared-get/2", "shared-get-same/2", "shared-pair/2"])
        {
            let row = Row::find(name).unwrap();
            for who in row.names() {
                let job = Job {
                    row,
                    who: who.to_owned(),
                    effort: Effort {
                        sample: Duration::from_micros(200),
                        layouts: vec![1],
                        seed: 3,
                    },
                };
                // Names of a thread are built once: each job has a thread.
                let figures = std::thread::spawn(move || job.figures().unwrap());
                let figures = figures.join().unwrap();
                assert!(!figures.is_empty(), "{name} {who}");
                assert!(figures.iter().all(|one| one.value >= 0.0), "{figures:?}");
            }
        }
    }

    #[test]
    fn ratios_are_to_the_peer_of_the_row() {
        let row = Row::find("shared-pair/4").unwrap();
        let figure = |who: &str, value| Figure {
            row: row.name(),
            metric: "ns".to_owned(),
            who: who.to_owned(),
            layout: 0,
            value,
        };
        let found = [figure("HandleMap", 10.0), figure("sharded-slab", 40.0)];
        let text = block(row, &found, &["a failure".to_owned()]);
        let last = |who: &str| {
            let line = text.lines().find(|line| line.contains(who)).unwrap();
            line.split_whitespace().last().unwrap().to_owned()
        };
        assert_eq!(
            (last("HandleMap"), last("sharded-slab")),
            ("0.25".into(), "1.00".into())
        );
        assert!(text.contains("FAILED: a failure"));
        assert!(table(&[row], &found).contains("| `shared-pair/4` | 10.00 | 40.00 |"));
    }

    #[test]
    fn rows_are_chosen_by_how_their_names_begin() {
        let mut options = Options {
            only: vec!["churn/64".to_owned(), "map-get".to_owned()],
            ..Options::default()
        };
        let names: Vec<String> = options
            .chosen()
            .unwrap()
            .into_iter()
            .map(Row::name)
            .collect();
        assert_eq!(names, ["churn/64", "map-get/1000", "map-get/100000"]);
        options.only = vec!["chrun".to_owned()];
        assert!(options.chosen().is_err());
    }
}
