//! Reports: the same figures as a table for the terminal, a page, and JSON (by serde).

pub mod chart;
pub mod html;
pub mod info;
pub mod table;

use crate::machine::Machine;
use crate::plan::Summary;
use crate::replay::measure::{Measured, Measurement};
use serde::Serialize;

/// Everything a report is made of.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub file: String,
    pub file_bytes: u64,
    pub command: String,
    pub damage: Option<String>,
    pub summary: Summary,
    pub measurement: Measurement,
}

impl Report {
    /// Those with figures, fastest first.
    pub fn ranked(&self) -> Vec<&Measured> {
        let all = self.measurement.allocators.iter();
        let mut good: Vec<_> = all.filter(|one| one.failure.is_none()).collect();
        good.sort_by(|a, b| a.ns_per_op.median.total_cmp(&b.ns_per_op.median));
        good
    }

    pub fn failed(&self) -> impl Iterator<Item = &Measured> {
        let all = self.measurement.allocators.iter();
        all.filter(|one| one.failure.is_some())
    }

    pub fn best_ns(&self) -> f64 {
        self.ranked()
            .first()
            .map_or(0.0, |best| best.ns_per_op.median)
    }

    pub fn best_peak(&self) -> f64 {
        let peaks = self
            .ranked()
            .into_iter()
            .map(|one| one.peak_resident.median);
        peaks.fold(f64::INFINITY, f64::min)
    }

    /// One sentence on what was replayed.
    pub fn what(&self) -> String {
        use crate::ui::{bytes, grouped};
        let summary = &self.summary;
        let plural = |n: u64, one: &str, many: &str| {
            format!("{} {}", grouped(n), if n == 1 { one } else { many })
        };
        format!(
            "{} operations ({} malloc, {} calloc, {} aligned, {} realloc, {} free) by {} in {}, \
             {} asked for, {} at most at a time",
            grouped(summary.operations),
            grouped(summary.mallocs),
            grouped(summary.callocs),
            grouped(summary.aligned),
            grouped(summary.reallocs),
            grouped(summary.frees),
            plural(summary.threads, "thread", "threads"),
            plural(summary.processes, "process", "processes"),
            bytes(summary.bytes),
            bytes(summary.peak_payload),
        )
    }
}

/// How much `value` is of the best: 1.00 for the best itself.
pub fn ratio(value: f64, best: f64) -> f64 {
    if best > 0.0 {
        value / best
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests;
