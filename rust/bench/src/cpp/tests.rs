use super::kernels::{self, Maker, Operation, Places};
use super::rows::{Row, What};
use crate::alone::job::{Effort, Job};
use crate::alone::{Row as _, SUM};
use crate::kernels::LAYOUTS;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

const OPERATIONS: [Operation; 4] = [
    Operation::Pair,
    Operation::Replace,
    Operation::Find,
    Operation::Build,
];

/// Some pools belong to the process and have no locks: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs all operations of a container, and returns their sums.
fn sums(maker: Maker) -> Vec<u64> {
    let state = maker.open();
    let mut places = Places::new(50);
    // SAFETY: this thread has all containers of the state.
    let mut container = unsafe { state.begin(&mut places, 7) };
    let mut sums = Vec::new();
    for full in [false, true] {
        if full {
            sums.push(container.fill());
        }
        for operation in OPERATIONS {
            if maker.has(operation) && operation.takes_full() == full {
                let (done, sum) = container.run(operation, 300);
                assert_eq!(done, 300);
                sums.push(sum);
            }
        }
    }
    sums.push(container.clear());
    sums
}

#[test]
fn everyone_does_the_same() {
    let _alone = ALONE.lock();
    let mut of_kind: HashMap<&str, Vec<u64>> = HashMap::new();
    for layout in 0..LAYOUTS {
        for maker in kernels::all(layout) {
            let found = sums(maker);
            let (first, clear) = (found[found.len() - 2], found[found.len() - 1]);
            assert!(first != 0 && clear != 0, "{} {}", maker.kind(), maker.who());
            let expected = of_kind.entry(maker.kind()).or_insert_with(|| found.clone());
            assert_eq!(*expected, found, "{} of {}", maker.kind(), maker.who());
        }
    }
    assert_eq!(of_kind.len(), 7);
}

#[test]
fn everyone_has_a_figure_in_every_row() {
    let _alone = ALONE.lock();
    for row in Row::all() {
        let small = Row {
            live: row.live.min(200),
            ..row
        };
        assert!(row.names().contains(&row.peer()), "{}", row.name());
        for who in row.names() {
            let job = Job {
                row: small,
                who: who.to_owned(),
                effort: Effort {
                    sample: Duration::from_micros(50),
                    layouts: vec![1],
                    seed: 3,
                },
            };
            let figures = job.figures().unwrap();
            let metrics: Vec<&str> = figures.iter().map(|one| one.metric.as_str()).collect();
            assert_eq!(metrics, [row.metrics(), &[SUM]].concat(), "{}", row.name());
            let mut values = figures.iter().map(|one| one.value);
            assert!(values.all(|value| value >= 0.0), "{figures:?}");
            assert!(figures[0].value > 0.0 || row.what == What::Memory);
        }
    }
}

#[test]
fn rows_are_found_by_their_names() {
    let names: HashSet<String> = Row::all().into_iter().map(Row::name).collect();
    assert_eq!(names.len(), Row::all().len());
    for row in Row::all() {
        assert_eq!(Row::find(&row.name()), Some(row));
    }
    assert!(Row::find("map-replace/7").is_none());
}

#[test]
fn threads_share_only_what_is_locked() {
    for row in Row::all().into_iter().filter(|row| row.threads > 1) {
        for name in row.names() {
            let own = name.contains("unsynchronized") || name.contains("null_mutex");
            assert!(!own, "{name} in {}", row.name());
        }
        assert!(row.names().contains(&"synchronized_pool_resource"));
    }
}

#[test]
fn without_boost_its_columns_are_left_out() {
    let row = Row::find("single-pair").unwrap();
    let is_there = kernels::boost().is_some();
    assert_eq!(row.names().contains(&"object_pool"), is_there);
    let line = &Row::conditions()[0];
    assert_eq!(line.contains("left out"), !is_there, "{line}");
}
