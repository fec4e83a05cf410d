//! How much of a replay fits into the time that the user gives it (`--within`).
//!
//! The time of a worker is foretold from short ones, which replay the first operations on one
//! allocator in each pass. If all takes too long, there are fewer rounds, but not fewer than [`LEAST_ROUNDS`];
//! then objects' contents are not checked; then only the first part of the recording is replayed.

use super::worker::Pass;
use std::time::{Duration, Instant};

/// The number of runs of the passes for single calls and for memory. More would not change the
/// result.
const DETAIL_REPEATS: usize = 3;

/// With fewer rounds, figures have no interval that says anything.
pub const LEAST_ROUNDS: usize = 3;

/// The share of the time that is planned for; the rest is for what cannot be foretold.
const PLANNED: f64 = 0.85;

/// Other allocators may be slower than the one that was tried.
pub const SLOWER: f64 = 1.3;

pub const PASSES: [Pass; 4] = [Pass::Speed, Pass::Latency, Pass::Memory, Pass::Verify];

/// The seconds that a worker takes: for its start, which may be that of many processes, and for each
/// operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    pub start: f64,
    pub operation: f64,
}

/// The seconds in which a worker starts at least, and those for an operation at least.
const START: f64 = 0.01;
const OPERATION: f64 = 5e-9;

impl Cost {
    /// From one trial: its operations and seconds.
    pub fn of(operations: u64, seconds: f64) -> Self {
        let start = seconds.min(START);
        Cost {
            start,
            operation: ((seconds - start) / operations.max(1) as f64).max(OPERATION),
        }
    }

    /// From two trials, of which the second one is larger.
    pub fn between(small: (u64, f64), large: (u64, f64)) -> Self {
        let more = large.0.saturating_sub(small.0).max(1) as f64;
        let operation = ((large.1 - small.1) / more).max(OPERATION);
        Cost {
            start: (large.1 - operation * large.0 as f64).max(START),
            operation,
        }
    }

    pub fn seconds(&self, operations: u64) -> f64 {
        self.start + self.operation * operations as f64
    }

    pub fn times(&self, factor: f64) -> Cost {
        Cost {
            start: self.start * factor,
            operation: self.operation * factor,
        }
    }
}

/// The costs of a worker in each pass, and of the allocator that does nothing in the pass for speed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    pub passes: [Cost; PASSES.len()],
    pub nothing: Cost,
}

impl Costs {
    pub fn of(&self, pass: Pass) -> &Cost {
        &self.passes[pass as usize]
    }

    /// The seconds of a lap with so many allocators.
    fn lap(&self, pass: Pass, allocators: usize, operations: u64) -> f64 {
        let nothing = match pass {
            Pass::Speed => self.nothing.seconds(operations),
            _ => 0.0,
        };
        self.of(pass).seconds(operations) * allocators as f64 + nothing
    }

    pub fn times(&self, factor: f64) -> Costs {
        Costs {
            passes: self.passes.map(|cost| cost.times(factor)),
            nothing: self.nothing.times(factor),
        }
    }
}

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    pub rounds: usize,
    pub verify: bool,
    /// The number of operations that are replayed.
    pub operations: u64,
}

impl Effort {
    /// The passes in their order; in each, all allocators have a turn. The first ones give a figure
    /// of each kind, so that the end of the time leaves no kind without one.
    pub fn laps(&self) -> Vec<Pass> {
        let mut laps = Vec::new();
        for _ in 0..self.rounds.min(DETAIL_REPEATS) {
            laps.extend([Pass::Speed, Pass::Memory, Pass::Latency]);
        }
        laps.extend(self.verify.then_some(Pass::Verify));
        laps.extend((DETAIL_REPEATS..self.rounds).map(|_| Pass::Speed));
        laps
    }

    /// The seconds that this takes with so many allocators.
    pub fn seconds(&self, costs: &Costs, allocators: usize) -> f64 {
        let laps = self.laps().into_iter();
        let seconds = laps.map(|pass| costs.lap(pass, allocators, self.operations));
        seconds.sum::<f64>() * SLOWER
    }

    /// The most of this effort that fits into a time.
    pub fn within(self, costs: &Costs, allocators: usize, within: Duration) -> Effort {
        let time = within.as_secs_f64() * PLANNED;
        let fits = |effort: &Effort| effort.seconds(costs, allocators) <= time;
        let mut effort = self;
        while effort.rounds > LEAST_ROUNDS && !fits(&effort) {
            effort.rounds -= 1;
        }
        effort.verify &= fits(&effort);
        if !fits(&effort) {
            let none = Effort {
                operations: 0,
                ..effort
            };
            let start = none.seconds(costs, allocators);
            let share = (time - start) / (effort.seconds(costs, allocators) - start);
            effort.operations = (effort.operations as f64 * share.max(0.0)) as u64;
        }
        effort
    }
}

