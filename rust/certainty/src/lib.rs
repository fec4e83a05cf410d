//! Confidence intervals of means, of differences, and of ratios of two means.
//!
//! Allocators take turns, round after round. A disturbance affects all allocators of a round, so
//! figures of the same round belong together. An interval contains the true value in 95 of 100
//! measurements, if rounds differ only by chance.

use serde::Serialize;

/// An interval that contains the true value in 95 of 100 measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    fn around(middle: f64, half: f64) -> Self {
        Interval {
            low: middle - half,
            high: middle + half,
        }
    }

    /// The interval if there is one more source of error, which is independent of the others and of
    /// this size, also at 95 %.
    pub fn with_error(&self, half: f64) -> Self {
        let own = (self.high - self.low) / 2.0;
        Interval::around((self.high + self.low) / 2.0, own.hypot(half))
    }

    pub fn holds(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Half its width, as a fraction of its middle.
    pub fn precision(&self) -> f64 {
        (self.high - self.low) / (self.high + self.low).abs()
    }
}

/// Quantiles of Student's t distribution for 95 %, for 1, 2, 3, ... degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Student's t for any degrees of freedom; beyond the table, the normal distribution with the first
/// term of the difference to it.
fn student(freedom: usize) -> f64 {
    STUDENT
        .get(freedom - 1)
        .copied()
        .unwrap_or(1.960 + 2.372 / freedom as f64)
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The square of the standard error of a mean; for two lists, the covariance of their means.
fn error(a: &[f64], b: &[f64]) -> f64 {
    let (mean_a, mean_b) = (mean(a), mean(b));
    let products = a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b));
    products.sum::<f64>() / ((a.len() - 1) * a.len()) as f64
}

/// The interval of a mean; `None` for fewer than two values.
pub fn of_mean(values: &[f64]) -> Option<Interval> {
    if values.len() < 2 {
        return None;
    }
    let half = student(values.len() - 1) * error(values, values).sqrt();
    Some(Interval::around(mean(values), half))
}

/// The interval of `mean(a) - mean(b)`, where `a` and `b` come from the same rounds.
pub fn of_difference(a: &[f64], b: &[f64]) -> Option<Interval> {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    of_mean(&differences)
}

/// The interval of `mean(a) / mean(b)`, where `a` and `b` come from the same rounds, by Fieller's
/// method: all ratios r for which `a - r * b` may have the mean 0. `None` if `mean(b)` may be 0.
pub fn of_ratio(a: &[f64], b: &[f64]) -> Option<Interval> {
    if a.len() < 2 || a.len() != b.len() {
        return None;
    }
    let (mean_a, mean_b) = (mean(a), mean(b));
    let t = student(a.len() - 1).powi(2);
    let square = mean_b * mean_b - t * error(b, b);
    let product = mean_a * mean_b - t * error(a, b);
    let constant = mean_a * mean_a - t * error(a, a);
    if mean_b <= 0.0 || square <= 0.0 {
        return None;
    }
    let half = (product * product - square * constant).max(0.0).sqrt() / square;
    Some(Interval::around(product / square, half))
}

/// The rounds of one session resemble each other more than those of another time: what else the
/// machine does changes over minutes. So the variance of a session's mean has a part that more
/// rounds do not lessen: that of an undisturbed round, divided by this. It was measured with
/// programs that ran before, during and after sessions (docs/compare.md).
const SESSION_ROUNDS: f64 = 4.0;

/// The quartiles of a normal distribution are so far apart, in standard deviations.
const QUARTILES: f64 = 1.349;

/// The ratio's interval at any time, not in this session alone: for the mean of many sessions.
pub fn of_ratio_at_any_time(a: &[f64], b: &[f64]) -> Option<Interval> {
    let here = of_ratio(a, b)?;
    let middle = (here.low + here.high) / 2.0;
    let mut apart: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - middle * b).collect();
    apart.sort_by(f64::total_cmp);
    // Rounds that other programs disturbed much are in the outer quarters.
    let spread = (quantile(&apart, 0.75) - quantile(&apart, 0.25)) / QUARTILES / mean(b);
    let session = student(a.len() - 1) * spread / SESSION_ROUNDS.sqrt();
    Some(Interval::around(
        middle,
        ((here.high - here.low) / 2.0).hypot(session),
    ))
}

