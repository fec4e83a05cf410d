//! Has all allocators race, and computes figures from the results of their workers.

use super::budget::Effort;
use super::foretell::{Curve, Foretold, OnGlibc, Program};
use super::histogram::Histogram;
use super::mode::{CALLS, SIZES};
use super::race::{self, Runs};
use super::worker::ProcessResult;
use crate::allocators::{self, NOTHING};
use crate::plan::{MappedPlan, Plan, ROUND_BYTES};
use crate::preload::serving::LIBC;
use crate::ui;
use anyhow::{bail, Context, Result};
use serde::Serialize;
use slabyard_certainty::{self as certainty, Interval};
use slabyard_peers::Allocator;
use std::path::Path;
use std::time::Duration;

/// The maximum number of points of a curve.
const CURVE_POINTS: usize = 320;
/// tcmalloc, which lacks its per-CPU caches here because it is linked statically.
pub const TCMALLOC: &str = "tcmalloc";
/// One value for each run, with their median and their mean.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figure {
    pub median: f64,
    pub mean: f64,
    /// The 95 % confidence interval of the mean; `None` for a single run.
    pub interval: Option<Interval>,
    pub runs: Vec<f64>,
}

impl Figure {
    pub fn of(runs: Vec<f64>) -> Self {
        let mut sorted = runs.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = match sorted.len() {
            0 => 0.0,
            n if n % 2 == 1 => sorted[middle],
            _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
        };
        Figure {
            median,
            mean: certainty::mean(&runs),
            interval: certainty::of_mean(&runs),
            runs,
        }
    }
}

/// Durations of calls in nanoseconds. If a percentile equals the clock's step, it is the step or
/// less.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Latency {
    pub calls: u64,
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub p9999: f64,
    /// (nanoseconds, calls), ascending.
    pub histogram: Vec<(f64, u64)>,
}

impl Latency {
    /// Makes the figures of a histogram. Values below the clock's step count as the step.
    fn of(histogram: &Histogram, ns_per_tick: f64, step_ns: f64) -> Self {
        let ns = |bucket: u32| super::histogram::middle(bucket as usize) * ns_per_tick;
        let points: Vec<_> = histogram
            .counts
            .iter()
            .map(|&(b, count)| (ns(b), count))
            .collect();
        let sum: f64 = points.iter().map(|&(ns, count)| ns * count as f64).sum();
        let calls = histogram.total();
        let quantile = |share| (histogram.quantile(share) * ns_per_tick).max(step_ns);
        Latency {
            calls,
            mean: sum / (calls.max(1)) as f64,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            p9999: quantile(0.9999),
            histogram: points,
        }
    }
}

/// All figures of one allocator.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Measured {
    pub name: String,
    pub version: String,
    /// Why the allocator is measured below its best.
    pub note: Option<&'static str>,
    /// Why figures are missing.
    pub failure: Option<String>,
    /// The CPU time of the replay per operation, and this time without the replay's own.
    pub gross_ns: Figure,
    pub ns_per_op: Figure,
    /// The ratio of its time to that of the fastest, if it is known.
    pub ratio: Option<Interval>,
    /// The rank by time, from 1 on. Allocators that cannot be told apart have the same rank. `None`
    /// after a single run.
    pub rank: Option<usize>,
    pub wall_ns_per_op: Figure,
    pub all: Latency,
    pub allocate: Latency,
    pub free: Latency,
    pub reallocate: Latency,
    /// The step of the clock for single calls.
    pub clock_step_ns: f64,
    /// The total nanoseconds of all calls of a kind (allocate, free, reallocate) with a size of a
    /// class, without the timer's cost.
    pub calls_ns: Vec<Vec<f64>>,
    pub peak_resident: Figure,
    pub final_resident: Figure,
    /// After the call that gives memory back to the system.
    pub purged_resident: Figure,
    pub has_purge: bool,
    /// The peak of the whole program, if it can be foretold.
    pub program_peak: Option<Foretold>,
    /// (operation, bytes).
    pub resident: Vec<(u64, i64)>,
    pub refused: u64,
    /// The number of objects whose contents were checked; 0 if they were not to be checked.
    pub checked: u64,
}

/// The allocators, and the settings of the measurement.
pub struct Options {
    pub allocators: Vec<&'static Allocator>,
    pub repeats: usize,
    pub verify: bool,
    /// Rounds are added until all ratios are known to this fraction.
    pub precision: Option<f64>,
    /// The time for all of it.
    pub within: Duration,
}

