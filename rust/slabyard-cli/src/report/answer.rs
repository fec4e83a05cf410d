//! What the replay says on the reader's main question: what would this program gain by Slabyard?
//!
//! A replay knows the calls of malloc alone. So the sentence is on the allocations, not on the
//! program: what a program gains also depends on where its objects lie when it uses them, which only
//! a run of the program shows ([`crate::real`]). If it was not run, another sentence says how far the
//! program may be from its allocations ([`super::model`]), and a third one foretells the program's
//! peak memory ([`crate::replay::foretell`]). The last sentence names the calls and sizes that the
//! difference comes from, if their times explain it.

use super::model::Model;
use crate::plan::Summary;
use crate::preload::serving::LIBC;
use crate::real::RealRuns;
use crate::replay::foretell::{Foretold, OnGlibc};
use crate::replay::measure::{Measured, Measurement};
use crate::ui::{grouped, round_bytes};
use serde::Serialize;
use slabyard_certainty::{self as certainty, Interval};

const KINDS: [&str; 3] = ["allocations", "frees", "reallocs"];
/// At most this number of sizes is named, and only those with at least this share of the
/// differences.
const SIZES_NAMED: usize = 3;
const WORTH_NAMING: f64 = 0.05;

/// The program's own memory is named if it is at least this part of its peak.
const OWN_NAMED: f64 = 0.2;

const MIB: f64 = 1048576.0;

/// The times of single calls explain the difference if their sum is at most this many times as
/// large, and not smaller by more than this factor.
const EXPLAINS: f64 = 3.0;

/// Figures of the program itself.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Program {
    pub cpu_ms: f64,
    pub peak_bytes: f64,
}

