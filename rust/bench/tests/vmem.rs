//! Short runs of the part `vmem`: segments never overlap and lie within the range, the counts add
//! up, and the command writes what it prints to files.

mod common;

use common::{kept_files, refuses};
use slabyard_bench::kernels::{layouts, verify_live, LAYOUTS, VERIFY};
use slabyard_bench::vmem::fragmentation;
use slabyard_bench::vmem::kernels::{fits, Chase, Population, Segment, Steady, Step};
use slabyard_bench::vmem::{pairs, segments, Effort};
use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

/// The process has one ledger for the verifying layout: one measurement at a time.
static ALONE: Mutex<()> = Mutex::new(());

const TINY: Effort = Effort {
    sample: Duration::from_micros(20),
    repeat: 1,
};

/// Checks that segments lie in `0..units` and do not overlap. Returns the live units.
fn apart(live: &[Segment], units: usize, what: &str) -> usize {
    let mut sorted: Vec<Segment> = live
        .iter()
        .copied()
        .filter(|one| !one.is_refused())
        .collect();
    sorted.sort_by_key(|one| one.value);
    let mut end = 0;
    for one in &sorted {
        assert!(one.value >= end, "{what}: {one:?} begins before {end}");
        end = one.value + one.size;
    }
    assert!(end <= units, "{what}: {end} is past the end");
    sorted.iter().map(|one| one.size).sum()
}

#[test]
fn segments_replaced_at_random_never_overlap() {
    let (units, live) = (12_000, 500);
    for fit in fits() {
        let mut steady = Steady::open(fit, units, live, 32, 7);
        for round in 0..200 {
            let mut steps = Vec::new();
            steady.replace(100, |step| steps.push(step));
            assert_eq!(
                steps,
                [Step::Chosen, Step::Freed, Step::Sized, Step::Allocated]
            );
            let what = format!("{} round {round}", fit.name());
            let volume = apart(steady.segments(), units, &what);
            let gaps = steady.gaps();
            assert_eq!(gaps.units, units - volume, "{what}");
            assert!(gaps.largest <= gaps.units && gaps.segments > 0, "{what}");
        }
        let counts = steady.counts();
        let refused = steady
            .segments()
            .iter()
            .filter(|one| one.is_refused())
            .count();
        let live = (counts.allocs - counts.frees) as usize;
        assert_eq!(live + refused, 500, "{}", fit.name());
        assert!(counts.probes >= counts.allocs, "{}", fit.name());
        assert!(counts.steps > 0, "{}", fit.name());
    }
}

#[test]
fn a_population_holds_its_volume_and_never_overlaps() {
    let units = 1 << 16;
    for fit in fits() {
        let mut population = Population::open(fit, units, units / 4, 3);
        let mut seen = HashSet::new();
        for _ in 0..20 {
            let (asked, refused) = population.age(units / 2, units as u64);
            assert!(asked > 0 && refused < asked, "{}", fit.name());
            let volume = apart(population.segments(), units, fit.name());
            let gaps = population.gaps();
            assert_eq!(gaps.units, units - volume, "{}", fit.name());
            // A segment died last. No refusal is expected while half of the range is free.
            let short = units / 2 - 1023;
            assert!(volume >= short || refused > 0, "{}: {volume}", fit.name());
            seen.extend(population.segments().iter().map(|one| one.size));
        }
        // Each octave of sizes occurs, up to the largest.
        for octave in 0..10 {
            let sizes = 1 << octave..2 << octave;
            assert!(sizes.into_iter().any(|size| seen.contains(&size)));
        }
        assert!(seen.iter().all(|size| (1..1024).contains(size)));
    }
}

#[test]
fn the_same_seed_asks_every_fit_for_the_same_whatever_is_refused() {
    let units = 1 << 16;
    let outcome = |fit| {
        let mut population = Population::open(fit, units, units / 4, 11);
        let (_, refused) = population.age(units / 100 * 96, 20 * units as u64);
        let live = population.segments().iter();
        (refused, live.map(|one| one.size).collect::<Vec<_>>())
    };
    let outcomes: Vec<_> = fits().iter().map(outcome).collect();
    assert!(outcomes.iter().all(|one| one.1 == outcomes[0].1));
    assert!(outcomes.iter().any(|one| one.0 != outcomes[0].0));
}

#[test]
fn a_walk_meets_every_node_before_one_comes_again() {
    let mut chase = Chase::open(1000 * 64, 5);
    assert_eq!(chase.nodes(), 1000);
    let met: HashSet<usize> = (0..1000).map(|_| chase.walk(1)).collect();
    assert_eq!(met.len(), 1000);
    assert_eq!(chase.walk(1000), 0);
}

#[test]
fn cached_objects_are_never_shared_or_lost() {
    let _alone = ALONE.lock();
    for row in pairs::rows(false) {
        let figures = pairs::measure(&row, &[VERIFY], &TINY);
        assert_eq!(figures.len(), 4, "{}", row.name());
        assert!(figures.iter().all(|one| one.value > 0.0), "{}", row.name());
        assert_eq!(verify_live(), 0, "{} left objects", row.name());
    }
}

#[test]
fn every_row_gives_figures_in_its_table() {
    let _alone = ALONE.lock();
    for row in pairs::rows(true) {
        let figures = pairs::measure(&row, &layouts(1), &TINY);
        assert_eq!(figures.len(), 4 * LAYOUTS);
        let text = pairs::block(&row, &figures);
        for expected in ["cache-called", "arena", "arena-uncached", "1.00"] {
            assert!(text.contains(expected), "{expected} is not in {text}");
        }
    }
    let rows: Vec<_> = segments::rows(true)
        .into_iter()
        .filter(|row| row.live <= 1000)
        .collect();
    let measured = rows.iter().map(|row| segments::measure(row, &TINY));
    let figures: Vec<_> = measured.flatten().collect();
    assert!(figures.iter().all(|one| one.value.is_finite()));
    let text = segments::block(&rows, &figures);
    for fit in fits() {
        assert_eq!(text.matches(fit.name()).count(), rows.len(), "{text}");
    }
}

#[test]
fn fits_differ_in_what_they_refuse() {
    let effort = fragmentation::Effort {
        seeds: 1,
        turnovers: 4,
        between: 2,
        settling: 1,
        counting: 1,
    };
    let curves = fragmentation::run(&effort);
    assert_eq!(curves.len(), fits().len());
    for one in &curves {
        assert_eq!(one.wear.len(), 3, "{}", one.fit);
        assert!(one.wear.iter().all(|point| point.free > 0.0));
        let (first, last) = (one.filling.first().unwrap(), one.filling.last().unwrap());
        assert!(first.value < last.value, "{}: fuller is no worse", one.fit);
    }
    let text = fragmentation::block(&curves, &effort);
    assert!(curves.iter().all(|one| text.contains(one.fit)), "{text}");
}

#[test]
fn the_command_keeps_what_it_shows() {
    let arguments = [
        "--quick",
        "--repeats=1",
        "--sample-ms=1",
        "--only=pairs,fragmentation",
    ];
    let kept = kept_files("vmem", &arguments);
    // Two loops on one and two threads, four sides, and the heading.
    assert_eq!(kept.file("csv").lines().count(), 1 + 4 * 4 * LAYOUTS);
    assert!(kept.file("fragmentation.csv").lines().count() > 4 * fits().len());
    assert!(kept.file("svg").trim_end().ends_with("</svg>"));
}

#[test]
fn what_is_not_known_is_refused() {
    let child = ["--child", "nonsense/1", "1000", "0"];
    refuses("vmem", &[&["--only=nonsense"], &child]);
}
