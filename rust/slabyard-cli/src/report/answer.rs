//! The answer to the reader's main question: what would this program gain by Slabyard? One sentence
//! compares Slabyard with glibc, another names the calls and sizes that the difference comes from.

use crate::plan::Summary;
use crate::replay::measure::{Measured, Measurement};
use crate::ui::{bytes, grouped};
use serde::Serialize;
use slabyard_certainty::{self as certainty, Interval};

const KINDS: [&str; 3] = ["allocations", "frees", "reallocs"];
/// At most this number of sizes is named, and only those with at least this share of the
/// differences.
const SIZES_NAMED: usize = 3;
const WORTH_NAMING: f64 = 0.05;

/// The gain of the program; in JSON under `answer`. A negative value is less than with glibc.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Answer {
    pub sentence: String,
    pub origin: String,
    /// The difference in CPU time over the whole program, in milliseconds.
    pub time_ms: f64,
    pub time_interval_ms: Option<Interval>,
    /// The time of the recorded run; `None` if several threads shared it, or if it is unknown.
    pub recorded_ms: Option<f64>,
    /// The ratio of the peak with Slabyard to that with glibc.
    pub memory_ratio: Option<f64>,
    pub memory_interval: Option<Interval>,
    /// The differences by kind of call and by size in milliseconds, the largest first.
    pub by_kind: Vec<(String, f64)>,
    pub by_size: Vec<(String, f64)>,
}

/// `None` if one of the two was not measured.
pub fn of(summary: &Summary, measurement: &Measurement) -> Option<Answer> {
    let find = |name: &str| {
        let mut all = measurement.allocators.iter();
        all.find(|one| one.name == name && one.failure.is_none())
    };
    let (ours, theirs) = (find("slabyard")?, find("glibc")?);
    let ms = summary.operations as f64 / 1e6;
    let (our_runs, their_runs) = (&ours.ns_per_op.runs, &theirs.ns_per_op.runs);
    let interval = certainty::of_difference(our_runs, their_runs);
    let recorded = summary.seconds > 0.0 && summary.threads == 1;
    let peaks = (&ours.peak_resident, &theirs.peak_resident);
    let known = peaks.0.mean > 0.0 && peaks.1.mean > 0.0;
    let mut answer = Answer {
        time_ms: (ours.ns_per_op.mean - theirs.ns_per_op.mean) * ms,
        time_interval_ms: interval.map(|interval| Interval {
            low: interval.low * ms,
            high: interval.high * ms,
        }),
        recorded_ms: recorded.then_some(summary.seconds * 1e3),
        memory_ratio: known.then(|| peaks.0.mean / peaks.1.mean),
        memory_interval: certainty::of_ratio(&peaks.0.runs, &peaks.1.runs),
        by_kind: by_kind(ours, theirs),
        by_size: by_size(ours, theirs),
        ..Answer::default()
    };
    answer.sentence = answer.sentence();
    answer.origin = answer.origin();
    Some(answer)
}

fn differences(ours: &Measured, theirs: &Measured) -> Vec<Vec<f64>> {
    let kinds = ours.calls_ns.iter().zip(&theirs.calls_ns);
    let ms = |(ours, theirs): (&f64, &f64)| (ours - theirs) / 1e6;
    kinds
        .map(|(ours, theirs)| ours.iter().zip(theirs).map(ms).collect())
        .collect()
}

fn by_kind(ours: &Measured, theirs: &Measured) -> Vec<(String, f64)> {
    let kinds = differences(ours, theirs);
    let sums = kinds.iter().map(|sizes| sizes.iter().sum());
    largest_first(KINDS.map(String::from).into_iter().zip(sums))
}

fn by_size(ours: &Measured, theirs: &Measured) -> Vec<(String, f64)> {
    let kinds = differences(ours, theirs);
    let sizes = kinds.iter().map(Vec::len).max().unwrap_or(0);
    let sum = |class: usize| kinds.iter().filter_map(|sizes| sizes.get(class)).sum();
    let name = |class: usize| format!("up to {}", bytes(8 << class));
    largest_first((0..sizes).map(|class| (name(class), sum(class))))
}

