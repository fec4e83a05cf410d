//! Makes tables from samples: a block for each row, a summary of ratios, the raw data.

use crate::allocators::{self, Kind};
use crate::figure::{least, median, Figure};
use crate::rows::{Named, Row, Workload};
use crate::run::{Failure, Found, METRICS};
use crate::stats::{self, geometric_mean, over};
use crate::table::{self, figure, or_dash, ratio, Table};
use std::fmt::Write;

/// If a round trip is longer than this many times the run's shortest, the two processors were far
/// apart. Virtual machines change between these states.
const FAR: f64 = 1.7;

/// The distance of the two processors, for rows whose cache lines pass between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Distance {
    Any,
    Near,
    Far,
}

/// The shortest round trip of a run.
pub fn shortest_trip(found: &[Found]) -> Option<f64> {
    found
        .iter()
        .filter_map(|one| one.sample.round_trip)
        .min_by(f64::total_cmp)
}

fn distance(one: &Found, shortest: Option<f64>) -> Distance {
    match (one.sample.round_trip, shortest) {
        (Some(trip), Some(shortest)) if trip > FAR * shortest => Distance::Far,
        (Some(_), Some(_)) => Distance::Near,
        _ => Distance::Any,
    }
}

/// One row and metric, at one distance: every allocator's figures.
pub struct Block {
    pub row: Row,
    pub metric: &'static str,
    pub distance: Distance,
    figures: Vec<Figure>,
    trips: Vec<f64>,
}

impl Block {
    pub fn of(&self, name: &str) -> Option<f64> {
        median(&self.figures, &self.row.name(), self.metric, name)
    }

    /// The best peer that may be used from any thread.
    pub fn best_peer(&self) -> Option<(&'static str, f64)> {
        let peers = allocators::ALL.iter();
        let peers = peers.filter(|one| one.kind == Kind::Peer && one.shared());
        least(peers.map(|one| one.name), |name| self.of(name))
    }

    /// The metric if it is not the time, and the distance of the processors.
    fn title(&self) -> String {
        let metric = if self.metric == "time" {
            ""
        } else {
            self.metric
        };
        let distance = match self.distance {
            Distance::Any => String::new(),
            other => {
                let middle = stats::median(&self.trips).unwrap_or(0.0);
                format!("; {other:?}, round trip {middle:.0} ns").to_lowercase()
            }
        };
        format!("{metric}{distance}")
            .trim_start_matches("; ")
            .to_owned()
    }

    fn table(&self) -> Table {
        let names = allocators::ALL.map(|one| one.name);
        let best = self.best_peer().map(|best| best.0);
        let (to_best, to_limit) = (|_: &str| best, |name: &str| limit_of(name));
        let wholes: [table::Whole; 2] = [("/peer", &to_best), ("/limit", &to_limit)];
        let (row, metrics) = (self.row.name(), [self.metric]);
        table::block(&self.figures, &row, &names, &metrics, &wholes).named(&self.title())
    }
}

/// The limit that an allocator is compared with: the limit of its kind.
fn limit_of(name: &str) -> Option<&'static str> {
    let allocator = allocators::find(name).filter(|one| one.kind != Kind::Floor)?;
    Some(match allocator.shared() {
        true => "limit-magazine",
        false => "limit-freelist",
    })
}

/// The blocks of a row: one for each metric and distance that have samples.
pub fn blocks(row: &Row, found: &[Found], shortest: Option<f64>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for metric in METRICS {
        for at in [Distance::Any, Distance::Near, Distance::Far] {
            let here = |one: &&Found| {
                one.row == *row && one.sample.metric == metric && distance(one, shortest) == at
            };
            let figure = |one: &Found| {
                let sample = &one.sample;
                let (layout, value) = (sample.layout, sample.value);
                Figure::new(&row.name(), metric, one.allocator, layout, value)
            };
            let here: Vec<&Found> = found.iter().filter(here).collect();
            if !here.is_empty() {
                blocks.push(Block {
                    row: *row,
                    metric,
                    distance: at,
                    figures: here.iter().map(|one| figure(one)).collect(),
                    trips: here
                        .iter()
                        .filter_map(|one| one.sample.round_trip)
                        .collect(),
                });
            }
        }
    }
    blocks
}

/// One row as text.
pub fn text(row: &Row, found: &[Found], failures: &[Failure], shortest: Option<f64>) -> String {
    let mut text = format!("\n{}: {}\n", row.name(), row.describe());
    for block in blocks(row, found, shortest) {
        text += &block.table().text();
    }
    text += &aim(row, found).unwrap_or_default();
    for failure in failures.iter().filter(|failure| failure.row == *row) {
        let (allocator, what) = (failure.allocator, &failure.what);
        let _ = writeln!(text, "    {allocator:<32} FAILED: {what}");
    }
    text
}

