//! Foretells the peak memory of the program on each allocator.
//!
//! A replay has the memory of malloc alone. The program also has memory of its own: code, stacks,
//! data, its own mappings. Where the recorded run was sampled, the program's own memory is the sample
//! less the memory that the replay on glibc has at the same operation. It is the same whatever serves
//! malloc. So the peak on an allocator is the maximum, over the run, of the program's own memory
//! and the memory of the replay on this allocator.
//!
//! ```text
//! sample of the program     own + glibc       known at each sample
//! replay on glibc                 glibc       known at the same operations
//! replay on an allocator          allocator   own + allocator is foretold
//! ```

use crate::plan::Summary;
use crate::preload::serving::LIBC;
use serde::Serialize;
use slabyard_certainty as certainty;

/// How far a foretold difference to glibc was from the real one, in programs that were measured
/// both ways: some memory, and a part of the difference. An allocator that takes memory in pieces
/// of 2 MiB may have two more or two fewer of them.
const ERROR_BYTES: f64 = (1 << 20) as f64;
const ERROR_PART: f64 = 0.15;
const IN_LARGE_PIECES: [&str; 2] = ["mimalloc", "tcmalloc"];
const LARGE_PIECES_BYTES: f64 = (4 << 20) as f64;
/// The same for a program with several threads, as a part of the memory of its malloc: the threads'
/// queues differ from run to run.
const THREADS_PART: f64 = 0.25;

/// The same for a program that did not touch all the memory that it asked for, as a part of what it
/// did not touch: which pages are touched again in freed memory is not known.
const UNTOUCHED_PART: f64 = 0.25;

/// The code and data of a library that a program loads in place of the C library's malloc, beside
/// what it allocates. A replay does not have them.
const LIBRARY_BYTES: f64 = 0.6 * (1 << 20) as f64;

/// The memory of a replay: (operation, bytes), ascending.
pub type Curve = Vec<(u64, i64)>;

/// The peak memory of the program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Foretold {
    /// The peak, and how much more that is than on glibc.
    pub bytes: f64,
    pub more: f64,
    /// The bounds of `more`, with the error of the model.
    pub low: f64,
    pub high: f64,
}

/// The program on glibc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OnGlibc {
    /// Its peak, and whether code and libraries are in it.
    pub bytes: f64,
    pub with_code: bool,
    /// The memory at the peak that malloc did not give.
    pub own: f64,
}

/// The program's own memory at an operation, and the share of glibc's replayed memory that it really
/// had: less than all if it did not touch all of it.
#[derive(Clone, Copy, Debug)]
struct Own {
    x: u64,
    bytes: f64,
    share: f64,
}

/// What is known of the program.
pub struct Program {
    own: Vec<Own>,
    /// The peaks of all runs on glibc.
    glibc: Vec<f64>,
    pub on_glibc: OnGlibc,
    threads: bool,
    /// The bytes that it asked for and did not touch.
    untouched: f64,
}

impl Program {
    /// `glibc`: the curves of all runs on glibc, of which there is one at least.
    pub fn of(summary: &Summary, glibc: &[Curve]) -> Self {
        let at = |x: u64| {
            let runs = glibc.iter().map(|curve| value_at(curve, x).max(0.0));
            certainty::mean(&runs.collect::<Vec<_>>())
        };
        let own = |&(x, bytes): &(u64, u64)| {
            let (seen, replayed) = (bytes as f64, at(x));
            Own {
                x,
                bytes: (seen - replayed).max(0.0),
                share: (seen / replayed.max(1.0)).min(1.0),
            }
        };
        let mut program = Program {
            own: summary.moments.iter().map(own).collect(),
            glibc: Vec::new(),
            on_glibc: OnGlibc::default(),
            threads: summary.threads > summary.processes,
            untouched: 0.0,
        };
        let peaks: Vec<_> = glibc.iter().map(|curve| program.peak(curve)).collect();
        program.glibc = peaks.iter().map(|peak| peak.0).collect();
        let most = |curve: &Curve| curve.iter().map(|point| point.1).max().unwrap_or(0) as f64;
        let most = certainty::mean(&glibc.iter().map(most).collect::<Vec<_>>());
        program.untouched = (summary.peak_payload as f64 - most).max(0.0);
        let (seen, at_peak) = (certainty::mean(&program.glibc), peaks[0].1);
        let known = summary.processes == 1 && summary.peak_resident > 0;
        program.on_glibc = OnGlibc {
            bytes: match known {
                true => (summary.peak_resident as f64).max(seen),
                false => seen,
            },
            with_code: known,
            own: at_peak,
        };
        program
    }

