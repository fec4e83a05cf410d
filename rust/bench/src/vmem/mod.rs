//! Arenas: a quantum cache beside an object cache, segments beside a searched list, and how fits
//! fragment a range.
//!
//! * `kernels`: the loops, in C++ (`kernels/vmem.h`), and what makes them safe to use;
//! * `pairs`, `segments`: rows that are timed, each in processes of its own;
//! * `fragmentation`, `plot`: experiments that are counted, and their picture.

pub mod fragmentation;
pub mod kernels;
pub mod pairs;
pub mod plot;
pub mod segments;

use crate::figure::{self, Figure, Found};
use crate::kernels::layouts;
use crate::part::{self, Common, Report, Sampling};
use std::time::Duration;

/// The extent of one measuring process.
#[derive(Clone, Debug)]
pub struct Effort {
    /// Processor time of one sample.
    pub sample: Duration,
    /// The number of earlier repeats of this row.
    pub repeat: usize,
}

/// A part of the measurements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Part {
    /// A quantum cache beside an object cache, on 1 to 8 threads
    Pairs,
    /// Time and segments looked at with up to a million live, no quantum cache
    Segments,
    /// Refused allocations and the largest free segment, by fit, as a picture
    Fragmentation,
}

/// Arenas (slabyard/vmem.h) only: quantum caches, segments, fragmentation.
///
/// Caches or fits that are compared take turns in one process. Each row is repeated in processes of
/// its own; rows of segments 3 times by default. Figures are medians; raw data is kept as CSV,
/// fragmentation as SVG too.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    #[command(flatten)]
    pub common: Common<7, 2>,
    #[command(flatten)]
    pub sampling: Sampling,
    /// Only these parts, separated by commas
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<Part>,
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    /// Measures a row in a process of its own, which `run_child` serves.
    fn measure(&self, row: &str, repeat: usize) -> Result<Vec<Figure>, String> {
        let sample = self.sampling.time(self.common.quick).as_micros();
        let arguments = [row.to_owned(), sample.to_string(), repeat.to_string()];
        figure::ask(part::child("vmem", &arguments)?, row)
    }
}

/// Runs a measuring process: measures the row of that name and prints the figures.
fn run_child(arguments: &[String]) -> Option<()> {
    let [name, sample, repeat] = arguments else {
        return None;
    };
    let effort = Effort {
        sample: Duration::from_micros(sample.parse().ok()?),
        repeat: repeat.parse().ok()?,
    };
    let pair = pairs::rows(false)
        .into_iter()
        .find(|row| row.name() == *name);
    let figures = match pair {
        Some(row) => pairs::measure(&row, &layouts(effort.repeat), &effort),
        None => {
            let mut rows = segments::rows(false).into_iter();
            segments::measure(&rows.find(|row| row.name() == *name)?, &effort)
        }
    };
    figure::print(&figures);
    Some(())
}

fn measure_pairs(options: &Options, report: &mut Report) -> Result<Vec<Figure>, String> {
    let mut all = Vec::new();
    for row in pairs::rows(options.common.quick) {
        for repeat in 0..options.common.repeats() {
            all.extend(options.measure(&row.name(), repeat)?);
        }
        report.add(&pairs::block(&row, &all));
    }
    Ok(all)
}

fn measure_segments(options: &Options, report: &mut Report) -> Result<Vec<Figure>, String> {
    let common = &options.common;
    let rows = segments::rows(common.quick);
    let mut all = Vec::new();
    for repeat in 0..common.or_default(common.repeats, 3, 2).max(1) {
        for row in &rows {
            all.extend(options.measure(&row.name(), repeat)?);
        }
    }
    report.add(&segments::block(&rows, &all));
    Ok(all)
}

/// Measures the parts that the options choose, or serves as a measuring process.
pub fn bench(options: &Options) -> Result<(), String> {
    if let Some(arguments) = &options.sampling.child {
        return run_child(arguments).ok_or_else(|| "no such row".to_owned());
    }
    let mut report = Report::new(&[]);
    let (mut found, mut files) = (Found::default(), Vec::new());
    if options.wants(Part::Pairs) {
        found.figures.extend(measure_pairs(options, &mut report)?);
    }
    if options.wants(Part::Segments) {
        found
            .figures
            .extend(measure_segments(options, &mut report)?);
    }
    if options.wants(Part::Fragmentation) {
        let effort = fragmentation::effort(options.common.quick);
        let curves = fragmentation::run(&effort);
        report.add(&fragmentation::block(&curves, &effort));
        files.push(("fragmentation.csv", fragmentation::csv(&curves)));
        files.push(("svg", plot::svg(&curves)));
    }
    report.finish(("vmem", &options.common), &found, &files)
}
