//! A histogram of latencies. Its size does not depend on their number: it counts them in buckets,
//! 64 for each doubling. A value that is read is within 1.6 percent of the value that was noted.

/// Buckets to a doubling, as a power of two.
const PRECISION: u32 = 6;

#[derive(Default)]
pub struct Latencies {
    counts: Vec<u64>,
    total: u64,
}

/// By how many bits a value is shifted to get its bucket.
fn shift_of(ns: u64) -> u32 {
    (u64::BITS - ns.leading_zeros()).saturating_sub(PRECISION + 1)
}

fn bucket_of(ns: u64) -> usize {
    let shift = shift_of(ns);
    ((shift as usize) << PRECISION) + (ns >> shift) as usize
}

/// The largest value of a bucket.
fn last_of(bucket: usize) -> u64 {
    let shift = (bucket >> PRECISION).saturating_sub(1);
    ((bucket - (shift << PRECISION) + 1) as u64).wrapping_shl(shift as u32) - 1
}

impl Latencies {
    pub fn note(&mut self, ns: u64) {
        let bucket = bucket_of(ns);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
    }

    /// The nanoseconds that this share of the latencies does not exceed; 0 if there are none.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (share * self.total as f64).ceil() as u64;
        let mut seen = 0;
        let reaches = |count: &u64| {
            seen += count;
            seen >= wanted.max(1)
        };
        self.counts.iter().position(reaches).map_or(0, last_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_one_another_and_are_narrow() {
        let mut next = 0;
        for bucket in 0..2000 {
            let last = last_of(bucket);
            assert_eq!((bucket_of(next), bucket_of(last)), (bucket, bucket));
            assert!(last - next <= next / 64, "{next} to {last}");
            next = last + 1;
        }
    }

    #[test]
    fn quantiles_are_those_of_what_was_noted() {
        let mut some = Latencies::default();
        assert_eq!(some.quantile(0.5), 0);
        for ns in (1..=100_000).rev() {
            some.note(ns);
        }
        for (share, exact) in [(0.5, 50_000.0), (0.99, 99_000.0), (0.999, 99_900.0)] {
            let ratio = some.quantile(share) as f64 / exact;
            assert!((1.0..1.016).contains(&ratio), "{share}: {ratio}");
        }
        some.note(u64::from(u32::MAX));
        assert!(some.quantile(1.0) >= u64::from(u32::MAX));
    }
}
