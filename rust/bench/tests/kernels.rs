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
        let is_time = |sample: &&Sample| sample.metric == "time";
        let times: Vec<&Sample> = samples.iter().filter(is_time).collect();
        let measured: Vec<usize> = times.iter().map(|sample| sample.layout).collect();
        let expected = if row.one_layout() {
            &layouts[..1]
        } else {
            layouts
        };
        assert_eq!(measured, expected, "{what}");
        assert!(times.iter().all(|sample| sample.value > 0.0), "{what}");
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

/// A figure that a process of its own gives for a row.
fn in_a_child(row: &str, allocator: &str, metric: &str) -> f64 {
    let output = Command::new(env!("CARGO_BIN_EXE_slabyard-bench"))
        .args(["--child", row, allocator])
        .args(["0", "1000", "10", "0", "7"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{allocator}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    let found = lines.find_map(|line| line.strip_prefix(&format!("{metric}\t0\t")));
    let value = found.unwrap_or_else(|| panic!("{row} of {allocator} has no {metric}: {text}"));
    value.trim_end().parse().unwrap()
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
        let ratio = in_a_child("memory-payload/64", allocator.name, "ratio");
        let most = if allocator.kind == Kind::Ours {
            1.5
        } else {
            3.0
        };
        assert!((1.0..most).contains(&ratio), "{}: {ratio}", allocator.name);
    }
}

/// The array of the objects' addresses, an eighth of their bytes, is not counted.
#[test]
fn five_million_objects_take_little_more_than_their_bytes() {
    let ratio = in_a_child("cold-large/64", "cache", "ratio");
    assert!((1.0..1.05).contains(&ratio), "{ratio}");
}

/// Each thread keeps some of the 4 KiB that it used. The stacks, 16 KiB each, are not counted.
#[test]
fn a_thousand_threads_keep_less_than_their_stacks() {
    for allocator in ["cache", "heap"] {
        for metric in ["while idle", "at the end"] {
            let mib = in_a_child("memory-threads/64", allocator, metric);
            assert!((1.0..40.0).contains(&mib), "{allocator}, {metric}: {mib}");
        }
    }
    let glibc = in_a_child("memory-threads/64", "glibc", "while idle");
    assert!(glibc < 8.0, "{glibc}");
}

#[test]
fn a_quick_run_leaves_long_rows_out_unless_they_are_named() {
    let rows = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_slabyard-bench"))
            .arg("--list")
            .args(arguments)
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    assert!(!rows(&["--quick"]).contains("cold-large"));
    assert!(rows(&["--quick", "--rows=cold"]).contains("cold-large/64"));
    assert!(rows(&[]).contains("cold-large/64"));
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
