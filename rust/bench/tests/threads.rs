//! The programs of the part `threads` have the same result over each allocator, and their readings
//! follow their memory; a short run of the command prints its tables and keeps the raw data. The
//! libraries and the server are examples, which cargo builds before its tests. The tool belongs to
//! another package: `cargo test --workspace` builds it too. The run is left out if there is no
//! tool.

mod common;

use common::{has, kept_run, preloaded, refuses_unknown_names, tool_is_built};
use slabyard_bench::part;
use slabyard_bench::preloaded::OURS;
use slabyard_bench::programs::workloads::starter;
use slabyard_bench::threads::programs::{has_musl, Program, Variant, ALL};
use std::collections::HashMap;
use std::process::Command;

/// The readings of a quick run.
fn readings(program: &Program, variant: &Variant) -> HashMap<String, u64> {
    let output = Command::new(starter())
        .arg(&variant.executable)
        .args(["1", "0"])
        .envs(variant.library.iter().map(|library| ("LIBRARY", library)))
        .output()
        .unwrap();
    let what = format!("{} on {}", program.name, variant.who);
    assert!(output.status.success(), "{what}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| {
            let (name, number) = line.split_once('\t').unwrap();
            (name.to_owned(), number.parse().unwrap())
        })
        .collect()
}

#[test]
fn every_program_has_the_same_result_on_every_allocator() {
    let (who, folder) = (preloaded(), part::output_folder().unwrap());
    for program in &ALL {
        let mut sum = None;
        for variant in program.variants(&who, &folder) {
            let found = readings(program, &variant);
            let what = format!("{} on {}: {found:?}", program.name, variant.who);
            assert_eq!(*sum.get_or_insert(found["sum"]), found["sum"], "{what}");
            assert!(
                found["peak"] > 1024 && found["peak"] < program.mib * 1024,
                "{what}"
            );
            let live = found.get("live").copied().unwrap_or(0);
            assert!(live <= found["after 0"], "{what}");
            assert!(found["freed"] < found["peak"] * 3 / 2 + 1024, "{what}");
        }
    }
}

#[test]
fn the_readings_are_of_the_blocks() {
    let (who, folder) = (preloaded(), part::output_folder().unwrap());
    let spike = ALL.iter().find(|one| one.name == "spike-kept").unwrap();
    let variants = spike.variants(&who, &folder);
    let glibc = variants.iter().find(|one| one.who == "glibc").unwrap();
    let found = readings(spike, glibc);
    // Eight threads with 16 MiB each; one block of 16 stays.
    assert!((128 << 10..150 << 10).contains(&found["peak"]), "{found:?}");
    assert!((7 << 10..9 << 10).contains(&found["live"]), "{found:?}");
}

#[test]
fn a_run_prints_tables_and_keeps_the_raw_data() {
    if !tool_is_built() {
        return;
    }
    let arguments = [
        "--quick",
        "--only=holes,server",
        "--allocators=slabyard,mimalloc",
    ];
    let (shown, raw) = kept_run("threads", &arguments);
    let expected = [
        "allocators     glibc 2.",
        "\nholes: 300,000 blocks",
        "| holes | peak MiB | cpu ms | freed MiB | after 1 MiB | after 3 MiB | cpu of the wait ms |\n",
        "| slabyard crate | ",
        " | best peer | slabyard to it |",
        "| `server`, 3 s | ",
    ];
    has(&shown, &expected);
    assert_eq!(shown.contains("left out       musl"), !has_musl());
    for who in ["glibc", OURS, "mimalloc"] {
        for metric in ["peak MiB", "freed MiB", "after 3 MiB", "cpu ms"] {
            assert!(
                raw.contains(&format!("holes,{metric},{who},0,")),
                "{metric} {who}: {raw}"
            );
        }
    }
    assert!(
        raw.contains("server,after 1 MiB,slabyard crate,0,"),
        "{raw}"
    );
}

#[test]
fn what_is_not_known_is_refused() {
    refuses_unknown_names("threads");
}
