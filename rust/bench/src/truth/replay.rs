//! The predictions of `slabyard compare` for a program, which is recorded once and replayed.

use super::contender::Contender;
use super::programs::Program;
use super::real::PROGRAMS;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The replays of one allocator: a value for each round.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Replayed {
    /// CPU time of all operations, less the cost of the replay itself.
    pub cpu_ms: Vec<f64>,
    pub peak_kib: Vec<f64>,
    /// The tool's note on how the replay restricts the allocator.
    pub note: Option<String>,
}

fn numbers(value: &Value) -> Option<Vec<f64>> {
    value.as_array()?.iter().map(Value::as_f64).collect()
}

/// Reads the tool's JSON: the replays of each allocator, or its error.
pub fn read(json: &str) -> Result<BTreeMap<String, Result<Replayed, String>>, String> {
    let report: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let unclear = || "the tool's JSON is unclear".to_owned();
    let operations = report["summary"]["operations"]
        .as_f64()
        .ok_or_else(unclear)?;
    let all = report["measurement"]["allocators"].as_array();
    let mut found = BTreeMap::new();
    for one in all.ok_or_else(unclear)? {
        let name = one["name"].as_str().ok_or_else(unclear)?;
        let replayed = match one["failure"].as_str() {
            Some(failure) => Err(failure.to_owned()),
            None => {
                let ns = numbers(&one["ns_per_op"]["runs"]).ok_or_else(unclear)?;
                let bytes = numbers(&one["peak_resident"]["runs"]).ok_or_else(unclear)?;
                Ok(Replayed {
                    cpu_ms: ns.iter().map(|ns| ns * operations / 1e6).collect(),
                    peak_kib: bytes.iter().map(|bytes| bytes / 1024.0).collect(),
                    note: one["note"].as_str().map(str::to_owned),
                })
            }
        };
        found.insert(name.to_owned(), replayed);
    }
    Ok(found)
}

/// Runs the tool. If an allocator failed, it exits with 3, but it has written the other figures.
fn tool(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("slabyard: {error}"))?;
    match output.status.code() {
        Some(0 | 3) => Ok(()),
        _ => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// Records and replays, with files in `folder`.
pub fn predict(
    slabyard: &Path,
    folder: &Path,
    (program, size): (&Program, u64),
    who: &[Contender],
    repeats: usize,
) -> Result<BTreeMap<String, Result<Replayed, String>>, String> {
    let file = |ending: &str| folder.join(format!("{}.{ending}", program.name));
    let (recording, json) = (file("syrec"), file("json"));
    tool(
        Command::new(slabyard)
            .args(["record", "--force", "-o"])
            .args([recording.as_path(), Path::new("--"), Path::new(PROGRAMS)])
            .args([program.name, &size.to_string()])
            .env_remove("LD_PRELOAD"),
    )?;
    let allocators = who.iter().flat_map(|one| ["--allocator", one.name]);
    tool(
        Command::new(slabyard)
            .args(["compare", "--force", "--no-verify", "--repeats"])
            .arg(repeats.to_string())
            .args(allocators)
            .args([Path::new("--scratch"), folder, Path::new("--json"), &json])
            .args([Path::new("--page"), &file("html"), &recording]),
    )?;
    let _ = fs::remove_file(recording);
    let text = fs::read_to_string(&json).map_err(|error| format!("{}: {error}", json.display()))?;
    read(&text)
}
