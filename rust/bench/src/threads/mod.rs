//! Published workloads of people whose process was killed, or kept memory that it did not need:
//! resident memory at the peak, when most was freed, and later, over each malloc.
//!
//! * `programs`: the programs, and the executables that each of them has;
//! * `run`: runs of the executables, and their figures;
//! * `table`: the same as text;
//! * here: all programs in turn.
//!
//! Each program reads its own memory (`kernels/threads/readings.h`). The libraries that are
//! preloaded are those of `programs`.

pub mod programs;
pub mod run;
pub mod table;

use crate::figure::Found;
use crate::machine;
use crate::part::{self, Common, Report};
use crate::preloaded::{left_out, Choice};
use programs::{has_musl, Program, Variant, ALL};
use run::Runs;
use std::path::Path;
use std::time::Instant;

/// Workloads of people whose process swelled or was killed only: resident memory at the peak, and
/// some seconds after most of it was freed, over each malloc.
///
/// Figures are medians; raw data is kept as CSV.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    #[command(flatten)]
    common: Common<3, 1>,
    /// Only these programs, separated by commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    #[command(flatten)]
    choice: Choice,
}

impl Options {
    fn programs(&self) -> Result<Vec<Program>, String> {
        part::check_names("program", &self.only, &ALL.map(|program| program.name))?;
        let wanted = |program: &Program| part::is_among(program.name, &self.only);
        Ok(ALL.into_iter().filter(wanted).collect())
    }
}

/// Runs a program with all allocators in turn, repeat after repeat. Each repeat begins with another
/// allocator.
fn measure(program: &Program, variants: &[Variant], options: &Options, folder: &Path) -> Found {
    let mut turn: Vec<&Variant> = variants.iter().collect();
    let mut runs = Runs::default();
    for repeat in 0..options.common.repeats() {
        runs.round(program, &turn, options.common.quick, repeat, folder);
        turn.rotate_left(1);
    }
    runs.found
}

/// Runs the programs that the options choose.
pub fn bench(options: &Options) -> Result<(), String> {
    let programs = options.programs()?;
    let output = part::output_folder()?;
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut preloaded = options.choice.preloaded(Some(scratch.path()))?;
    if !has_musl() {
        let line = left_out("musl", "there was no musl-gcc to compile for it");
        preloaded.head.push(line);
    }
    let (count, repeats) = (programs.len(), options.common.repeats());
    let extent = format!("run            {count} programs, {repeats} repeats");
    preloaded.head.push(extent);
    let mut report = Report::new(&preloaded.head);
    let (start, mut all) = (Instant::now(), Found::default());
    for program in &programs {
        eprintln!("{} after {}", program.name, machine::elapsed(start));
        let variants = program.variants(&preloaded.who, &output);
        let found = measure(program, &variants, options, scratch.path());
        let names: Vec<&str> = variants.iter().map(|one| one.who).collect();
        report.add(&table::block(program, &names, &found.figures));
        all.extend(found);
    }
    report.add(&table::summary(&programs, &preloaded.names(), &all.figures));
    report.add(&table::variation(&all.figures));
    report.add_failures(&all);
    report.finish(("threads", &options.common), &all, &[])
}
