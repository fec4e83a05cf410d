//! A short run of the part `sessions` prints its table and keeps the raw data and the file for the
//! picture.

mod common;

use common::{has, kept_files, refuses, run_part};

#[test]
fn a_run_prints_a_table_and_keeps_the_readings() {
    let short = ["--users=20000", "--minute-ms=0", "--only=movable,glibc"];
    let kept = kept_files("sessions", &short);
    let lines = [
        "\nstores         slabyard ",
        "\nrun            20000 users, ",
        "| resident MiB | peak | trough |",
        "\n| live sessions | ",
        ", sessions that move | ",
        "\n| glibc 2.",
        " sessions created, ",
    ];
    has(&kept.shown, &lines);
    // Of each store: the sum, two CPU times, a number and a time of three kinds of operations, and
    // 97 readings of two figures.
    let raw = kept.file("csv");
    assert_eq!(raw.lines().count(), 1 + 2 * (1 + 2 + 3 * 2 + 97 * 2));
    let value = |metric: &str, who: &str| -> f64 {
        let begin = format!("sessions,{metric},{who},1,");
        let line = raw.lines().find(|line| line.starts_with(&begin)).unwrap();
        line[begin.len()..].parse().unwrap()
    };
    // At 20:00 there are more sessions than at 05:00, and the same with each store.
    for reading in [0, 56, 92] {
        let of = |who| value(&format!("sessions {reading}"), who);
        assert_eq!(of("movable"), of("glibc"));
    }
    let sessions = |reading: usize| value(&format!("sessions {reading}"), "movable");
    assert!(sessions(56) > 5.0 * sessions(92) && sessions(0) == 0.0);

    let file: serde_json::Value = serde_json::from_str(&kept.file("json")).unwrap();
    assert_eq!(file["live"].as_array().unwrap().len(), 97);
    for (store, name) in [(0, "movable"), (1, "glibc")] {
        assert_eq!(file["stores"][store]["name"], name);
        let curve = file["stores"][store]["curve"].as_array().unwrap();
        let mib = |reading: usize| curve[reading].as_f64().unwrap();
        assert!(curve.len() == 97 && mib(56) > file["live"][56].as_f64().unwrap());
    }
}

#[test]
fn what_is_not_known_is_refused() {
    refuses("sessions", &[&["--only=nonsense"]]);
    let child = run_part("sessions", &["--child", "nonsense", "10", "0", "1"]);
    assert_eq!(child.status.code(), Some(2), "{child:?}");
}
