//! Times and peaks of a program over all allocators: one run of `slabyard compare --run`, which
//! interleaves them, and whose first round is not measured. A program that ends or prints
//! otherwise than with glibc has failed.
//!
//! The program is started by `programs/start.c`, for all allocators alike. The tool is large, and a
//! program's peak would be at least the memory of the tool. So `start` forks the program and writes
//! its peak to the error output, which the tool keeps. The tool's own peak is not used. `start` and
//! the shell that runs it add a millisecond of time to each run.

use super::{environment, workloads, Job};
use crate::figure::{Figure, Found};
use crate::preloaded::{Contender, OURS};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

pub const CPU: &str = "cpu ms";
pub const WALL: &str = "wall ms";
pub const PEAK: &str = "peak MiB";
pub const FAULTS: &str = "page faults";

/// The fields of the tool's JSON, and how many of a metric's units one of theirs is.
const FIELDS: [(&str, &str, f64); 3] = [
    (CPU, "cpu_s", 1e3),
    (WALL, "wall_s", 1e3),
    (FAULTS, "page_faults", 1.0),
];

/// Reads the tool's JSON: the figures of each allocator, or its failure.
pub fn read(row: &str, json: &str) -> Result<Found, String> {
    let all: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let unclear = || "the tool's JSON is unclear".to_owned();
    let mut found = Found::default();
    for one in all["allocators"].as_array().ok_or_else(unclear)? {
        let name = one["name"].as_str().ok_or_else(unclear)?;
        if let Some(failure) = one["failure"].as_str() {
            let failure = format!("{row} on {name}: the program {failure}");
            found.failures.push(failure);
            continue;
        }
        for (metric, field, factor) in FIELDS {
            let runs = one[field]["runs"].as_array().ok_or_else(unclear)?;
            let values: Option<Vec<f64>> = runs
                .iter()
                .map(|run| run.as_f64().map(|value| value * factor))
                .collect();
            let values = values.ok_or_else(unclear)?;
            let rounds = Figure::rounds(row, metric, name, &values);
            found.figures.extend(rounds);
        }
    }
    Ok(found)
}

/// What the tool's option `--allocator` gets.
fn argument(one: &Contender) -> Option<String> {
    match &one.library {
        _ if one.name == OURS => Some(OURS.to_owned()),
        Some(library) => Some(format!("{}={}", one.name, library.display())),
        None => None, // glibc, which always runs
    }
}

/// The script of the shell, which becomes `start`. It hides the library from `start` itself.
const SHELL: &str = r#"export LIBRARY="$LD_PRELOAD"; unset LD_PRELOAD; exec "$@""#;

/// The peak that `start` wrote into the file of an error output, in KiB.
fn peak_kib(file: &Path) -> Option<f64> {
    let text = std::fs::read(file).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.lines().last()?.split_whitespace().next()?.parse().ok()
}

/// The peaks of an allocator's measured rounds.
fn peaks(row: &str, who: &str, kept: &Path, repeats: usize) -> Vec<Figure> {
    let file = |round: usize| kept.join(format!("{who}.{round}.err"));
    let peaks: Vec<f64> = (1..=repeats)
        .filter_map(|round| peak_kib(&file(round)))
        .map(|kib| kib / 1024.0)
        .collect();
    Figure::rounds(row, PEAK, who, &peaks).collect()
}

pub fn measure(
    job: &Job,
    who: &[Contender],
    tool: &Path,
    repeats: usize,
    folder: &Path,
) -> Result<Found, String> {
    let json = folder.join("compare.json");
    let kept = folder.join(format!("{}.kept", job.name));
    let allocators = who
        .iter()
        .filter_map(argument)
        .flat_map(|one| ["--allocator".to_owned(), one]);
    let mut command = Command::new(tool);
    environment(&mut command, folder)
        .args(["compare", "--run", "--same-output", "--force"])
        .args(["--repeats", &repeats.to_string()])
        .args(allocators)
        .arg("--json")
        .arg(&json)
        .arg("--keep")
        .arg(&kept)
        .args(["--", "sh", "-c", SHELL, "sh"])
        .arg(workloads::starter())
        .args(&job.command)
        .stdin(Stdio::null());
    let output = command.output().map_err(|error| error.to_string())?;
    // 3: an allocator failed; the JSON says which.
    if !matches!(output.status.code(), Some(0 | 3)) {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let text = std::fs::read_to_string(&json).map_err(|error| error.to_string())?;
    let mut found = read(job.name, &text)?;
    for one in who {
        let peaks = peaks(job.name, one.name, &kept, repeats);
        found.figures.extend(peaks);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::median;

    const JSON: &str = r#"{"allocators": [
        {"name": "glibc", "failure": null,
         "cpu_s": {"median": 0.2, "runs": [0.2, 0.3, 0.1]}, "wall_s": {"runs": [0.1]},
         "page_faults": {"runs": [17]}},
        {"name": "other", "failure": "is ended by SIGSEGV"}
    ]}"#;

    #[test]
    fn the_figures_of_the_tool_are_read_and_failures_are_named() {
        let Found { figures, failures } = read("larson", JSON).unwrap();
        assert_eq!(
            failures,
            ["larson on other: the program is ended by SIGSEGV"]
        );
        assert_eq!(figures.len(), 5);
        let of = |metric| median(&figures, "larson", metric, "glibc").unwrap();
        assert_eq!([of(CPU), of(WALL), of(FAULTS)], [200.0, 100.0, 17.0]);
        assert!(read("larson", "{}").is_err() && read("larson", "").is_err());
    }
}
