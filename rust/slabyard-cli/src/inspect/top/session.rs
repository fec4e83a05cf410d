//! What has been seen of one process: its last account, and the figures before, for rates and trends.

use super::super::account::{Account, CacheRow, What};
use super::super::image::Weight;
use super::super::tags::TagRow;
use super::super::text;
use super::table::{column, Column, Row, Shape, Table, Tone, Value};
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

/// No terminal shows more figures of a trend.
const KEPT: usize = 240;

/// The figures of one row over time.
#[derive(Default)]
struct Trail {
    figures: VecDeque<u64>,
    /// Of the first look at it.
    first: u64,
    rate: Option<f64>,
    /// The look that has added to it last.
    look: u64,
}

impl Trail {
    fn trend(&self) -> Value {
        Value::Trend(self.figures.iter().copied().collect())
    }
}

/// The figures of all rows of a table, by their names.
#[derive(Default)]
struct Trails(HashMap<String, Trail>);

impl Trails {
    /// Adds the figures of a look, `seconds` after the previous look.
    fn add(&mut self, look: u64, seconds: Option<f64>, rows: impl Iterator<Item = (String, u64)>) {
        for (name, figure) in rows {
            let trail = self.0.entry(name).or_default();
            match trail.figures.back() {
                Some(&before) => {
                    let change = figure as f64 - before as f64;
                    trail.rate = seconds.map(|seconds| change / seconds);
                }
                None => trail.first = figure,
            }
            if trail.figures.len() == KEPT {
                trail.figures.pop_front();
            }
            trail.figures.push_back(figure);
            trail.look = look;
        }
        self.0.retain(|_, trail| trail.look == look);
    }
}

#[derive(Default)]
pub struct Session {
    pub account: Option<Account>,
    looks: u64,
    last: Option<Instant>,
    memory: Trails,
    caches: Trails,
    threads: Trails,
    tags: Trails,
}

const MEMORY: &[Column] = &[
    column("memory", 0, Shape::Words),
    column("resident", 0, Shape::Figure),
    column("%", 0, Shape::Figure),
    column("", 3, Shape::Bar),
    column("change", 1, Shape::Figure),
    column("trend", 2, Shape::Trend),
];

const CACHES: &[Column] = &[
    column("cache", 0, Shape::Words),
    column("kind", 5, Shape::Words),
    column("object", 1, Shape::Figure),
    column("live", 0, Shape::Figure),
    column("change/s", 0, Shape::Figure),
    column("waiting", 4, Shape::Figure),
    column("waste", 0, Shape::Figure),
    column("used", 3, Shape::Figure),
    column("resident", 0, Shape::Figure),
    column("trend", 2, Shape::Trend),
];

const THREADS: &[Column] = &[
    column("thread", 0, Shape::Words),
    column("number", 0, Shape::Figure),
    column("state", 1, Shape::Words),
    column("free objects", 0, Shape::Figure),
    column("resident", 0, Shape::Figure),
    column("trend", 2, Shape::Trend),
];

const TAGS: &[Column] = &[
    column("tag", 0, Shape::Words),
    column("live", 0, Shape::Figure),
    column("%", 1, Shape::Figure),
    column("objects", 0, Shape::Figure),
    column("change", 0, Shape::Figure),
    column("samples", 3, Shape::Figure),
    column("error", 1, Shape::Words),
    column("trend", 2, Shape::Trend),
];

/// The columns that tables are sorted by at first. The rows of the account have an order.
pub const MEMORY_ORDER: usize = 0;
pub const CACHES_ORDER: usize = 8;
pub const THREADS_ORDER: usize = 4;
pub const TAGS_ORDER: usize = 1;

impl Session {
    pub fn add(&mut self, account: Account, at: Instant) {
        let since = |last| at.saturating_duration_since(last).as_secs_f64();
        let seconds = self.last.map(since).filter(|&seconds| seconds > 0.0);
        self.looks += 1;
        let memory = memory_rows(&account);
        let memory = memory.into_iter().map(|(name, weight, ..)| (name, weight));
        self.memory.add(self.looks, seconds, memory);
        let caches = caches_of(&account).map(|one| (name_of(one), one.live_objects));
        self.caches.add(self.looks, seconds, caches);
        let threads = account.threads.iter();
        let threads = threads.map(|one| (one.number.to_string(), one.waiting_bytes));
        self.threads.add(self.looks, seconds, threads);
        let tags = tags_of(&account).map(|one| (one.name.clone(), one.live_bytes));
        self.tags.add(self.looks, seconds, tags);
        self.last = Some(at);
        self.account = Some(account);
    }

