//! Runs workers on all allocators in turn, pass after pass, until the effort is complete or the time
//! is up.
//!
//! A lap is one pass in which every allocator has a turn. The time that laps take is foretold from
//! those before, and a lap that would not end in time is left out. A worker that takes far longer
//! than the others is ended, and at the end of the time every worker is.

use super::budget::{workers, Clock, Cost, Costs, Effort, LEAST_ROUNDS, PASSES, SLOWER};
use super::launch::run_worker;
use super::worker::{Pass, ProcessResult};
use crate::plan::{MappedPlan, Plan};
use crate::preload::serving::LIBC;
use crate::ui::{self, grouped};
use anyhow::Result;
use indicatif::ProgressBar;
use slabyard_peers::Allocator;
use std::path::Path;
use std::time::{Duration, Instant};

/// The numbers of operations from whose replay the time of others is foretold.
const TRIED: u64 = 100_000;
const TRIED_MORE: u64 = 1_000_000;
/// A trial that takes longer than this part of the time is ended, and a smaller one is made.
const TRIAL_PART: u32 = 16;
const SMALLER_TRIAL: u64 = 16;

/// A worker is ended after so many times what was foretold for it, and not before this time.
const FAR_TOO_LONG: f64 = 10.0;
const NOT_BEFORE: Duration = Duration::from_secs(5);

/// The results of one allocator so far.
#[derive(Default)]
pub struct Runs {
    pub speed: Vec<Vec<ProcessResult>>,
    pub latency: Vec<Vec<ProcessResult>>,
    pub memory: Vec<Vec<ProcessResult>>,
    pub verify: Option<Vec<ProcessResult>>,
    pub failure: Option<String>,
}

impl Runs {
    fn add(&mut self, pass: Pass, results: Vec<ProcessResult>) {
        match pass {
            Pass::Speed => self.speed.push(results),
            Pass::Latency => self.latency.push(results),
            Pass::Memory => self.memory.push(results),
            Pass::Verify => {
                let wrong = results.iter().find(|result| result.wrong > 0);
                self.failure = wrong.map(|result| {
                    let first = result.first_wrong.as_deref().unwrap_or("?");
                    format!(
                        "{} of {} objects were wrong: {first}",
                        result.wrong, result.checked
                    )
                });
                self.verify = Some(results);
            }
        }
    }

    fn count(&self, pass: Pass) -> usize {
        match pass {
            Pass::Speed => self.speed.len(),
            Pass::Latency => self.latency.len(),
            Pass::Memory => self.memory.len(),
            Pass::Verify => usize::from(self.verify.is_some()),
        }
    }

    /// Forgets the runs of a pass beyond the first `count`.
    fn truncate(&mut self, pass: Pass, count: usize) {
        match pass {
            Pass::Speed => self.speed.truncate(count),
            Pass::Latency => self.latency.truncate(count),
            Pass::Memory => self.memory.truncate(count),
            Pass::Verify => self.verify = self.verify.take().filter(|_| count > 0),
        }
    }
}

/// The results of a race. The last allocator is the one that does nothing.
pub struct Raced {
    pub plan: Plan,
    pub runs: Vec<Runs>,
    /// What there was no time for, in sentences.
    pub left_out: Vec<String>,
}

/// What a race may run, and how long.
pub struct Wanted<'a> {
    /// The last one does nothing.
    pub everyone: Vec<&'static Allocator>,
    pub effort: Effort,
    pub within: Duration,
    /// Whether the rounds so far are enough; if not, there are more until the time is up.
    pub is_enough: &'a dyn Fn(&[Runs]) -> bool,
}

