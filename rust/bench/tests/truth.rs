//! The programs of the part `truth` have the same results with glibc and with each preloaded
//! library, and the command refuses unknown names. The libraries are examples of this package,
//! which cargo builds before its tests.

use slabyard_bench::truth::programs::ALL;
use slabyard_bench::truth::{contender, real};
use std::process::Command;

fn folder() -> std::path::PathBuf {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_slabyard-bench"));
    program.parent().unwrap().to_owned()
}

#[test]
fn every_program_leads_to_the_same_on_every_allocator() {
    let (who, missing) = contender::present(contender::chosen(&[], &folder()).unwrap());
    assert_eq!(missing, [""; 0]);
    for program in &ALL {
        let size = program.size(true);
        let runs = who.iter().map(|one| real::run(program, size, one).unwrap());
        let runs: Vec<_> = runs.collect();
        for run in &runs {
            assert_eq!(run.result, runs[0].result, "{}", program.name);
            assert!(run.cpu_ms >= 0.0 && run.peak_kib > 0.0, "{run:?}");
        }
    }
}

#[test]
fn a_preloaded_library_is_the_one_that_serves() {
    // mimalloc maps memory of its own, so the peaks differ if it really serves the program.
    let names = ["mimalloc".to_owned()];
    let (who, _) = contender::present(contender::chosen(&names, &folder()).unwrap());
    let churn = ALL.iter().find(|program| program.name == "churn").unwrap();
    let peaks = who
        .iter()
        .map(|one| real::run(churn, 50_000, one).unwrap().peak_kib);
    let peaks: Vec<f64> = peaks.collect();
    assert!((peaks[0] - peaks[1]).abs() > 100.0, "{peaks:?}");
}

#[test]
fn what_is_not_known_is_refused() {
    for argument in [
        "--only=nonsense",
        "--allocators=nonsense",
        "--tool=/nowhere/slabyard",
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_slabyard-bench"))
            .args(["truth", argument])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{argument}");
        assert!(!output.stderr.is_empty());
    }
}
