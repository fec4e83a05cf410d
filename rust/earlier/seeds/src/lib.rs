//! Repeats the tables of five earlier systems' documents: the claims of the document, the system
//! itself as measured here, Slabyard by the system's own API, and the C library.
//!
//! * `documents`: the rows, and the claimed figures;
//! * `originals`: the programs in C of the folder `programs`, and the systems' own folders;
//! * `run`: measures a row once, in a process of its own;
//! * `table`: the figures as tables;
//! * here: all rows in turn.
//!
//! Each round goes over all rows and their contenders, so that drift of the machine is the same for
//! all. nexus-slab is a crate, so it is always measured. The other systems are measured if their
//! folders are given.

pub mod documents;
mod originals;
mod run;
mod table;

use documents::{Document, Row, ALL};
use originals::Original;
use run::{Contender, Samples};
use slabyard_bench::figure::{Figure, Found};
use slabyard_bench::machine;
use slabyard_bench::part::{self, Common, Report};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use table::Line;

/// The tables of five earlier systems' documents, repeated on this machine: nexus-slab,
/// magazine-slab, userland_slab, xslab and ZNS-Slab.
///
/// Every measurement is a process of its own. Figures are means over at least two rounds, ratios
/// have intervals (95 %); raw data is kept as CSV.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    #[command(flatten)]
    common: Common<15, 3>,
    /// Only rows whose name begins with one of these, separated by commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// A folder with the source of magazine-slab, userland_slab, xslab or ZNS-Slab, to be measured
    /// too; may be given for each of them
    #[arg(long, value_name = "DIR")]
    original: Vec<PathBuf>,
}

impl Options {
    /// At least two: ratios have intervals.
    fn rounds(&self) -> usize {
        self.common.repeats().max(2)
    }

    fn samples(&self) -> Samples {
        let (count, ms) = if self.common.quick { (3, 4) } else { (9, 40) };
        Samples {
            count,
            time: Duration::from_millis(ms),
        }
    }

    fn rows(&self) -> Result<Vec<(&'static Document, &'static Row)>, String> {
        static DOCUMENTS: [Document; ALL.len()] = ALL;
        let all = DOCUMENTS
            .iter()
            .flat_map(|document| document.rows.iter().map(move |row| (document, row)));
        let wanted = |(document, row): &(&Document, &Row)| {
            part::begins_with(&document.full_name(row), &self.only)
        };
        let rows: Vec<_> = all.filter(wanted).collect();
        if rows.is_empty() {
            let names = ALL.map(|document| document.name).join(", ");
            return Err(format!("no row has such a name; they begin with {names}"));
        }
        Ok(rows)
    }
}

/// A row that is measured, and its figures so far.
struct Task<'a> {
    document: &'static Document,
    row: &'static Row,
    /// The program over the system itself.
    original: Option<&'a Path>,
    /// The contenders of the row. A contender that fails is left out from then on.
    who: Vec<Contender>,
    found: Vec<(Contender, Vec<Figure>)>,
}

impl<'a> Task<'a> {
    fn new(document: &'static Document, row: &'static Row, originals: &'a [Original]) -> Self {
        let original = originals.iter().find(|one| one.system == document.name);
        let mut who = Contender::ALL.to_vec();
        who.retain(|who| *who != Contender::Original || document.is_rust() || original.is_some());
        Task {
            document,
            row,
            original: original.map(|one| one.program.as_path()),
            who,
            found: Vec::new(),
        }
    }

    fn measure(
        &self,
        who: Contender,
        samples: Samples,
        round: usize,
    ) -> Result<Vec<Figure>, String> {
        match self.document.in_rust {
            Some(names) => run::in_rust(self.row, who.name_in(names), samples, round),
            None => run::in_program(self.row, who, samples, (self.document.name, self.original)),
        }
    }

    /// One round. The next round begins with another contender. Returns the errors.
    fn measure_all(&mut self, samples: Samples, round: usize) -> Vec<String> {
        let mut failures = Vec::new();
        for who in self.who.clone() {
            match self.measure(who, samples, round) {
                Ok(figures) => self.found.push((who, figures)),
                Err(what) => {
                    failures.push(what);
                    self.who.retain(|one| *one != who);
                    self.found.retain(|(one, _)| *one != who);
                }
            }
        }
        let turn = 1.min(self.who.len());
        self.who.rotate_left(turn);
        failures
    }

    fn lines(&self) -> impl Iterator<Item = Line> + '_ {
        self.row.figures.iter().map(|figure| {
            let values = |wanted: Contender| {
                let here = self.found.iter().filter(|(one, _)| *one == wanted);
                here.filter_map(|(_, figures)| run::value(figures, figure.metric))
                    .collect()
            };
            Line {
                document: self.document,
                row: self.row,
                figure,
                original: values(Contender::Original),
                slabyard: values(Contender::Slabyard),
                peer: values(Contender::Peer),
            }
        })
    }
}

/// The raw data: a value for each round.
fn figures(lines: &[Line]) -> Vec<Figure> {
    let mut all = Vec::new();
    for line in lines {
        let lists = [&line.original, &line.slabyard, &line.peer];
        for (who, values) in Contender::ALL.into_iter().zip(lists) {
            let row = line.document.full_name(line.row);
            let metric = line.figure.metric;
            all.extend(Figure::rounds(&row, metric, who.name(line.row), values));
        }
    }
    all
}

/// Lines of the report's head: the clock, the originals, and the extent of the run.
fn head(options: &Options, originals: &[Original]) -> Vec<String> {
    let mut lines = vec![format!(
        "cycles         {:.3} a ns: ticks of the time-stamp counter",
        machine::ticks_per_ns()
    )];
    for one in originals {
        let folder = one.folder.display();
        lines.push(format!("original       {} in {folder}", one.system));
    }
    lines.push(format!("run            {} rounds", options.rounds()));
    lines
}

/// Measures the rows that the options choose.
pub fn bench(options: &Options) -> Result<(), String> {
    let rows = options.rows()?;
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let originals = originals::build(&options.original, scratch.path())?;
    let mut report = Report::new(&head(options, &originals));
    let mut tasks = Vec::new();
    for (document, row) in rows {
        report.add(&format!("{}: {}\n", document.full_name(row), row.says));
        tasks.push(Task::new(document, row, &originals));
    }
    let start = Instant::now();
    let mut all = Found::default();
    for round in 0..options.rounds() {
        eprintln!("round {} after {}", round + 1, machine::elapsed(start));
        for task in &mut tasks {
            let failures = task.measure_all(options.samples(), round);
            all.failures.extend(failures);
        }
    }
    let lines: Vec<Line> = tasks.iter().flat_map(Task::lines).collect();
    report.add(&table::tables(&lines, machine::processors().len()));
    report.add(&table::noise(&lines));
    report.add_failures(&all);
    all.figures = figures(&lines);
    report.finish(("seeds", &options.common), &all, &[])
}
