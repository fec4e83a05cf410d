//! The key-value server of the examples over different allocators: its throughput, its latencies,
//! its memory.
//!
//! * `contender`: what the server takes its memory from; `process`: the server as a process;
//! * `load`: the requests;
//! * here: the stages of all servers, and the tables.
//!
//! In a repeat each contender has one server process, which goes through all stages. The servers
//! take turns stage by stage. If there are two processors, the server has one and the load the
//! other.

pub mod contender;
pub mod load;
pub mod process;

use crate::figure::{self, median, Figure, Found};
use crate::machine;
use crate::part::{self, Common, Report};
use crate::table::{self, cell, or_dash, spread, Table};
use contender::{Contender, PEER};
use load::{Asks, Load, CONNECTIONS};
use process::Server;
use std::time::{Duration, Instant};

/// The key-value server of the examples only: requests in a second, latencies, resident memory.
///
/// It takes its memory from Slabyard's caches and heaps, and from the malloc of the C library and
/// of the libraries that are here, preloaded. Figures are medians; raw data is kept as CSV.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    #[command(flatten)]
    common: Common<5, 2>,
    /// Only these allocators, separated by commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// One more library whose malloc is measured, as NAME=LIBRARY
    #[arg(long)]
    preload: Vec<String>,
    /// Keys that the server is filled with [default: 500000, quick: 50000]
    #[arg(long)]
    keys: Option<usize>,
    /// Requests of a stage without a pipeline; stages with one have four times as many [default: 200000, quick:
    /// 20000]
    #[arg(long)]
    requests: Option<u64>,
    /// Milliseconds with few requests after the flush [default: 12000, quick: 1000]
    #[arg(long)]
    later_ms: Option<u64>,
}

/// The extent of a run.
struct Effort {
    keys: usize,
    requests: u64,
    later: Duration,
    repeats: usize,
    /// The processors of the server and of the load, if there are two.
    processors: Option<[usize; 2]>,
}

impl Options {
    fn effort(&self) -> Effort {
        let common = &self.common;
        let keys = common.or_default(self.keys, 500_000, 50_000);
        let later_ms = common.or_default(self.later_ms, 12_000, 1000);
        let processors = machine::processors();
        Effort {
            keys: keys.max(CONNECTIONS * 10),
            requests: common.or_default(self.requests, 200_000, 20_000),
            later: Duration::from_millis(later_ms),
            repeats: common.repeats(),
            processors: (processors.len() > 1).then(|| [processors[0], processors[1]]),
        }
    }

    fn chosen(&self) -> Result<Vec<Contender>, String> {
        let mut all = contender::all();
        for text in &self.preload {
            all.push(contender::parse(text)?);
        }
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        part::check_names("allocator", &self.only, &names)?;
        all.retain(|one| part::is_among(&one.name, &self.only));
        Ok(all)
    }
}

/// A stage that is timed.
struct Row {
    name: &'static str,
    says: &'static str,
    asks: Asks,
    /// Requests in flight on a connection.
    depth: u64,
}

const fn row(name: &'static str, says: &'static str, asks: Asks, depth: u64) -> Row {
    Row {
        name,
        says,
        asks,
        depth,
    }
}

/// The stages in their order in a run.
const ROWS: [Row; 7] = [
    row(
        "fill",
        "first set of each key, 16 at a time",
        Asks::Fill,
        16,
    ),
    row("set/1", "set of random keys", Asks::Random { sets: 100 }, 1),
    row(
        "set/16",
        "the same, 16 at a time",
        Asks::Random { sets: 100 },
        16,
    ),
    row("get/1", "get of random keys", Asks::Random { sets: 0 }, 1),
    row(
        "get/16",
        "the same, 16 at a time",
        Asks::Random { sets: 0 },
        16,
    ),
    row(
        "mixed/1",
        "half of the requests set keys, half get them",
        Asks::Random { sets: 50 },
        1,
    ),
    row(
        "mixed/16",
        "the same, 16 at a time",
        Asks::Random { sets: 50 },
        16,
    ),
];

/// The metrics of a row, in the order of its columns.
const METRICS: [&str; 5] = ["requests/s", "p50 us", "p99 us", "p99.9 us", "cpu us"];
/// The moments at which memory is read.
const MOMENTS: [&str; 5] = ["filled", "churned", "thinned", "flushed", "later"];
/// The rows about memory: resident memory of the server, and the bytes of keys and values in it.
const RESIDENT: &str = "resident MiB";
const LIVE: &str = "live MiB";
const FLUSH: &str = "flush";

