//! A short run of the part `service` prints its table and keeps the raw data. The tool belongs to
//! another package: `cargo test --workspace` builds it too. The run is left out if there is no tool.

mod common;

use common::{has, kept_files, refuses, tool_is_built};

#[test]
fn a_run_prints_a_table_and_keeps_the_readings() {
    if !tool_is_built() {
        return;
    }
    let kept = kept_files("service", &["--quick", "--allocators=slabyard"]);
    let lines = [
        "| resident MiB |",
        "\n| live |",
        "\n| glibc 2.",
        "\n| slabyard ",
    ];
    has(&kept.shown, &lines);
    // Of each allocator: mean, peak and trough, of its own memory and of the live one; CPU time.
    let raw = kept.file("csv");
    assert_eq!(raw.lines().count(), 1 + 2 * (2 * 3 + 1));
    let value = |begin: &str| -> f64 {
        let line = raw.lines().find(|line| line.starts_with(begin)).unwrap();
        line.rsplit(',').next().unwrap().parse().unwrap()
    };
    let live = |metric: &str| value(&format!("service,{metric},live,"));
    assert!(live("peak MiB") > 2.0 * live("mean MiB"), "{raw}");
    assert!(live("mean MiB") > 1.5 * live("trough MiB"), "{raw}");
    for who in ["glibc", "slabyard"] {
        let own = |metric: &str| value(&format!("service,{metric},{who},"));
        assert!(own("peak MiB") > live("peak MiB"), "{raw}");
        assert!(own("cpu s") > 0.1, "{raw}");
    }
    // Three days of 48 readings.
    assert_eq!(kept.file("readings.csv").lines().count(), 1 + 2 * 3 * 48);
}

#[test]
fn what_is_not_known_is_refused() {
    let unknown: [&[&str]; 2] = [&["--allocators=nonsense"], &["--tool=/nowhere/slabyard"]];
    refuses("service", &unknown);
}
