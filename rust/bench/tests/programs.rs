//! The workloads of the part `programs` have the same result over each allocator, and a short run of
//! the command prints its tables and keeps the raw data. The libraries are examples of this package,
//! which cargo builds before its tests. The tool belongs to another package: `cargo test --workspace`
//! builds it too. The run is left out if there is no tool.

mod common;

use common::{has, kept_run, preloaded, refuses_unknown_names, tool_is_built};
use slabyard_bench::preloaded;
use slabyard_bench::programs::workloads::{starter, ALL, SERVICE};
use std::process::Command;

#[test]
fn every_workload_has_the_same_result_on_every_allocator() {
    let who = preloaded();
    for workload in ALL.iter().chain([&SERVICE]) {
        let run = |one: &preloaded::Contender| {
            let output = Command::new(starter())
                .arg(workload.executable())
                .arg("2")
                .envs(one.library.iter().map(|library| ("LIBRARY", library)))
                .output()
                .unwrap();
            assert!(output.status.success(), "{} on {}", workload.name, one.name);
            let peak = String::from_utf8(output.stderr).unwrap();
            let kib = peak.split_whitespace().next().unwrap();
            assert!(kib.parse::<u64>().unwrap() > 1000, "{peak}");
            output.stdout
        };
        let results: Vec<Vec<u8>> = who.iter().map(run).collect();
        for (one, result) in who.iter().zip(&results) {
            assert_eq!(*result, results[0], "{} on {}", workload.name, one.name);
        }
    }
}

#[test]
fn a_program_that_fails_is_not_hidden() {
    let status = |program: &str| {
        let command = Command::new(starter()).args(["sh", "-c", program]).output();
        command.unwrap().status.code()
    };
    assert_eq!(status("exit 7"), Some(7));
    assert_eq!(status("kill -SEGV $$"), Some(126));
    let none = Command::new(starter()).arg("/no/such/program").output();
    assert_eq!(none.unwrap().status.code(), Some(127));
}

#[test]
fn a_run_prints_tables_and_keeps_the_raw_data() {
    if !tool_is_built() {
        return;
    }
    let arguments = [
        "--quick",
        "--only=sh6,perl",
        "--allocators=slabyard,mimalloc",
    ];
    let (shown, raw) = kept_run("programs", &arguments);
    let expected = [
        "allocators     glibc 2.",
        "\nsh6: waves",
        "| CPU | glibc 2.",
        "| idle MiB | glibc 2.",
        " | best peer | slabyard to it |\n",
        "summary, classic:",
    ];
    has(&shown, &expected);
    let count = |begin: &str| raw.lines().filter(|line| line.starts_with(begin)).count();
    // Four metrics of three allocators, twice; and two moments of idle memory.
    assert_eq!(count("sh6,"), 3 * (4 * 2 + 2), "{raw}");
    for who in ["glibc", "slabyard", "mimalloc"] {
        for metric in ["cpu ms", "wall ms", "peak MiB", "page faults"] {
            assert_eq!(count(&format!("sh6,{metric},{who},")), 2, "{metric} {who}");
        }
    }
    // A program that is not installed is left out with a line.
    match shown.contains("left out       perl:") {
        true => assert_eq!(count("perl,"), 0),
        false => assert_eq!(count("perl,"), 3 * 4 * 2),
    }
}

#[test]
fn what_is_not_known_is_refused() {
    refuses_unknown_names("programs");
}
