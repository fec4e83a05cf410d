//! A short run of the part `littered` prints what each allocator gains on a littered heap, and
//! keeps the raw data. The libraries are examples, which cargo builds before its tests. The tool
//! belongs to another package: `cargo test --workspace` builds it too. The runs are left out if
//! there is no tool.

mod common;

use common::{has, kept_run, refuses_unknown_names, tool_is_built};

/// The text and the raw data of a run.
fn short_run(arguments: &[&str]) -> (String, String) {
    let common = ["--quick", "--repeats=1", "--sample-ms=1"];
    kept_run("littered", &[&common, arguments].concat())
}

#[test]
fn loops_are_measured_on_both_heaps() {
    if !tool_is_built() {
        return;
    }
    let (shown, raw) = short_run(&["--only=phases/2000"]);
    let expected = [
        "\nphases/2000/clean: ",
        "\nphases/2000/littered: ",
        "\n| `phases/2000` | cache-new | ",
        "\n| `phases/2000` | region | ",
        "to the best malloc, littered |\n",
    ];
    has(&shown, &expected);
    for who in [
        "heap", "glibc", "cache", "epochs", "pool", "region", "bumpalo",
    ] {
        for state in ["clean", "littered"] {
            for metric in ["ns", "make ns", "read ns", "free ns", "MiB"] {
                let begin = format!("phases/2000/{state},{metric},{who},0,");
                assert!(raw.contains(&begin), "{begin} is not in {raw}");
            }
        }
    }
    assert!(!raw.contains("phases/2000/clean,ns,cache-new,"));
}

#[test]
fn programs_are_measured_on_both_heaps() {
    if !tool_is_built() {
        return;
    }
    let (shown, raw) = short_run(&["--only=map,lua", "--allocators=slabyard,mimalloc"]);
    let expected = [
        "litter, blocks ",
        "\nCPU time on a littered heap, in times of glibc's",
        "\n| `map` | 1.00 | ",
        "\n| geometric mean | ",
        "\nMiB that the program adds at its peak",
    ];
    has(&shown, &expected);
    for who in ["glibc", "slabyard", "mimalloc"] {
        for metric in ["clean ms", "littered ms", "clean MiB", "littered MiB"] {
            let begin = format!("map,{metric},{who},0,");
            assert!(raw.contains(&begin), "{begin} is not in {raw}");
        }
    }
    // A program that is not installed is left out with a line.
    assert_ne!(
        shown.contains("left out       lua:"),
        raw.contains("\nlua,")
    );
}

#[test]
fn what_is_not_known_is_refused() {
    refuses_unknown_names("littered");
}
