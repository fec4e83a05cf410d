//! Whole programs over each malloc, on a new heap and on one that was fragmented before the program
//! began: `kernels/littered/litter.h` describes how.
//!
//! The programs are those of the part `truth` that have one process and mostly small objects. A
//! first run over glibc finds the sizes. Each other run preloads the library that fragments the
//! heap, behind it the allocator. The library tells the CPU time and the memory when the program
//! begins, which are subtracted. In a run on a new heap it does nothing else.

use crate::figure::{in_turn, Figure, Found, Same};
use crate::preloaded::Contender;
use crate::programs::{environment, workloads};
use crate::truth::programs::{Program, ALL};
use crate::truth::real;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const NAMES: [&str; 11] = [
    "lua",
    "perl",
    "python",
    "sqlite",
    "json",
    "strings",
    "map",
    "hash",
    "graph",
    "survivors",
    "churn",
];

/// The states of the heap, and the names of their metrics: CPU time of the program, and the memory
/// that it adds to that which the process has when it begins.
pub const CPU: [&str; 2] = ["clean ms", "littered ms"];
pub const ADDED: [&str; 2] = ["clean MiB", "littered MiB"];
/// The memory of the process when the program begins on a littered heap.
pub const BEFORE: &str = "litter MiB";

pub fn all() -> impl Iterator<Item = Program> {
    ALL.into_iter().filter(|one| NAMES.contains(&one.name))
}

fn library(name: &str) -> PathBuf {
    Path::new(env!("BENCH_LITTER")).join(format!("lib{name}.so"))
}

/// A program that is ready to run, and the file with its sizes.
pub struct Ready {
    pub program: Program,
    command: Vec<OsString>,
    sizes: PathBuf,
    folder: PathBuf,
    /// Blocks of the litter.
    pub litter: u64,
}

/// The result of one run.
struct Run {
    cpu_ms: f64,
    added_mib: f64,
    before_mib: f64,
    output: Vec<u8>,
}

/// What `start` and the library said of a run: the peak in KiB and CPU ms of the process, and CPU
/// us, memory in KiB, blocks and bytes when the program began.
fn read(complaint: &str, report: &str) -> Option<(f64, f64, [f64; 4])> {
    let (peak_kib, cpu_ms) = real::figures(complaint)?;
    let numbers: Vec<f64> = report
        .split_whitespace()
        .map(|word| word.parse().ok())
        .collect::<Option<_>>()?;
    Some((peak_kib, cpu_ms, numbers.try_into().ok()?))
}

impl Ready {
    /// Makes the program's input, and finds its sizes.
    pub fn new(program: Program, folder: &Path, quick: bool) -> Result<Ready, String> {
        let mut ready = Ready {
            command: program.command(folder, quick)?,
            sizes: folder.join(format!("{}.sizes", program.name)),
            folder: folder.to_owned(),
            program,
            litter: 0,
        };
        let mut command = ready.start(&[library("record")]);
        command.env("LITTER_RECORD", &ready.sizes);
        let what = format!("{}, to find its sizes", program.name);
        crate::part::output(command, &what)?;
        let sizes = std::fs::read_to_string(&ready.sizes).unwrap_or_default();
        let live: Option<u64> = sizes.lines().next().and_then(|line| line.parse().ok());
        ready.litter = live.ok_or_else(|| format!("{what}: it wrote none"))?;
        Ok(ready)
    }

    /// The program with these libraries preloaded, the first one first.
    fn start(&self, libraries: &[PathBuf]) -> Command {
        let libraries: Vec<String> = libraries
            .iter()
            .map(|library| library.display().to_string())
            .collect();
        let mut command = Command::new(workloads::starter());
        environment(&mut command, &self.folder)
            .args(&self.command)
            .env("LIBRARY", libraries.join(":"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, one: &Contender, littered: bool) -> Result<Run, String> {
        let failed = |what: &str| format!("{} on {}: {what}", self.program.name, one.name);
        let report = self.folder.join("litter.report");
        let libraries = std::iter::once(library("litter")).chain(one.library.clone());
        let mut command = self.start(&libraries.collect::<Vec<_>>());
        command.env("LITTER_REPORT", &report);
        if littered {
            command.env("LITTER", &self.sizes);
        }
        let _ = std::fs::remove_file(&report);
        let output = command
            .output()
            .map_err(|error| failed(&error.to_string()))?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        let told = std::fs::read_to_string(&report).unwrap_or_default();
        let (peak_kib, cpu_ms, [before_us, before_kib, blocks, _]) = read(&complaint, &told)
            .filter(|_| output.status.success())
            .ok_or_else(|| failed(complaint.trim()))?;
        if littered != (blocks > 0.0) {
            return Err(failed("the heap is not as it was asked for"));
        }
        Ok(Run {
            cpu_ms: cpu_ms - before_us / 1e3,
            added_mib: (peak_kib - before_kib).max(0.0) / 1024.0,
            before_mib: before_kib / 1024.0,
            output: output.stdout,
        })
    }
}

/// Runs a program on both heaps over all allocators in turn, repeat after repeat.
pub fn measure(ready: &Ready, who: &[Contender], repeats: usize) -> Found {
    let (name, mut output) = (ready.program.name, Same::default());
    in_turn(repeats, who.iter().collect(), |one, repeat| {
        let mut figures = Vec::new();
        let mut add = |metric, value| {
            figures.push(Figure::new(name, metric, one.name, repeat, value));
        };
        for (state, littered) in [false, true].into_iter().enumerate() {
            let run = ready.run(one, littered)?;
            add(CPU[state], run.cpu_ms);
            add(ADDED[state], run.added_mib);
            if littered {
                add(BEFORE, run.before_mib);
            }
            output.check(run.output, &format!("{name} on {}", one.name))?;
        }
        Ok(figures)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_a_run_is_read() {
        let (peak, cpu, before) = read("a word\n2048 70000\n", "20000 1024 7 900\n").unwrap();
        assert_eq!(
            (peak, cpu, before),
            (2048.0, 70.0, [20000.0, 1024.0, 7.0, 900.0])
        );
        assert!(read("2048 70000\n", "20000 1024 7\n").is_none());
        assert!(read("", "20000 1024 7 900\n").is_none());
    }

    #[test]
    fn all_programs_are_there() {
        assert_eq!(all().count(), NAMES.len());
    }

    /// The heap is littered before the program begins, by the program's own malloc, and the memory
    /// is that of the blocks that stay.
    #[test]
    fn litter_is_there_before_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let program = all().find(|one| one.name == "map").unwrap();
        let ready = Ready::new(program, folder.path(), true).unwrap();
        assert!(ready.litter > 10_000, "{}", ready.litter);
        let glibc = Contender {
            name: "glibc",
            library: None,
        };
        let (clean, littered) = (ready.run(&glibc, false), ready.run(&glibc, true));
        let (clean, littered) = (clean.unwrap(), littered.unwrap());
        assert_eq!(clean.output, littered.output);
        assert!(littered.before_mib > clean.before_mib + 1.0);
        // The program fits into the holes, nearly.
        assert!(
            littered.added_mib < clean.added_mib,
            "{}",
            littered.added_mib
        );
        assert!(clean.cpu_ms > 0.0 && littered.cpu_ms > 0.0);
    }
}
