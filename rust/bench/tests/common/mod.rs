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