/// The value at a part of sorted values, between two of them if need be.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * (sorted.len() - 1) as f64;
    let (below, above) = (
        sorted[place.floor() as usize],
        sorted[place.ceil() as usize],
    );
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A deterministic generator of numbers between -1 and 1, evenly distributed.
    struct Noise(u64);

    impl Noise {
        fn next(&mut self) -> f64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        }
    }

    /// Rounds of two allocators whose true times are 30 and 20. Each round is disturbed as a whole,
    /// and each run by itself.
    fn rounds(noise: &mut Noise, count: usize) -> (Vec<f64>, Vec<f64>) {
        let mut round = || {
            let all = 5.0 * noise.next();
            (30.0 + all + noise.next(), 20.0 + all + noise.next())
        };
        (0..count).map(|_| round()).unzip()
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_truth() {
        let mut noise = Noise(7);
        for count in [3, 5, 10, 40] {
            let (mut means, mut differences, mut ratios) = (0, 0, 0);
            for _ in 0..2000 {
                let (a, b) = rounds(&mut noise, count);
                means += u32::from(of_mean(&a).unwrap().holds(30.0));
                differences += u32::from(of_difference(&a, &b).unwrap().holds(10.0));
                ratios += u32::from(of_ratio(&a, &b).is_none_or(|ratio| ratio.holds(1.5)));
            }
            for hits in [means, differences, ratios] {
                assert!(
                    (1840..=1980).contains(&hits),
                    "{count} rounds: {hits} of 2000"
                );
            }
        }
    }

    /// Each session has a disturbance of its own, whose variance is a tenth of a round's.
    #[test]
    fn intervals_at_any_time_hold_the_truth_of_other_sessions() {
        let mut noise = Noise(3);
        for count in [5, 20, 80] {
            let (mut any_time, mut here) = (0, 0);
            for _ in 0..2000 {
                let session = noise.next() * 0.1_f64.sqrt();
                let (a, b): (Vec<f64>, Vec<f64>) = (0..count)
                    .map(|_| (30.0 + session + noise.next(), 20.0))
                    .unzip();
                any_time += u32::from(of_ratio_at_any_time(&a, &b).unwrap().holds(1.5));
                here += u32::from(of_ratio(&a, &b).unwrap().holds(1.5));
            }
            assert!(any_time >= 1840, "{count}: {any_time}");
            assert!(
                here < any_time && (count < 20 || here < 1640),
                "{count}: {here}"
            );
        }
    }

    #[test]
    fn errors_of_two_sources_add_up_as_squares() {
        let both = Interval::around(2.0, 0.3).with_error(0.4);
        assert!((both.low - 1.5).abs() < 1e-12 && (both.high - 2.5).abs() < 1e-12);
    }

    #[test]
    fn what_disturbs_a_whole_round_does_not_hide_a_difference() {
        let (a, b) = rounds(&mut Noise(1), 10);
        let difference = of_difference(&a, &b).unwrap();
        let (mean_a, mean_b) = (of_mean(&a).unwrap(), of_mean(&b).unwrap());
        let width = |interval: Interval| interval.high - interval.low;
        assert!(width(difference) < width(mean_a).min(width(mean_b)) / 2.0);
    }

    /// A round that was disturbed counts once, not for all sessions.
    #[test]
    fn a_disturbed_round_does_not_widen_the_part_of_the_session() {
        let quiet = [10.0, 10.2, 9.8, 10.1, 9.9, 10.0, 10.2, 9.8];
        let disturbed = [10.0, 10.2, 9.8, 10.1, 9.9, 10.0, 30.0, 9.8];
        let session = |a: &[f64]| {
            let half = |all: Interval| (all.high - all.low) / 2.0;
            let b = [10.0; 8];
            let here = half(of_ratio(a, &b).unwrap());
            (half(of_ratio_at_any_time(a, &b).unwrap()).powi(2) - here * here).sqrt()
        };
        assert!(session(&quiet) > 0.01, "{}", session(&quiet));
        assert!(session(&disturbed) < 2.0 * session(&quiet));
        assert_eq!(of_ratio_at_any_time(&[3.0], &[2.0]), None);
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), 3.0);
    }

    #[test]
    fn there_is_no_interval_where_nothing_is_known() {
        assert_eq!(of_mean(&[3.0]), None);
        assert_eq!(of_ratio(&[3.0], &[2.0]), None);
        // The divisor may be 0, or is negative, so there is no ratio.
        assert_eq!(of_ratio(&[3.0, 3.1, 2.9], &[0.1, -0.2, 0.3]), None);
        assert_eq!(of_ratio(&[3.0, 3.1], &[-2.0, -2.0]), None);
        let same = of_ratio(&[3.0, 4.0, 5.0], &[3.0, 4.0, 5.0]).unwrap();
        assert!((same.low - 1.0).abs() < 1e-9 && (same.high - 1.0).abs() < 1e-9);
    }
}
