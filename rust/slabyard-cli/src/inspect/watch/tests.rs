//! Rings of snapshots as time lines and pages.

use super::super::account::{Account, CacheRow, What};
use super::super::image::Weight;
use super::super::snapshot::Snapshot;
use super::page;
use super::ring::Ring;
use super::timeline::{Layer, Timeline};
use std::fs;
use std::path::Path;

const KIB: u64 = 1 << 10;

/// A snapshot with live objects of two caches: one grows, the other is constant.
fn snapshot(time: f64, pid: u32, live: u64) -> Snapshot {
    let cache = |name: &str, live| CacheRow {
        name: name.to_string(),
        object_bytes: 64,
        live_objects: live,
        live_bytes: live * 64,
        ..CacheRow::default()
    };
    let bytes = live * 64 + 640;
    let resident = [
        (What::Live, bytes),
        (What::Tails, 4 * KIB),
        (What::Brk, KIB),
    ];
    let weight = |(what, bytes)| {
        (
            what,
            Weight {
                bytes,
                shares: bytes as f64,
            },
        )
    };
    let mut snapshot = Snapshot::of(Account {
        pid,
        program: "<b>market</b>".to_string(),
        resident: resident.map(weight).into(),
        rss_bytes: bytes + 5 * KIB,
        caches: vec![cache("<order>", live), cache("trade", 10)],
        ..Account::default()
    });
    snapshot.time = time;
    snapshot
}

fn ring(folder: &Path) {
    let mut ring = Ring::open(folder, 100).unwrap();
    for minute in 0..60 {
        let pid = if minute < 40 { 7 } else { 8 };
        let live = (minute % 40) * 100;
        ring.add(&snapshot(1e9 + 60.0 * minute as f64, pid, live))
            .unwrap();
    }
}

#[test]
fn a_time_line_has_layers_restarts_and_the_caches_that_changed() {
    let folder = tempfile::tempdir().unwrap();
    ring(folder.path());
    let timeline = Timeline::read(folder.path()).unwrap();
    assert_eq!(timeline.points.len(), 60);
    assert_eq!(timeline.seconds(), 59.0 * 60.0);
    assert_eq!(timeline.restarts(), [1e9 + 40.0 * 60.0]);
    let point = &timeline.points[1];
    assert_eq!(point.layers[Layer::Live as usize], 7040);
    assert_eq!(point.layers[Layer::Lost as usize], 4 * KIB);
    assert_eq!(point.layers[Layer::Other as usize], KIB);
    let changed = timeline.changed_caches(5);
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].0, "<order>");
    assert_eq!(changed[0].1[39], 3900 * 64);
}

#[test]
fn files_that_make_no_sense_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let error = Timeline::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("has 0 snapshots"), "{error}");
    ring(folder.path());
    let damaged = folder.path().join("2001-09-09T01-46-40.001Z.json");
    fs::write(damaged, "{").unwrap();
    let timeline = Timeline::read(folder.path()).unwrap();
    assert_eq!((timeline.points.len(), timeline.left_out.len()), (60, 1));
}

#[test]
fn the_page_is_well_formed_and_has_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    ring(folder.path());
    let text = page::render(&Timeline::read(folder.path()).unwrap());
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    let page = roxmltree::Document::parse_with_options(&text, options).unwrap();
    let all = |name| {
        let nodes = page.descendants();
        nodes.filter(|node| node.tag_name().name() == name).count()
    };
    assert_eq!((all("svg"), all("table")), (4, 2));
    assert!(text.contains("Resident memory grew by"), "{text}");
    assert!(text.contains("started again once"));
    assert!(text.contains("&lt;order&gt;") && !text.contains("<order>"));
}
