//! Rows in which each contender has a process of its own: common code of the parts `rust` and
//! `cpp`.
//!
//! One measurement is one process. It measures one contender, with every copy of the loops in turn.
//! The processes of a row take turns.
//!
//! * `job`: what one measuring process does, and its arguments;
//! * here: the rows in turn, and the tables.

pub mod job;

use crate::figure::{self, in_turn, median, Figure, Found, Same};
use crate::kernels::{layouts, LAYOUTS};
use crate::part::{self, Common, Report, Sampling};
use crate::table::{self, cell, Table};
use job::{Effort, Job, Sampled};
use std::fmt::Debug;

/// Options of both parts.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    #[command(flatten)]
    pub(crate) common: Common<7, 2>,
    #[command(flatten)]
    pub(crate) sampling: Sampling,
    /// Only rows whose name begins with one of these, separated by commas
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<String>,
}

/// A metric that is a checksum: it is the same for all contenders in one repeat of a row.
pub const SUM: &str = "sum";

/// A row of a part.
pub trait Row: Copy + PartialEq + Debug + 'static {
    /// The subcommand of the part.
    const COMMAND: &'static str;
    /// Metrics that have tables at the end.
    const TABLES: &'static [&'static str];

    /// All rows of the part, in the order of the tables.
    fn all() -> Vec<Self>;
    /// Lines about the part at the head of the report.
    fn conditions() -> Vec<String>;

    fn name(self) -> String;
    fn describe(self) -> String;
    /// The contenders of the row, in the order of the tables.
    fn names(self) -> Vec<&'static str>;
    /// The contender that the ratios in the last column are relative to.
    fn peer(self) -> &'static str;
    /// The metrics in the row's block. The first one has quartiles and the ratio.
    fn metrics(self) -> &'static [&'static str];

    /// Copies of the loops that one process runs.
    fn copies(self) -> usize {
        LAYOUTS
    }

    /// The number of repeats of the row in a run of `wanted` repeats.
    fn repeats(self, wanted: usize) -> usize {
        wanted
    }

    /// Measures in this process, which does nothing else. Returns a result for each copy of the
    /// loops.
    fn run(self, job: &Job<Self>) -> Option<Vec<Sampled>>;

    fn find(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|row| row.name() == name)
    }
}

impl Options {
    fn effort(&self, row: impl Row, repeat: usize) -> Effort {
        let mut layouts = layouts(repeat);
        layouts.truncate(row.copies());
        Effort {
            sample: self.sampling.time(self.common.quick),
            layouts,
            seed: repeat as u64 + 1,
        }
    }

    pub(crate) fn chosen<R: Row>(&self) -> Result<Vec<R>, String> {
        let wanted = |row: &R| part::begins_with(&row.name(), &self.only);
        let rows: Vec<R> = R::all().into_iter().filter(wanted).collect();
        if rows.is_empty() {
            let names: Vec<String> = R::all().into_iter().map(R::name).collect();
            return Err(format!("no row has such a name; there are {names:?}"));
        }
        Ok(rows)
    }
}

/// Measures all repeats of a row. In one repeat the sums of all copies are the same.
pub(crate) fn measure_row<R: Row>(row: R, options: &Options) -> Found {
    let (mut sum, mut last) = (Same::default(), 0);
    let repeats = row.repeats(options.common.repeats()).max(1);
    in_turn(repeats, row.names(), |who, repeat| {
        if repeat != last {
            (sum, last) = (Same::default(), repeat);
        }
        let job = Job {
            row,
            who: (*who).to_owned(),
            effort: options.effort(row, repeat),
        };
        let figures = job.in_child()?;
        let sums = figures.iter().filter(|figure| figure.metric == SUM);
        let what = format!("{} of {who}", row.name());
        sums.map(|figure| figure.value)
            .try_for_each(|value| sum.check(value, &what))?;
        Ok(figures)
    })
}

/// One row as text.
pub(crate) fn block(row: impl Row, found: &Found) -> String {
    let (name, peer) = (row.name(), row.peer());
    let to_peer = |_: &str| Some(peer);
    let table = table::block(
        &found.figures,
        &name,
        &row.names(),
        row.metrics(),
        &[("/peer", &to_peer)],
    );
    let failed = part::failures("    ", &found.failures);
    format!("\n{name}: {}\n{}{failed}", row.describe(), table.text())
}

/// One metric as tables for a document: a line for each row, a column for each contender.
pub(crate) fn tables<R: Row>(rows: &[R], found: &[Figure], metric: &str) -> String {
    let has_metric = |row: &&R| row.metrics().contains(&metric);
    let rows: Vec<&R> = rows.iter().filter(has_metric).collect();
    let same = rows.chunk_by(|one, other| one.names() == other.names());
    let table = |rows: &[&R]| {
        let names = rows[0].names();
        let mut table = Table::new(metric, names.iter().copied());
        for row in rows {
            let of = |who: &&str| cell(median(found, &row.name(), metric, who));
            table.line(&format!("`{}`", row.name()), names.iter().map(of));
        }
        format!("\n{}", table.markdown())
    };
    same.map(table).collect()
}

