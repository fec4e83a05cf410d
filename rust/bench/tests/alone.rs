//! Short runs of the parts `cpp`, `rust` and `survivors`: they print a block for each row and a table, and write
//! this text and the figures to files.

use common::{kept_run, refuses};
use slabyard_bench::alone::Row;
use slabyard_bench::kernels::LAYOUTS;
use slabyard_bench::{cpp, rust, survivors};

mod common;

/// Runs these rows, and compares the printed text with the files.
fn short_run<R: Row>(rows: &[&str]) {
    let only = format!("--only={}", rows.join(","));
    let (text, raw) = kept_run(R::COMMAND, &["--repeats=1", "--sample-ms=1", &only]);
    for row in rows.iter().map(|name| R::find(name).unwrap()) {
        is_kept(row, &raw);
        is_shown(row, &text);
    }
    assert_eq!(raw.lines().next(), Some("row,metric,who,layout,value"));
}

/// A figure of each metric of each contender of the row, in each copy of the loops.
fn is_kept(row: impl Row, raw: &str) {
    for who in row.names() {
        for metric in row.metrics() {
            let begin = format!("{},{metric},{who},", row.name());
            let lines: Vec<&str> = raw.lines().filter_map(|l| l.strip_prefix(&begin)).collect();
            assert_eq!(lines.len(), row.copies(), "{begin}");
            for line in lines {
                let (layout, value) = line.split_once(',').unwrap();
                assert!(layout.parse::<usize>().unwrap() < LAYOUTS, "{line}");
                assert!(value.parse::<f64>().unwrap() > 0.0, "{begin}{line}");
            }
        }
    }
}

/// The text has a block, in which the peer's ratio is 1, and a line of a table.
fn is_shown(row: impl Row, text: &str) {
    let head = format!("\n{}: {}\n", row.name(), row.describe());
    let (_, block) = text.split_once(&head).unwrap();
    let own = format!("    {} ", row.peer());
    let peer = block.lines().find(|line| line.starts_with(&own)).unwrap();
    assert!(peer.ends_with(" 1.00"), "{peer}");
    let columns = format!("\n| {} | {} |\n", row.metrics()[0], row.names().join(" | "));
    assert!(text.contains(&columns), "{columns}");
    let line = format!("\n| `{}` | ", row.name());
    assert!(text.contains(&line), "{line}");
}

#[test]
fn containers_are_measured() {
    short_run::<cpp::Row>(&["single-pair", "pmr-list-queue/1000", "two-list-queue/1000"]);
}

#[test]
fn the_rust_crate_is_measured() {
    short_run::<rust::Row>(&["churn/64", "map-pair/1000"]);
}

#[test]
fn survivors_are_measured() {
    short_run::<survivors::Row>(&["memory-random/1024/1", "handle-get"]);
}

#[test]
fn what_is_not_known_is_refused() {
    let child = ["--child", "nonsense/1", "nobody", "0", "1000", "1"];
    for part in ["cpp", "rust", "survivors"] {
        refuses(part, &[&["--only=nonsense"], &child]);
    }
}