/// Nanoseconds that a look-up of a thousand objects' handles may take.
const GET_AIM: f64 = 1.5;

/// The target for handles, in the rows that have one. It is computed from other figures of the run.
fn aim(row: &Row, found: &[Found]) -> Option<String> {
    let blocks = blocks(row, found, None);
    let block = blocks.first()?;
    let handles = block.of("handles")?;
    let (aim, reason) = match row.workload {
        Workload::Named(Named::Pair) => {
            let aim = block.of("cache")? + 1.3 * block.of("cas")? + 2.0;
            (aim, "cache + 1.3 cas + 2 ns")
        }
        Workload::Named(Named::Get { live: 1_000 }) => (GET_AIM, "hot"),
        _ => return None,
    };
    Some(format!(
        "    aim of handles: {} ({reason}); they are at {}, {:.2} of it\n",
        figure(aim),
        figure(handles),
        handles / aim
    ))
}

/// A column of the summary: an allocator of ours over another allocator, or over the best peer.
struct Column {
    title: &'static str,
    ours: &'static str,
    other: Option<&'static str>,
}

impl Column {
    const fn over_peer(title: &'static str, ours: &'static str) -> Column {
        Column {
            title,
            ours,
            other: None,
        }
    }

    const fn over(title: &'static str, ours: &'static str, other: &'static str) -> Column {
        Column {
            other: Some(other),
            ..Column::over_peer(title, ours)
        }
    }

    fn ratio(&self, block: &Block) -> Option<f64> {
        let other = match self.other {
            Some(other) => block.of(other),
            // The peers of named rows have handles: a cache is not compared with them.
            None if self.ours == "cache" && block.row.is_named() => None,
            None => block.best_peer().map(|best| best.1),
        };
        over(block.of(self.ours), other)
    }
}

const COLUMNS: [Column; 10] = [
    Column::over_peer("cache/peer", "cache"),
    Column::over("cache/limit", "cache", "limit-magazine"),
    Column::over_peer("heap/peer", "heap"),
    Column::over("heap/mimalloc", "heap", "mimalloc"),
    Column::over("heap/glibc", "heap", "glibc"),
    Column::over("pool/limit", "pool", "limit-freelist"),
    Column::over("bounded/nexus", "pool-bounded", "nexus-bounded"),
    Column::over("pool/nexus", "pool", "nexus-unbounded"),
    Column::over("handles/cache", "handles", "cache"),
    Column::over_peer("handles/peer", "handles"),
];

/// A line for each row: the best peer, and ratios of ours to others. Below: geometric means of the
/// rows about time.
pub fn summary(rows: &[Row], found: &[Found]) -> String {
    let shortest = shortest_trip(found);
    let heads = COLUMNS.iter().map(|column| column.title);
    let mut table = Table::new("row", ["best thread-safe peer"].into_iter().chain(heads));
    let mut ratios: [Vec<f64>; COLUMNS.len()] = Default::default();
    for row in rows {
        let blocks = blocks(row, found, shortest);
        let most = blocks.iter().map(|block| block.figures.len()).max();
        for block in &blocks {
            let is_time = block.metric == "time";
            let metric = if is_time { "" } else { block.metric };
            let place = match block.distance {
                Distance::Far => " (far)",
                _ => "",
            };
            let name = format!("{} {metric}{place}", row.name());
            let best = or_dash(block.best_peer(), |best| {
                format!("{} {}", best.0, figure(best.1))
            });
            let values = COLUMNS.each_ref().map(|column| column.ratio(block));
            // If a row has two distances, the one with more samples is in the mean.
            if row.is_time() && is_time && Some(block.figures.len()) == most {
                for (ratios, value) in ratios.iter_mut().zip(values) {
                    ratios.extend(value);
                }
            }
            table.line(&name, [best].into_iter().chain(values.map(ratio)));
        }
    }
    let means = ratios.map(|ratios| ratio(geometric_mean(&ratios)));
    let means = [String::new()].into_iter().chain(means);
    table.line("geometric mean of the time rows", means);
    format!(
        "\nSummary: ratios below 1 mean less time or memory.\n{}",
        table.text()
    )
}

