//! Runs every loop with every allocator for a few rounds, in the verifying layout: it fills each
//! object with a pattern, enters it in a ledger while it lives, and checks it when it is freed. So
//! the process aborts if a loop frees an object twice, forgets one, or gets one twice.

use slabyard_bench::allocators::{self, Allocator, Kind};
use slabyard_bench::kernels::{verify_live, LAYOUTS, VERIFY};
use slabyard_bench::measure::{measure, Effort, Sample};
use slabyard_bench::rows::{self, Row, Workload, SIZES};
use slabyard_bench::run::{run_child, METRICS};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// The process has one ledger, and one set of arrays for the limit prototype: one measurement at a
/// time.
static ALONE: Mutex<()> = Mutex::new(());

fn tiny() -> Effort {
    Effort {
        sample: Duration::from_micros(1),
        fewer_objects: 500,
        fewer_rounds: 500,
        later: Duration::ZERO,
        trickle: Duration::from_millis(3),
    }
}

fn is_memory(row: &Row) -> bool {
    matches!(row.workload, Workload::Memory(_))
}

/// One run of a row, with the checks that every run passes.
fn run(row: Row, allocator: Allocator, layouts: &[usize]) -> Vec<Sample> {
    let what = format!("{} of {}", row.name(), allocator.name);
    println!("{what}"); // the last one before an abort, with --nocapture
    let samples = measure(row, allocator, layouts, &tiny(), 7);
    assert!(!samples.is_empty(), "{what}");
    for sample in &samples {
        assert!(
            METRICS.contains(&sample.metric),
            "{what}: {}",
            sample.metric
        );
        assert!(
            sample.value.is_finite() && sample.value >= 0.0,
            "{what}: {}",
            sample.value
        );
        assert!(layouts.contains(&sample.layout), "{what}");
    }
    if row.is_time() {
        let measured: Vec<usize> = samples.iter().map(|sample| sample.layout).collect();
        let expected = if row.one_layout() {
            &layouts[..1]
        } else {
            layouts
        };
        assert_eq!(measured, expected, "{what}");
        assert!(samples.iter().all(|sample| sample.value > 0.0), "{what}");
    }
    samples
}

/// Every pair of a row and an allocator that suits it, at one size.
fn everything(wanted: impl Fn(&Row, &Allocator) -> bool) -> Vec<(Row, Allocator)> {
    let mut pairs = Vec::new();
    for row in rows::all(&[64, 1024]) {
        for allocator in allocators::ALL {
            if row.suits(&allocator) && wanted(&row, &allocator) {
                pairs.push((row, allocator));
            }
        }
    }
    pairs
}

#[test]
fn no_object_is_lost_shared_or_damaged() {
    let _alone = ALONE.lock();
    let checked = |row: &Row, allocator: &Allocator| {
        // The contender without allocator always returns the same object, which the ledger forbids.
        // Memory rows write over the pattern on purpose.
        allocator.kind != Kind::Floor && !is_memory(row)
    };
    let pairs = everything(checked);
    assert!(pairs.len() > 300, "{}", pairs.len());
    for (row, allocator) in pairs {
        run(row, allocator, &[VERIFY]);
        assert_eq!(
            verify_live(),
            0,
            "{} of {} left objects",
            row.name(),
            allocator.name
        );
    }
}

#[test]
fn every_layout_runs() {
    let _alone = ALONE.lock();
    let all: Vec<usize> = (0..LAYOUTS).collect();
    for (row, allocator) in everything(|row, _| !is_memory(row)) {
        run(row, allocator, &all);
    }
}

#[test]
fn every_size_has_loops_for_every_allocator() {
    let _alone = ALONE.lock();
    for size in SIZES {
        for allocator in allocators::ALL {
            for layout in (0..LAYOUTS).chain([VERIFY]) {
                assert!(
                    allocator.kernels(layout, size).is_some(),
                    "{} {size}",
                    allocator.name
                );
            }
            if allocator.kind != Kind::Floor {
                run(
                    rows::find(&format!("pair/{size}")).unwrap(),
                    allocator,
                    &[VERIFY],
                );
            }
        }
    }
    assert_eq!(verify_live(), 0);
}

#[test]
fn every_memory_row_runs() {
    let _alone = ALONE.lock();
    for (row, allocator) in everything(|row, _| is_memory(row)) {
        run(row, allocator, &[0]);
    }
}

/// The output of a process of its own: an allocator's memory for 500,000 objects of 64 bytes.
fn payload_in_a_child(allocator: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_slabyard-bench"))
        .args(["--child", "memory-payload/64", allocator])
        .args(["0", "1000", "10", "0", "7"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{allocator}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// In a process of its own, resident memory is that of the objects.
#[test]
fn the_memory_of_objects_is_seen() {
    assert!(run_child(&["pair/64".to_owned()]).is_none());
    let row = rows::find("memory-payload/64").unwrap();
    for allocator in allocators::ALL {
        if !row.suits(&allocator) {
            continue;
        }
        let text = payload_in_a_child(allocator.name);
        let fields: Vec<&str> = text.trim_end_matches('\n').split('\t').collect();
        assert_eq!(fields[..2], ["ratio", "0"], "{}", allocator.name);
        let ratio: f64 = fields[2].parse().unwrap();
        let most = if allocator.kind == Kind::Ours {
            1.5
        } else {
            3.0
        };
        assert!((1.0..most).contains(&ratio), "{}: {ratio}", allocator.name);
    }
}

#[test]
fn a_run_prints_a_table_and_keeps_the_raw_data() {
    let folder = std::env::temp_dir().join(format!("slabyard-bench-{}", std::process::id()));
    let csv = folder.join("raw.csv");
    let output = Command::new(env!("CARGO_BIN_EXE_slabyard-bench"))
        .args([
            "--rows",
            "pair/64,exchange/64",
            "--allocators",
            "cache,heap,glibc,limit-magazine",
        ])
        .args(["--repeats", "2", "--sample-ms", "1", "--csv"])
        .arg(&csv)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let table = String::from_utf8(output.stdout).unwrap();
    for expected in [
        "pair/64",
        "exchange/64",
        "glibc",
        "geometric mean",
        "page size",
    ] {
        assert!(table.contains(expected), "{expected} is not in {table}");
    }
    let raw = std::fs::read_to_string(&csv).unwrap();
    // Two rows, four allocators, two repeats, three layouts, and the heading.
    assert_eq!(raw.lines().count(), 1 + 2 * 4 * 2 * LAYOUTS);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_not_known_is_refused() {
    for arguments in [
        ["--rows", "nonsense"],
        ["--allocators", "nonsense"],
        ["--sizes", "17"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_slabyard-bench"))
            .args(arguments)
            .output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}
