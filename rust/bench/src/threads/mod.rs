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

use crate::figure;
use crate::machine;
use crate::part::{self, Common, Report};
use crate::programs::version_of;
use crate::truth::contender::{self, Contender};
use crate::truth::stated;
use programs::{has_musl, Program, Variant, ALL, OURS};
use run::Found;
use std::path::{Path, PathBuf};
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
    /// Only these allocators beside glibc, separated by commas
    #[arg(long, value_delimiter = ',')]
    allocators: Vec<String>,
    /// The tool [default: slabyard, in the folder of this program]
    #[arg(long)]
    tool: Option<PathBuf>,
}

impl Options {
    fn programs(&self) -> Result<Vec<Program>, String> {
        part::check_names("program", &self.only, &ALL.map(|program| program.name))?;
        let wanted = |program: &Program| part::is_among(program.name, &self.only);
        Ok(ALL.into_iter().filter(wanted).collect())
    }
}

/// The contenders that are here, with the tool's own library for Slabyard, and a line for each of
/// the others.
fn contenders(
    options: &Options,
    output: &Path,
    scratch: &Path,
) -> Result<(Vec<Contender>, Vec<String>), String> {
    let tool = part::tool(options.tool.as_deref(), output)?;
    let mut wanted = contender::chosen(&options.allocators, output)?;
    for one in wanted.iter_mut().filter(|one| one.name == OURS) {
        one.library = Some(stated::carried(&tool, scratch)?);
    }
    let (who, mut missing) = contender::present(wanted);
    if !has_musl() {
        missing.push("left out       musl: there was no musl-gcc to compile for it".to_owned());
    }
    Ok((who, missing))
}

/// Lines of the report's head.
fn head(who: &[Contender], missing: &[String], options: &Options, programs: usize) -> Vec<String> {
    let versions: Vec<String> = who.iter().map(|one| version_of(one.name)).collect();
    let mut lines = vec![format!("allocators     {}", versions.join(", "))];
    lines.extend_from_slice(missing);
    lines.push(format!(
        "run            {programs} programs, {} repeats",
        options.common.repeats()
    ));
    lines
}

/// Runs a program with all allocators in turn, repeat after repeat. Each repeat begins with another
/// allocator.
fn measure(program: &Program, variants: &[Variant], options: &Options, folder: &Path) -> Found {
    let mut turn: Vec<&Variant> = variants.iter().collect();
    let mut found = Found::default();
    for repeat in 0..options.common.repeats() {
        run::round(
            program,
            &turn,
            options.common.quick,
            repeat,
            folder,
            &mut found,
        );
        turn.rotate_left(1);
    }
    found
}

/// Runs the programs that the options choose.
pub fn bench(options: &Options) -> Result<(), String> {
    let programs = options.programs()?;
    let output = part::output_folder()?;
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (who, missing) = contenders(options, &output, scratch.path())?;
    let mut report = Report::new(&head(&who, &missing, options, programs.len()));
    let start = Instant::now();
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for program in &programs {
        eprintln!("{} after {}", program.name, machine::elapsed(start));
        let variants = program.variants(&who, &output);
        let found = measure(program, &variants, options, scratch.path());
        let names: Vec<&str> = variants.iter().map(|one| one.who).collect();
        report.add(&table::block(program, &names, &found.figures));
        all.extend(found.figures);
        failures.extend(found.failures);
    }
    let names: Vec<&str> = who.iter().map(|one| one.name).collect();
    report.add(&table::summary(&programs, &names, &all));
    report.add(&table::variation(&all));
    report.add_failures(&failures);
    let files = [("csv", figure::csv(&all))];
    report.finish(("threads", &options.common), &files, failures.len())
}