    /// The peak of the program's anonymous memory, and its own part of it.
    fn peak(&self, curve: &Curve) -> (f64, f64) {
        let moments = self.own.iter().map(|own| own.x);
        let all = curve.iter().map(|point| point.0).chain(moments);
        let sums = all.map(|x| {
            let own = self.own_at(x);
            (
                own.bytes + own.share * value_at(curve, x).max(0.0),
                own.bytes,
            )
        });
        let highest = sums.max_by(|a, b| a.0.total_cmp(&b.0));
        highest.unwrap_or((0.0, 0.0))
    }

    /// The program's own memory changes slowly, so it is interpolated between samples.
    fn own_at(&self, x: u64) -> Own {
        let after = self.own.partition_point(|own| own.x < x);
        let before = after.checked_sub(1).and_then(|index| self.own.get(index));
        match (before, self.own.get(after)) {
            (Some(&a), Some(&b)) => {
                let part = (x - a.x) as f64 / (b.x - a.x).max(1) as f64;
                let between = |a: f64, b: f64| a + part * (b - a);
                Own {
                    x,
                    bytes: between(a.bytes, b.bytes),
                    share: between(a.share, b.share),
                }
            }
            (Some(&one), None) | (None, Some(&one)) => one,
            // Without samples, only the difference to glibc is known.
            (None, None) => Own {
                x,
                bytes: 0.0,
                share: 1.0,
            },
        }
    }

    /// Foretells the peak on the allocator with these curves.
    pub fn on(&self, name: &str, curves: &[Curve]) -> Foretold {
        let peaks: Vec<_> = curves.iter().map(|curve| self.peak(curve)).collect();
        let own = peaks.first().map_or(0.0, |peak| peak.1);
        let peaks: Vec<_> = peaks.into_iter().map(|peak| peak.0).collect();
        let (peak, glibc) = (certainty::mean(&peaks), certainty::mean(&self.glibc));
        let library = match name == LIBC || !self.on_glibc.with_code {
            true => 0.0,
            false => LIBRARY_BYTES,
        };
        let more = peak - glibc + library;
        let chance = certainty::of_difference(&peaks, &self.glibc);
        let chance = chance.map_or(0.0, |sure| (sure.high - sure.low) / 2.0);
        let mut error = ERROR_BYTES + ERROR_PART * more.abs() + UNTOUCHED_PART * self.untouched;
        if IN_LARGE_PIECES.contains(&name) {
            error += LARGE_PIECES_BYTES;
        }
        if self.threads {
            error += THREADS_PART * (peak - own).max(glibc - self.on_glibc.own).max(0.0);
        }
        Foretold {
            bytes: self.on_glibc.bytes + more,
            more,
            low: more - chance - error,
            high: more + chance + error,
        }
    }
}