    pub fn memory(&self) -> Table {
        let rows = self.account.as_ref().map_or(Vec::new(), memory_rows);
        let total = self.account.as_ref().map_or(1, |one| one.rss_bytes.max(1));
        let row = |(place, (name, resident, tone, group)): (usize, MemoryRow)| {
            let trail = &self.memory.0[&name];
            let share = resident as f64 / total as f64;
            let indent = if tone == Tone::Sum { "" } else { "  " };
            Row {
                values: vec![
                    Value::Place(place, format!("{indent}{name}")),
                    Value::Bytes(resident),
                    Value::Share(share),
                    Value::Bar(share),
                    Value::Change(resident as i64 - trail.first as i64),
                    trail.trend(),
                ],
                tone,
                group,
            }
        };
        Table {
            columns: MEMORY,
            rows: rows.into_iter().enumerate().map(row).collect(),
        }
    }

    pub fn caches(&self) -> Table {
        let row = |one: &CacheRow| {
            let trail = &self.caches.0[&name_of(one)];
            let used = one.live_bytes as f64 / one.resident_bytes.max(1) as f64;
            Row {
                values: vec![
                    Value::Words(one.name.clone()),
                    Value::Words(one.kind.clone()),
                    Value::Bytes(one.object_bytes),
                    Value::Count(one.live_objects),
                    Value::Rate(trail.rate),
                    Value::Count(one.waiting_objects),
                    Value::Bytes(one.resident_bytes.saturating_sub(one.live_bytes)),
                    Value::Share(used),
                    Value::Bytes(one.resident_bytes),
                    trail.trend(),
                ],
                ..Row::default()
            }
        };
        Table {
            columns: CACHES,
            rows: self.account.iter().flat_map(caches_of).map(row).collect(),
        }
    }

    pub fn threads(&self) -> Table {
        let threads = self.account.iter().flat_map(|account| &account.threads);
        let rows = threads.map(|one| Row {
            values: vec![
                Value::Words(one.name.clone()),
                Value::Number(one.number.into()),
                Value::Words(text::state(one.state).to_string()),
                Value::Count(one.waiting_objects),
                Value::Bytes(one.waiting_bytes),
                self.threads.0[&one.number.to_string()].trend(),
            ],
            ..Row::default()
        });
        Table {
            columns: THREADS,
            rows: rows.collect(),
        }
    }

    pub fn tags(&self) -> Table {
        let all = || self.account.iter().flat_map(tags_of);
        let total: u64 = all().map(|one| one.live_bytes).sum();
        let row = |one: &TagRow| {
            let trail = &self.tags.0[&one.name];
            Row {
                values: vec![
                    Value::Words(one.words().to_string()),
                    Value::Bytes(one.live_bytes),
                    Value::Share(one.live_bytes as f64 / total.max(1) as f64),
                    Value::Count(one.live_objects),
                    Value::Change(one.live_bytes as i64 - trail.first as i64),
                    Value::Count(one.samples),
                    Value::Words(text::error_of(one)),
                    trail.trend(),
                ],
                ..Row::default()
            }
        };
        Table {
            columns: TAGS,
            rows: all().map(row).collect(),
        }
    }

    /// Whether the program has tags.
    pub fn has_tags(&self) -> bool {
        let account = self.account.as_ref();
        account.is_some_and(|account| account.tags.is_some())
    }
}

/// The program's tags with their live memory.
fn tags_of(account: &Account) -> impl Iterator<Item = &TagRow> {
    account.tags.iter().flat_map(|tags| &tags.rows)
}

/// A row of the account: its name, resident bytes, tone and group.
type MemoryRow = (String, u64, Tone, usize);

/// The sum of all, then what is Slabyard's, then the rest. Each group begins with its sum.
fn memory_rows(account: &Account) -> Vec<MemoryRow> {
    let mut rows = vec![("all".to_string(), account.rss_bytes, Tone::Sum, 0)];
    for (group, ours, name) in [(1, true, "Slabyard"), (2, false, "the rest")] {
        let of = account.resident.iter();
        let of: Vec<(&What, &Weight)> = of.filter(|(what, _)| what.is_slabyard() == ours).collect();
        let sum = of.iter().map(|(_, weight)| weight.bytes).sum();
        rows.push((name.to_string(), sum, Tone::Sum, group));
        rows.extend(of.into_iter().map(|(what, weight)| {
            let name = what.words().to_string();
            (name, weight.bytes, tone_of(*what), group)
        }));
    }
    rows
}

fn tone_of(what: What) -> Tone {
    match what {
        What::Live | What::Large | What::Guarded => Tone::Live,
        free if free.is_free() => Tone::Free,
        own if own.is_slabyard() => Tone::Own,
        _ => Tone::Other,
    }
}

fn name_of(cache: &CacheRow) -> String {
    format!("{} {} {}", cache.kind, cache.name, cache.object_bytes)
}

/// The caches that hold memory.
fn caches_of(account: &Account) -> impl Iterator<Item = &CacheRow> {
    account.caches.iter().filter(|one| one.held_bytes > 0)
}