impl Program {
    pub fn of(runs: &RealRuns) -> Option<Program> {
        let glibc = runs.allocators.iter().find(|one| one.name == LIBC)?;
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
    /// How far the program itself may be from this, in words and figures.
    pub model_error: String,
    pub model: Model,
    /// The bounds of the difference in the program's CPU time, in milliseconds.
    pub program_interval_ms: Option<Interval>,
    /// The program's peak memory, in words and figures, if it can be foretold.
    pub memory_sentence: String,
    pub foretold: Option<Foretold>,
    #[serde(skip)]
    on_glibc: Option<OnGlibc>,
    #[serde(skip)]
    not_foretold: Option<&'static str>,
    /// If only the first part was replayed: its operations, and all.
    part: Option<(u64, u64)>,
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
    let (ours, theirs) = (find("slabyard")?, find(LIBC)?);
    let ms = measurement.operations as f64 / 1e6;
    let is_part = measurement.operations < summary.operations;
    let (our_runs, their_runs) = (&ours.ns_per_op.runs, &theirs.ns_per_op.runs);
    let interval = certainty::of_difference(our_runs, their_runs).map(|interval| Interval {
        low: interval.low * ms,
        high: interval.high * ms,
    });
    let recorded = summary.seconds > 0.0 && summary.threads == 1 && !is_part;
    let recorded_ms = recorded.then_some(summary.seconds * 1e3);
    let model = Model::of(summary, recorded_ms.is_some());
    let peaks = (&ours.peak_resident, &theirs.peak_resident);
    let known = peaks.0.mean > 0.0 && peaks.1.mean > 0.0;
    let mut answer = Answer {
        time_ms: (ours.ns_per_op.mean - theirs.ns_per_op.mean) * ms,
        time_interval_ms: interval,
        recorded_ms,
        program,
        program_interval_ms: interval.map(|interval| model.program(interval, recorded_ms)),
        model,
        foretold: ours.program_peak,
        on_glibc: measurement.program,
        not_foretold: measurement.not_foretold,
        part: is_part.then_some((measurement.operations, summary.operations)),
        memory_bytes: known.then_some(peaks.0.mean - peaks.1.mean),
        memory_interval_bytes: certainty::of_difference(&peaks.0.runs, &peaks.1.runs),
        by_kind: by_kind(ours, theirs),
        by_size: by_size(ours, theirs),
        ..Answer::default()
    };
    answer.sentence = answer.sentence();
    answer.model_error = answer.model_error();
    answer.memory_sentence = answer.memory_sentence();
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
        let what = match self.part {
            Some((some, all)) => {
                let (some, all) = (grouped(some), grouped(all));
                format!("the first {some} of {all} operations")
            }
            None => "the allocations".to_string(),
        };
        let mut text = format!("Replayed alone, {what} take {}", self.time_words());
        let words = self.memory_words();
        if let Some(words) = words.filter(|_| self.program.is_some() || self.foretold.is_none()) {
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
                "as much CPU time with Slabyard as with {LIBC}, as far as can be measured ({} ms less \
                 to {} ms more{run})",
                milliseconds(sure.low),
                milliseconds(sure.high)
            ),
            sure => format!(
                "{} ms {} CPU time with Slabyard than with {LIBC} ({}{run})",
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

    /// The sentences of a replay alone.
    pub fn of_replay(&self) -> Vec<String> {
        let all = [&self.sentence, &self.memory_sentence, &self.model_error];
        all.into_iter()
            .filter(|words| !words.is_empty())
            .cloned()
            .collect()
    }

    fn model_error(&self) -> String {
        let mut text = format!(
            "A replay sees the calls alone, not what the places of objects cost the program between \
             its calls. The program itself may {}, as {} did that were measured both ways",
            self.model.may(if self.time_ms < 0.0 { "gain" } else { "lose" }),
            self.model.programs()
        );
        if let Some(Interval { low, high }) = self.program_interval_ms {
            let side = |ms: f64| format!("{} ms {}", milliseconds(ms), direction(ms));
            text += &match low < 0.0 && high > 0.0 {
                true => format!(": {} to {}", side(low), side(high)),
                false => {
                    let (least, most) = if high <= 0.0 {
                        (high, low)
                    } else {
                        (low, high)
                    };
                    format!(": {} to {}", milliseconds(least), side(most))
                }
            };
        }
        text + ". `slabyard compare -- PROGRAM` also runs the program on each allocator."
    }

    /// A sentence on the peak of the whole program.
    fn memory_sentence(&self) -> String {
        if let Some(why) = self.not_foretold {
            return format!("The program's own peak memory is not foretold, because {why}.");
        }
        let (Some(ours), Some(glibc)) = (self.foretold, self.on_glibc) else {
            return String::new();
        };
        let mib = |bytes: f64| format!("{:.1} MiB", bytes.abs() / MIB);
        let bounds = percents(ours.low, ours.high, glibc.bytes);
        let own = match glibc.own >= OWN_NAMED * glibc.bytes {
            true => format!(", of which {} are not malloc's", mib(glibc.own)),
            false => String::new(),
        };
        let kind = if glibc.with_code { "" } else { " anonymous" };
        format!(
            "The program's peak{kind} memory is foretold to be {} with Slabyard and {} with {LIBC}{own}: \
             {bounds}.",
            mib(ours.bytes),
            mib(glibc.bytes)
        )
    }

    /// A sentence on the calls and sizes that the difference comes from. It does not include what
    /// the places of objects cost the program between its calls.
    fn origin(&self) -> String {
        if self.by_kind.is_empty() {
            return String::new();
        }
        let sum: f64 = self.by_kind.iter().map(|kind| kind.1).sum();
        match self.explained_by(sum) {
            Explained::InTime => format!(
                "By kind of call, each timed alone, so without the waits for memory: {}.{}",
                worded(&self.by_kind, |ms| format!(
                    "{} ms {}",
                    milliseconds(ms),
                    direction(ms)
                )),
                self.sizes(|ms| format!("{} ms {}", milliseconds(ms), direction(ms)))
            ),
            Explained::InShares => {
                let share = |ms: f64| format!("{:.0} %", 100.0 * ms / sum);
                format!(
                    "Single calls, each timed alone, add up to {} ms {}, which is far more{}. So only \
                     their shares are shown. By kind of call: {}.{}",
                    milliseconds(sum),
                    direction(sum),
                    match self.model.has_threads() {
                        true => ": waits for other threads and for the processor are in them",
                        false => "",
                    },
                    worded(&self.by_kind, share),
                    self.sizes(share)
                )
            }
            Explained::Not => format!(
                "Single calls, each timed alone, do not explain this: they add up to {} ms {}.",
                milliseconds(sum),
                direction(sum)
            ),
        }
    }

    /// Whether the sum of the times of single calls explains the difference.
    fn explained_by(&self, sum: f64) -> Explained {
        let Interval { low, high } = self.time_interval_ms.unwrap_or(Interval {
            low: self.time_ms,
            high: self.time_ms,
        });
        let most = low.abs().max(high.abs());
        if low <= 0.0 && high >= 0.0 {
            // The difference may be zero: the sum must not be clearly larger.
            return match sum.abs() <= EXPLAINS * most {
                true => Explained::InTime,
                false => Explained::Not,
            };
        }
        let least = low.abs().min(high.abs());
        let same_sign = (sum < 0.0) == (high <= 0.0);
        let in_one_direction = self
            .by_kind
            .iter()
            .all(|kind| (kind.1 < 0.0) == (sum < 0.0));
        if !same_sign || sum.abs() < least / EXPLAINS {
            Explained::Not
        } else if sum.abs() <= most * EXPLAINS {
            Explained::InTime
        } else if in_one_direction {
            Explained::InShares
        } else {
            Explained::Not
        }
    }

    fn sizes(&self, words: impl Fn(f64) -> String) -> String {
        let all: f64 = self.by_size.iter().map(|size| size.1.abs()).sum();
        let sizes = self.by_size.iter().take(SIZES_NAMED);
        let worth = sizes.filter(|size| size.1.abs() >= WORTH_NAMING * all);
        let worth: Vec<_> = worth.cloned().collect();
        format!(
            " By size, the largest differences: {}.",
            worded(&worth, words)
        )
    }
}

/// The bounds of a difference in per cent of `whole`, such as `2.0 to 3.1 % less`.
pub fn percents(low: f64, high: f64, whole: f64) -> String {
    let percent = |bytes: f64| 100.0 * bytes.abs() / whole.max(1.0);
    let side = |bytes: f64| format!("{:.1} % {}", percent(bytes), direction(bytes));
    if low < 0.0 && high > 0.0 {
        return format!("{} to {}", side(low), side(high));
    }
    let (least, most) = if high <= 0.0 {
        (high, low)
    } else {
        (low, high)
    };
    format!("{:.1} to {}", percent(least), side(most))
}

/// How the times of single calls explain the difference.
#[derive(PartialEq)]
enum Explained {
    InTime,
    /// They add up to much more, in the same direction.
    InShares,
    Not,
}

/// Each part with its time in words.
fn worded(parts: &[(String, f64)], words: impl Fn(f64) -> String) -> String {
    let all: Vec<_> = parts
        .iter()
        .map(|(what, ms)| format!("{what} {}", words(*ms)))
        .collect();
    super::listed(&all)
}
