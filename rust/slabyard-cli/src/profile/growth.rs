//! The table by time: how the memory of a process grew.

use super::weigh::{received, Weights};
use super::Show;
use crate::plan::merge::AddressMap;
use crate::plan::order::{each_step, Event};
use crate::recording::{Process, Recording};
use crate::run::seconds;
use crate::ui::{bytes, grouped};
use std::fmt::Write;
use std::time::Duration;

/// The width of the bars.
const BAR: u64 = 30;
/// A longer table is of no use.
const PARTS_MOST: usize = 10_000;

/// What happened in a part of the run, and what was live at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// Its end in ticks since the birth of the process.
    pub end: u64,
    pub allocations: u64,
    pub live: u64,
    pub live_bytes: u64,
    /// The most bytes at a time.
    pub most: u64,
}

#[derive(Default)]
struct Count {
    sizes: AddressMap<u64>,
    now: Part,
}

impl Count {
    fn end(&mut self, address: u64) {
        if let Some(size) = self.sizes.remove(&address) {
            self.now.live -= 1;
            self.now.live_bytes = self.now.live_bytes.saturating_sub(size);
        }
    }

    fn event(&mut self, event: Event) {
        if let Some(address) = event.action.gives_up() {
            self.end(address);
        }
        if let Some((address, size)) = received(event.action) {
            self.end(address);
            self.sizes.insert(address, size);
            self.now.allocations += 1;
            self.now.live += 1;
            self.now.live_bytes = self.now.live_bytes.saturating_add(size);
            self.now.most = self.now.most.max(self.now.live_bytes);
        }
    }

    /// The part until now; the next one begins.
    fn part(&mut self, end: u64) -> Part {
        let part = Part { end, ..self.now };
        self.now.allocations = 0;
        self.now.most = self.now.live_bytes;
        part
    }
}

/// The run, in `count` parts of the same length. `last`: the stamp of its end.
pub(super) fn parts(
    recording: &Recording,
    process: &Process,
    count: usize,
    last: u64,
) -> Vec<Part> {
    let (begin, count) = (process.birth_ticks, count.clamp(1, PARTS_MOST) as u128);
    let length = u128::from(last.saturating_sub(begin));
    let mut ends = (1..=count)
        .map(|number| (length * number / count) as u64)
        .peekable();
    let (mut counted, mut parts) = (Count::default(), Vec::new());
    each_step(recording, process, |step| {
        let at = step.event.stamp.saturating_sub(begin);
        while let Some(end) = ends.next_if(|&end| end < at) {
            parts.push(counted.part(end));
        }
        counted.event(step.event);
    });
    for end in ends {
        parts.push(counted.part(end));
    }
    parts
}

pub fn by_time(recording: &Recording, process: &Process, weights: &Weights, show: &Show) -> String {
    let end = process.end.map_or(0, |(ticks, _)| ticks);
    let parts = parts(recording, process, show.rows, end.max(weights.last));
    let peak = parts.iter().map(|part| part.most).max().unwrap_or(0);
    let mut text = format!(
        "{}: {} at the peak\n\n{:>12} {:>14} {:>14} {:>11} {:>11}\n",
        process.name(),
        bytes(peak),
        "until",
        "allocations",
        "live objects",
        "live",
        "at most"
    );
    for part in parts {
        let ns = part.end as f64 * recording.ns_per_tick();
        let bar = u128::from(part.live_bytes) * u128::from(BAR) / u128::from(peak.max(1));
        let row = format!(
            "{:>12} {:>14} {:>14} {:>11} {:>11}  {}",
            seconds(Duration::from_nanos(ns as u64)),
            grouped(part.allocations),
            grouped(part.live),
            bytes(part.live_bytes),
            bytes(part.most),
            "#".repeat(bar as usize)
        );
        let _ = writeln!(text, "{}", row.trim_end());
    }
    text
}
