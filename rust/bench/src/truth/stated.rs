//! What `slabyard compare` says of a program, as it is started by a user: the tool records it, runs
//! it on each allocator, and replays the recording.

use super::real::{plain, Ready};
use super::verdict::Ratio;
use crate::preloaded::{Contender, OURS};
use serde_json::Value;
use slabyard_certainty::Interval;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The figures of one allocator in the tool's runs of the program.
#[derive(Clone, PartialEq, Debug)]
pub struct Stated {
    /// To glibc's; None if the tool does not say it.
    pub cpu: Option<Ratio>,
    pub peak: Option<Ratio>,
    pub cpu_ms: Vec<f64>,
    pub peak_kib: Vec<f64>,
}

/// Slabyard less glibc, in the replays.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Replayed {
    pub cpu_ms: f64,
    /// Whether there surely is a difference.
    pub is_sure: bool,
    pub peak_kib: f64,
}

/// All that is read of one comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    pub sentence: String,
    /// Whether peaks are those of the largest process, not of all together.
    pub peaks_of_largest: bool,
    pub of: BTreeMap<String, Result<Stated, String>>,
    pub replayed: Option<Replayed>,
}

fn numbers(value: &Value, factor: f64) -> Option<Vec<f64>> {
    let all = value.as_array()?.iter();
    all.map(|one| one.as_f64().map(|one| one * factor))
        .collect()
}

fn interval(value: &Value) -> Option<Interval> {
    Some(Interval {
        low: value["low"].as_f64()?,
        high: value["high"].as_f64()?,
    })
}

fn ratio(kind: &Value) -> Option<Ratio> {
    Some(Ratio {
        mean: kind["to_first"]["ratio"].as_f64()?,
        interval: interval(&kind["to_first"]["interval"])?,
    })
}

fn replayed(answer: &Value) -> Option<Replayed> {
    let sure = interval(&answer["time_interval_ms"])?;
    Some(Replayed {
        cpu_ms: answer["time_ms"].as_f64()?,
        is_sure: !sure.holds(0.0),
        peak_kib: answer["memory_bytes"].as_f64()? / 1024.0,
    })
}

/// Reads the tool's JSON.
pub fn read(json: &str) -> Result<Answer, String> {
    let report: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let unclear = || "the tool's JSON is unclear".to_owned();
    if let Some(why) = report["no_runs"].as_str() {
        return Err(format!("the tool did not run the program: {why}"));
    }
    let mut of = BTreeMap::new();
    let all = report["runs"]["allocators"].as_array();
    for one in all.ok_or_else(unclear)? {
        let name = one["name"].as_str().ok_or_else(unclear)?;
        let stated = match one["failure"].as_str() {
            Some(failure) => Err(format!("the program {failure}")),
            None => Ok(Stated {
                cpu: ratio(&one["cpu_s"]),
                peak: ratio(&one["peak_bytes"]),
                cpu_ms: numbers(&one["cpu_s"]["runs"], 1e3).ok_or_else(unclear)?,
                peak_kib: numbers(&one["peak_bytes"]["runs"], 1.0 / 1024.0).ok_or_else(unclear)?,
            }),
        };
        of.insert(name.to_owned(), stated);
    }
    Ok(Answer {
        sentence: report["runs"]["answer"].as_str().unwrap_or("").to_owned(),
        peaks_of_largest: report["runs"]["peaks_of_largest"] == true,
        of,
        replayed: replayed(&report["answer"]),
    })
}