/// Runs all passes on the plan in `folder`.
pub fn run(whole: &MappedPlan, folder: &Path, wanted: &Wanted) -> Result<Raced> {
    let clock = Clock::start(wanted.within);
    let mut costs = try_out(whole, folder, wanted, &clock)?;
    let mut race = Race::new(whole, folder, wanted, clock, costs)?;
    // The beginning of a program may cost less than the rest of it. So the first lap may take half
    // of the time; if what remains then does not fit, less is replayed.
    race.kept = clock.left() / 2;
    let complete = race.lap(Pass::Speed, true);
    costs = race.corrected(costs);
    if complete && race.least_seconds(&costs) <= clock.left().as_secs_f64() {
        race.kept = Duration::ZERO;
        race.choose_again(&costs);
    } else {
        race.bar.finish_and_clear();
        race = Race::new(whole, folder, wanted, clock, costs)?;
        race.lap(Pass::Speed, true);
    }
    let mut first = vec![Pass::Memory, Pass::Latency];
    for pass in race.effort.laps().into_iter().skip(1) {
        let must = first.contains(&pass);
        first.retain(|&one| one != pass);
        race.lap(pass, must);
    }
    while !(wanted.is_enough)(&race.runs) && race.lap(Pass::Speed, false) {}
    race.bar.finish_and_clear();
    Ok(Raced {
        left_out: race.left_out(),
        plan: race.plan,
        runs: race.runs,
    })
}

/// Foretells the time of a worker in each pass from the first operations: from a few, and from more,
/// which show how much of the time is only the start.
fn try_out(whole: &MappedPlan, folder: &Path, wanted: &Wanted, clock: &Clock) -> Result<Costs> {
    let mut small = try_part(whole, folder, wanted, TRIED)?;
    while !small.in_time && !small.is_smallest && clock.left() > wanted.within / 2 {
        small = try_part(whole, folder, wanted, small.operations / SMALLER_TRIAL)?;
    }
    let large = match small.in_time && small.operations < whole.plan.replayed {
        true => Some(try_part(whole, folder, wanted, TRIED_MORE)?),
        false => None,
    };
    let large = large.filter(|large| large.in_time && large.operations > small.operations);
    let cost = |seconds: fn(&Trial, usize) -> f64, index: usize| match &large {
        Some(large) => Cost::between(
            (small.operations, seconds(&small, index)),
            (large.operations, seconds(large, index)),
        ),
        None => Cost::of(small.operations, seconds(&small, index)),
    };
    Ok(Costs {
        passes: PASSES.map(|pass| cost(|trial, index| trial.seconds[index], pass as usize)),
        nothing: cost(|trial, _| trial.nothing, 0),
    })
}

/// The seconds that each pass took on the first operations.
struct Trial {
    operations: u64,
    seconds: [f64; PASSES.len()],
    /// Those of the allocator that does nothing, in the pass for speed.
    nothing: f64,
    in_time: bool,
    is_smallest: bool,
}

fn try_part(whole: &MappedPlan, folder: &Path, wanted: &Wanted, operations: u64) -> Result<Trial> {
    let glibc = wanted.everyone.iter().find(|one| one.name == LIBC);
    let allocator = glibc.unwrap_or(&wanted.everyone[0]);
    let part = whole.plan.part_of(operations);
    let plan = part.map_or_else(|| whole.plan.clone(), |part| whole.part(part));
    plan.write(folder)?;
    let mut in_time = true;
    let mut seconds = |allocator: &Allocator, pass| -> f64 {
        let start = Instant::now();
        // If the worker fails, it does so again when it counts.
        let ended = run_worker(folder, allocator.name, pass, wanted.within / TRIAL_PART);
        in_time &= !matches!(ended, Ok(None));
        start.elapsed().as_secs_f64()
    };
    let nothing = wanted.everyone.last().expect("the one that does nothing");
    Ok(Trial {
        operations: plan.replayed,
        seconds: PASSES.map(|pass| seconds(allocator, pass)),
        nothing: seconds(nothing, Pass::Speed),
        in_time,
        is_smallest: part == Some(0) || whole.plan.parts.is_empty(),
    })
}

/// The state of a race.
struct Race<'a> {
    wanted: &'a Wanted<'a>,
    folder: &'a Path,
    whole: &'a MappedPlan,
    plan: Plan,
    effort: Effort,
    clock: Clock,
    /// The part of the time that no lap may use.
    kept: Duration,
    /// The costs foretold for a worker, and the seconds of each allocator's last one in each pass.
    costs: Costs,
    took: Vec<[f64; PASSES.len()]>,
    runs: Vec<Runs>,
    bar: ProgressBar,
}