/// All figures, and the time of the replay itself.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Measurement {
    pub repeats: usize,
    /// The number of operations that were replayed: those of the recording, or of its first part.
    pub operations: u64,
    /// What there was no time for, in sentences.
    pub left_out: Vec<String>,
    /// The program on glibc, where the peak on other allocators is foretold; otherwise the reason
    /// why it is not.
    pub program: Option<OnGlibc>,
    pub not_foretold: Option<&'static str>,
    /// The CPU time per operation of a replay on the allocator that does nothing.
    pub replay_ns: Figure,
    /// The precision of the least certain ratio, as a fraction; `None` if a ratio is unknown.
    pub precision: Option<f64>,
    /// The precision that was requested.
    pub wanted_precision: Option<f64>,
    /// Why other programs seem to have run at the same time.
    pub busy: Option<String>,
    pub allocators: Vec<Measured>,
}

/// Replays the plan in `folder` on all allocators.
pub fn measure(folder: &Path, options: &Options) -> Result<Measurement> {
    let whole = MappedPlan::open(folder)?;
    let nothing = allocators::find(NOTHING).context("the allocator that does nothing")?;
    let mut everyone = options.allocators.clone();
    everyone.push(nothing);
    let is_enough = |runs: &[Runs]| {
        let wanted = options.precision;
        wanted.is_none_or(|wanted| is_precise(runs, wanted))
    };
    let wanted = race::Wanted {
        everyone,
        effort: Effort {
            rounds: options.repeats,
            verify: options.verify,
            operations: whole.plan.replayed,
        },
        within: options.within,
        is_enough: &is_enough,
    };
    let raced = race::run(&whole, folder, &wanted)?;
    let (plan, mut runs) = (&raced.plan, raced.runs);
    let floor = runs.pop().unwrap_or_default();
    if let Some(failure) = floor.failure {
        bail!("the replay itself does not work: {failure}");
    }
    let curves: Vec<_> = runs.iter().map(|runs| curves_of(plan, runs)).collect();
    let figures = options.allocators.iter().zip(runs);
    let mut measurement = Measurement {
        repeats: floor.speed.len(),
        operations: plan.replayed,
        left_out: raced.left_out,
        replay_ns: Figure::of(times(&floor)),
        wanted_precision: options.precision,
        allocators: figures
            .map(|(allocator, runs)| summarise(plan, allocator, runs, &floor))
            .collect(),
        ..Measurement::default()
    };
    rank(&mut measurement.allocators);
    measurement.precision = precision(&measurement.allocators);
    measurement.busy = busy(plan, &measurement);
    foretell(plan, &curves, &mut measurement);
    Ok(measurement)
}

/// The memory of all processes in each run.
fn curves_of(plan: &Plan, runs: &Runs) -> Vec<Curve> {
    let runs = runs.memory.iter();
    runs.map(|results| combined_curve(plan, results)).collect()
}

/// Foretells the program's peak on each allocator. `curves` are those of all allocators.
fn foretell(plan: &Plan, curves: &[Vec<Curve>], measurement: &mut Measurement) {
    let all = &mut measurement.allocators;
    let summary = &plan.summary;
    let glibc = all.iter().position(|one| one.name == LIBC);
    let glibc = glibc.filter(|&index| all[index].failure.is_none() && !curves[index].is_empty());
    measurement.not_foretold = match glibc {
        None => Some("the C library's malloc was not measured"),
        _ if summary.replay_threads < summary.threads => {
            Some("the program has more threads at a time than are replayed")
        }
        _ if plan.replayed < summary.operations => Some("only a part was replayed"),
        Some(_) => None,
    };
    if let (Some(glibc), None) = (glibc, measurement.not_foretold) {
        let program = Program::of(summary, &curves[glibc]);
        measurement.program = Some(program.on_glibc);
        for (one, curves) in all.iter_mut().zip(curves) {
            let good = one.failure.is_none() && !curves.is_empty();
            one.program_peak = good.then(|| program.on(&one.name, curves));
        }
    }
}

