//! Measures a row about containers, inside a process that does nothing else.

use super::kernels::{Container, Maker, Operation, Places, State};
use super::rows::{Row, What};
use crate::alone::job::{Effort, Job, Sampled};
use crate::alone::SUM;
use crate::machine::{cpu_ns, resident, team, wall_of};
use std::sync::Mutex;

/// Operations before the time is taken. Their sums have to be equal for all contenders.
const FIRST: u64 = 1_000;

/// The sum as a figure, which has 53 bits.
fn figure_of(sum: u64) -> f64 {
    (sum & u64::from(u32::MAX)) as f64
}

/// Fills the container and replaces as many elements as there are, if the operation needs a full
/// container. Returns the sum of the operations.
fn settle(container: &mut Container, operation: Operation, live: usize) -> u64 {
    if !operation.takes_full() {
        return 0;
    }
    let sum = container.fill();
    let (_, replaced) = container.run(Operation::Replace, live as u64);
    sum.wrapping_add(replaced)
}

/// The number of operations that take as long as a sample should.
fn count_for(effort: &Effort, each: f64) -> u64 {
    (effort.sample.as_nanos() as f64 / each.max(0.01)) as u64 + 1
}

fn time(maker: Maker, operation: Operation, live: usize, effort: &Effort) -> Sampled {
    let state = maker.open();
    let mut places = Places::new(live);
    // SAFETY: this thread has all containers of the state.
    let mut container = unsafe { state.begin(&mut places, effort.seed) };
    let settled = settle(&mut container, operation, live);
    let (_, first) = container.run(operation, FIRST);
    let mut timed = |count| {
        let before = cpu_ns();
        let (done, _) = container.run(operation, count);
        (cpu_ns() - before) as f64 / done as f64
    };
    let each = timed(FIRST);
    let ns = timed(count_for(effort, each));
    let sum = figure_of(settled.wrapping_add(first));
    Sampled(vec![("ns", ns), (SUM, sum)])
}

/// Runs threads at the same time, each with its own container. Returns the nanoseconds on the clock
/// for an operation of each thread, and the sum of all.
fn together(state: &State, row: Row, operation: Operation, seed: u64, count: u64) -> (f64, u64) {
    let mut rooms: Vec<Places> = (0..row.threads).map(|_| Places::new(row.live)).collect();
    let members: Vec<Mutex<(Container, u64)>> = rooms
        .iter_mut()
        .zip(seed..)
        // SAFETY: rows of several threads have only contenders for several threads.
        .map(|(places, seed)| Mutex::new((unsafe { state.begin(places, seed) }, 0)))
        .collect();
    let times = team(
        row.threads,
        || (),
        |index| {
            let (container, sum) = &mut *members[index].lock().expect("no thread panics");
            *sum = settle(container, operation, row.live);
        },
        |index| {
            let (container, sum) = &mut *members[index].lock().expect("no thread panics");
            *sum = sum.wrapping_add(container.run(operation, count).1);
        },
    );
    let sums = members
        .iter()
        .map(|member| member.lock().expect("no thread panics").1);
    let sum = sums.fold(0, u64::wrapping_add);
    (wall_of(&times) as f64 / count as f64, sum)
}

fn time_together(maker: Maker, row: Row, operation: Operation, effort: &Effort) -> Sampled {
    let state = maker.open();
    let run = |count| together(&state, row, operation, effort.seed, count);
    let (_, sum) = run(FIRST);
    let (each, _) = run(100 * FIRST);
    let (ns, _) = run(count_for(effort, each));
    Sampled(vec![("ns", ns), (SUM, figure_of(sum))])
}

/// Resident bytes for each element: with all elements; after all were erased; and after the
/// container was destroyed and the state was trimmed.
fn memory(maker: Maker, live: usize, effort: &Effort) -> Sampled {
    let mut places = Places::new(live);
    let before = resident();
    let each = || resident().saturating_sub(before) as f64 / live as f64;
    let mut state = maker.open();
    // SAFETY: this thread has all containers of the state.
    let mut container = unsafe { state.begin(&mut places, effort.seed) };
    let filled = container.fill();
    let bytes = each();
    let sum = figure_of(filled.wrapping_add(container.clear()));
    let erased = each();
    drop(container);
    state.trim();
    Sampled(vec![
        ("bytes", bytes),
        ("erased", erased),
        ("trimmed", each()),
        (SUM, sum),
    ])
}

/// Measures in this process.
pub fn run(job: &Job<Row>) -> Option<Vec<Sampled>> {
    let Job { row, who, effort } = job;
    let sampled = |&layout: &usize| {
        let maker = Maker::find(layout, row.kind, who)?;
        Some(match row.what {
            What::Memory => memory(maker, row.live, effort),
            What::Time(operation) if row.threads > 1 => {
                time_together(maker, *row, operation, effort)
            }
            What::Time(operation) => time(maker, operation, row.live, effort),
        })
    };
    effort.layouts.iter().map(sampled).collect()
}
