//! Histograms of durations, in buckets that are at most 3 % wide.

use serde::{Deserialize, Serialize};

const SUB_BITS: u32 = 5;
const SUB: u64 = 1 << SUB_BITS;
/// The number of buckets, for values from 0 to 2^40 ticks, which are some minutes.
pub const BUCKETS: usize = ((40 - SUB_BITS + 1) * SUB as u32) as usize;

/// The bucket of a value: exact below 64, then 32 to each power of two.
#[inline(always)]
pub fn bucket(value: u64) -> usize {
    let shift = (64 - (value >> SUB_BITS).leading_zeros()).saturating_sub(1);
    let index = u64::from(shift) * SUB + (value >> shift);
    (index as usize).min(BUCKETS - 1)
}

/// The middle value of a bucket.
pub fn middle(bucket: usize) -> f64 {
    let bucket = bucket as u64;
    if bucket < 2 * SUB {
        return bucket as f64;
    }
    let shift = bucket / SUB - 1;
    let low = (bucket - shift * SUB) << shift;
    low as f64 + (1u64 << shift) as f64 / 2.0 - 0.5
}

/// The buckets that are not empty: (bucket, count), ascending.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Histogram {
    pub counts: Vec<(u32, u64)>,
}

impl Histogram {
    pub fn from_dense(dense: &[u64]) -> Self {
        let full = dense.iter().enumerate().filter(|(_, &count)| count > 0);
        Histogram {
            counts: full
                .map(|(bucket, &count)| (bucket as u32, count))
                .collect(),
        }
    }

    pub fn add(&mut self, other: &Histogram) {
        let mut all: std::collections::BTreeMap<u32, u64> = self.counts.iter().copied().collect();
        for &(bucket, count) in &other.counts {
            *all.entry(bucket).or_default() += count;
        }
        self.counts = all.into_iter().collect();
    }

    pub fn total(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// The value that `share` of all values do not exceed; 0 for an empty histogram.
    pub fn quantile(&self, share: f64) -> f64 {
        let rank = (self.total() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for &(bucket, count) in &self.counts {
            seen += count;
            if seen >= rank {
                return middle(bucket as usize);
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_narrow() {
        let mut last = 0;
        for value in (0..100_000).chain((17..40).map(|n| (1 << n) + 12_345)) {
            let index = bucket(value);
            assert!(index >= last);
            last = index;
            let error = (middle(index) - value as f64).abs();
            assert!(
                error <= value as f64 * 0.03,
                "{value} in the bucket of {}",
                middle(index)
            );
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut dense = vec![0; BUCKETS];
        for value in 1..=1000 {
            dense[bucket(value)] += 1;
        }
        let histogram = Histogram::from_dense(&dense);
        assert_eq!(histogram.total(), 1000);
        for (share, value) in [(0.5, 500.0), (0.99, 990.0), (0.999, 999.0)] {
            assert!((histogram.quantile(share) / value - 1.0).abs() < 0.03);
        }
        assert_eq!(Histogram::default().quantile(0.5), 0.0);
    }

    #[test]
    fn adding_is_adding_values() {
        let mut sum = Histogram {
            counts: vec![(1, 2), (5, 1)],
        };
        sum.add(&Histogram {
            counts: vec![(0, 1), (5, 3)],
        });
        assert_eq!(sum.counts, [(0, 1), (1, 2), (5, 4)]);
    }
}