/// Serves as a measuring process, with these arguments.
pub(crate) fn serve<R: Row>(arguments: &[String]) -> Result<(), String> {
    let figures = Job::<R>::parse(arguments).and_then(|job| job.figures());
    figure::print(&figures.ok_or("no such row or contender")?);
    Ok(())
}

/// Measures the rows that the options choose, or serves as a measuring process.
pub fn bench<R: Row>(options: &Options) -> Result<(), String> {
    if let Some(arguments) = &options.sampling.child {
        return serve::<R>(arguments);
    }
    let rows = options.chosen::<R>()?;
    let mut report = Report::new(&R::conditions());
    let mut found = Found::default();
    for &row in &rows {
        let of_row = measure_row(row, options);
        report.add(&block(row, &of_row));
        found.extend(of_row);
    }
    for metric in R::TABLES {
        report.add(&tables(&rows, &found.figures, metric));
    }
    report.finish((R::COMMAND, &options.common), &found, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row with two contenders.
    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Toy(&'static str);

    impl Row for Toy {
        const COMMAND: &'static str = "toys";
        const TABLES: &'static [&'static str] = &["ns", "bytes"];

        fn all() -> Vec<Toy> {
            ["pair/1", "pair/2", "replace/1", "large"].map(Toy).to_vec()
        }

        fn conditions() -> Vec<String> {
            Vec::new()
        }

        fn name(self) -> String {
            self.0.to_owned()
        }

        fn describe(self) -> String {
            "a toy".to_owned()
        }

        fn names(self) -> Vec<&'static str> {
            vec!["ours", "theirs"]
        }

        fn peer(self) -> &'static str {
            "theirs"
        }

        fn metrics(self) -> &'static [&'static str] {
            &["ns", "p50"]
        }

        fn copies(self) -> usize {
            if self == Toy("large") {
                1
            } else {
                LAYOUTS
            }
        }

        fn run(self, _job: &Job<Toy>) -> Option<Vec<Sampled>> {
            Some(vec![Sampled::of_time(1.5)])
        }
    }

    fn figure(metric: &str, who: &str, value: f64) -> Figure {
        Figure::new("pair/1", metric, who, 0, value)
    }

    #[test]
    fn repeats_begin_with_another_copy_and_another_seed() {
        let options = Options::default();
        let effort = options.effort(Toy("pair/1"), 4);
        assert_eq!((effort.layouts, effort.seed), (vec![1, 2, 0], 5));
        assert_eq!(options.effort(Toy("large"), 2).layouts, [2]);
    }

    #[test]
    fn a_child_is_told_everything() {
        let job = Job {
            row: Toy("pair/2"),
            who: "ours".to_owned(),
            effort: Options::default().effort(Toy("pair/2"), 1),
        };
        let same = Job::<Toy>::parse(&job.arguments()).unwrap();
        assert_eq!((same.row, &same.who), (job.row, &job.who));
        assert_eq!(same.effort.layouts, job.effort.layouts);
        assert_eq!(same.effort.sample, job.effort.sample);
        assert_eq!(same.effort.seed, job.effort.seed);
        let unknown = ["pair/3", "ours", "0", "1", "1"].map(String::from);
        assert!(Job::<Toy>::parse(&unknown).is_none());
    }

    #[test]
    fn ratios_are_to_the_peer_of_the_row() {
        let found = [
            figure("ns", "ours", 10.0),
            figure("ns", "theirs", 40.0),
            figure("p50", "ours", 9.0),
        ];
        let row = Toy("pair/1");
        let found = Found {
            figures: found.to_vec(),
            failures: vec!["a failure".to_owned()],
        };
        let text = block(row, &found);
        let last = |who: &str| {
            let line = text.lines().find(|line| line.contains(who)).unwrap();
            line.split_whitespace().rev().take(2).collect::<Vec<_>>()
        };
        assert_eq!(last("ours"), ["0.25", "9.000"]);
        assert_eq!(last("theirs"), ["1.00", "-"]);
        assert!(text.contains("FAILED: a failure"));
        let text = tables(&[row], &found.figures, "ns");
        assert!(text.contains("| `pair/1` | 10.00 | 40.00 |"), "{text}");
        assert!(tables(&[row], &found.figures, "bytes").is_empty());
    }

    #[test]
    fn rows_are_chosen_by_how_their_names_begin() {
        let mut options = Options {
            only: vec!["pair/2".to_owned(), "re".to_owned()],
            ..Options::default()
        };
        let chosen: Vec<Toy> = options.chosen().unwrap();
        assert_eq!(chosen, [Toy("pair/2"), Toy("replace/1")]);
        options.only = vec!["riap".to_owned()];
        assert!(options.chosen::<Toy>().is_err());
    }
}