fn largest_first(all: impl Iterator<Item = (String, f64)>) -> Vec<(String, f64)> {
    let mut all: Vec<_> = all.filter(|part| part.1 != 0.0).collect();
    all.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    all
}

/// A time with about three digits, without a sign.
fn milliseconds(ms: f64) -> String {
    match ms.abs() {
        ms if ms >= 10.0 => grouped(ms.round() as u64),
        ms if ms >= 0.1 => format!("{ms:.1}"),
        ms => format!("{ms:.3}"),
    }
}

fn percent(share: f64) -> String {
    let percent = share.abs() * 100.0;
    format!("{percent:.*} %", usize::from(percent < 10.0))
}

/// The word for a difference: `less` or `more`.
fn direction(difference: f64) -> &'static str {
    if difference < 0.0 {
        "less"
    } else {
        "more"
    }
}

fn half(interval: Interval) -> f64 {
    (interval.high - interval.low) / 2.0
}

impl Answer {
    fn sentence(&self) -> String {
        let mut text = format!(
            "Under Slabyard this program would take {}",
            self.time_words()
        );
        if let Some(words) = self.memory_words() {
            text += &format!(" and {words}");
        }
        text + &self.certain_words() + "."
    }

    fn time_words(&self) -> String {
        if self.time_interval_ms.is_some_and(|sure| sure.holds(0.0)) {
            return "as much time as with glibc, as far as can be measured".to_string();
        }
        let (ms, word) = (milliseconds(self.time_ms), direction(self.time_ms));
        match self.recorded_ms {
            Some(all) => format!(
                "{} {word} time than with glibc ({ms} of {} ms)",
                percent(self.time_ms / all),
                milliseconds(all)
            ),
            None => format!("{ms} ms {word} CPU time than with glibc"),
        }
    }

    fn memory_words(&self) -> Option<String> {
        let ratio = self.memory_ratio?;
        if self.memory_interval.is_some_and(|sure| sure.holds(1.0)) {
            return Some("as much memory at its peak, as far as can be measured".to_string());
        }
        let word = direction(ratio - 1.0);
        Some(format!(
            "{} {word} memory at its peak",
            percent(ratio - 1.0)
        ))
    }

    fn certain_words(&self) -> String {
        let Some(sure) = self.time_interval_ms else {
            return "; one run does not show how certain this is".to_string();
        };
        let ms = milliseconds(half(sure));
        let time = match self.recorded_ms {
            Some(all) => format!("{} of the time ({ms} ms)", percent(half(sure) / all)),
            None => format!("{ms} ms"),
        };
        let memory = self.memory_interval.filter(|_| self.memory_ratio.is_some());
        let memory = memory.map_or(String::new(), |sure| {
            format!(" and {} of the memory", percent(half(sure)))
        });
        format!("; certain to within {time}{memory}")
    }

    /// A sentence on the calls and sizes that the difference comes from. It does not include what
    /// the places of objects cost the program between its calls.
    fn origin(&self) -> String {
        if self.by_kind.is_empty() {
            return String::new();
        }
        let all: f64 = self.by_size.iter().map(|size| size.1.abs()).sum();
        let sizes = self.by_size.iter().take(SIZES_NAMED);
        let worth = sizes.filter(|size| size.1.abs() >= WORTH_NAMING * all);
        let worded = |(what, ms): &(String, f64)| {
            format!("{what} {} ms {}", milliseconds(*ms), direction(*ms))
        };
        let kinds: Vec<_> = self.by_kind.iter().map(worded).collect();
        let sizes: Vec<_> = worth.map(worded).collect();
        format!(
            "By kind of call, each timed alone: {}. By size, the largest differences: {}.",
            super::listed(&kinds),
            super::listed(&sizes)
        )
    }
}
