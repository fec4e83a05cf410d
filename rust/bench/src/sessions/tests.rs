//! Short days in this process, and tables of figures that are made up.

use super::day::{load_at, BEGIN, BETWEEN, DAY};
use super::*;

const SHORT: Extent = Extent {
    users: 3000,
    minute: Duration::ZERO,
    seed: 1,
};

fn value(found: &[Figure], metric: &str, who: &str) -> f64 {
    median(found, ROW, metric, who).unwrap_or_else(|| panic!("{metric} of {who}"))
}

#[test]
fn a_day_is_the_same_with_each_store() {
    let mut same = Same::default();
    for who in NAMES {
        let found = measure(who, SHORT).unwrap();
        let of = |metric| value(&found, metric, who);
        same.check(of(SUM), who).unwrap();
        assert!(of(CREATE.0) > 9_000.0 && of(LOOK_UP.0) > of(CREATE.0));
        assert!(of(CREATE.1) > 0.0 && of(LOOK_UP.1) > 0.0 && of(EXPIRE.1) > 0.0);
        let curve = curve(&found, who);
        assert_eq!(curve.len(), (DAY / BETWEEN) as usize + 1);
        // Five in six users have a session at 20:00, and one in twelve at 05:00.
        let at = |hour: u32| curve[((hour * 60 + DAY - BEGIN) % DAY / BETWEEN) as usize].0;
        assert!((2400.0..2700.0).contains(&at(20)), "{}", at(20));
        assert!((150.0..500.0).contains(&at(5)), "{}", at(5));
    }
    let other = measure(MOVABLE, Extent { seed: 2, ..SHORT }).unwrap();
    assert!(same.check(value(&other, SUM, MOVABLE), "seed 2").is_err());
    assert!(measure("nonsense", SHORT).is_none());
}

#[test]
fn the_load_rises_and_falls_once_a_day() {
    assert!((load_at(20 * 60) - 1.0).abs() < 1e-9);
    assert!((load_at(5 * 60) - 0.02).abs() < 1e-9);
    let rises = |minute: &u32| load_at((minute + 1) % DAY) > load_at(*minute);
    assert!((5 * 60..20 * 60).all(|minute| rises(&minute)));
    assert_eq!((0..DAY).filter(rises).count(), 15 * 60);
}

#[test]
fn a_child_is_told_everything() {
    let told = arguments("glibc", SHORT);
    assert_eq!(parse(&told), Some(("glibc", SHORT)));
    assert_eq!(parse(&told[1..]), None);
    let unclear = ["glibc", "many", "0", "1"].map(String::from);
    assert_eq!(parse(&unclear), None);
}

#[test]
fn the_trough_is_after_the_peak() {
    // Sessions and MiB: few at first, most in the middle, and fewer at the end.
    let curve = [(1.0, 0.5), (1e6, 200.0), (5e5, 220.0), (1e5, 50.0)];
    let found = summary(&curve).unwrap();
    assert_eq!((found.peak, found.trough), (220.0, 50.0));
    assert_eq!(found.mean, 470.5 / 4.0);
    assert_eq!(found.each, [200.0 * MIB / 1e6, 50.0 * MIB / 1e5]);
    assert_eq!(summary(&[]), None);
}

#[test]
fn the_table_and_the_file_have_the_live_sessions_and_each_store() {
    let reading = |who: &str, at, sessions, mib| {
        let figure =
            |metric, value| Figure::new(ROW, &metric_of_reading(metric, at), who, 1, value);
        [figure(SESSIONS, sessions), figure(RESIDENT, mib)]
    };
    let of_mib = |mib: f64| mib * MIB / size_of::<Session>() as f64;
    let found: Vec<Figure> = [
        reading(MOVABLE, 0, of_mib(100.0), 120.0),
        reading(MOVABLE, 1, of_mib(10.0), 20.0),
        reading("glibc", 0, of_mib(100.0), 130.0),
        reading("glibc", 1, of_mib(10.0), 130.0),
        [
            Figure::new(ROW, LOOK_UP.1, "glibc", 1, 12.5),
            Figure::new(ROW, CPU, "glibc", 1, 90.0),
        ],
    ]
    .concat();
    let names = [MOVABLE, "glibc"];
    let text = table(&names, &found);
    let line = |who: &str| {
        let begin = format!("| {who} |");
        let found = text.lines().find(|line| line.starts_with(&begin));
        found.unwrap_or_else(|| panic!("{who}: {text}"))
    };
    let live = "| 100.0 | 10.00 | 55.00 | 152.0 | 152.0 | - | - | - | - | - |";
    assert!(line("live sessions").ends_with(live), "{text}");
    assert!(line(&named(MOVABLE)).contains("| 120.0 | 20.00 | 70.00 | 182.4 | 304.0 |"));
    let glibc = "| 130.0 | 130.0 | 130.0 | 197.6 | 1976 | - | 12.50 | - | 90.00 | - |";
    assert!(line(&named("glibc")).ends_with(glibc), "{text}");

    let file = picture(&names, &found);
    assert_eq!(file["live"], json!([100.0, 10.0]));
    assert_eq!(file["stores"][1]["name"], "glibc");
    assert_eq!(file["stores"][1]["curve"], json!([130.0, 130.0]));
}
