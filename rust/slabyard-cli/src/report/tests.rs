//! The page is well-formed whatever the program is called, and says what the figures say.

use super::*;
use crate::plan::SizeClass;
use crate::replay::measure::{Figure, Latency};

fn measured(name: &str, ns: f64) -> Measured {
    let all = Latency {
        calls: 1111,
        p50: ns,
        p99: ns * 2.0,
        p999: ns * 3.0,
        p9999: ns * 40.0,
        histogram: vec![(ns, 1000), (ns * 2.0, 100), (ns * 9.0, 10), (ns * 90.0, 1)],
        ..Latency::default()
    };
    Measured {
        name: name.to_string(),
        version: "1 <beta>".to_string(),
        ns_per_op: Figure::of(vec![ns, ns + 1.0, ns - 1.0]),
        allocate: all.clone(),
        all,
        peak_resident: Figure::of(vec![ns * 1e6]),
        final_resident: Figure::of(vec![ns * 1e5]),
        resident: vec![(0, 0), (500, 1_000_000), (999, 5)],
        ..Measured::default()
    }
}

fn report() -> Report {
    let mut report = Report {
        command: "/opt/a<b>/prog\u{1} --title \"x & y\" 'z'".to_string(),
        ..Report::default()
    };
    report.summary.operations = 1000;
    report.summary.payload = vec![(0, 0), (400, 900_000), (1000, 3)];
    report.summary.size_classes = vec![
        SizeClass {
            up_to: 8,
            count: 0,
            bytes: 0,
        },
        SizeClass {
            up_to: 16,
            count: 10,
            bytes: 100,
        },
    ];
    report.measurement.repeats = 3;
    report.measurement.allocators = vec![measured("slow", 30.0), measured("quick", 10.0)];
    report
}

fn parse(page: &str) {
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    let document = roxmltree::Document::parse_with_options(page, options);
    document.unwrap_or_else(|error| panic!("{error}\n{page}"));
}

#[test]
fn the_page_is_well_formed_and_needs_nothing_else() {
    let page = html::render(&report());
    parse(&page);
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("@import"));
    let links: Vec<_> = page
        .match_indices("http")
        .map(|(at, _)| &page[at..at + 26])
        .collect();
    assert!(
        links
            .iter()
            .all(|link| link.starts_with("http://www.w3.org/2000/svg")),
        "{links:?}"
    );
    assert!(page.contains("quick, the fastest"));
}

#[test]
fn pages_of_odd_reports_are_well_formed_too() {
    parse(&html::render(&Report::default()));
    let mut failing = report();
    failing.measurement.allocators[0].failure = Some("killed by <signal> 11".to_string());
    failing.damage = Some("damaged at byte 5: \"x\"".to_string());
    let page = html::render(&failing);
    parse(&page);
    assert!(page.contains("failed: killed by &lt;signal&gt; 11"));
    for one in &mut failing.measurement.allocators {
        *one = Measured {
            name: one.name.clone(),
            ..Measured::default()
        };
    }
    parse(&html::render(&failing));
}

#[test]
fn the_table_ranks_and_compares() {
    let text = table::render(&report());
    let quick = text
        .lines()
        .position(|line| line.starts_with("quick"))
        .unwrap();
    let slow = text
        .lines()
        .position(|line| line.starts_with("slow"))
        .unwrap();
    assert!(quick < slow);
    let slow: Vec<_> = text.lines().nth(slow).unwrap().split_whitespace().collect();
    assert_eq!(slow[..5], ["slow", "30.0", "3.00", "3", "%"]);
}

#[test]
fn failures_are_named_and_not_ranked() {
    let mut report = report();
    report.measurement.allocators[1].failure = Some("killed by signal 6".to_string());
    assert_eq!(report.best_ns(), 30.0);
    assert!(table::render(&report).contains("quick FAILED: killed by signal 6"));
}

#[test]
fn figures_are_in_the_json() {
    let json = serde_json::to_value(report()).unwrap();
    let one = &json["measurement"]["allocators"][1];
    assert_eq!(one["name"], "quick");
    assert_eq!(one["ns_per_op"]["median"], 10.0);
    assert_eq!(one["ns_per_op"]["runs"].as_array().unwrap().len(), 3);
}
