//! What one measuring process does, and how it is told.

use super::rows::Row;
use super::{maps, owned, shared};
use crate::kernels::Histogram;
use crate::machine;
use crate::vmem::figure::{self, Figure};
use std::process::Command;
use std::time::Duration;

/// How much of everything.
#[derive(Clone, Debug)]
pub struct Effort {
    /// Time of one sample.
    pub sample: Duration,
    /// Copies of the loops, in this order.
    pub layouts: Vec<usize>,
    pub seed: u64,
}

/// What a measuring process is to do.
pub struct Job {
    pub row: Row,
    pub who: String,
    pub effort: Effort,
}

/// What one copy of the loops gave.
pub struct Sampled {
    ns: f64,
    /// Ticks of the time-stamp counter, an operation: the median, and what one in a thousand exceeds.
    cycles: Option<[f64; 2]>,
}

/// The longest hundredth of the samples is left out of the mean: that is when others had the
/// processor.
const KEPT: f64 = 0.99;

impl Sampled {
    /// Of ticks that so many operations took each time.
    pub fn new(histogram: Histogram, operations: u64) -> Sampled {
        let each = |ticks: f64| ticks / operations as f64;
        let quantile = |share| each(histogram.quantile(share) as f64);
        Sampled {
            ns: each(histogram.mean_of_shortest(KEPT)) / machine::ticks_per_ns(),
            cycles: Some([quantile(0.5), quantile(0.999)]),
        }
    }

    pub fn of_time(ns: f64) -> Sampled {
        Sampled { ns, cycles: None }
    }
}

/// What there is of each sample.
const METRICS: [&str; 3] = ["ns", "p50", "p99.9"];

impl Row {
    pub fn names(self) -> Vec<&'static str> {
        match self {
            Row::Owned { what, .. } => owned::names(what),
            Row::Local { .. } => maps::names(),
            Row::Shared { what, .. } => shared::names(what),
        }
    }
}

impl Job {
    pub fn arguments(&self) -> [String; 5] {
        let layouts: Vec<String> = self.effort.layouts.iter().map(usize::to_string).collect();
        [
            self.row.name(),
            self.who.clone(),
            layouts.join(","),
            self.effort.sample.as_micros().to_string(),
            self.effort.seed.to_string(),
        ]
    }

    /// What `arguments` made.
    pub fn parse(arguments: &[String]) -> Option<Job> {
        let [row, who, layouts, sample, seed] = arguments else {
            return None;
        };
        let layouts: Option<_> = layouts.split(',').map(|text| text.parse().ok()).collect();
        Some(Job {
            row: Row::find(row)?,
            who: who.clone(),
            effort: Effort {
                sample: Duration::from_micros(sample.parse().ok()?),
                layouts: layouts?,
                seed: seed.parse().ok()?,
            },
        })
    }

    fn run(&self) -> Option<Vec<Sampled>> {
        match self.row {
            Row::Owned { what, bytes } => owned::run(self, what, bytes),
            Row::Local { what, live } => maps::run_job(self, what, live),
            Row::Shared { what, threads } => shared::run_job(self, what, threads),
        }
    }

    pub fn figures(&self) -> Option<Vec<Figure>> {
        let mut figures = Vec::new();
        for (sampled, &layout) in self.run()?.iter().zip(&self.effort.layouts) {
            let [p50, p999] = sampled.cycles.unwrap_or([f64::NAN; 2]);
            for (metric, value) in METRICS.into_iter().zip([sampled.ns, p50, p999]) {
                if !value.is_nan() {
                    figures.push(Figure {
                        row: self.row.name(),
                        metric: metric.to_owned(),
                        who: self.who.clone(),
                        layout,
                        value,
                    });
                }
            }
        }
        Some(figures)
    }

    /// In a process of its own.
    pub fn in_child(&self) -> Result<Vec<Figure>, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command
            .args(["rust", "--child"])
            .args(self.arguments())
            .env_remove("SLABYARD");
        if self.who.ends_with("tcmalloc") {
            // Its caches by processor need what the C library otherwise takes for itself.
            command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
        }
        figure::ask(command, &format!("{} of {}", self.row.name(), self.who))
    }
}
