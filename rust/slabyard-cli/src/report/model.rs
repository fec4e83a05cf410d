//! How far a program's gain in time may be from that of its replayed allocations.
//!
//! A replay sees the calls of malloc alone, not what the places of objects cost the program between
//! its calls. The factors here are those of programs that were measured both ways: the difference of
//! the program itself to glibc, divided by that of its replay (docs/compare.md, how true the
//! predictions are; and interpreters, compilers and servers beside it). A recording shows of which
//! kind a program is; if it is of several kinds, all their factors are possible.

use crate::plan::Summary;
use serde::Serialize;
use slabyard_certainty::Interval;

/// If a program's objects have at most this size on average, and their sum is at least this number
/// of bytes, they are nodes of large structures that do not fit into a processor's own caches.
const MOST_LIVE_SMALL: u64 = 256;
const BEYOND_CACHES: u64 = 2 << 20;

/// A recorded run that takes less time is mostly the start of the program.
const SHORT_SECONDS: f64 = 0.05;

/// A kind of program.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    /// With "programs" before it.
    words: &'static str,
    factors: (f64, f64),
    /// The upper factor if the program's time is known, so that parts of it count.
    beside_its_time: f64,
    /// The parts of its time by which a program differed besides: less, and more.
    besides: (f64, f64),
}

const THREADS: Kind = Kind {
    name: "threads",
    words: "with several threads",
    factors: (0.4, 3.0),
    beside_its_time: 3.0,
    besides: (0.0, 0.0),
};
const SMALL_OBJECTS: Kind = Kind {
    name: "small objects",
    words: "that hold many small objects",
    factors: (0.6, 5.5),
    beside_its_time: 1.5,
    besides: (0.25, 0.03),
};
const SHORT: Kind = Kind {
    name: "short",
    words: "that end soon",
    factors: (0.5, 5.0),
    beside_its_time: 5.0,
    besides: (0.0, 0.0),
};
const OTHERS: Kind = Kind {
    name: "others",
    words: "with one thread and few small objects",
    factors: (0.4, 2.0),
    beside_its_time: 1.7,
    besides: (0.03, 0.03),
};

/// The error of the model for one program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Model {
    pub kinds: Vec<&'static str>,
    /// The program itself gains this many times what its replayed allocations gain.
    pub low_factor: f64,
    pub high_factor: f64,
    /// It may also take this part of its time less, or more, whatever its allocations gain.
    pub besides_less: f64,
    pub besides_more: f64,
    #[serde(skip)]
    words: Vec<String>,
}

pub fn has_threads(summary: &Summary) -> bool {
    summary.threads > summary.processes
}

pub fn has_small_objects(summary: &Summary) -> bool {
    let small = summary.peak_payload < MOST_LIVE_SMALL * summary.peak_objects;
    small && summary.peak_payload >= BEYOND_CACHES
}

fn is_short(summary: &Summary) -> bool {
    summary.seconds > 0.0 && summary.seconds < SHORT_SECONDS
}

impl Model {
    /// `knows_time`: whether the time of the program is known.
    pub fn of(summary: &Summary, knows_time: bool) -> Self {
        let mut kinds = Vec::new();
        kinds.extend(has_threads(summary).then_some(THREADS));
        kinds.extend(has_small_objects(summary).then_some(SMALL_OBJECTS));
        kinds.extend(is_short(summary).then_some(SHORT));
        if kinds.is_empty() {
            kinds.push(OTHERS);
        }
        let low = kinds.iter().map(|kind| kind.factors.0);
        let high = kinds.iter().map(|kind| match knows_time {
            true => kind.beside_its_time,
            false => kind.factors.1,
        });
        let besides = |part: fn(&Kind) -> f64| match knows_time {
            true => kinds.iter().map(part).fold(0.0, f64::max),
            false => 0.0,
        };
        Model {
            low_factor: low.fold(f64::INFINITY, f64::min),
            high_factor: high.fold(0.0, f64::max),
            besides_less: besides(|kind| kind.besides.0),
            besides_more: besides(|kind| kind.besides.1),
            words: kinds.iter().map(|kind| kind.words.to_string()).collect(),
            kinds: kinds.iter().map(|kind| kind.name).collect(),
        }
    }

    /// The kinds of programs that the factors are from.
    pub fn programs(&self) -> String {
        format!("programs {}", super::listed(&self.words))
    }

