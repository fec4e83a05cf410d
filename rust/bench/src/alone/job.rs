//! The task of one measuring process, and its arguments.

use super::Row;
use crate::figure::{self, Figure};
use crate::kernels::{decode_layouts, encode_layouts, Histogram};
use crate::{machine, part};
use std::time::Duration;

/// The extent of a measurement.
#[derive(Clone, Debug)]
pub struct Effort {
    /// Time of one sample.
    pub sample: Duration,
    /// Copies of the loops, in this order.
    pub layouts: Vec<usize>,
    pub seed: u64,
}

#[cfg(test)]
impl Effort {
    /// Enough to see that there is a figure.
    pub fn least() -> Self {
        Effort {
            sample: Duration::from_micros(200),
            layouts: vec![1],
            seed: 3,
        }
    }
}

/// The task of a measuring process.
pub struct Job<R> {
    pub row: R,
    pub who: String,
    pub effort: Effort,
}

/// The result of one copy of the loops: metrics of the row with their values.
pub struct Sampled(pub Vec<(&'static str, f64)>);

/// The share of samples in the mean. The longest hundredth is left out: there another process had
/// the processor.
const KEPT: f64 = 0.99;

impl Sampled {
    /// From the ticks of samples of `operations` each: for one operation, the mean in nanoseconds,
    /// and the median and 99.9th percentile in ticks of the time-stamp counter.
    pub fn new(histogram: Histogram, operations: u64) -> Sampled {
        let each = |ticks: f64| ticks / operations as f64;
        let quantile = |share| each(histogram.quantile(share) as f64);
        let ns = each(histogram.mean_of_shortest(KEPT)) / machine::ticks_per_ns();
        Sampled(vec![
            ("ns", ns),
            ("p50", quantile(0.5)),
            ("p99.9", quantile(0.999)),
        ])
    }

    pub fn of_time(ns: f64) -> Sampled {
        Sampled(vec![("ns", ns)])
    }
}

impl<R: Row> Job<R> {
    pub fn arguments(&self) -> [String; 5] {
        [
            self.row.name(),
            self.who.clone(),
            encode_layouts(&self.effort.layouts),
            self.effort.sample.as_micros().to_string(),
            self.effort.seed.to_string(),
        ]
    }

    /// Parses `arguments`.
    pub fn parse(arguments: &[String]) -> Option<Job<R>> {
        let [row, who, layouts, sample, seed] = arguments else {
            return None;
        };
        Some(Job {
            row: R::find(row)?,
            who: who.clone(),
            effort: Effort {
                sample: Duration::from_micros(sample.parse().ok()?),
                layouts: decode_layouts(layouts)?,
                seed: seed.parse().ok()?,
            },
        })
    }

    /// Measures in this process, which does nothing else.
    pub fn figures(&self) -> Option<Vec<Figure>> {
        let mut figures = Vec::new();
        for (sampled, &layout) in self.row.run(self)?.into_iter().zip(&self.effort.layouts) {
            let figure =
                |(metric, value)| Figure::new(&self.row.name(), metric, &self.who, layout, value);
            figures.extend(sampled.0.into_iter().map(figure));
        }
        Some(figures)
    }

    /// Measures in a process of its own.
    pub fn in_child(&self) -> Result<Vec<Figure>, String> {
        let mut command = part::child(R::COMMAND, &self.arguments())?;
        if self.who.ends_with("tcmalloc") {
            // See `Allocator::environment`.
            command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
        }
        figure::ask(command, &format!("{} of {}", self.row.name(), self.who))
    }
}