impl<'a> Race<'a> {
    /// Chooses what fits into the time that is left, and says it.
    fn new(
        whole: &'a MappedPlan,
        folder: &'a Path,
        wanted: &'a Wanted<'a>,
        clock: Clock,
        costs: Costs,
    ) -> Result<Self> {
        let count = wanted.everyone.len();
        let mut effort = wanted.effort.within(&costs, count - 1, clock.left());
        let part = whole.plan.part_of(effort.operations);
        let plan = part.map_or_else(|| whole.plan.clone(), |part| whole.part(part));
        plan.write(folder)?;
        effort.operations = plan.replayed;
        let laps = effort.laps().into_iter();
        let length: usize = laps.map(|pass| workers(pass, count - 1)).sum();
        let race = Race {
            wanted,
            folder,
            whole,
            plan,
            effort,
            clock,
            kept: Duration::ZERO,
            costs,
            took: vec![[0.0; PASSES.len()]; count],
            runs: wanted.everyone.iter().map(|_| Runs::default()).collect(),
            bar: ui::bar("replaying", length as u64),
        };
        ui::warn(&race.announcement(effort.seconds(&costs, count - 1)));
        Ok(race)
    }

    fn announcement(&self, about: f64) -> String {
        let (all, some) = (self.whole.plan.replayed, self.plan.replayed);
        let part = match some < all {
            true => format!("the first {} of ", grouped(some)),
            false => String::new(),
        };
        let unchecked = match self.wanted.effort.verify && !self.effort.verify {
            true => ", without a check of contents",
            false => "",
        };
        format!(
            "replaying {part}{} operations on {} in {}{unchecked}: about {:.0} s, at most {:.0} s",
            grouped(all),
            plural(self.runs.len() - 1, "allocator"),
            plural(self.effort.rounds, "round"),
            about.ceil(),
            self.clock.left().as_secs_f64().ceil(),
        )
    }

    /// The seconds that the worker of an allocator takes in a pass, as far as is known.
    fn foretold(&self, pass: Pass, index: usize) -> f64 {
        let took = self.took[index][pass as usize];
        match took > 0.0 {
            true => took,
            false if index + 1 == self.runs.len() => self.costs.nothing.seconds(self.plan.replayed),
            false => self.costs.of(pass).seconds(self.plan.replayed),
        }
    }

    /// Gives every allocator a turn, and returns whether the lap is complete. A lap that must be is
    /// begun even if it may not end in time.
    fn lap(&mut self, pass: Pass, must: bool) -> bool {
        let count = workers(pass, self.runs.len() - 1);
        let alive = (0..count).filter(|&index| self.runs[index].failure.is_none());
        let seconds: f64 = alive.map(|index| self.foretold(pass, index)).sum();
        if !must && seconds > self.clock.left().as_secs_f64() {
            return false;
        }
        let round = self.runs.iter().map(|runs| runs.count(pass)).max();
        let round = round.unwrap_or(0);
        for index in (0..count).map(|index| (index + round) % count) {
            if self.runs[index].failure.is_none() && !self.turn(pass, index) {
                self.break_off(pass, round, must);
                return false;
            }
            self.bar.inc(1);
        }
        true
    }

    /// Runs a worker. Returns false if the time was up before it had ended.
    fn turn(&mut self, pass: Pass, index: usize) -> bool {
        let allocator = self.wanted.everyone[index];
        let message = format!("{} on {}", pass_name(pass), allocator.name);
        self.bar.set_message(message);
        let most = Duration::from_secs_f64(self.foretold(pass, index) * FAR_TOO_LONG);
        let most = most.max(NOT_BEFORE);
        let left = self.clock.left().saturating_sub(self.kept);
        let start = Instant::now();
        let ended = run_worker(self.folder, allocator.name, pass, most.min(left));
        self.took[index][pass as usize] = start.elapsed().as_secs_f64();
        match ended {
            Ok(Some(results)) => self.runs[index].add(pass, results),
            Ok(None) if left <= most => return false,
            Ok(None) => {
                let (seconds, kind) = (most.as_secs_f64(), pass_name(pass));
                let why = format!("ended after {seconds:.0} s in the pass for {kind}");
                self.runs[index].failure = Some(why);
            }
            Err(error) => self.runs[index].failure = Some(format!("{error:#}")),
        }
        true
    }

