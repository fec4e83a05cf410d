//! A session store through a day: resident memory beside the live sessions, where sessions move,
//! over each malloc, and in sharded-slab.
//!
//! * `store`: the stores;
//! * `day`: what one process does with one of them;
//! * here: the processes in turn, the table, and the file that `docs/pictures/draw` reads.

pub mod day;
pub mod store;

use crate::figure::{self, in_turn, median, Figure, Found, Same};
use crate::machine;
use crate::part::{self, Common, Report};
use crate::preloaded::version_of;
use crate::table::{cell, Table};
use day::{Day, Extent, Reading};
use serde_json::{json, Value};
use std::process::Command;
use std::time::{Duration, Instant};
use store::{Movable, Pointers, Session, Store};

/// A session store with ten million sessions in the evening and a million at night, only: resident
/// memory through the day, where sessions move, over mallocs, and in sharded-slab.
///
/// Each store has a process of its own, and serves the same requests. All readings are kept as CSV
/// and JSON.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    #[command(flatten)]
    common: Common<1, 1>,
    /// Users; five in six have a session at the peak [default: 12000000, quick: 240000]
    #[arg(long)]
    users: Option<u32>,
    /// Milliseconds that a minute of the day takes at least [default: 66, quick: 10]
    #[arg(long)]
    minute_ms: Option<u64>,
    /// Only these stores, separated by commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// What the parent passes to a measuring process
    #[arg(long, hide = true, num_args = 1..)]
    child: Option<Vec<String>>,
}

const ROW: &str = "sessions";
const MOVABLE: &str = "movable";
/// `sy_malloc`.
const OWN_MALLOC: &str = "slabyard";
const SHARDED: &str = "sharded-slab";
/// The stores, in the order of the table.
const NAMES: [&str; 6] = [
    MOVABLE, OWN_MALLOC, "glibc", "mimalloc", "jemalloc", SHARDED,
];

const SUM: &str = "sum";
const SESSIONS: &str = "sessions";
const RESIDENT: &str = "resident MiB";
/// CPU time of all operations and of the other threads of the process; and of these threads alone.
const CPU: &str = "cpu s";
const BACKGROUND: &str = "of it background";
/// Kinds of operations: the metric of the number, and of the time of one.
const CREATE: (&str, &str) = ("created", "create ns");
const LOOK_UP: (&str, &str) = ("looked up", "look up ns");
const EXPIRE: (&str, &str) = ("visited", "expire ns");

const MIB: f64 = (1 << 20) as f64;

impl Options {
    fn extent(&self, repeat: usize) -> Extent {
        let minute = self.common.or_default(self.minute_ms, 66, 10);
        Extent {
            users: self.common.or_default(self.users, 12_000_000, 240_000),
            minute: Duration::from_millis(minute),
            seed: repeat as u64 + 1,
        }
    }

    fn names(&self) -> Result<Vec<&'static str>, String> {
        part::check_names("store", &self.only, &NAMES)?;
        let wanted = |name: &&str| part::is_among(name, &self.only);
        Ok(NAMES.into_iter().filter(wanted).collect())
    }
}

// ---- one process ----

fn metric_of_reading(metric: &str, reading: usize) -> String {
    format!("{metric} {reading}")
}

/// The figures of one day.
fn figures<S: Store>(who: &str, mut day: Day<S>, extent: Extent) -> Vec<Figure> {
    let began = (machine::process_cpu_ns(), machine::cpu_ns());
    day.run(extent.minute);
    let seconds = |ns: u64| ns as f64 / 1e9;
    let this_thread = machine::cpu_ns() - began.1;
    let others = (machine::process_cpu_ns() - began.0).saturating_sub(this_thread);
    let operations = day.created.ns + day.looked_up.ns + day.visited.ns;
    let figure = |metric: &str, value| Figure::new(ROW, metric, who, extent.seed as usize, value);
    // 52 bits: a figure has no more.
    let mut all = vec![
        figure(SUM, (day.sum >> 12) as f64),
        figure(CPU, seconds(operations + others)),
        figure(BACKGROUND, seconds(others)),
    ];
    for ((count, time), spent) in [
        (CREATE, day.created),
        (LOOK_UP, day.looked_up),
        (EXPIRE, day.visited),
    ] {
        all.push(figure(count, spent.count as f64));
        all.push(figure(time, spent.each()));
    }
    for (at, reading) in day.readings.iter().enumerate() {
        let Reading { sessions, resident } = *reading;
        let metric = |metric| metric_of_reading(metric, at);
        all.push(figure(&metric(SESSIONS), sessions as f64));
        all.push(figure(&metric(RESIDENT), resident as f64 / MIB));
    }
    all
}