/// The value of a curve at an operation, between two points in proportion.
fn value_at(curve: &Curve, x: u64) -> f64 {
    let after = curve.partition_point(|point| point.0 < x);
    let before = after.checked_sub(1).and_then(|index| curve.get(index));
    match (before, curve.get(after)) {
        (_, Some(&(at, bytes))) if at == x => bytes as f64,
        (Some(a), Some(b)) => {
            let part = (x - a.0) as f64 / (b.0 - a.0) as f64;
            a.1 as f64 + part * (b.1 - a.1) as f64
        }
        (Some(a), None) => a.1 as f64,
        (None, Some(_)) | (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: i64 = 1 << 20;

    /// Rounded to a thousandth.
    fn mib(bytes: f64) -> f64 {
        (bytes / MIB as f64 * 1000.0).round() / 1000.0
    }

    fn curve(mib: &[i64]) -> Curve {
        let points = mib.iter().enumerate();
        points
            .map(|(n, &mib)| (100 * n as u64, mib * MIB))
            .collect()
    }

    fn summary(samples: &[(u64, u64)], peak_resident: u64) -> Summary {
        Summary {
            processes: 1,
            threads: 1,
            peak_resident: peak_resident << 20,
            moments: samples.iter().map(|&(x, mib)| (x, mib << 20)).collect(),
            ..Summary::default()
        }
    }

    /// A compiler: at its peak, nine tenths of its memory come from a mapping of its own.
    #[test]
    fn most_of_the_memory_is_the_programs_own() {
        let summary = summary(&[(100, 12), (300, 50), (400, 50)], 55);
        let glibc = [curve(&[0, 2, 5, 5, 5]), curve(&[0, 2, 5, 5, 5])];
        let program = Program::of(&summary, &glibc);
        let expected = OnGlibc {
            bytes: 55.0 * MIB as f64,
            with_code: true,
            own: 45.0 * MIB as f64,
        };
        assert_eq!(program.on_glibc, expected);
        let foretold = program.on(
            "slabyard",
            &[curve(&[0, 4, 9, 9, 9]), curve(&[0, 4, 9, 9, 9])],
        );
        assert_eq!((mib(foretold.bytes), mib(foretold.more)), (59.6, 4.6));
        let (low, high) = (mib(foretold.low), mib(foretold.high));
        assert!(
            (2.8..3.0).contains(&low) && (6.2..6.4).contains(&high),
            "{low} to {high}"
        );
        assert_eq!(program.on("glibc", &glibc).more, 0.0);
    }

    /// The peaks of malloc's memory and of the program's own memory are at different times.
    #[test]
    fn what_counts_is_the_same_moment() {
        let summary = summary(&[(100, 40), (300, 20)], 45);
        // Early the program has 30 MiB of its own beside 10 of malloc, later 5 beside 15.
        let program = Program::of(&summary, &[curve(&[0, 10, 10, 15, 15])]);
        let foretold = program.on("slabyard", &[curve(&[0, 11, 11, 25, 25])]);
        assert_eq!(mib(foretold.more), 1.6);
        assert_eq!(mib(program.on_glibc.own), 30.0);
    }

    #[test]
    fn memory_that_the_program_did_not_touch_counts_less() {
        let program = Program::of(&summary(&[(200, 10)], 12), &[curve(&[0, 40, 40])]);
        assert_eq!(program.on_glibc.own, 0.0);
        let foretold = program.on("slabyard", &[curve(&[0, 60, 60])]);
        assert_eq!(mib(foretold.more), 5.6);
    }

    #[test]
    fn memory_that_is_asked_for_and_not_touched_makes_it_less_certain() {
        let mut summary = summary(&[], 12);
        let width = |summary: &Summary| {
            let program = Program::of(summary, &[curve(&[0, 5, 5])]);
            let Foretold { low, high, .. } = program.on("slabyard", &[curve(&[0, 6, 6])]);
            mib(high - low)
        };
        summary.peak_payload = 5 << 20;
        let touched = width(&summary);
        summary.peak_payload = 45 << 20;
        assert_eq!(width(&summary), touched + 20.0);
    }

    #[test]
    fn without_samples_the_difference_is_that_of_the_peaks() {
        let program = Program::of(&summary(&[], 30), &[curve(&[0, 7, 3])]);
        let foretold = program.on("slabyard", &[curve(&[0, 9, 9])]);
        assert_eq!((mib(foretold.more), mib(foretold.bytes)), (2.6, 32.6));
        let large = program.on("mimalloc", &[curve(&[0, 9, 9])]);
        let wider = (foretold.low - large.low, large.high - foretold.high);
        assert_eq!((mib(wider.0), mib(wider.1)), (4.0, 4.0));
    }

    #[test]
    fn several_threads_are_less_certain_and_so_are_runs_that_differ() {
        let mut summary = summary(&[], 0);
        let glibc = [curve(&[0, 100]), curve(&[0, 100])];
        let ours = [curve(&[0, 90]), curve(&[0, 90])];
        let alone = Program::of(&summary, &glibc).on("slabyard", &ours);
        summary.threads = 2;
        let together = Program::of(&summary, &glibc).on("slabyard", &ours);
        assert!(alone.high < 0.0 && together.high > 0.0);
        assert!(!Program::of(&summary, &glibc).on_glibc.with_code);
        let differing = [curve(&[0, 80]), curve(&[0, 100])];
        let unsure = Program::of(&summary, &glibc).on("slabyard", &differing);
        assert!(unsure.high > together.high && unsure.low < together.low);
    }
}