/// Every sample, one a line.
pub fn csv(found: &[Found]) -> String {
    let mut text =
        String::from("row,object_bytes,metric,allocator,layout,repeat,value,round_trip_ns\n");
    for one in found {
        let trip = one
            .sample
            .round_trip
            .map_or_else(String::new, |trip| format!("{trip:.1}"));
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{trip}",
            one.row.name(),
            one.row.size,
            one.sample.metric,
            one.allocator,
            one.sample.layout,
            one.repeat,
            one.sample.value,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Sample;

    fn found(allocator: &'static str, value: f64, round_trip: Option<f64>) -> Found {
        let row = crate::rows::find("exchange/64").unwrap();
        let sample = Sample {
            metric: "time",
            layout: 0,
            value,
            round_trip,
        };
        Found {
            row,
            allocator,
            repeat: 0,
            sample,
        }
    }

    #[test]
    fn near_and_far_are_apart() {
        let all = [
            found("cache", 2.0, Some(100.0)),
            found("cache", 6.0, Some(300.0)),
            found("mimalloc", 4.0, Some(120.0)),
        ];
        let blocks = blocks(&all[0].row, &all, shortest_trip(&all));
        assert_eq!(blocks.len(), 2);
        assert_eq!(blocks[0].distance, Distance::Near);
        assert_eq!(blocks[0].of("cache"), Some(2.0));
        assert_eq!(blocks[0].best_peer(), Some(("mimalloc", 4.0)));
        assert_eq!(blocks[1].of("cache"), Some(6.0));
        assert_eq!(blocks[1].best_peer(), None);
    }

    #[test]
    fn the_best_peer_is_shared_and_no_limit() {
        let all = [
            found("limit-magazine", 1.0, None),
            found("nexus-bounded", 1.5, None),
            found("glibc", 3.0, None),
            found("snmalloc", 2.0, None),
            found("cache", 1.0, None),
        ];
        let blocks = blocks(&all[0].row, &all, None);
        assert_eq!(blocks[0].best_peer(), Some(("snmalloc", 2.0)));
        let text = summary(&[all[0].row], &all);
        assert!(text.contains("snmalloc 2.000"), "{text}");
        assert!(text.lines().last().unwrap().contains("0.50"), "{text}");
    }

    /// One sample of a row by name.
    fn named(row: &str, allocator: &'static str, value: f64) -> Found {
        Found {
            row: crate::rows::find(row).unwrap(),
            ..found(allocator, value, None)
        }
    }

    #[test]
    fn memory_of_a_row_about_time_is_not_in_the_means() {
        let row = "cold-large/64";
        let mut all = vec![named(row, "cache", 10.0), named(row, "glibc", 40.0)];
        for (who, value) in [("cache", 1.0), ("glibc", 1.25)] {
            let mut memory = named(row, who, value);
            memory.sample.metric = "ratio";
            all.push(memory);
        }
        let text = summary(&[all[0].row], &all);
        let cells = |begin: &str| -> Vec<&str> {
            let mut lines = text.lines().map(str::trim_start);
            let line = lines.find(|line| line.starts_with(begin)).unwrap();
            line.split_whitespace().collect()
        };
        assert!(cells("cold-large/64 ratio").contains(&"0.80"), "{text}");
        assert_eq!(cells("geometric mean")[6], "0.25", "{text}");
    }

    #[test]
    fn handles_are_held_against_a_compare_exchange() {
        let row = "handle-pair/64";
        let mut all = vec![
            named(row, "cache", 1.0),
            named(row, "handles", 4.2),
            named(row, "sharded-slab", 42.0),
        ];
        assert!(!text(&all[0].row, &all, &[], None).contains("aim"));
        all.push(named(row, "cas", 4.0));
        let shown = text(&all[0].row, &all, &[], None);
        let expected = "aim of handles: 8.200 (cache + 1.3 cas + 2 ns); they are at 4.200, 0.51";
        assert!(shown.contains(expected), "{shown}");
        let text = summary(&[all[0].row], &all);
        let means: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        let shown = [&["-"; 8][..], &["4.20", "0.10"]].concat();
        assert_eq!(means[means.len() - 10..], shown, "{text}");
    }

    #[test]
    fn a_hot_look_up_has_a_figure_to_reach() {
        let all = [named("handle-get/64/1000", "handles", 3.0)];
        let shown = text(&all[0].row, &all, &[], None);
        assert!(
            shown.contains("1.500 (hot); they are at 3.000, 2.00 of it"),
            "{shown}"
        );
        let all = [named("handle-get/64/100000", "handles", 3.0)];
        assert!(!text(&all[0].row, &all, &[], None).contains("aim"));
    }

    #[test]
    fn raw_data_has_a_line_a_sample() {
        let text = csv(&[found("cache", 2.0, Some(100.0)), found("glibc", 3.5, None)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "exchange/64,64,time,cache,0,0,2,100.0");
        assert_eq!(lines[2], "exchange/64,64,time,glibc,0,0,3.5,");
    }
}