/// Starts Slabyard's background thread, as `docs/production.md` advises and the drop-in `malloc`
/// does by itself. The other stores run as they are.
fn start_background(who: &str) {
    if matches!(who, MOVABLE | OWN_MALLOC) {
        assert!(slabyard::start_maintenance(), "a thread can be started");
    }
}

/// Runs the day with the store of this name.
fn measure(who: &str, extent: Extent) -> Option<Vec<Figure>> {
    start_background(who);
    match who {
        MOVABLE => {
            let day = Day::new(|| Movable::new().expect("there is memory"), extent);
            Some(figures(who, day, extent))
        }
        SHARDED => Some(figures(
            who,
            Day::new(sharded_slab::Slab::<Session>::new, extent),
            extent,
        )),
        malloc => {
            let (pointers, allocator) = Pointers::find(malloc)?;
            let _thread = allocator.enter_thread();
            Some(figures(who, Day::new(|| pointers, extent), extent))
        }
    }
}

fn arguments(who: &str, extent: Extent) -> [String; 4] {
    let Extent {
        users,
        minute,
        seed,
    } = extent;
    let millis = minute.as_millis();
    [
        who.to_owned(),
        users.to_string(),
        millis.to_string(),
        seed.to_string(),
    ]
}

fn parse(arguments: &[String]) -> Option<(&str, Extent)> {
    let [who, users, millis, seed] = arguments else {
        return None;
    };
    let extent = Extent {
        users: users.parse().ok()?,
        minute: Duration::from_millis(millis.parse().ok()?),
        seed: seed.parse().ok()?,
    };
    Some((who, extent))
}

// ---- all processes ----

fn ask(who: &str, extent: Extent) -> Result<Vec<Figure>, String> {
    let command: Command = part::child(ROW, &arguments(who, extent))?;
    figure::ask(command, who)
}

/// Measures all stores in turn. In one repeat the sums of all are the same.
fn measure_all(options: &Options, names: Vec<&'static str>) -> Found {
    let (start, mut sum, mut last) = (Instant::now(), Same::default(), 0);
    in_turn(options.common.repeats(), names, |who, repeat| {
        if repeat != last {
            (sum, last) = (Same::default(), repeat);
        }
        eprintln!("{who} after {}", machine::elapsed(start));
        let figures = ask(who, options.extent(repeat))?;
        let sums = figures.iter().filter(|one| one.metric == SUM);
        sums.map(|one| one.value)
            .try_for_each(|value| sum.check(value, who))?;
        Ok(figures)
    })
}

/// The name of a store with its version.
fn named(who: &str) -> String {
    match who {
        MOVABLE => format!("slabyard {}, sessions that move", env!("CARGO_PKG_VERSION")),
        OWN_MALLOC => format!("slabyard {}, malloc", env!("CARGO_PKG_VERSION")),
        SHARDED => {
            let store = crate::allocators::find(SHARDED);
            format!(
                "{SHARDED} {}",
                store.map_or(String::new(), |it| it.version())
            )
        }
        malloc => version_of(malloc),
    }
}

/// The medians of the readings of one store: sessions and MiB.
fn curve(found: &[Figure], who: &str) -> Vec<(f64, f64)> {
    let at = |reading| {
        let of = |metric| median(found, ROW, &metric_of_reading(metric, reading), who);
        of(SESSIONS).zip(of(RESIDENT))
    };
    (0..).map_while(at).collect()
}

/// What the table says of a day.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Summary {
    /// The most memory of all readings, and the mean.
    peak: f64,
    mean: f64,
    /// The memory at the reading of the fewest sessions after the one of the most.
    trough: f64,
    /// Bytes for each session, at the readings of the most and the fewest sessions.
    each: [f64; 2],
}

