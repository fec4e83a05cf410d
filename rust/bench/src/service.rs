//! A service by day and night: resident memory beside live memory, over each malloc.
//!
//! The service is `programs/service.c`. It reads its own memory, at the same times of day over each
//! allocator, and prints the readings at its end. It does the same work over each allocator, so the
//! sum that it prints first is the same too. The libraries and the way to start a program over them
//! are those of `programs`.

use crate::figure::{self, in_turn, Figure, Found, Same};
use crate::machine;
use crate::part::{self, Common, Report};
use crate::preloaded::{version_of, Choice, Contender};
use crate::programs::{over, workloads::SERVICE};
use crate::table::{cell, or_dash, spread, Table};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

/// A service whose load rises and falls, over each malloc only: resident memory and CPU time.
///
/// Figures are medians with quartiles; raw data and all readings are kept as CSV.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    #[command(flatten)]
    common: Common<3, 1>,
    #[command(flatten)]
    choice: Choice,
}

/// Readings in a day: `programs/service.c`.
const READINGS_A_DAY: usize = 48;
/// Readings that count as night lie less than this far from midnight: a twelfth of the day.
const NIGHT: usize = READINGS_A_DAY / 12;
/// The readings before the first noon are not counted: the service is still starting.
const FIRST_COUNTED: usize = READINGS_A_DAY / 2;

const MEAN: &str = "mean MiB";
const PEAK: &str = "peak MiB";
const TROUGH: &str = "trough MiB";
const CPU: &str = "cpu s";

/// The name of the live memory in the place of an allocator's.
const LIVE: &str = "live";

/// One reading, in MiB.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Moment {
    live: f64,
    resident: f64,
}

/// What one run printed.
#[derive(Debug, PartialEq)]
struct Run {
    sum: u64,
    cpu_s: f64,
    moments: Vec<Moment>,
}

/// Reads the output of the program.
fn read(text: &str) -> Option<Run> {
    let mut lines = text.lines();
    let sum = lines.next()?.parse().ok()?;
    let cpu_ms: f64 = lines.next()?.parse().ok()?;
    let mib = |kib: &str| Some(kib.parse::<f64>().ok()? / 1024.0);
    let moment = |line: &str| {
        let (live, resident) = line.split_once(' ')?;
        Some(Moment {
            live: mib(live)?,
            resident: mib(resident)?,
        })
    };
    let moments: Vec<Moment> = lines.map(moment).collect::<Option<_>>()?;
    let run = Run {
        sum,
        cpu_s: cpu_ms / 1000.0,
        moments,
    };
    (run.moments.len() > READINGS_A_DAY).then_some(run)
}

