//! Whether what the tool states is true: whether the real ratio to glibc lies within the stated
//! interval.
//!
//! The real ratio is measured too, and so has an interval of its own. The goal takes it as exact.
//! `agrees` allows for its interval.

use slabyard_certainty::{self as certainty, Interval};

/// The least share of stated intervals that hold the real ratio.
pub const HITS_GOAL: f64 = 0.9;
/// The median width of the stated intervals is to be below this, as a share of glibc's figure.
pub const WIDTH_GOAL: f64 = 0.1;

/// A ratio of means, with the interval that it has at 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub mean: f64,
    pub interval: Interval,
}

/// The ratio of an allocator's runs to glibc's of the same rounds. None if it is not known.
pub fn ratio(runs: &[f64], peer: &[f64]) -> Option<Ratio> {
    Some(Ratio {
        mean: certainty::mean(runs) / certainty::mean(peer),
        interval: certainty::of_ratio(runs, peer)?,
    })
}

/// A figure of a program on an allocator, as the tool states it and as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    pub stated: Ratio,
    pub real: Ratio,
}

/// Half the last digit that the tool's sentence shows: 0.1 %.
const ROUNDING: f64 = 0.0005;

impl Verdict {
    /// How far the real ratio lies outside what the sentence says; 0 if it lies within.
    pub fn distance(&self) -> f64 {
        let Interval { low, high } = self.stated.interval;
        let real = self.real.mean;
        (low - ROUNDING - real).max(real - high - ROUNDING).max(0.0)
    }

    /// Whether the stated interval holds the real ratio.
    pub fn is_hit(&self) -> bool {
        self.distance() == 0.0
    }

    /// Whether the two measurements may be of the same ratio, by both their intervals.
    pub fn agrees(&self) -> bool {
        let half = |interval: Interval| (interval.high - interval.low) / 2.0;
        let unknown = half(self.stated.interval).hypot(half(self.real.interval));
        (self.stated.mean - self.real.mean).abs() <= unknown + ROUNDING
    }

    /// Of the stated interval.
    pub fn width(&self) -> f64 {
        self.stated.interval.high - self.stated.interval.low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(stated: (f64, f64), real: [f64; 3]) -> Verdict {
        let (low, high) = stated;
        Verdict {
            stated: Ratio {
                mean: (low + high) / 2.0,
                interval: Interval { low, high },
            },
            real: ratio(&real, &[100.0, 101.0, 99.0]).unwrap(),
        }
    }

    #[test]
    fn a_real_ratio_outside_the_interval_is_missed_whatever_its_own_interval() {
        let hit = verdict((0.88, 0.92), [90.0, 90.9, 89.1]);
        assert!(hit.is_hit() && hit.agrees());
        assert!((hit.width() - 0.04).abs() < 1e-12 && hit.distance() == 0.0);
        let sure = verdict((0.91, 0.92), [90.0, 90.9, 89.1]);
        assert!(!sure.is_hit() && !sure.agrees());
        assert!((sure.distance() - 0.0095).abs() < 1e-9);
        let unsure = verdict((0.91, 0.92), [80.0, 90.0, 100.0]);
        assert!(!unsure.is_hit() && unsure.agrees());
    }

    #[test]
    fn what_the_sentence_cannot_show_is_no_miss() {
        let peaks = verdict((1.1731, 1.1733), [117.35, 118.5, 116.2]);
        assert!(peaks.is_hit(), "{peaks:?}");
        assert_eq!(ratio(&[1.0], &[1.0]), None);
    }
}
