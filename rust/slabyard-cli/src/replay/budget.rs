//! How much of a replay fits into the time that the user gives it (`--within`).
//!
//! The time of a worker is foretold from a short one: the first operations on one allocator, in
//! each pass. If all takes too long, there are fewer rounds, but not fewer than [`LEAST_ROUNDS`];
//! then objects' contents are not checked; then only the first part of the recording is replayed.

use super::worker::Pass;
use std::time::{Duration, Instant};

/// The number of runs of the passes for single calls and for memory. More would not change the
/// result.
const DETAIL_REPEATS: usize = 3;

/// With fewer rounds, figures have no interval that says anything.
pub const LEAST_ROUNDS: usize = 3;

/// The share of the time that is planned for; the rest is for what cannot be foretold.
const PLANNED: f64 = 0.75;

/// Other allocators may be slower than the one that was tried.
const SLOWER: f64 = 1.3;

pub const PASSES: [Pass; 4] = [Pass::Speed, Pass::Latency, Pass::Memory, Pass::Verify];

/// The seconds that one worker takes, by pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs(pub [f64; PASSES.len()]);

impl Costs {
    pub fn of(&self, pass: Pass) -> f64 {
        self.0[pass as usize]
    }

    pub fn times(&self, factor: f64) -> Costs {
        Costs(self.0.map(|seconds| seconds * factor))
    }
}

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    pub rounds: usize,
    pub verify: bool,
    /// The share of the recording that is replayed.
    pub share: f64,
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
        let lap = |pass: Pass| costs.of(pass) * workers(pass, allocators) as f64;
        self.laps().into_iter().map(lap).sum::<f64>() * self.share * SLOWER
    }

    /// The most of this effort that fits into a time. `costs` are those of the whole recording.
    pub fn within(self, costs: &Costs, allocators: usize, within: Duration) -> Effort {
        let time = within.as_secs_f64() * PLANNED;
        let fits = |effort: &Effort| effort.seconds(costs, allocators) <= time;
        let mut effort = self;
        while effort.rounds > LEAST_ROUNDS && !fits(&effort) {
            effort.rounds -= 1;
        }
        effort.verify &= fits(&effort);
        if !fits(&effort) {
            effort.share *= time / effort.seconds(costs, allocators);
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

    const ALL: Effort = Effort {
        rounds: 5,
        verify: true,
        share: 1.0,
    };
    const COSTS: Costs = Costs([1.0, 2.0, 1.0, 4.0]);

    fn within(seconds: u64) -> Effort {
        ALL.within(&COSTS, 2, Duration::from_secs(seconds))
    }

    #[test]
    fn first_there_are_fewer_rounds_then_no_check_then_less_of_the_recording() {
        // 5 rounds of 3 workers, 3 of 4 + 2, a check of 8: 41 s, with slower ones 53.3 s.
        assert_eq!(within(72), ALL);
        assert_eq!(within(68), Effort { rounds: 4, ..ALL });
        assert_eq!(within(62), Effort { rounds: 3, ..ALL });
        let unchecked = Effort {
            rounds: 3,
            verify: false,
            share: 1.0,
        };
        assert_eq!(within(48), unchecked);
        let part = within(20);
        assert_eq!(Effort { share: 1.0, ..part }, unchecked);
        assert!(part.share > 0.3 && part.share < 0.5, "{part:?}");
        assert!(part.seconds(&COSTS, 2) <= 15.01);
    }

    #[test]
    fn a_user_who_wants_one_round_gets_no_more() {
        let once = Effort { rounds: 1, ..ALL };
        let short = once.within(&COSTS, 2, Duration::from_secs(10));
        assert_eq!((short.rounds, short.verify), (1, false));
        let laps = [Pass::Speed, Pass::Memory, Pass::Latency, Pass::Verify];
        assert_eq!(once.laps(), laps);
    }

    #[test]
    fn every_kind_of_figure_comes_early() {
        let laps = ALL.laps();
        assert_eq!(laps[..3], [Pass::Speed, Pass::Memory, Pass::Latency]);
        let count = |pass| laps.iter().filter(|&&one| one == pass).count();
        assert_eq!(PASSES.map(count), [5, 3, 3, 1]);
    }
}