    /// The time was up within a lap, which then has no figures. Without a lap that must be, the
    /// allocators that had no turn have failed.
    fn break_off(&mut self, pass: Pass, round: usize, must: bool) {
        let good = self.runs.iter_mut().filter(|runs| runs.failure.is_none());
        for runs in good {
            if must && runs.count(pass) == 0 {
                let kind = pass_name(pass);
                runs.failure = Some(format!("no time was left for the pass for {kind}"));
            } else if !must {
                runs.truncate(pass, round);
            }
        }
    }

    /// The seconds of the first lap, by allocator.
    fn first_lap(&self) -> impl Iterator<Item = f64> + '_ {
        let took = self.took.iter().map(|took| took[Pass::Speed as usize]);
        took.filter(|&seconds| seconds > 0.0)
    }

    /// The costs by what the first lap took.
    fn corrected(&self, costs: Costs) -> Costs {
        let ran =
            (0..self.runs.len()).filter(|&index| self.took[index][Pass::Speed as usize] > 0.0);
        let foretold = ran.map(|index| match index + 1 == self.runs.len() {
            true => costs.nothing.seconds(self.plan.replayed),
            false => costs.of(Pass::Speed).seconds(self.plan.replayed),
        });
        let foretold = foretold.sum::<f64>() * SLOWER;
        costs.times(self.first_lap().sum::<f64>() / foretold.max(f64::MIN_POSITIVE))
    }

    /// The seconds that remain at least after the first lap.
    fn least_seconds(&self, costs: &Costs) -> f64 {
        let least = Effort {
            rounds: self.effort.rounds.min(LEAST_ROUNDS),
            verify: false,
            ..self.effort
        };
        let all = least.seconds(costs, self.runs.len() - 1);
        (all - self.first_lap().sum::<f64>()).max(0.0)
    }

    /// Chooses the number of rounds, and whether there is a check, by what the first lap took.
    fn choose_again(&mut self, costs: &Costs) {
        let wanted = Effort {
            operations: self.effort.operations,
            ..self.wanted.effort
        };
        let time = self.clock.left() + self.clock.passed();
        let effort = wanted.within(costs, self.runs.len() - 1, time);
        (self.effort.rounds, self.effort.verify) = (effort.rounds, effort.verify);
    }

    /// What there was no time for.
    fn left_out(&self) -> Vec<String> {
        let (all, some) = (self.whole.plan.replayed, self.plan.replayed);
        let within = self.wanted.within.as_secs();
        let mut sentences = Vec::new();
        if some < all {
            sentences.push(format!(
                "Only the first {} of {} operations were replayed, because there were {within} s (--within).",
                grouped(some),
                grouped(all)
            ));
        }
        let good = || self.runs.iter().filter(|runs| runs.failure.is_none());
        let rounds = good().map(|runs| runs.speed.len()).max().unwrap_or(0);
        if rounds < self.wanted.effort.rounds {
            sentences.push(format!(
                "There was time for {} of {} (--within {within}).",
                plural(rounds, "round"),
                self.wanted.effort.rounds
            ));
        }
        let (_, real) = self.runs.split_last().expect("the one that does nothing");
        let unchecked = real
            .iter()
            .any(|runs| runs.failure.is_none() && runs.verify.is_none());
        if self.wanted.effort.verify && unchecked {
            sentences.push(format!(
                "There was no time to check that every object keeps its contents (--within {within})."
            ));
        }
        sentences
    }
}

fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn pass_name(pass: Pass) -> &'static str {
    match pass {
        Pass::Speed => "speed",
        Pass::Latency => "single calls",
        Pass::Memory => "memory",
        Pass::Verify => "contents",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocators;
    use crate::plan::merge::make_plan;
    use crate::recording::tests::{free, malloc, recording_of, Sketch};

    const OPERATIONS: u64 = 40_000;

    /// A plan in its folder, and a race on it of Slabyard, glibc, and the one that does nothing.
    fn with_race(within: Duration, costs: Costs, test: impl FnOnce(&mut Race)) {
        let pairs = (0..OPERATIONS / 2).flat_map(|n| [malloc(2 * n, 16, 8), free(2 * n + 1, 16)]);
        let recording = recording_of(&[Sketch {
            blocks: vec![(0, pairs.collect())],
            ..Sketch::default()
        }]);
        let folder = tempfile::tempdir().unwrap();
        make_plan(&recording, folder.path(), &mut |_| ()).unwrap();
        let whole = MappedPlan::open(folder.path()).unwrap();
        let names = ["slabyard", LIBC, allocators::NOTHING];
        let wanted = Wanted {
            everyone: names.map(|name| allocators::find(name).unwrap()).to_vec(),
            effort: Effort {
                rounds: 5,
                verify: true,
                operations: whole.plan.replayed,
            },
            within,
            is_enough: &|_| true,
        };
        let clock = Clock::start(within);
        test(&mut Race::new(&whole, folder.path(), &wanted, clock, costs).unwrap());
    }

    /// The same costs in each pass.
    fn costs(start: f64, all: f64) -> Costs {
        let cost = Cost {
            start,
            operation: all / OPERATIONS as f64,
        };
        Costs {
            passes: [cost; PASSES.len()],
            nothing: cost,
        }
    }

    fn ran(race: &mut Race, pass: Pass, counts: [usize; 3]) {
        for (runs, count) in race.runs.iter_mut().zip(counts) {
            (0..count).for_each(|_| runs.add(pass, vec![ProcessResult::default()]));
        }
    }

    #[test]
    fn a_lap_that_the_end_of_the_time_breaks_off_has_no_figures() {
        with_race(Duration::from_secs(1000), costs(0.0, 0.1), |race| {
            ran(race, Pass::Speed, [2, 1, 2]);
            race.break_off(Pass::Speed, 1, false);
            assert!(race.runs.iter().all(|runs| runs.count(Pass::Speed) == 1));
            ran(race, Pass::Memory, [1, 0, 0]);
            race.break_off(Pass::Memory, 0, true);
            let failures = race.runs.iter().map(|runs| runs.failure.is_some());
            assert_eq!(failures.collect::<Vec<_>>(), [false, true, true]);
            let why = race.runs[1].failure.as_deref();
            assert_eq!(why, Some("no time was left for the pass for memory"));
        });
    }

    #[test]
    fn no_lap_is_begun_that_would_not_end_in_time() {
        with_race(Duration::ZERO, costs(0.0, 0.1), |race| {
            assert!(!race.lap(Pass::Speed, false));
            assert!(race.runs.iter().all(|runs| runs.failure.is_none()));
        });
    }

    #[test]
    fn what_there_was_no_time_for_is_said() {
        with_race(Duration::from_secs(1000), costs(0.0, 0.1), |race| {
            ran(race, Pass::Speed, [5, 5, 5]);
            ran(race, Pass::Verify, [1, 1, 0]);
            assert_eq!(race.left_out(), [""; 0]);
            assert_eq!(
                race.announcement(3.2),
                "replaying 40,000 operations on 2 allocators in 5 rounds: about 4 s, at most 1000 s"
            );
        });
        with_race(Duration::from_secs(100), costs(0.0, 10.0), |race| {
            let some = race.plan.replayed;
            assert!(some < OPERATIONS / 2, "{some}");
            ran(race, Pass::Speed, [2, 2, 2]);
            let said = race.left_out();
            assert!(said[0].starts_with(&format!("Only the first {}", grouped(some))));
            assert_eq!(said[1], "There was time for 2 rounds of 5 (--within 100).");
            assert!(said[2].contains("no time to check"), "{said:?}");
            let begin = format!("replaying the first {} of 40,000 operations", grouped(some));
            let announced = race.announcement(80.0);
            assert!(announced.starts_with(&begin), "{announced}");
            assert!(announced.contains("in 3 rounds, without a check of contents:"));
        });
    }

    #[test]
    fn a_first_lap_that_takes_longer_corrects_what_was_foretold() {
        with_race(Duration::from_secs(1000), costs(0.0, 1.0), |race| {
            // Three times what was foretold.
            race.took
                .iter_mut()
                .for_each(|took| took[Pass::Speed as usize] = 3.0);
            let corrected = race.corrected(race.costs);
            let seconds = corrected.of(Pass::Memory).seconds(OPERATIONS) * SLOWER;
            assert!((seconds - 3.0).abs() < 1e-9, "{seconds}");
            // Three rounds of seven workers, of which the first lap is over.
            let least = race.least_seconds(&corrected);
            assert!((least - 3.0 * (3.0 * 7.0 - 3.0)).abs() < 1e-6, "{least}");
            race.choose_again(&corrected);
            assert_eq!((race.effort.rounds, race.effort.verify), (5, true));
        });
    }
}