/// Sets the ranks, and the ratios to the fastest.
pub fn rank(all: &mut [Measured]) {
    let mut order: Vec<usize> = (0..all.len())
        .filter(|&index| all[index].failure.is_none())
        .collect();
    let times = |index: usize| -> &[f64] { &all[index].ns_per_op.runs };
    order.sort_by(|&a, &b| certainty::mean(times(a)).total_cmp(&certainty::mean(times(b))));
    let mut ranks = Vec::new();
    let mut leader = (0, 0);
    for (place, &index) in order.iter().enumerate() {
        let apart = certainty::of_difference(times(index), times(order[leader.1]));
        if place == 0 || apart.is_some_and(|apart| !apart.holds(0.0)) {
            leader = (place + 1, place);
        }
        let ratio = certainty::of_ratio(times(index), times(order[0]));
        ranks.push((index, ratio, times(index).len() > 1, leader.0));
    }
    for (index, ratio, known, rank) in ranks {
        all[index].ratio = ratio;
        all[index].rank = known.then_some(rank);
    }
}

/// The precision of the least certain ratio to the fastest, whose ratio to itself is exactly 1.
fn precision(all: &[Measured]) -> Option<f64> {
    let good = all.iter().filter(|one| one.failure.is_none());
    good.map(|one| one.ratio.map(|ratio| ratio.precision()))
        .try_fold(0.0, |worst: f64, next| Some(worst.max(next?)))
}

/// Whether the rounds so far are enough. The last element of `runs` is the allocator that does
/// nothing.
fn is_precise(runs: &[Runs], wanted: f64) -> bool {
    let Some((floor, runs)) = runs.split_last() else {
        return true;
    };
    let mut all: Vec<Measured> = runs.iter().map(|runs| times_of(runs, floor)).collect();
    rank(&mut all);
    floor.failure.is_some() || precision(&all).is_some_and(|reached| reached <= wanted)
}

/// Signs of other programs on the machine: the wall-clock time of a program with one thread exceeds
/// its CPU time by this factor, or the times of the allocator that does nothing spread by this
/// fraction.
const BUSY_WALL: f64 = 1.25;
const BUSY_FLOOR: f64 = 0.25;

fn busy(plan: &Plan, measurement: &Measurement) -> Option<String> {
    let alone = plan
        .processes
        .iter()
        .all(|process| process.threads.len() < 2);
    let good = measurement
        .allocators
        .iter()
        .filter(|one| one.failure.is_none());
    let (wall, cpu) = good.fold((0.0, 0.0), |(wall, cpu), one| {
        (wall + one.wall_ns_per_op.mean, cpu + one.gross_ns.mean)
    });
    if alone && wall > cpu * BUSY_WALL {
        return Some(format!(
            "the replay took {:.1} times its CPU time",
            wall / cpu
        ));
    }
    let floor = &measurement.replay_ns;
    let least = floor.runs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = floor.runs.iter().copied().fold(0.0, f64::max);
    (most - least > floor.median * BUSY_FLOOR).then(|| {
        format!(
            "the replay itself took {} to {} ns an operation from round to round",
            ui::nanoseconds(least),
            ui::nanoseconds(most)
        )
    })
}

/// The CPU time per operation of each round.
fn times(runs: &Runs) -> Vec<f64> {
    per_operation(&runs.speed, |result| result.cpu_ns as f64)
}

/// One figure for each run: the sum over all processes, per operation.
fn per_operation(runs: &[Vec<ProcessResult>], value: impl Fn(&ProcessResult) -> f64) -> Vec<f64> {
    let per_run = |results: &Vec<ProcessResult>| {
        let operations: u64 = results.iter().map(|result| result.operations).sum();
        results.iter().map(&value).sum::<f64>() / operations.max(1) as f64
    };
    runs.iter().map(per_run).collect()
}

/// The times of an allocator: in each round, the time less that of the allocator that does nothing.
fn times_of(runs: &Runs, floor: &Runs) -> Measured {
    let gross = times(runs);
    let net = gross
        .iter()
        .zip(times(floor))
        .map(|(gross, floor)| gross - floor);
    Measured {
        ns_per_op: Figure::of(net.collect()),
        gross_ns: Figure::of(gross),
        failure: runs.failure.clone(),
        ..Measured::default()
    }
}

fn summarise(plan: &Plan, allocator: &Allocator, runs: Runs, floor: &Runs) -> Measured {
    let mut measured = Measured {
        name: allocator.name.to_string(),
        version: (allocator.version)(),
        note: (allocator.name == TCMALLOC).then_some("no per-CPU caches"),
        wall_ns_per_op: Figure::of(per_operation(&runs.speed, |result| result.wall_ns as f64)),
        has_purge: allocator.purge.is_some(),
        ..times_of(&runs, floor)
    };
    let first = runs.speed.first().into_iter().flatten();
    measured.refused = first.map(|result| result.refused).sum();
    measured.clock_step_ns = add_latencies(&mut measured, &runs.latency);
    add_memory(&mut measured, plan, &runs.memory);
    let checked = runs.verify.iter().flatten().map(|result| result.checked);
    measured.checked = checked.sum();
    measured
}

