//! Arenas: a quantum cache beside an object cache, segments beside a searched list, and how fits
//! wear a range out.
//!
//! * `kernels`: the loops, in C++ (`kernels/vmem.h`), and what makes them safe to use;
//! * `figure`: a measuring process's answer, and medians;
//! * `pairs`, `segments`: what is timed, each row in processes of its own;
//! * `fragmentation`, `plot`: what is counted, and its picture.

pub mod figure;
pub mod fragmentation;
pub mod kernels;
pub mod pairs;
pub mod plot;
pub mod segments;

use crate::machine;
use crate::report;
use figure::{Effort, Figure};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is measured.
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
/// Two caches or fits that are compared run in one process in turn; each row is repeated in
/// processes of its own. Figures are medians; raw data is kept as CSV, fragmentation as SVG too.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    /// A run of half a minute: fewer rows and repeats, shorter samples
    #[arg(long)]
    pub quick: bool,
    /// Only these parts, separated by commas
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<Part>,
    /// In how many processes each row is measured [default: 7 and for segments 3, quick: 2]
    #[arg(long)]
    pub repeats: Option<usize>,
    /// Milliseconds of one sample [default: 20, quick: 4]
    #[arg(long)]
    pub sample_ms: Option<u64>,
    /// Where the files go, their names but for the endings [default: new ones in out/bench]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// What the parent tells a measuring process
    #[arg(long, hide = true, num_args = 3)]
    pub child: Option<Vec<String>>,
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    fn repeats(&self, full: usize) -> usize {
        let default = if self.quick { 2 } else { full };
        self.repeats.unwrap_or(default).max(1)
    }

    fn effort(&self, repeat: usize) -> Effort {
        let default = if self.quick { 4 } else { 20 };
        Effort {
            sample: Duration::from_millis(self.sample_ms.unwrap_or(default).max(1)),
            repeat,
        }
    }
}

/// Measures the row of that name and prints the figures: what a measuring process is for.
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
        Some(row) => pairs::measure(&row, &pairs::layouts(effort.repeat), &effort),
        None => {
            let mut rows = segments::rows(false).into_iter();
            segments::measure(&rows.find(|row| row.name() == *name)?, &effort)
        }
    };
    for figure in &figures {
        println!("{}", figure.encode());
    }
    Some(())
}

/// Text that is shown as it comes and kept.
struct Shown(String);

impl Shown {
    fn add(&mut self, block: &str) {
        print!("{block}");
        self.0 += block;
    }
}

fn measure_pairs(options: &Options, shown: &mut Shown) -> Result<Vec<Figure>, String> {
    let mut all = Vec::new();
    for row in pairs::rows(options.quick) {
        for repeat in 0..options.repeats(7) {
            all.extend(figure::in_child(&row.name(), &options.effort(repeat))?);
        }
        shown.add(&pairs::block(&row, &all));
    }
    Ok(all)
}

fn measure_segments(options: &Options, shown: &mut Shown) -> Result<Vec<Figure>, String> {
    let rows = segments::rows(options.quick);
    let mut all = Vec::new();
    for repeat in 0..options.repeats(3) {
        for row in &rows {
            all.extend(figure::in_child(&row.name(), &options.effort(repeat))?);
        }
    }
    shown.add(&segments::block(&rows, &all));
    Ok(all)
}

/// Runs what was asked for, and keeps it beside `default`, a path without an ending, if the options
/// name none.
pub fn bench(options: &Options, default: &Path) -> Result<(), String> {
    if let Some(arguments) = &options.child {
        return run_child(arguments).ok_or_else(|| "no such row".to_owned());
    }
    let mut shown = Shown(String::new());
    shown.add(&(machine::conditions().join("\n") + "\n"));
    let mut figures = Vec::new();
    if options.wants(Part::Pairs) {
        figures.extend(measure_pairs(options, &mut shown)?);
    }
    if options.wants(Part::Segments) {
        figures.extend(measure_segments(options, &mut shown)?);
    }
    let base = options.out.as_deref().unwrap_or(default);
    let mut curves = Vec::new();
    if options.wants(Part::Fragmentation) {
        let effort = fragmentation::effort(options.quick);
        curves = fragmentation::run(&effort);
        shown.add(&fragmentation::block(&curves, &effort));
    }
    println!("\nkept:");
    report::keep(&base.with_extension("txt"), &shown.0)?;
    if !figures.is_empty() {
        report::keep(&base.with_extension("csv"), &figure::csv(&figures))?;
    }
    if !curves.is_empty() {
        let curves_csv = base.with_extension("fragmentation.csv");
        report::keep(&curves_csv, &fragmentation::csv(&curves))?;
        report::keep(&base.with_extension("svg"), &plot::svg(&curves))?;
    }
    Ok(())
}