fn is_night(reading: usize) -> bool {
    let hour = reading % READINGS_A_DAY;
    !(NIGHT..=READINGS_A_DAY - NIGHT).contains(&hour)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean, peak, and mean at night of one kind of memory.
fn memory(moments: &[Moment], of: fn(&Moment) -> f64) -> [(&'static str, f64); 3] {
    let counted = || {
        let values = moments.iter().map(of).enumerate();
        values.skip(FIRST_COUNTED)
    };
    let nights = counted().filter(|(reading, _)| is_night(*reading));
    [
        (MEAN, mean(counted().map(|(_, value)| value))),
        (PEAK, counted().map(|(_, value)| value).fold(0.0, f64::max)),
        (TROUGH, mean(nights.map(|(_, value)| value))),
    ]
}

/// The figures of one run.
fn figures(who: &str, repeat: usize, run: &Run) -> Vec<Figure> {
    let figure = |who: &str, (metric, value)| Figure::new(SERVICE.name, metric, who, repeat, value);
    let live = memory(&run.moments, |moment| moment.live);
    let resident = memory(&run.moments, |moment| moment.resident);
    let own = resident.into_iter().chain([(CPU, run.cpu_s)]);
    own.map(|one| figure(who, one))
        .chain(live.map(|one| figure(LIVE, one)))
        .collect()
}

/// The readings of one run as lines of CSV.
fn readings(who: &str, repeat: usize, run: &Run) -> String {
    let mut text = String::new();
    for (reading, Moment { live, resident }) in run.moments.iter().enumerate() {
        let _ = writeln!(text, "{who},{repeat},{reading},{live},{resident}");
    }
    text
}

/// A line for the live memory, and for each allocator.
fn table(names: &[&str], found: &[Figure]) -> String {
    let heads = [
        "mean",
        "quartiles",
        "peak",
        "in troughs",
        "CPU s",
        "quartiles",
    ];
    let mut table = Table::new("resident MiB", heads);
    for who in [LIVE].iter().chain(names) {
        let of = |metric| figure::of(found, SERVICE.name, metric, who);
        let median = |metric| cell(of(metric).map(|summary| summary.median));
        let quartiles = |metric| or_dash(of(metric), |summary| spread(&summary));
        let cells = [
            median(MEAN),
            quartiles(MEAN),
            median(PEAK),
            median(TROUGH),
            median(CPU),
            quartiles(CPU),
        ];
        table.line(&version_of(who), cells);
    }
    format!("\n{}", table.markdown())
}

/// Runs the service once over an allocator.
fn run_once(one: &Contender, tool: &Path, quick: bool, folder: &Path) -> Result<Run, String> {
    let mut program = SERVICE.command(quick);
    program.push(OsString::from("readings"));
    let what = format!("{} on {}", SERVICE.name, one.name);
    let text = part::output(over(one, tool, &program, folder), &what)?;
    read(&text).ok_or_else(|| format!("{what}: the output is unclear"))
}

/// Measures all allocators in turn. Returns the figures and the readings.
fn measure(options: &Options, who: &[Contender], tool: &Path) -> Result<(Found, String), String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (start, mut sum) = (Instant::now(), Same::default());
    let mut all = String::from("who,repeat,reading,live MiB,resident MiB\n");
    let found = in_turn(
        options.common.repeats(),
        who.iter().collect(),
        |one, repeat| {
            eprintln!("{} after {}", one.name, machine::elapsed(start));
            let run = run_once(one, tool, options.common.quick, scratch.path())?;
            sum.check(run.sum, one.name)?;
            all += &readings(one.name, repeat, &run);
            Ok(figures(one.name, repeat, &run))
        },
    );
    Ok((found, all))
}

/// Measures the allocators that the options choose.
pub fn bench(options: &Options) -> Result<(), String> {
    let mut preloaded = options.choice.preloaded(None)?;
    let repeats = options.common.repeats();
    preloaded
        .head
        .push(format!("run            {repeats} repeats"));
    let mut report = Report::new(&preloaded.head);
    let (found, readings) = measure(options, &preloaded.who, &preloaded.tool)?;
    report.add(&table(&preloaded.names(), &found.figures));
    report.add_failures(&found);
    report.finish(
        ("service", &options.common),
        &found,
        &[("readings.csv", readings)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run in which the live memory is 10 MiB by night and 100 by day, and the resident memory
    /// is `more` above it. Before the first noon both are large.
    fn run(more: f64) -> Run {
        let live = |reading| match reading {
            0..FIRST_COUNTED => 1000.0,
            _ if is_night(reading) => 10.0,
            _ => 100.0,
        };
        let moment = |reading| Moment {
            live: live(reading),
            resident: live(reading) + more,
        };
        Run {
            sum: 7,
            cpu_s: 2.5,
            moments: (0..3 * READINGS_A_DAY).map(moment).collect(),
        }
    }

    #[test]
    fn the_output_of_the_program_is_read() {
        let text = |readings: usize| format!("7\n2500\n{}", "1024 2048\n".repeat(readings));
        let found = read(&text(49)).unwrap();
        assert_eq!((found.sum, found.cpu_s), (7, 2.5));
        let moment = Moment {
            live: 1.0,
            resident: 2.0,
        };
        assert_eq!(found.moments, [moment; 49]);
        assert_eq!(read(&text(48)), None, "a day is not over");
        assert_eq!(read("7\n2500\n1024\n"), None);
        assert_eq!(read("7\n"), None);
    }

    #[test]
    fn a_night_is_around_midnight() {
        let nights: Vec<usize> = (0..READINGS_A_DAY).filter(|&one| is_night(one)).collect();
        assert_eq!(nights, [0, 1, 2, 3, 45, 46, 47]);
    }

    #[test]
    fn readings_before_the_first_noon_are_not_counted() {
        let found = memory(&run(5.0).moments, |moment| moment.resident);
        let of = |metric| found.iter().find(|one| one.0 == metric).unwrap().1;
        assert_eq!((of(PEAK), of(TROUGH)), (105.0, 15.0));
        // Nights of 7 readings, and half a night at the end: 17 of 120 readings.
        let expected = (17.0 * 15.0 + 103.0 * 105.0) / 120.0;
        assert!((of(MEAN) - expected).abs() < 1e-9, "{}", of(MEAN));
    }

    #[test]
    fn the_table_has_the_live_memory_and_each_allocator() {
        let of = |who, more| figures(who, 0, &run(more));
        let found = [of("glibc", 10.0), of("mimalloc", 30.0)].concat();
        let text = table(&["glibc", "mimalloc"], &found);
        let line = |who: &str| {
            let begin = format!("| {} |", version_of(who));
            let found = text.lines().find(|line| line.starts_with(&begin));
            found.unwrap_or_else(|| panic!("{who}: {text}")).to_owned()
        };
        assert!(line("live").contains("| 100.0 | 10.00 | - | - |"));
        assert!(line("glibc").contains("| 110.0 | 20.00 | 2.500 |"));
        assert!(line("mimalloc").contains("| 130.0 | 40.00 | 2.500 |"));
        assert_eq!(readings("glibc", 0, &run(10.0)).lines().count(), 144);
    }
}