/// One server with its load and its figures.
struct Session {
    name: String,
    server: Server,
    load: Load,
    figures: Vec<Figure>,
}

impl Session {
    fn open(who: &Contender, effort: &Effort, seed: u64) -> Result<Session, String> {
        let server = Server::start(who, effort.processors.map(|both| both[0]))?;
        Ok(Session {
            name: who.name.clone(),
            load: Load::open(server.port, effort.keys, seed)?,
            server,
            figures: Vec::new(),
        })
    }

    fn add(&mut self, row: &str, metric: &str, value: f64) {
        self.figures
            .push(Figure::new(row, metric, &self.name, 0, value));
    }

    fn look(&mut self, moment: &str) {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        self.add(RESIDENT, moment, mib(self.server.resident()));
        self.add(LIVE, moment, mib(self.load.live_bytes()));
    }

    fn stage(&mut self, row: &Row, requests: u64) -> Result<(), String> {
        let before = self.server.cpu_ns();
        let stage = self
            .load
            .run(row.asks, requests * row.depth.min(4), row.depth)?;
        let cpu_ns = self.server.cpu_ns() - before;
        let count = stage.requests as f64;
        let us = |share| stage.latencies.value_at_quantile(share) as f64 / 1e3;
        let values = [
            count / stage.ns as f64 * 1e9,
            us(0.5),
            us(0.99),
            us(0.999),
            cpu_ns as f64 / count / 1e3,
        ];
        for (metric, value) in METRICS.into_iter().zip(values) {
            self.add(row.name, metric, value);
        }
        if row.asks == Asks::Fill {
            self.look("filled");
        }
        Ok(())
    }

    fn age(&mut self) -> Result<(), String> {
        self.load.run(Asks::Overwrite, 0, 16)?;
        self.look("churned");
        self.load.run(Asks::Thin, 0, 16)?;
        self.look("thinned");
        let ns = self.load.flush_all()?;
        self.add(FLUSH, "ms", ns as f64 / 1e6);
        self.look("flushed");
        Ok(())
    }

    /// Sets a key and deletes it.
    fn drip(&mut self) -> Result<(), String> {
        self.load
            .tell(&[b"SET", b"key", &[b'x'; 200]], b"+OK\r\n")?;
        self.load.tell(&[b"DEL", b"key"], b":1\r\n").map(drop)
    }
}

/// All servers of a repeat, which take turns in each stage, and the failures of others: a name and
/// an error each.
struct Round {
    contenders: Vec<Session>,
    failures: Vec<(String, String)>,
}

impl Round {
    fn open(who: &[Contender], effort: &Effort, seed: u64) -> Round {
        let mut round = Round {
            contenders: Vec::new(),
            failures: Vec::new(),
        };
        for one in who {
            match Session::open(one, effort, seed) {
                Ok(contender) => round.contenders.push(contender),
                Err(what) => round.failures.push((one.name.clone(), what)),
            }
        }
        round
    }

    /// Runs `does` for each server. The next call begins with another server.
    fn each(&mut self, mut does: impl FnMut(&mut Session) -> Result<(), String>) {
        let Round {
            contenders,
            failures,
        } = self;
        contenders.retain_mut(|one| {
            let failed = does(one).err();
            failures.extend(failed.clone().map(|what| (one.name.clone(), what)));
            failed.is_none()
        });
        let turn = 1.min(contenders.len());
        contenders.rotate_left(turn);
    }

    /// From the start of the servers to their end.
    fn run(who: &[Contender], effort: &Effort, seed: u64) -> Round {
        if let Some([_, own]) = effort.processors {
            machine::pin(own);
        }
        let mut round = Round::open(who, effort, seed);
        for row in &ROWS {
            round.each(|one| one.stage(row, effort.requests));
        }
        round.each(Session::age);
        let began = Instant::now();
        while began.elapsed() < effort.later {
            round.each(Session::drip);
            std::thread::sleep(Duration::from_millis(1));
        }
        round.each(|one| {
            one.look("later");
            Ok(())
        });
        round
    }

    /// Ends the servers, and returns the figures and the failures.
    fn close(mut self) -> (Vec<Figure>, Vec<(String, String)>) {
        let mut figures = Vec::new();
        for Session {
            name,
            server,
            load,
            figures: found,
        } in self.contenders
        {
            drop(load); // a server ends after its last connection is closed
            match server.end() {
                Ok(()) => figures.extend(found),
                Err(what) => self.failures.push((name, what)),
            }
        }
        (figures, self.failures)
    }
}