/// Adds the durations of single calls; returns the clock's step.
fn add_latencies(measured: &mut Measured, runs: &[Vec<ProcessResult>]) -> f64 {
    let mut sums = [
        Histogram::default(),
        Histogram::default(),
        Histogram::default(),
    ];
    let (mut ns_per_tick, mut steps) = (Vec::new(), Vec::new());
    for result in runs.iter().flatten().filter(|result| result.operations > 0) {
        let parts = [&result.allocate, &result.free, &result.reallocate];
        sums.iter_mut()
            .zip(parts)
            .for_each(|(sum, part)| sum.add(part));
        ns_per_tick.push(result.ns_per_tick);
        steps.push(result.step_ticks as f64);
    }
    let ns_per_tick = Figure::of(ns_per_tick).median;
    let step_ns = Figure::of(steps).median * ns_per_tick;
    measured.calls_ns = calls_ns(runs, ns_per_tick);
    let mut all = Histogram::default();
    sums.iter().for_each(|sum| all.add(sum));
    measured.all = Latency::of(&all, ns_per_tick, step_ns);
    measured.allocate = Latency::of(&sums[0], ns_per_tick, step_ns);
    measured.free = Latency::of(&sums[1], ns_per_tick, step_ns);
    measured.reallocate = Latency::of(&sums[2], ns_per_tick, step_ns);
    step_ns
}

/// The total time of calls by kind and class of size, as the mean of all runs.
fn calls_ns(runs: &[Vec<ProcessResult>], ns_per_tick: f64) -> Vec<Vec<f64>> {
    let mut all = vec![vec![0.0; SIZES]; CALLS];
    for result in runs.iter().flatten() {
        for (sums, ticks) in all.iter_mut().zip(&result.ticks) {
            for (sum, &ticks) in sums.iter_mut().zip(ticks) {
                *sum += ticks as f64 * ns_per_tick / runs.len() as f64;
            }
        }
    }
    all
}

/// The free memory that glibc's malloc may find in pages with objects of this tool.
const OWN_PIECES: i64 = 64 << 10;

/// The reason if a peak cannot be true because it is below the live and written memory. Several
/// threads are in step with the recording up to a round.
fn too_little(plan: &Plan, results: &[ProcessResult]) -> Option<String> {
    let short = plan
        .processes
        .iter()
        .zip(results)
        .find(|(process, result)| {
            let (seen, sure) = (peak(&result.resident), process.sure_peak());
            let due = if process.threads.len() > 1 {
                sure.saturating_sub(2 * ROUND_BYTES)
            } else {
                sure
            };
            seen + OWN_PIECES < due as i64
        });
    short.map(|(process, result)| {
        format!(
            "memory cannot be measured here: {} at the peak of {}, where {} were live and written",
            ui::bytes(peak(&result.resident).max(0) as u64),
            process.name,
            ui::bytes(process.sure_peak())
        )
    })
}

fn peak(curve: &[(u64, i64)]) -> i64 {
    curve.iter().map(|point| point.1).max().unwrap_or(0)
}

fn add_memory(measured: &mut Measured, plan: &Plan, runs: &[Vec<ProcessResult>]) {
    if measured.failure.is_none() && measured.refused == 0 {
        let short = runs.iter().find_map(|results| too_little(plan, results));
        measured.failure = short;
    }
    let curves: Vec<_> = runs
        .iter()
        .map(|results| combined_curve(plan, results))
        .collect();
    let peaks: Vec<_> = curves.iter().map(|curve| peak(curve)).collect();
    let main = |value: fn(&ProcessResult) -> i64| {
        let first = |results: &Vec<ProcessResult>| results.first().map_or(0, value) as f64;
        Figure::of(runs.iter().map(first).collect())
    };
    measured.peak_resident = Figure::of(peaks.iter().map(|&peak| peak as f64).collect());
    measured.final_resident = main(|result| result.final_resident);
    measured.purged_resident = main(|result| result.purged_resident);
    let median = measured.peak_resident.median;
    let distance = |index: &usize| (peaks[*index] as f64 - median).abs() as u64;
    if let Some(typical) = (0..curves.len()).min_by_key(distance) {
        measured.resident = thin_out(&curves[typical], plan.replayed);
    }
}