/// The number of workers of a lap: in the pass for speed, the allocator that does nothing has a
/// turn, too.
pub fn workers(pass: Pass, allocators: usize) -> usize {
    allocators + usize::from(pass == Pass::Speed)
}

/// The time that passes.
#[derive(Clone, Copy)]
pub struct Clock {
    begin: Instant,
    within: Duration,
}

impl Clock {
    pub fn start(within: Duration) -> Self {
        Clock {
            begin: Instant::now(),
            within,
        }
    }

    pub fn passed(&self) -> Duration {
        self.begin.elapsed()
    }

    pub fn left(&self) -> Duration {
        self.within.saturating_sub(self.passed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLION: u64 = 1_000_000;
    const ALL: Effort = Effort {
        rounds: 5,
        verify: true,
        operations: MILLION,
    };

    /// Costs without a start.
    fn costs(seconds: [f64; 4]) -> Costs {
        let cost = |seconds: f64| Cost {
            start: 0.0,
            operation: seconds / MILLION as f64,
        };
        Costs {
            passes: seconds.map(cost),
            nothing: cost(seconds[0]),
        }
    }

    fn within(seconds: u64) -> Effort {
        ALL.within(
            &costs([1.0, 2.0, 1.0, 4.0]),
            2,
            Duration::from_secs(seconds),
        )
    }

    #[test]
    fn first_there_are_fewer_rounds_then_no_check_then_less_of_the_recording() {
        // 5 rounds of 3 workers, 3 of 4 + 2, a check of 8: 41 s, with slower ones 53.3 s.
        assert_eq!(within(63), ALL);
        assert_eq!(within(60), Effort { rounds: 4, ..ALL });
        assert_eq!(within(54), Effort { rounds: 3, ..ALL });
        let unchecked = Effort {
            rounds: 3,
            verify: false,
            ..ALL
        };
        assert_eq!(within(44), unchecked);
        let part = within(20);
        let all = Effort {
            operations: MILLION,
            ..part
        };
        assert_eq!(all, unchecked);
        assert!((300_000..500_000).contains(&part.operations), "{part:?}");
        assert!(part.seconds(&costs([1.0, 2.0, 1.0, 4.0]), 2) <= 17.01);
    }

    #[test]
    fn a_user_who_wants_one_round_gets_no_more() {
        let once = Effort { rounds: 1, ..ALL };
        let short = once.within(&costs([1.0, 2.0, 1.0, 4.0]), 2, Duration::from_secs(10));
        assert_eq!((short.rounds, short.verify), (1, false));
        let laps = [Pass::Speed, Pass::Memory, Pass::Latency, Pass::Verify];
        assert_eq!(once.laps(), laps);
    }

    #[test]
    fn the_start_of_many_processes_is_not_taken_for_operations() {
        // A tenth of a second for processes, and 100 ns for an operation.
        let trial = |operations: u64| (operations, 0.1 + 1e-7 * operations as f64);
        let cost = Cost::between(trial(MILLION / 10), trial(MILLION));
        assert!((cost.start - 0.1).abs() < 1e-9 && (cost.operation - 1e-7).abs() < 1e-12);
        let seconds = cost.seconds(10 * MILLION);
        assert!((seconds - 1.1).abs() < 1e-6);
        let one = Cost::of(MILLION, 0.11);
        assert!((one.operation - 1e-7).abs() < 1e-12, "{one:?}");
        // Noise does not make operations cost nothing.
        let noise = Cost::between((MILLION / 10, 0.5), (MILLION, 0.4));
        assert!(noise.operation == OPERATION && noise.start > 0.39);
        // What the start takes cannot be saved by a shorter part.
        let start = Cost {
            start: 9.0,
            operation: 1e-6,
        };
        let costs = Costs {
            passes: [start; 4],
            nothing: start,
        };
        let short = ALL.within(&costs, 2, Duration::from_secs(10));
        assert_eq!(short.operations, 0);
    }

    #[test]
    fn every_kind_of_figure_comes_early() {
        let laps = ALL.laps();
        assert_eq!(laps[..3], [Pass::Speed, Pass::Memory, Pass::Latency]);
        let count = |pass| laps.iter().filter(|&&one| one == pass).count();
        assert_eq!(PASSES.map(count), [5, 3, 3, 1]);
    }
}
