//! Runs of a program with each allocator, and the figures that they print. The processes of a round
//! wait at the same time, as many as half of the machine's free memory holds.

use super::programs::{Program, Variant};
use super::table::{Unit, SUM};
use crate::figure::{Figure, Found, Same};
use crate::programs::waiting::Waiting;
use crate::programs::{environment, workloads};
use std::path::Path;
use std::process::Command;

/// The line after which a program waits.
const LAST_OF_WORK: &str = "freed";

/// A line that a process printed: a name and a number.
fn line(text: &str) -> Option<(&str, f64)> {
    let (name, number) = text.split_once('\t')?;
    Some((name, number.parse().ok()?))
}

/// Starts a process, and returns when it has done its work.
fn start(
    program: &Program,
    variant: &Variant,
    quick: bool,
    folder: &Path,
) -> Result<Waiting, String> {
    let mut command = Command::new(workloads::starter());
    environment(&mut command, folder)
        .arg(&variant.executable)
        .args(program.arguments(quick))
        .envs(variant.library.iter().map(|library| ("LIBRARY", library)));
    let is_last = |lines: &[String]| {
        let last = lines.last().and_then(|text| line(text));
        last.is_some_and(|(name, _)| name == LAST_OF_WORK)
    };
    let what = format!("{} on {}", program.name, variant.who);
    Waiting::start(command, what, is_last)
}

/// All runs of a program.
#[derive(Default)]
pub struct Runs {
    sum: Same<f64>,
    pub found: Found,
}

impl Runs {
    /// The figures in the lines of one run.
    fn figures(
        &mut self,
        program: &Program,
        who: &str,
        repeat: usize,
        lines: &[String],
    ) -> Result<Vec<Figure>, String> {
        let what = format!("{} on {who}", program.name);
        let lines: Option<Vec<_>> = lines.iter().map(|text| line(text)).collect();
        let mut lines = lines.ok_or_else(|| format!("{what}: the output is unclear"))?;
        let sum = lines.iter().position(|one| one.0 == SUM);
        let sum = sum.ok_or_else(|| format!("{what}: no sum"))?;
        self.sum.check(lines.remove(sum).1, &what)?;
        let figure = |(name, value)| {
            let unit = Unit::of(name);
            let metric = format!("{name} {}", unit.name());
            Figure::new(program.name, &metric, who, repeat, unit.from_line(value))
        };
        Ok(lines.into_iter().map(figure).collect())
    }

    /// Runs a program once with each allocator.
    pub fn round(
        &mut self,
        program: &Program,
        turn: &[&Variant],
        quick: bool,
        repeat: usize,
        folder: &Path,
    ) {
        for part in turn.chunks(together(program, available_mib())) {
            let started: Vec<Result<Waiting, String>> = part
                .iter()
                .map(|variant| start(program, variant, quick, folder))
                .collect();
            for (variant, one) in part.iter().zip(started) {
                let lines = one.and_then(Waiting::finish);
                let figures =
                    lines.and_then(|lines| self.figures(program, variant.who, repeat, &lines));
                self.found.add(figures);
            }
        }
    }
}

/// MiB that the system can give without taking them from others.
fn available_mib() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

/// How many processes of a program may wait at a time.
fn together(program: &Program, available_mib: u64) -> usize {
    (available_mib / 2 / program.mib).max(1) as usize
}

#[cfg(test)]
mod tests {
    use super::super::programs::ALL;
    use super::*;

    fn figures(runs: &mut Runs, who: &str, text: &str) -> Result<Vec<Figure>, String> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        runs.figures(&ALL[0], who, 0, &lines)
    }

    #[test]
    fn lines_become_figures_in_mib_and_ms() {
        let text = "peak\t2048\ncpu\t30\nfreed\t1024\nafter 5\t512\nsum\t7";
        let found = figures(&mut Runs::default(), "glibc", text).unwrap();
        let all: Vec<(&str, f64)> = found
            .iter()
            .map(|figure| (figure.metric.as_str(), figure.value))
            .collect();
        assert_eq!(
            all,
            [
                ("peak MiB", 2.0),
                ("cpu ms", 30.0),
                ("freed MiB", 1.0),
                ("after 5 MiB", 0.5)
            ]
        );
    }

    #[test]
    fn a_run_with_another_sum_or_none_is_a_failure() {
        let mut runs = Runs::default();
        assert!(figures(&mut runs, "glibc", "peak\t1\nsum\t7").is_ok());
        let mut complaint = |text: &str| figures(&mut runs, "musl", text).unwrap_err();
        let other = complaint("peak\t1\nsum\t8");
        assert!(
            other.starts_with("spike-kept on musl: another result"),
            "{other}"
        );
        assert_eq!(complaint("peak\t1"), "spike-kept on musl: no sum");
        assert!(complaint("peak 1\nsum\t7").ends_with("unclear"));
    }

    #[test]
    fn processes_wait_together_if_there_is_memory_for_them() {
        assert_eq!(together(&ALL[0], 20_000), 5);
        assert_eq!(together(&ALL[0], 100), 1);
        assert!(available_mib() > 0);
    }
}