/// The memory of all processes together at each sample of any process. The first process counts to
/// the end, another one until its last operation.
fn combined_curve(plan: &Plan, results: &[ProcessResult]) -> Vec<(u64, i64)> {
    let end = plan.replayed;
    let mut steps: Vec<(u64, i64)> = Vec::new();
    for (index, (process, result)) in plan.processes.iter().zip(results).enumerate() {
        let mut points = result.resident.clone();
        points.push((
            if index == 0 { end } else { process.last_x },
            result.final_resident,
        ));
        let mut before = 0;
        for (x, bytes) in points {
            steps.push((x, bytes - before));
            before = bytes;
        }
        if index > 0 {
            steps.push((process.last_x + 1, -before));
        }
    }
    steps.sort_unstable();
    let mut curve: Vec<(u64, i64)> = Vec::new();
    let mut sum = 0;
    for (x, step) in steps {
        sum += step;
        match curve.last_mut() {
            Some(last) if last.0 == x => last.1 = sum,
            _ => curve.push((x, sum)),
        }
    }
    curve
}

/// Keeps the highest point of each stretch.
pub fn thin_out<T: Copy + PartialOrd>(curve: &[(u64, T)], length: u64) -> Vec<(u64, T)> {
    if curve.len() <= CURVE_POINTS {
        return curve.to_vec();
    }
    let width = length.div_ceil(CURVE_POINTS as u64).max(1);
    let mut thin: Vec<(u64, T)> = Vec::new();
    for &(x, bytes) in curve {
        match thin.last_mut() {
            Some(last) if last.0 / width == x / width => {
                if bytes > last.1 {
                    *last = (x, bytes);
                }
            }
            _ => thin.push((x, bytes)),
        }
    }
    thin.extend(curve.last().filter(|last| thin.last() != Some(last)));
    thin
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ProcessPlan, Sample, ThreadPlan};

    #[test]
    fn figures_are_medians() {
        let figure = Figure::of(vec![3.0, 1.0, 2.0]);
        assert_eq!((figure.median, figure.mean), (2.0, 2.0));
        assert_eq!(Figure::of(vec![900.0, 10.0, 11.0, 9.0, 12.0]).median, 11.0);
        assert_eq!(Figure::of(vec![1.0, 2.0]).median, 1.5);
        assert_eq!(Figure::of(vec![1.0]).interval, None);
        assert_eq!(Figure::of(vec![]).mean, 0.0);
    }

    /// Makes the figures of an allocator with these times of its rounds.
    fn timed(runs: &[f64]) -> Measured {
        Measured {
            ns_per_op: Figure::of(runs.to_vec()),
            ..Measured::default()
        }
    }

    #[test]
    fn those_that_cannot_be_told_apart_share_a_rank() {
        let mut all = [
            timed(&[20.0, 21.0, 22.0, 21.5]),
            timed(&[10.1, 11.3, 11.8, 11.2]),
            timed(&[10.0, 11.2, 12.0, 11.0]),
        ];
        rank(&mut all);
        assert_eq!(
            all.each_ref().map(|one| one.rank),
            [Some(3), Some(1), Some(1)]
        );
        let ratio = all[0].ratio.unwrap();
        assert!(
            ratio.holds(21.1 / 11.05) && ratio.precision() < 0.1,
            "{ratio:?}"
        );
        assert!(precision(&all).unwrap() < 0.1);
        let mut once = [timed(&[20.0]), timed(&[10.0])];
        rank(&mut once);
        assert!(once
            .iter()
            .all(|one| one.rank.is_none() && one.ratio.is_none()));
        assert_eq!(precision(&once), None);
    }

    #[test]
    fn no_time_is_set_to_zero_and_ratios_to_nothing_are_not_told() {
        let mut all = [timed(&[5.0, 5.2, 5.1]), timed(&[-0.2, 0.3, -0.4])];
        rank(&mut all);
        assert!(all[1].ns_per_op.mean < 0.0);
        assert_eq!((all[1].rank, all[0].rank), (Some(1), Some(2)));
        assert_eq!((all[0].ratio, precision(&all)), (None, None));
    }

    #[test]
    fn rounds_go_on_until_the_ratios_are_as_precise_as_wanted() {
        let runs = |times: &[i64]| Runs {
            speed: times.iter().map(|&cpu_ns| vec![ran(cpu_ns)]).collect(),
            ..Runs::default()
        };
        let rounds = |count: usize| {
            let round =
                |base: i64| -> Vec<i64> { (0..count as i64).map(|n| base + n % 3 * 40).collect() };
            [
                runs(&round(3000)),
                runs(&round(2000)),
                runs(&[500].repeat(count)),
            ]
        };
        assert!(!is_precise(&rounds(1), 0.05));
        assert!(!is_precise(&rounds(3), 0.02));
        assert!(is_precise(&rounds(30), 0.02));
    }

    fn ran(cpu_ns: i64) -> ProcessResult {
        ProcessResult {
            operations: 100,
            cpu_ns,
            ..ProcessResult::default()
        }
    }

    #[test]
    fn a_busy_machine_is_seen() {
        let plan = Plan::default();
        let measurement = |wall: f64, floor: &[f64]| Measurement {
            replay_ns: Figure::of(floor.to_vec()),
            allocators: vec![Measured {
                gross_ns: Figure::of(vec![20.0]),
                wall_ns_per_op: Figure::of(vec![wall]),
                ..Measured::default()
            }],
            ..Measurement::default()
        };
        let quiet = [8.0, 8.3, 8.1];
        assert_eq!(busy(&plan, &measurement(20.5, &quiet)), None);
        let waits = busy(&plan, &measurement(40.0, &quiet)).unwrap();
        assert!(waits.contains("2.0 times its CPU time"), "{waits}");
        let drifts = busy(&plan, &measurement(20.5, &[8.0, 12.0, 8.1])).unwrap();
        assert!(drifts.contains("8.0 to 12.0 ns"), "{drifts}");
    }

    #[test]
    fn thinning_keeps_the_peak() {
        let curve: Vec<_> = (0..5000)
            .map(|x| (x, if x == 3333 { 99 } else { x % 7 }))
            .collect();
        let thin = thin_out(&curve, 5000);
        assert!(thin.len() <= CURVE_POINTS + 2);
        assert!(thin.contains(&(3333, 99)));
        assert_eq!(thin.last(), curve.last());
    }

    #[test]
    fn a_peak_below_what_was_live_and_written_is_refused() {
        let sample = Sample {
            sure: 600 << 10,
            ..Sample::default()
        };
        let thread = ThreadPlan {
            samples: vec![sample],
            ..ThreadPlan::default()
        };
        let process = |threads| ProcessPlan {
            name: "prog".to_string(),
            threads: vec![thread.clone(); threads],
            ..ProcessPlan::default()
        };
        let refused = |threads, seen: i64| {
            let plan = Plan {
                processes: vec![process(threads)],
                ..Plan::default()
            };
            let result = ProcessResult {
                resident: vec![(0, 0), (7, seen)],
                ..ProcessResult::default()
            };
            let allocator = allocators::find(LIBC).unwrap();
            let runs = Runs {
                memory: vec![vec![result]],
                ..Runs::default()
            };
            summarise(&plan, allocator, runs, &Runs::default()).failure
        };
        assert_eq!(refused(1, 600 << 10), None);
        let why = refused(1, 16 << 10).unwrap();
        assert!(
            why.contains("16.0 KiB at the peak of prog, where 600 KiB were live"),
            "{why}"
        );
        assert_eq!(refused(2, 420 << 10), None);
        assert!(refused(2, 300 << 10).is_some());
    }

    #[test]
    fn differences_below_zero_stay_so() {
        let plan = Plan {
            processes: vec![ProcessPlan::default()],
            ..Plan::default()
        };
        let result = ProcessResult {
            resident: vec![(0, -4096), (7, -8192)],
            final_resident: -8192,
            ..ran(-300)
        };
        let runs = Runs {
            speed: vec![vec![ran(-300)]],
            memory: vec![vec![result]],
            ..Runs::default()
        };
        let floor = Runs {
            speed: vec![vec![ran(200)]],
            ..Runs::default()
        };
        let measured = summarise(&plan, allocators::find(LIBC).unwrap(), runs, &floor);
        assert_eq!(measured.failure, None);
        assert_eq!(
            (measured.gross_ns.mean, measured.ns_per_op.mean),
            (-3.0, -5.0)
        );
        let memory = (measured.peak_resident.mean, measured.final_resident.mean);
        assert_eq!(memory, (-4096.0, -8192.0));
    }
}
