//! What the replay says on the reader's main question: what would this program gain by Slabyard?
//!
//! A replay knows the calls of malloc alone. So the sentence is on the allocations, not on the
//! program: what a program gains also depends on where its objects lie when it uses them, which only
//! a run of the program shows ([`crate::real`]). Another sentence names the calls and sizes that the
//! difference comes from.

use crate::plan::Summary;
use crate::preload::serving::GLIBC;
use crate::real::RealRuns;
use crate::replay::measure::{Measured, Measurement};
use crate::ui::{grouped, round_bytes};
use serde::Serialize;
use slabyard_certainty::{self as certainty, Interval};

const KINDS: [&str; 3] = ["allocations", "frees", "reallocs"];
/// At most this number of sizes is named, and only those with at least this share of the
/// differences.
const SIZES_NAMED: usize = 3;
const WORTH_NAMING: f64 = 0.05;

const MIB: f64 = 1048576.0;

/// How far the gain of a program was from that of its replayed allocations, in programs that were
/// measured both ways (docs/compare.md: how true the predictions are).
const MODEL_ERROR: &str = "A replay sees the calls alone, not what the places of objects cost the \
    program between its calls. In programs that were measured both ways, the program itself gained \
    0.5 to 5 times as much time, nearly always in the same direction, and its peak differed by a few \
    MiB. `slabyard compare -- PROGRAM` also runs the program on each allocator.";

/// Figures of the program itself.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Program {
    pub cpu_ms: f64,
    pub peak_bytes: f64,
}

impl Program {
    pub fn of(runs: &RealRuns) -> Option<Program> {
        let glibc = runs.allocators.iter().find(|one| one.name == GLIBC)?;
        Some(Program {
            cpu_ms: glibc.cpu_s.figure.mean * 1e3,
            peak_bytes: glibc.peak_bytes.figure.mean,
        })
    }
}

/// The gain of the allocations; in JSON under `answer`. A negative value is less than with glibc.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Answer {
    pub sentence: String,
    pub origin: String,
    /// How far the program itself may be from this.
    pub model_error: &'static str,
    /// The difference in CPU time over the whole program, in milliseconds.
    pub time_ms: f64,
    pub time_interval_ms: Option<Interval>,
    /// The time of the recorded run; `None` if several threads shared it, or if it is unknown.
    pub recorded_ms: Option<f64>,
    /// The CPU time and the peak of the program itself with glibc, if it was run.
    pub program: Option<Program>,
    /// The difference in memory at the peak, in bytes; `None` if a peak is unknown.
    pub memory_bytes: Option<f64>,
    pub memory_interval_bytes: Option<Interval>,
    /// The differences by kind of call and by size in milliseconds, the largest first.
    pub by_kind: Vec<(String, f64)>,
    pub by_size: Vec<(String, f64)>,
}

/// `None` if one of the two was not measured.
pub fn of(
    summary: &Summary,
    measurement: &Measurement,
    program: Option<Program>,
) -> Option<Answer> {
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
        program,
        model_error: MODEL_ERROR,
        memory_bytes: known.then_some(peaks.0.mean - peaks.1.mean),
        memory_interval_bytes: certainty::of_difference(&peaks.0.runs, &peaks.1.runs),
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
    let name = |class: usize| format!("up to {}", round_bytes(8 << class));
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

/// The bounds of a difference that is surely not 0, the smaller one first.
fn between(sure: Option<Interval>, worded: impl Fn(f64) -> String, unit: &str) -> String {
    let Some(Interval { low, high }) = sure else {
        return "one run does not show how certain this is".to_string();
    };
    let (least, most) = if high < 0.0 { (high, low) } else { (low, high) };
    format!("{} to {} {unit}", worded(least), worded(most))
}

/// A difference, such as `42 ms less`.
pub fn milliseconds_more(ms: f64) -> String {
    format!("{} ms {}", milliseconds(ms), direction(ms))
}

/// The word for a difference: `less` or `more`.
fn direction(difference: f64) -> &'static str {
    if difference < 0.0 {
        "less"
    } else {
        "more"
    }
}

impl Answer {
    fn sentence(&self) -> String {
        let mut text = format!("Replayed alone, the allocations take {}", self.time_words());
        if let Some(words) = self.memory_words() {
            text += &format!(", and {words}");
        }
        text + "."
    }

    fn time_words(&self) -> String {
        let run = match (self.program, self.recorded_ms) {
            (Some(program), _) => {
                format!("; the program takes {} ms", milliseconds(program.cpu_ms))
            }
            (None, Some(all)) => format!("; the recorded run took {} ms", milliseconds(all)),
            (None, None) => String::new(),
        };
        match self.time_interval_ms {
            Some(sure) if sure.holds(0.0) => format!(
                "as much CPU time with Slabyard as with glibc, as far as can be measured ({} ms less \
                 to {} ms more{run})",
                milliseconds(sure.low),
                milliseconds(sure.high)
            ),
            sure => format!(
                "{} ms {} CPU time with Slabyard than with glibc ({}{run})",
                milliseconds(self.time_ms),
                direction(self.time_ms),
                between(sure, milliseconds, "ms")
            ),
        }
    }

    fn memory_words(&self) -> Option<String> {
        let more = self.memory_bytes?;
        let mib = |bytes: f64| format!("{:.1}", bytes.abs() / MIB);
        match self.memory_interval_bytes {
            Some(sure) if sure.holds(0.0) || mib(more) == "0.0" => {
                Some("as much memory at their peak, as far as can be measured".to_string())
            }
            sure => Some(format!(
                "{} MiB {} memory at their peak ({}{})",
                mib(more),
                direction(more),
                between(sure, mib, "MiB"),
                self.program.map_or(String::new(), |program| format!(
                    "; the program has {} MiB",
                    mib(program.peak_bytes)
                ))
            )),
        }
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
        let worded = |(what, ms): &(String, f64)| format!("{what} {}", milliseconds_more(*ms));
        let kinds: Vec<_> = self.by_kind.iter().map(worded).collect();
        let sizes: Vec<_> = worth.map(worded).collect();
        format!(
            "By kind of call, each timed alone, so without the waits for memory: {}. By size, the largest differences: {}.",
            super::listed(&kinds),
            super::listed(&sizes)
        )
    }
}