/// All repeats. A contender that fails is left out of the following repeats.
fn measure_all(who: &[Contender], effort: &Effort) -> Found {
    let mut found = Found::default();
    let mut who = who.to_vec();
    for repeat in 0..effort.repeats {
        eprintln!("repeat {} of {}", repeat + 1, effort.repeats);
        let seed = repeat as u64 + 1;
        // A thread of its own, because it binds itself to a processor.
        let round = std::thread::scope(|scope| {
            let thread = scope.spawn(|| Round::run(&who, effort, seed).close());
            thread.join().expect("a round does not panic")
        });
        found.figures.extend(round.0);
        who.retain(|one| round.1.iter().all(|failure| failure.0 != one.name));
        let failures = round
            .1
            .into_iter()
            .map(|(name, what)| format!("{name}: {what}"));
        found.failures.extend(failures);
        let turn = 1.min(who.len());
        who.rotate_left(turn);
    }
    found
}

/// One row as text.
fn block(row: &Row, names: &[&str], found: &[Figure]) -> String {
    let whole = format!("/{PEER}");
    let wholes: [table::Whole; 1] = [(&whole, &|_| Some(PEER))];
    let table = table::block(found, row.name, names, &METRICS, &wholes);
    format!("\n{}: {}\n{}", row.name, row.says, table.text())
}

/// Resident memory as text, with its quartiles.
fn memory(names: &[&str], found: &[Figure]) -> String {
    let mut table = Table::new("", MOMENTS.into_iter().chain(["flush ms"]));
    let mut live = names.iter().copied();
    if let Some(one) = live.find(|name| median(found, LIVE, MOMENTS[0], name).is_some()) {
        let of = |moment| cell(median(found, LIVE, moment, one));
        table.line("keys, values", MOMENTS.map(of));
    }
    for name in names {
        let of = |moment| figure::of(found, RESIDENT, moment, name);
        let medians = MOMENTS.map(|moment| cell(of(moment).map(|summary| summary.median)));
        let flush = cell(median(found, FLUSH, "ms", name));
        table.line(name, medians.into_iter().chain([flush]));
        table.line(
            "",
            MOMENTS.map(|moment| or_dash(of(moment), |summary| spread(&summary))),
        );
    }
    let title = "memory: resident MiB, its quartiles below; FLUSHALL";
    format!("\n{title}\n{}", table.text())
}

/// Everything as a table for a document: a line for each figure, a column for each contender.
fn table(names: &[&str], found: &[Figure]) -> String {
    let mut table = Table::new("figure", names.iter().copied());
    let of_rows = ROWS
        .iter()
        .flat_map(|row| METRICS.map(|metric| (row.name, metric)));
    let of_memory = MOMENTS.map(|moment| (RESIDENT, moment));
    for (row, metric) in of_rows.chain(of_memory).chain([(FLUSH, "ms")]) {
        let of = |name: &&str| cell(median(found, row, metric, name));
        table.line(&format!("{row}, {metric}"), names.iter().map(of));
    }
    format!("\n{}", table.markdown())
}

/// Lines of the report's head: the libraries, those that are missing, and the extent of the run.
fn head(who: &[Contender], missing: &[String], effort: &Effort) -> Vec<String> {
    let mut lines = Vec::new();
    for one in who {
        if let Some(library) = &one.library {
            lines.push(format!("{:<14} {}", one.name, library.display()));
        }
    }
    lines.extend_from_slice(missing);
    lines.push(match effort.processors {
        Some([server, load]) => {
            format!("bound          the server to processor {server}, the load to {load}")
        }
        None => "bound          no: there is one processor".to_owned(),
    });
    lines.push(format!(
        "run            {} keys, {} requests a stage (16 at a time: {}), {CONNECTIONS} connections, {} repeats",
        effort.keys,
        effort.requests,
        effort.requests * 4,
        effort.repeats
    ));
    lines
}

/// Measures the servers over the allocators that the options choose.
pub fn bench(options: &Options) -> Result<(), String> {
    let effort = options.effort();
    let (who, missing) = contender::present(options.chosen()?)?;
    let mut report = Report::new(&head(&who, &missing, &effort));
    let found = measure_all(&who, &effort);
    let names: Vec<&str> = who.iter().map(|one| one.name.as_str()).collect();
    for row in &ROWS {
        report.add(&block(row, &names, &found.figures));
    }
    report.add(&memory(&names, &found.figures));
    report.add(&table(&names, &found.figures));
    report.add_failures(&found);
    report.finish(("server", &options.common), &found, &[])
}