fn summary(curve: &[(f64, f64)]) -> Option<Summary> {
    let sessions = |at: &usize| curve[*at].0;
    let by_sessions = |one: &usize, other: &usize| sessions(one).total_cmp(&sessions(other));
    let most = (0..curve.len()).max_by(by_sessions)?;
    let fewest = (most..curve.len()).min_by(by_sessions)?;
    let memory = || curve.iter().map(|reading| reading.1);
    let each = |at: usize| curve[at].1 * MIB / curve[at].0.max(1.0);
    Some(Summary {
        peak: memory().fold(0.0, f64::max),
        mean: memory().sum::<f64>() / curve.len() as f64,
        trough: curve[fewest].1,
        each: [each(most), each(fewest)],
    })
}

/// The same readings with the memory that the sessions themselves take.
fn live(curve: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let memory = |sessions: f64| sessions * size_of::<Session>() as f64 / MIB;
    curve.iter().map(|one| (one.0, memory(one.0))).collect()
}

fn table(names: &[&str], found: &[Figure]) -> String {
    let heads = [
        "peak",
        "trough",
        "mean",
        "bytes a session, peak",
        "trough",
        CREATE.1,
        LOOK_UP.1,
        EXPIRE.1,
        CPU,
        BACKGROUND,
    ];
    let mut table = Table::new("resident MiB", heads);
    let mut line = |name: &str, who: &str, summary: Option<Summary>| {
        let of = |part: fn(Summary) -> f64| cell(summary.map(part));
        let memory = [
            of(|it| it.peak),
            of(|it| it.trough),
            of(|it| it.mean),
            of(|it| it.each[0]),
            of(|it| it.each[1]),
        ];
        let times = [CREATE.1, LOOK_UP.1, EXPIRE.1, CPU, BACKGROUND];
        let times = times.map(|metric| cell(median(found, ROW, metric, who)));
        table.line(name, memory.into_iter().chain(times));
    };
    if let Some(first) = names.first() {
        line("live sessions", "", summary(&live(&curve(found, first))));
    }
    for who in names {
        line(&named(who), who, summary(&curve(found, who)));
    }
    format!("\n{}", table.markdown())
}

/// The file that `docs/pictures/draw` reads.
fn picture(names: &[&str], found: &[Figure]) -> Value {
    let round = |value: f64| (value * 10.0).round() / 10.0;
    let memory = |curve: Vec<(f64, f64)>| -> Vec<f64> {
        curve.into_iter().map(|reading| round(reading.1)).collect()
    };
    let store = |who: &&str| json!({"name": who, "version": named(who), "curve": memory(curve(found, who))});
    let first = names.first().map(|who| curve(found, who));
    json!({
        "machine": machine::conditions()[0].trim_start_matches("processor").trim(),
        "begin_minute": day::BEGIN,
        "between_minutes": day::BETWEEN,
        "session_bytes": size_of::<Session>(),
        "live": memory(live(&first.unwrap_or_default())),
        "stores": names.iter().map(store).collect::<Vec<_>>(),
    })
}

/// Lines of the report's head.
fn head(options: &Options, names: &[&str]) -> Vec<String> {
    let names: Vec<String> = names.iter().map(|who| named(who)).collect();
    let extent = options.extent(0);
    vec![
        format!("stores         {}", names.join("; ")),
        format!(
            "run            {} users, sessions of {} B, a minute takes {} ms or more, {} repeats",
            extent.users,
            size_of::<Session>(),
            extent.minute.as_millis(),
            options.common.repeats(),
        ),
    ]
}

/// The numbers of operations, which are those of each store.
fn counts(names: &[&str], found: &[Figure]) -> String {
    let of = |metric| {
        cell(
            names
                .first()
                .and_then(|who| median(found, ROW, metric, who)),
        )
    };
    format!(
        "\n{} sessions created, {} looked up, {} visited by the timer wheel\n",
        of(CREATE.0),
        of(LOOK_UP.0),
        of(EXPIRE.0)
    )
}

/// Measures the stores that the options choose, or serves as a measuring process.
pub fn bench(options: &Options) -> Result<(), String> {
    if let Some(arguments) = &options.child {
        let found = parse(arguments).and_then(|(who, extent)| measure(who, extent));
        figure::print(&found.ok_or("no such store")?);
        return Ok(());
    }
    let names = options.names()?;
    let mut report = Report::new(&head(options, &names));
    let found = measure_all(options, names.clone());
    report.add(&table(&names, &found.figures));
    report.add(&counts(&names, &found.figures));
    report.add_failures(&found);
    let picture = format!("{:#}\n", picture(&names, &found.figures));
    report.finish((ROW, &options.common), &found, &[("json", picture)])
}

#[cfg(test)]
mod tests;
