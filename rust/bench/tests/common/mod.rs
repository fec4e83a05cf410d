//! Functions that the tests of the benchmark's parts share.
#![allow(dead_code)]

use slabyard_bench::part;
use slabyard_bench::preloaded::{self, Contender};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Runs a part of the benchmark.
pub fn run_part(part: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slabyard-bench"))
        .arg(part)
        .args(arguments)
        .output()
        .unwrap()
}

/// Whether the tool, which belongs to another package, is built. `cargo test --workspace` builds it.
pub fn tool_is_built() -> bool {
    let is_built = part::tool(None, &part::output_folder().unwrap()).is_ok();
    if !is_built {
        eprintln!("left out: the tool is not built");
    }
    is_built
}

/// What a run of a part printed, and the files that it kept.
pub struct Kept {
    pub shown: String,
    folder: TempDir,
}

impl Kept {
    /// The file with this ending.
    pub fn file(&self, ending: &str) -> String {
        let path = self.folder.path().join(format!("found.{ending}"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
    }
}

/// Runs a part of the benchmark, which keeps its files in a folder of its own. What it prints begins
/// with the text that it keeps.
pub fn kept_files(part: &str, arguments: &[&str]) -> Kept {
    let folder = tempfile::tempdir().unwrap();
    let out = format!("--out={}", folder.path().join("found").display());
    let output = run_part(part, &[arguments, &[&out]].concat());
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    let kept = Kept { shown, folder };
    assert!(kept.shown.starts_with(&kept.file("txt")));
    kept
}

/// What such a run printed, and its raw data.
pub fn kept_run(part: &str, arguments: &[&str]) -> (String, String) {
    let kept = kept_files(part, arguments);
    let raw = kept.file("csv");
    (kept.shown, raw)
}

/// The text has all of these.
pub fn has(shown: &str, all: &[&str]) {
    for expected in all {
        assert!(shown.contains(expected), "{expected} is not in {shown}");
    }
}

/// Each of these runs ends with a message.
pub fn refuses(part: &str, all: &[&[&str]]) {
    for arguments in all {
        let output = run_part(part, arguments);
        assert_eq!(output.status.code(), Some(2), "{part} {arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}

/// Names that a part does not know end it with a message.
pub fn refuses_unknown_names(part: &str) {
    let unknown = [
        "--only=nonsense",
        "--allocators=nonsense",
        "--tool=/nowhere",
    ];
    refuses(part, &unknown.each_ref().map(std::slice::from_ref));
}

/// All allocators that can be preloaded; none is missing.
pub fn preloaded() -> Vec<Contender> {
    let folder = part::output_folder().unwrap();
    let (who, missing) = preloaded::present(preloaded::chosen(&[], &folder).unwrap());
    assert_eq!(missing, [""; 0]);
    who
}
