//! Functions that the tests of the benchmark's parts share.
#![allow(dead_code)]

use slabyard_bench::part;
use std::process::{Command, Output};

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

/// Runs a part of the benchmark, which keeps its text and its raw data in a folder of its own.
/// Returns what it printed, which begins with the text that it kept, and the raw data.
pub fn kept_run(part: &str, arguments: &[&str]) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("found");
    let out = format!("--out={}", base.display());
    let output = run_part(part, &[arguments, &[&out]].concat());
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.starts_with(&std::fs::read_to_string(base.with_extension("txt")).unwrap()));
    let raw = std::fs::read_to_string(base.with_extension("csv")).unwrap();
    (shown, raw)
}

/// Names that a part does not know end it with a message.
pub fn refuses_unknown_names(part: &str) {
    for argument in [
        "--only=nonsense",
        "--allocators=nonsense",
        "--tool=/nowhere/slabyard",
    ] {
        let output = run_part(part, &[argument]);
        assert_eq!(output.status.code(), Some(2), "{argument}");
        assert!(!output.stderr.is_empty());
    }
}
