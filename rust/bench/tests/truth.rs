//! The programs of the part `truth` have the same results with glibc and with each preloaded
//! library, a short run of the command prints its tables, and unknown names are refused. The
//! libraries are examples of this package, which cargo builds before its tests. The tool belongs to
//! another package: `cargo test --workspace` builds it too. The run is left out if there is no tool.

mod common;

use common::{has, kept_run, preloaded, refuses_unknown_names, tool_is_built};
use slabyard_bench::part;
use slabyard_bench::preloaded;
use slabyard_bench::truth::programs::{Program, ALL};
use slabyard_bench::truth::real::{self, Ready, Run};
use std::path::Path;

/// Runs a program on an allocator; none if it cannot run here.
fn run(program: &Program, folder: &Path, who: &preloaded::Contender) -> Option<Run> {
    let ready = Ready {
        program: *program,
        command: program.command(folder, true).ok()?,
        folder,
    };
    Some(real::run(&ready, who).unwrap())
}

#[test]
fn every_program_leads_to_the_same_on_every_allocator() {
    let who = preloaded();
    for program in &ALL {
        let folder = tempfile::tempdir().unwrap();
        let runs = who
            .iter()
            .filter_map(|one| run(program, folder.path(), one));
        let runs: Vec<_> = runs.collect();
        for run in &runs {
            assert_eq!(run.output, runs[0].output, "{}", program.name);
            assert!(run.cpu_ms >= 0.0 && run.largest_kib > 0.0, "{run:?}");
        }
    }
}

#[test]
fn a_preloaded_library_is_the_one_that_serves() {
    // mimalloc maps memory of its own, so the peaks differ if it really serves the program.
    let names = ["mimalloc".to_owned()];
    let folder = part::output_folder().unwrap();
    let (who, _) = preloaded::present(preloaded::chosen(&names, &folder).unwrap());
    let scratch = tempfile::tempdir().unwrap();
    let churn = ALL.iter().find(|program| program.name == "churn").unwrap();
    let peak = |one| run(churn, scratch.path(), one).unwrap().largest_kib;
    let peaks: Vec<f64> = who.iter().map(peak).collect();
    assert!((peaks[0] - peaks[1]).abs() > 100.0, "{peaks:?}");
}

/// Of several processes, the memory of all counts, not that of the largest.
#[test]
fn the_memory_of_several_processes_is_added_up() {
    let who = preloaded();
    let scratch = tempfile::tempdir().unwrap();
    let workers = ALL.iter().find(|one| one.name == "workers").unwrap();
    let ready = Ready {
        program: *workers,
        command: workers.command(scratch.path(), false).unwrap(),
        folder: scratch.path(),
    };
    let runs = (0..5).map(|_| real::run(&ready, &who[0]).unwrap());
    let is_more = |run: Run| run.together_kib > 1.5 * run.largest_kib;
    assert!(runs.into_iter().any(is_more));
}

#[test]
fn a_run_prints_what_is_stated_beside_what_is_real() {
    if !tool_is_built() {
        return;
    }
    let arguments = [
        "--quick",
        "--only=map,redis",
        "--allocators=slabyard,mimalloc",
    ];
    let (shown, raw) = kept_run("truth", &arguments);
    let expected = [
        "\nmap: a std::map",
        "\n  With Slabyard, the program",
        "| program | CPU, stated | CPU, real |",
        "| CPU time, all allocators | ",
        "| mostly small objects | 1 | ",
    ];
    has(&shown, &expected);
    for who in ["glibc", "slabyard", "mimalloc"] {
        let begin = format!("map,tool ms,{who},");
        let tool = raw.lines().filter(|line| line.starts_with(&begin));
        assert_eq!(tool.count(), 3, "{raw}");
        assert!(raw.contains(&format!("map,before ms,{who},1,")), "{raw}");
        assert!(
            raw.contains(&format!("map,after peak KiB,{who},1,")),
            "{raw}"
        );
    }
    // A program that is not installed is left out with a line.
    assert_ne!(
        shown.contains("left out       redis:"),
        raw.contains("\nredis,")
    );
}

#[test]
fn what_is_not_known_is_refused() {
    refuses_unknown_names("truth");
}