    pub fn has_threads(&self) -> bool {
        self.kinds.contains(&THREADS.name)
    }

    /// What the program itself may do, such as `gain 0.4 to 3 times as much`. `verb` is `gain` or
    /// `lose`.
    pub fn may(&self, verb: &str) -> String {
        let Model {
            low_factor: low,
            high_factor: high,
            ..
        } = self;
        let mut text = format!("{verb} {low} to {high} times as much");
        if self.besides_less > 0.0 {
            let (less, more) = (100.0 * self.besides_less, 100.0 * self.besides_more);
            text += &format!(", or take {less:.0} % of its time less to {more:.0} % more besides");
        }
        text
    }

    /// The bounds of the program's difference, from those of the replay's, and from the time of the
    /// program if it is known. In the same units.
    pub fn program(&self, replayed: Interval, time: Option<f64>) -> Interval {
        let limit = time.unwrap_or(f64::INFINITY);
        let time = time.unwrap_or(0.0);
        let ends = [replayed.low, replayed.high];
        let all = ends
            .iter()
            .flat_map(|end| [end * self.low_factor, end * self.high_factor]);
        let besides = (
            replayed.low - self.besides_less * time,
            replayed.high + self.besides_more * time,
        );
        Interval {
            // No program can gain more than its time.
            low: all.clone().fold(besides.0, f64::min).max(-limit),
            high: all.fold(besides.1, f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(threads: u64, objects: u64, bytes: u64, seconds: f64) -> Summary {
        Summary {
            processes: 1,
            threads,
            peak_objects: objects,
            peak_payload: bytes,
            seconds,
            ..Summary::default()
        }
    }

    #[test]
    fn the_error_is_that_of_the_kinds_of_the_program() {
        let of = |summary: Summary| {
            let model = Model::of(&summary, false);
            (model.kinds, model.low_factor, model.high_factor)
        };
        let plain = of(program(1, 100, 1 << 20, 1.0));
        assert_eq!(plain, (vec!["others"], 0.4, 2.0));
        let small = of(program(1, 100_000, 4 << 20, 1.0));
        assert_eq!(small, (vec!["small objects"], 0.6, 5.5));
        let large = of(program(1, 1000, 4 << 20, 1.0));
        assert_eq!(large, plain, "4 KiB each");
        assert_eq!(
            of(program(1, 10_000, 1 << 20, 1.0)),
            plain,
            "caches hold them"
        );
        let threads = of(program(4, 100, 1 << 20, 1.0));
        assert_eq!(threads, (vec!["threads"], 0.4, 3.0));
        let all = of(program(4, 100_000, 4 << 20, 0.01));
        assert_eq!(all, (vec!["threads", "small objects", "short"], 0.4, 5.5));
        assert_eq!(of(program(1, 100, 1 << 20, 0.0)), plain, "an unknown time");
        let words = Model::of(&program(2, 100, 1, 0.01), false).programs();
        assert_eq!(words, "programs with several threads and that end soon");
    }

    #[test]
    fn the_program_s_bounds_hold_each_bound_times_each_factor() {
        let model = Model {
            low_factor: 0.5,
            high_factor: 3.0,
            ..Model::default()
        };
        let bounds = |low, high| {
            let Interval { low, high } = model.program(Interval { low, high }, None);
            (low, high)
        };
        assert_eq!(bounds(-20.0, -10.0), (-60.0, -5.0));
        assert_eq!(bounds(10.0, 20.0), (5.0, 60.0));
        assert_eq!(bounds(-10.0, 4.0), (-30.0, 12.0));
    }

    #[test]
    fn a_program_may_gain_a_part_of_its_time_besides() {
        let model = Model::of(&program(1, 100_000, 4 << 20, 1.0), true);
        let bounds = model.program(
            Interval {
                low: -3.0,
                high: 2.0,
            },
            Some(1000.0),
        );
        assert_eq!((bounds.low, bounds.high), (-253.0, 32.0));
        let all = Interval {
            low: -900.0,
            high: -800.0,
        };
        assert_eq!(model.program(all, Some(1000.0)).low, -1000.0);
        let none = Model::of(&program(4, 100, 1 << 20, 1.0), false);
        assert_eq!(none.may("gain"), "gain 0.4 to 3 times as much");
        let may =
            "gain 0.6 to 1.5 times as much, or take 25 % of its time less to 3 % more besides";
        assert_eq!(model.may("gain"), may);
    }
}
