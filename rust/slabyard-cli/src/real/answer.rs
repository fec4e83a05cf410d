//! The sentences that come first in a report on runs: what the program gains by Slabyard, and which
//! other allocator takes surely less than Slabyard.
//!
//! There is a sentence for every outcome. It also names what is not known.

use super::contenders::SLABYARD;
use super::text::seconds;
use super::{ratio, Kind, Measured, Ratio, RealRuns, PEAK_SEEN};
use crate::ui;
use serde::Serialize;
use slabyard_certainty::Interval;

const PEAK: &str = "peak memory";

/// An allocator that surely takes less than Slabyard: of those, the one that takes the least.
#[derive(Clone, Debug, Serialize)]
pub struct Better {
    pub figure: &'static str,
    pub name: String,
    pub to_slabyard: Ratio,
}

/// The sentence on Slabyard, or on the fastest allocator if Slabyard was not run.
pub fn sentence(all: &RealRuns) -> Option<String> {
    let (base, others) = all.allocators.split_first()?;
    if let Some(ours) = others.iter().find(|one| one.name == SLABYARD) {
        return Some(about(ours, base, all.peaks_of_largest));
    }
    let good = others.iter().filter(|one| one.failure.is_none());
    let fastest = good.min_by(|a, b| a.cpu_s.figure.mean.total_cmp(&b.cpu_s.figure.mean));
    let about = about(fastest.or(others.first())?, base, all.peaks_of_largest);
    Some(format!("{about} Slabyard was not run."))
}

/// Whether the program fails with Slabyard: then this is the answer, and it is certain.
pub fn is_failure(all: &RealRuns) -> bool {
    let mut others = all.allocators.iter();
    others.any(|one| one.name == SLABYARD && one.failure.is_some())
}

/// Where other allocators take surely less than Slabyard. If the base, which the first sentence
/// compares Slabyard with, takes the least, there is nothing to add.
pub fn better(all: &RealRuns) -> Vec<Better> {
    let cpu = best(all, "CPU time", |one| &one.cpu_s);
    let peak = best(all, PEAK, |one| &one.peak_bytes);
    cpu.into_iter().chain(peak).collect()
}

fn best(all: &RealRuns, figure: &'static str, kind: fn(&Measured) -> &Kind) -> Option<Better> {
    let good = |one: &&Measured| one.failure.is_none();
    let ours = all.allocators.iter().filter(good);
    let ours = kind(ours.clone().find(|one| one.name == SLABYARD)?);
    let surely_less = |one: &Measured| {
        let ratio = ratio(&kind(one).figure.runs, &ours.figure.runs)?;
        let less = ratio.interval.is_some_and(|sure| sure.high < 1.0);
        less.then(|| Better {
            figure,
            name: one.name.clone(),
            to_slabyard: ratio,
        })
    };
    let less = all.allocators.iter().filter(good).filter_map(surely_less);
    let best = less.min_by(|a, b| a.to_slabyard.ratio.total_cmp(&b.to_slabyard.ratio))?;
    let is_base = all.allocators[0].name == best.name;
    let is_seen = figure != PEAK || ours.figure.median >= PEAK_SEEN;
    (!is_base && is_seen).then_some(best)
}

/// A sentence on allocators that take less than Slabyard.
pub fn others(better: &[Better]) -> Option<String> {
    let amount = |one: &Better, than: &str| {
        let Ratio { ratio, interval } = one.to_slabyard;
        let sure = interval.map_or(String::new(), bounds);
        format!("{} less {}{than}{sure}", percent(ratio), one.figure)
    };
    let first = better.first()?;
    let mut text = format!("{} takes {}", first.name, amount(first, " than Slabyard"));
    for next in &better[1..] {
        text += &match next.name == first.name {
            true => " and ".to_string(),
            false => format!("; {} takes ", next.name),
        };
        text += &amount(next, "");
    }
    Some(text + ".")
}

/// An allocator's name in a sentence.
fn called(name: &str) -> &str {
    match name {
        SLABYARD => "Slabyard",
        other => other,
    }
}

