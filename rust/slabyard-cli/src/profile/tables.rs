//! The tables by thread and by size.

use super::weigh::{Figures, Weights};
use super::{values, Show, MEASURES};
use crate::recording::Process;
use crate::ui::{bytes, grouped};
use std::fmt::Write;

fn heading(process: &Process, weights: &Weights, show: &Show) -> String {
    let measure = show.which.measure(show.in_objects);
    let value = values(&weights.all)[measure];
    let amount = super::formats::text::amount(value, MEASURES[measure].unit, false);
    format!(
        "{}: {amount} {}\n\n",
        process.name(),
        MEASURES[measure].title
    )
}

fn head(what: &str) -> String {
    format!(
        "{what:>12} {:>14} {:>11} {:>11} {:>11} {:>14}\n",
        "allocations", "bytes", "at peak", "at exit", "freed at once"
    )
}

fn row(what: &str, figures: &Figures) -> String {
    format!(
        "{what:>12} {:>14} {:>11} {:>11} {:>11} {:>14}\n",
        grouped(figures.allocations),
        bytes(figures.bytes),
        bytes(figures.peak_bytes),
        bytes(figures.live_bytes),
        grouped(figures.temporary)
    )
}

/// The rows with the most of what is asked for first.
fn rows<K: Copy + Ord>(
    figures: impl Iterator<Item = (K, Figures)>,
    show: &Show,
    name: impl Fn(K) -> String,
) -> String {
    let measure = show.which.measure(show.in_objects);
    let mut sorted: Vec<_> = figures.collect();
    sorted.sort_by_key(|(key, figures)| (std::cmp::Reverse(values(figures)[measure]), *key));
    let mut text = String::new();
    for (key, figures) in sorted.iter().take(show.rows) {
        text.push_str(&row(&name(*key), figures));
    }
    if sorted.len() > show.rows {
        let _ = writeln!(text, "{:>12}", format!("{} more", sorted.len() - show.rows));
    }
    text
}

pub fn by_thread(process: &Process, weights: &Weights, show: &Show) -> String {
    let figures = weights
        .threads
        .iter()
        .map(|(&lane, &figures)| (lane, figures));
    let name = |lane: usize| match process.threads[lane].number {
        0 => "first".to_string(),
        number => format!("{}", number + 1),
    };
    heading(process, weights, show) + &head("thread") + &rows(figures, show, name)
}

pub fn by_size(process: &Process, weights: &Weights, show: &Show) -> String {
    let figures = weights
        .sizes
        .iter()
        .map(|(&size, &figures)| (size, figures));
    let name = |size: u64| format!("{} B", grouped(size));
    heading(process, weights, show) + &head("size") + &rows(figures, show, name)
}