/// Copies the library that the tool carries into the folder, so that it can be preloaded without
/// the tool.
pub fn carried(tool: &Path, folder: &Path) -> Result<PathBuf, String> {
    let copy = folder.join("libslabyard-malloc.so");
    let mut command = Command::new(tool);
    command
        .args(["run", "--", "sh", "-c", r#"cp "${LD_PRELOAD%%:*}" "$0""#])
        .arg(&copy)
        .env_remove("LD_PRELOAD");
    crate::part::output(command, "slabyard run")?;
    Ok(copy)
}

fn arguments(one: &Contender) -> [String; 2] {
    let argument = match &one.library {
        Some(library) if one.name != OURS => format!("{}={}", one.name, library.display()),
        _ => one.name.to_owned(),
    };
    ["--allocator".to_owned(), argument]
}

/// Asks the tool, with files in the program's folder. Only glibc and Slabyard are replayed.
pub fn ask(
    tool: &Path,
    ready: &Ready,
    who: &[Contender],
    options: &[String],
) -> Result<Answer, String> {
    let file = |ending: &str| ready.folder.join(format!("answer.{ending}"));
    let mut command = Command::new(tool);
    plain(&mut command, ready.folder)
        .args(["compare", "--force", "--no-verify"])
        .args(options)
        .args(who.iter().flat_map(arguments))
        .args([Path::new("--output"), &file("syrec")])
        .args([Path::new("--page"), &file("html")])
        .args([Path::new("--json"), &file("json")])
        .arg("--")
        .args(&ready.command)
        .stdin(Stdio::null());
    let output = command.output();
    let output = output.map_err(|error| format!("slabyard: {error}"))?;
    // 3: an allocator failed, and the JSON says which.
    if !matches!(output.status.code(), Some(0 | 3)) {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint.trim().lines().last().unwrap_or("");
        return Err(format!("{}: {last}", ready.program.name));
    }
    let _ = fs::remove_file(file("syrec"));
    let text = fs::read_to_string(file("json")).map_err(|error| error.to_string())?;
    read(&text).map_err(|what| format!("{}: {what}", ready.program.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tool's JSON, without the fields that are not read.
    const JSON: &str = r#"{
        "no_runs": null,
        "answer": {"time_ms": -3.0, "time_interval_ms": {"low": -4.0, "high": -2.0},
                   "memory_bytes": 2048.0},
        "runs": {"answer": "With Slabyard, less.", "peaks_of_largest": true, "allocators": [
            {"name": "glibc", "failure": null, "cpu_s": {"runs": [0.2, 0.21], "to_first": null},
             "peak_bytes": {"runs": [10240, 10240], "to_first": null}},
            {"name": "slabyard", "failure": null,
             "cpu_s": {"runs": [0.1, 0.11],
                       "to_first": {"ratio": 0.51, "interval": {"low": 0.5, "high": 0.52}}},
             "peak_bytes": {"runs": [20480, 20480], "to_first": {"ratio": 2.0, "interval": null}}},
            {"name": "rpmalloc", "failure": "ends with status 1"}
        ]}
    }"#;

    #[test]
    fn the_tool_s_figures_are_read() {
        let answer = read(JSON).unwrap();
        assert_eq!(answer.sentence, "With Slabyard, less.");
        assert!(answer.peaks_of_largest);
        assert_eq!(answer.replayed.map(|one| one.cpu_ms), Some(-3.0));
        let ours = answer.of["slabyard"].as_ref().unwrap();
        let cpu = ours.cpu.unwrap();
        assert_eq!((cpu.mean, cpu.interval.low), (0.51, 0.5));
        assert_eq!((ours.peak, &ours.cpu_ms), (None, &vec![100.0, 110.0]));
        assert_eq!(ours.peak_kib, [20.0, 20.0]);
        assert!(answer.of["glibc"].as_ref().unwrap().cpu.is_none());
        let failed = answer.of["rpmalloc"].clone().unwrap_err();
        assert_eq!(failed, "the program ends with status 1");
    }

    #[test]
    fn json_that_is_not_the_tool_s_and_an_answer_without_runs_are_refused() {
        assert!(read("{}").is_err() && read("nothing").is_err());
        let why = read(r#"{"no_runs": "it ended"}"#).unwrap_err();
        assert!(why.ends_with("it ended"), "{why}");
    }
}