fn about(one: &Measured, base: &Measured, of_largest: bool) -> String {
    let name = called(&one.name);
    if let Some(why) = &one.failure {
        return format!("The program fails with {name}: it {why}.");
    }
    let cpu = difference(&one.cpu_s, &base.cpu_s, &base.name, true, seconds);
    let peak = peak(one, base);
    let whose = match of_largest {
        true => "the peak memory of its largest process",
        false => "its peak memory",
    };
    let sure = match one.cpu_s.figure.runs.len() {
        1 => ": one run each does not show how certain this is",
        _ => "",
    };
    let Some((ours, theirs)) = one.served.as_ref().zip(base.served.as_ref()) else {
        return format!("With {name}, the program's CPU time {cpu}, and {whose} {peak}{sure}.");
    };
    let idle = difference(
        &ours.idle_bytes,
        &theirs.idle_bytes,
        &base.name,
        false,
        bytes,
    );
    format!(
        "With {name}, the server's CPU time under this load {cpu}, {whose} {peak}, and its memory \
         after the load {idle}{sure}."
    )
}

fn bytes(bytes: f64) -> String {
    ui::bytes(bytes as u64)
}

fn peak(one: &Measured, base: &Measured) -> String {
    let seen = |one: &Measured| one.peak_bytes.figure.median >= PEAK_SEEN;
    let least = ui::round_bytes(PEAK_SEEN as u64);
    match (seen(one), seen(base)) {
        (false, false) => format!("is below {least}, too little to compare"),
        (true, false) => format!(
            "is {}, and below {least} with {}",
            bytes(one.peak_bytes.figure.mean),
            base.name
        ),
        (_, true) => difference(&one.peak_bytes, &base.peak_bytes, &base.name, false, bytes),
    }
}

/// Describes a figure compared with the base's, such as `is 3.0 % less than with glibc (2.1 to 3.9
/// %)`; `names` tells whether it names the base where that is not needed.
fn difference(
    ours: &Kind,
    theirs: &Kind,
    base: &str,
    names: bool,
    unit: impl Fn(f64) -> String,
) -> String {
    let than = match names {
        true => format!(" than with {base}"),
        false => String::new(),
    };
    let Some(Ratio { ratio, interval }) = ours.to_first else {
        return format!(
            "is too little to compare ({}, and {} with {base})",
            unit(ours.figure.mean),
            unit(theirs.figure.mean)
        );
    };
    match interval {
        None if ours.figure.runs.len() < 2 => format!("was {}{than}", more_or_less(ratio)),
        None => {
            let (least, most) = range(&theirs.figure.runs);
            format!(
                "varies too much to compare ({} to {} with {base})",
                unit(least),
                unit(most)
            )
        }
        Some(sure) if sure.holds(1.0) => format!(
            "is the same{}, as far as can be measured{}",
            than.replace("than", "as"),
            bounds(sure)
        ),
        Some(sure) => format!("is {}{than}{}", more_or_less(ratio), bounds(sure)),
    }
}

/// The least and the most of some values.
pub fn range(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (least, values.iter().copied().fold(0.0, f64::max))
}

/// The distance of a ratio from 1.
fn percent(ratio: f64) -> String {
    format!("{} %", number((ratio.max(0.0) - 1.0).abs() * 100.0))
}

fn number(percent: f64) -> String {
    match percent {
        percent if percent >= 100.0 => ui::grouped(percent.round() as u64),
        percent => format!("{percent:.1}"),
    }
}

/// A ratio in words, such as `3.0 % less`.
pub fn more_or_less(ratio: f64) -> String {
    let word = if ratio < 1.0 { "less" } else { "more" };
    format!("{} {word}", percent(ratio))
}

/// The bounds of a ratio, such as ` (2.1 to 3.9 %)` with the smaller one first, or ` (1.2 % less to
/// 3.0 % more)`.
pub fn bounds(sure: Interval) -> String {
    let Interval { low, high } = sure;
    if sure.holds(1.0) {
        return format!(" ({} to {})", more_or_less(low), more_or_less(high));
    }
    let (least, most) = if high < 1.0 { (high, low) } else { (low, high) };
    let least = percent(least);
    format!(" ({} to {})", least.trim_end_matches(" %"), percent(most))
}
