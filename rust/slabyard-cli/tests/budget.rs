//! Tests of limits: `slabyard run --limit-peak ...`.

mod common;

use common::{done, ends_with, program, slabyard, stderr};
use std::path::Path;
use tempfile::TempDir;

fn sites(folder: &TempDir) -> String {
    let binary = program(folder, "sites", &["-O2", "-g"]);
    binary.to_str().unwrap().to_string()
}

fn run<'a>(limits: &[&'a str], binary: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    let parts = [&["run"], limits, &["--", binary], words];
    parts.concat()
}

#[test]
fn a_program_within_its_limits_ends_as_it_does_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let binary = sites(&folder);
    let limits = [
        "--limit-peak",
        "1M",
        "--limit-live-at-exit",
        "15000",
        "--limit-allocations",
        "141",
    ];
    done(folder.path(), run(&limits, &binary, &["plain"]));
    let output = slabyard(folder.path(), run(&limits, &binary, &[]));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn each_limit_that_is_exceeded_is_said_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let binary = sites(&folder);
    let fails = |limit: &str, value: &str, extra: &[&str]| {
        let limits = [&[limit, value], extra].concat();
        ends_with(folder.path(), run(&limits, &binary, &["plain"]), 1)
    };
    let peak = fails("--limit-peak", "100k", &["--flame", "peak.svg"]);
    assert!(
        peak.contains("103 KiB in use at the peak, over the limit of 100 KiB"),
        "{peak}"
    );
    assert!(peak.contains("    keep at sites.c:"), "{peak}");
    let svg = std::fs::read_to_string(folder.path().join("peak.svg")).unwrap();
    assert!(svg.contains("keep ("), "{svg}");
    let left = fails("--limit-live-at-exit", "0", &[]);
    assert!(
        left.contains("14.6 KiB not freed at exit, over the limit of 0 B"),
        "{left}"
    );
    let count = fails("--limit-allocations", "140", &[]);
    assert!(
        count.contains("141 allocations, over the limit of 140"),
        "{count}"
    );
}

#[test]
fn limits_hold_for_children_unless_a_name_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let binary = sites(&folder);
    let script = format!("{binary} plain; exit 0");
    let words = |name: &[&str]| {
        let parts = [
            &["run", "--limit-peak", "100k"],
            name,
            &["--", "sh", "-c", &script],
        ];
        parts
            .concat()
            .iter()
            .map(|word| word.to_string())
            .collect::<Vec<_>>()
    };
    let said = ends_with(folder.path(), words(&[]), 1);
    assert!(said.contains("sites (process "), "{said}");
    done(folder.path(), words(&["--limit-of", "other"]));
}

#[test]
fn buffers_of_stdio_are_not_left_objects() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("prints.c");
    std::fs::write(
        &source,
        "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n",
    )
    .unwrap();
    let binary = folder.path().join("prints");
    let status = std::process::Command::new("cc")
        .arg("-o")
        .args([&binary, &source])
        .status();
    assert!(status.unwrap().success());
    let limits = ["--limit-live-at-exit", "0"];
    done(folder.path(), run(&limits, binary.to_str().unwrap(), &[]));
}

#[test]
fn wrong_limits_are_refused() {
    let said = ends_with(
        Path::new("."),
        ["run", "--limit-peak", "64X", "--", "true"],
        2,
    );
    assert!(said.contains("such as 65536, 64k, 64M or 1.5G"), "{said}");
    let said = ends_with(Path::new("."), ["run", "--flame", "a.svg", "--", "true"], 2);
    assert!(said.contains("need a limit"), "{said}");
    let both = [
        "run",
        "--limit-peak",
        "1",
        "--options",
        "check",
        "--",
        "true",
    ];
    assert!(ends_with(Path::new("."), both, 2).contains("cannot be used with"));
}
