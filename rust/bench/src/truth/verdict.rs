//! The error of predicted figures against real ones, and whether it is within the goals.
//!
//! A time counts as its difference to glibc, as a share of the program's real time on glibc. Both
//! figures have intervals. Half of each interval is added to the error that is allowed.

use slabyard_certainty::{self as certainty, Interval};

/// The allowed error of a predicted difference to glibc, as a share of the real difference.
pub const TIME_GOAL: f64 = 0.15;
/// The allowed error of a predicted peak, as a share of the real peak.
pub const PEAK_GOAL: f64 = 0.05;

/// Values of one program on one allocator, one for each round. Real rounds and rounds of the replay
/// are separate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pair {
    pub real: Vec<f64>,
    pub replayed: Vec<f64>,
}

/// A figure of a program, real and predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    pub real: f64,
    pub real_interval: Interval,
    pub predicted: f64,
    pub predicted_interval: Interval,
    /// Predicted less real.
    pub error: f64,
    pub within_goal: bool,
}

fn half(interval: Interval) -> f64 {
    (interval.high - interval.low) / 2.0
}

impl Verdict {
    fn of(
        (real, real_interval): (f64, Interval),
        (predicted, predicted_interval): (f64, Interval),
        goal: f64,
    ) -> Verdict {
        let error = predicted - real;
        let unknown = half(real_interval).hypot(half(predicted_interval));
        Verdict {
            real,
            real_interval,
            predicted,
            predicted_interval,
            error,
            within_goal: error.abs() <= goal * real.abs() + unknown,
        }
    }

    /// The error as a share of the real figure.
    pub fn relative(&self) -> f64 {
        self.error / self.real.abs()
    }

    /// Whether the real figure differs from zero: its interval does not contain zero.
    pub fn is_certain(&self) -> bool {
        !self.real_interval.holds(0.0)
    }

    pub fn is_right_direction(&self) -> bool {
        self.predicted.signum() == self.real.signum()
    }
}

/// The difference of `runs` to `peer`, as a share of `whole`, with its interval. None for one
/// round.
fn share(runs: &[f64], peer: &[f64], whole: f64) -> Option<(f64, Interval)> {
    let interval = certainty::of_difference(runs, peer)?;
    let difference = certainty::mean(runs) - certainty::mean(peer);
    let part = Interval {
        low: interval.low / whole,
        high: interval.high / whole,
    };
    Some((difference / whole, part))
}

/// Times: differences to the peer as shares of the peer's real time.
pub fn time(one: &Pair, peer: &Pair) -> Option<Verdict> {
    let whole = certainty::mean(&peer.real);
    let real = share(&one.real, &peer.real, whole)?;
    let predicted = share(&one.replayed, &peer.replayed, whole)?;
    Some(Verdict::of(real, predicted, TIME_GOAL))
}

/// Peaks, without differences.
pub fn peak(one: &Pair) -> Option<Verdict> {
    let mean = |runs: &[f64]| Some((certainty::mean(runs), certainty::of_mean(runs)?));
    Some(Verdict::of(
        mean(&one.real)?,
        mean(&one.replayed)?,
        PEAK_GOAL,
    ))
}

/// Counts pairs of allocators whose real times differ by more than the intervals: all of them, and
/// those that the replays put in the right order.
pub fn order(all: &[Pair]) -> (usize, usize) {
    let (mut certain, mut right) = (0, 0);
    for (index, a) in all.iter().enumerate() {
        for b in &all[index + 1..] {
            let real = certainty::of_difference(&a.real, &b.real);
            if real.is_none_or(|real| real.holds(0.0)) {
                continue;
            }
            let difference = |a: &[f64], b: &[f64]| certainty::mean(a) - certainty::mean(b);
            let predicted = difference(&a.replayed, &b.replayed);
            certain += 1;
            right += usize::from(predicted.signum() == difference(&a.real, &b.real).signum());
        }
    }
    (certain, right)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(real: [f64; 3], replayed: [f64; 3]) -> Pair {
        Pair {
            real: real.to_vec(),
            replayed: replayed.to_vec(),
        }
    }

    #[test]
    fn a_difference_is_a_share_of_the_time_on_glibc() {
        let glibc = pair([200.0, 201.0, 199.0], [50.0, 50.5, 49.5]);
        let other = pair([180.0, 181.0, 179.0], [27.0, 27.5, 26.5]);
        let verdict = time(&other, &glibc).unwrap();
        assert!((verdict.real - -0.1).abs() < 1e-12);
        assert!((verdict.predicted - -0.115).abs() < 1e-12);
        assert!((verdict.error - -0.015).abs() < 1e-12);
        assert!((verdict.relative() - -0.15).abs() < 1e-9);
        assert!(verdict.is_certain() && verdict.is_right_direction());
        assert!(
            (verdict.real_interval.high - -0.1).abs() < 1e-9,
            "the rounds agree"
        );
    }

    #[test]
    fn the_goal_widens_by_what_is_not_known() {
        let glibc = pair([200.0; 3], [50.0; 3]);
        let off = |real| time(&pair(real, [25.0; 3]), &glibc).unwrap();
        let sure = off([180.0; 3]);
        assert!(!sure.within_goal && sure.is_certain());
        let unsure = off([178.0, 180.0, 182.0]);
        assert!(unsure.within_goal && unsure.is_certain());
        let unknown = off([150.0, 180.0, 210.0]);
        assert!(unknown.within_goal && !unknown.is_certain());
        assert_eq!(time(&Pair::default(), &glibc), None);
    }

    #[test]
    fn peaks_are_compared_as_they_are() {
        let close = peak(&pair([1000.0; 3], [1049.0; 3])).unwrap();
        assert!(close.within_goal && (close.relative() - 0.049).abs() < 1e-12);
        let far = peak(&pair([1000.0; 3], [940.0; 3])).unwrap();
        assert!(!far.within_goal && (far.relative() - -0.06).abs() < 1e-12);
    }

    #[test]
    fn order_counts_pairs_that_surely_differ() {
        let all = [
            pair([10.0, 11.0, 12.0], [5.0; 3]),
            pair([20.0, 21.0, 22.0], [9.0; 3]),
            pair([29.0, 30.0, 34.0], [8.0; 3]),
            pair([29.0, 31.0, 33.0], [1.0; 3]), // as long as the one before
        ];
        assert_eq!(order(&all), (5, 2));
    }
}
