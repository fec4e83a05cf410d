//! Accounts as OpenMetrics text, for Prometheus, and a small server for it to scrape.

use super::account::Account;
use super::process;
use super::{Depth, Look};
use crate::ui;
use anyhow::{anyhow, Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use tiny_http::{Header, Method, Response, Server};

const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The name of a metric, its type and its help.
struct Family(&'static str, &'static str, &'static str);

const RESIDENT: Family = Family(
    "slabyard_resident_bytes",
    "gauge",
    "Resident memory by what it is for; the sum is the RSS.",
);
const SHARE: Family = Family(
    "slabyard_proportional_bytes",
    "gauge",
    "The same, where a page that n processes share counts as an n-th; the sum is the PSS.",
);
const RESIDUAL: Family = Family(
    "slabyard_residual_bytes",
    "gauge",
    "What the system counts directly after the account, less the account's sum.",
);
const SPACE: Family = Family(
    "slabyard_address_space_bytes",
    "gauge",
    "Address space for objects that holds no memory.",
);
const OBJECTS: Family = Family(
    "slabyard_cache_objects",
    "gauge",
    "Objects of a cache or size class.",
);
const CACHE: Family = Family(
    "slabyard_cache_resident_bytes",
    "gauge",
    "Resident memory of the slabs of a cache or size class.",
);
const REFILLS: Family = Family(
    "slabyard_cache_refills",
    "counter",
    "Magazines that were filled from slabs.",
);
const FLUSHES: Family = Family(
    "slabyard_cache_flushes",
    "counter",
    "Magazines that were emptied into slabs.",
);
const REFUSED: Family = Family(
    "slabyard_cache_limits_hit",
    "counter",
    "Allocations that were refused because of a limit.",
);
const THREAD: Family = Family(
    "slabyard_thread_waiting_bytes",
    "gauge",
    "Resident memory of free objects in the magazines of a thread.",
);

#[derive(Default)]
struct Text(String);

impl Text {
    /// Adds a family; nothing, if it has no rows.
    fn family(&mut self, family: &Family, rows: impl IntoIterator<Item = (String, String)>) {
        let Family(name, kind, help) = family;
        let mut rows = rows.into_iter().peekable();
        if rows.peek().is_none() {
            return;
        }
        let _ = writeln!(self.0, "# TYPE {name} {kind}");
        if name.ends_with("_bytes") {
            let _ = writeln!(self.0, "# UNIT {name} bytes");
        }
        let _ = writeln!(self.0, "# HELP {name} {help}");
        let end = if *kind == "counter" { "_total" } else { "" };
        for (labels, value) in rows {
            let _ = writeln!(self.0, "{name}{end}{{{labels}}} {value}");
        }
    }
}

/// `name="value"`, with the characters that have a meaning escaped.
fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    format!("{name}=\"{}\"", value.replace('\n', "\\n"))
}

fn of_process(account: &Account) -> String {
    format!(
        "{},{}",
        label("pid", &account.pid.to_string()),
        label("program", &account.program)
    )
}

/// A state of objects, and its part of the figures.
type State = (&'static str, fn(&Sum) -> u64);

/// Figures of the caches with one name and size.
#[derive(Default, Clone, Copy)]
struct Sum {
    live: u64,
    waiting: u64,
    live_bytes: u64,
    waiting_bytes: u64,
    free_bytes: u64,
    refills: u64,
    flushes: u64,
    refused: u64,
}

/// By process, name and size: separate heaps may have the same name.
fn caches(accounts: &[Account]) -> BTreeMap<String, Sum> {
    let mut all: BTreeMap<String, Sum> = BTreeMap::new();
    for account in accounts {
        for cache in account.caches.iter().filter(|cache| cache.is_used()) {
            let labels = format!(
                "{},{},{},{}",
                of_process(account),
                label("cache", &cache.name),
                label("kind", &cache.kind),
                label("object_bytes", &cache.object_bytes.to_string())
            );
            let sum = all.entry(labels).or_default();
            sum.live += cache.live_objects;
            sum.waiting += cache.waiting_objects;
            sum.live_bytes += cache.live_bytes;
            sum.waiting_bytes += cache.waiting_bytes;
            sum.free_bytes += cache.free_bytes;
            sum.refills += cache.refills;
            sum.flushes += cache.flushes;
            sum.refused += cache.limits_hit;
        }
    }
    all
}

/// All accounts as one text.
pub fn open_metrics(accounts: &[Account]) -> String {
    let mut text = Text::default();
    let rows = |value: fn(&super::image::Weight) -> u64| {
        accounts.iter().flat_map(move |account| {
            account.resident.iter().map(move |(what, weight)| {
                let labels = format!("{},{}", of_process(account), label("for", &what.key()));
                (labels, value(weight).to_string())
            })
        })
    };
    text.family(&RESIDENT, rows(|weight| weight.bytes));
    if accounts.iter().any(|one| one.pss_bytes.is_some()) {
        text.family(&SHARE, rows(|weight| weight.shares.round() as u64));
    }
    let residuals = accounts
        .iter()
        .filter_map(|one| Some((of_process(one), one.residual()?.to_string())));
    text.family(&RESIDUAL, residuals);
    let spaces = accounts
        .iter()
        .map(|one| (of_process(one), one.address_space_bytes.to_string()));
    text.family(&SPACE, spaces);
    let caches = caches(accounts);
    let by_state = |states: [State; 3]| {
        let rows = caches.iter().flat_map(move |(labels, sum)| {
            states.map(|(state, value)| {
                (
                    format!("{labels},{}", label("state", state)),
                    value(sum).to_string(),
                )
            })
        });
        rows.collect::<Vec<_>>()
    };
    let objects = by_state([
        ("live", |sum| sum.live),
        ("waiting", |sum| sum.waiting),
        ("", |_| 0),
    ]);
    let objects = objects
        .into_iter()
        .filter(|(labels, _)| !labels.ends_with("state=\"\""));
    text.family(&OBJECTS, objects);
    let bytes = by_state([
        ("live", |sum| sum.live_bytes),
        ("waiting", |sum| sum.waiting_bytes),
        ("free", |sum| sum.free_bytes),
    ]);
    text.family(&CACHE, bytes);
    // Separate heaps come and go, and may have the same name: their sums would fall.
    let counts = |value: fn(&Sum) -> u64| {
        let lasting = caches
            .iter()
            .filter(|(labels, _)| !labels.contains("kind=\"heap\""));
        let rows = lasting.map(move |(labels, sum)| (labels.clone(), value(sum).to_string()));
        rows.collect::<Vec<_>>()
    };
    text.family(&REFILLS, counts(|sum| sum.refills));
    text.family(&FLUSHES, counts(|sum| sum.flushes));
    text.family(&REFUSED, counts(|sum| sum.refused));
    // With two copies of the library in a process, a thread has magazines of both.
    let mut threads: BTreeMap<String, u64> = BTreeMap::new();
    for account in accounts {
        for thread in &account.threads {
            let labels = format!(
                "{},{},{}",
                of_process(account),
                label("thread", &thread.number.to_string()),
                label("name", &thread.name)
            );
            *threads.entry(labels).or_default() += thread.waiting_bytes;
        }
    }
    let threads = threads.into_iter();
    text.family(
        &THREAD,
        threads.map(|(labels, bytes)| (labels, bytes.to_string())),
    );
    text.0 + "# EOF\n"
}

/// Serves the accounts of processes until the tool is ended. A process that ends is left out.
/// `names`: numbers or names of processes, which are looked up for each request.
pub fn serve(address: &str, names: &[String]) -> Result<()> {
    let server = Server::http(address)
        .map_err(|error| anyhow!("{error}"))
        .with_context(|| format!("cannot listen at {address}"))?;
    ui::warn(&format!("http://{}/metrics", server.server_addr()));
    for request in server.incoming_requests() {
        let page = request.url().split('?').next().unwrap_or_default();
        let answer = match (request.method(), page) {
            (Method::Get | Method::Head, "/metrics" | "/") => {
                let header = Header::from_bytes("Content-Type", TYPE).expect("a valid header");
                Response::from_string(scrape(names)).with_header(header)
            }
            _ => Response::from_string("see /metrics\n").with_status_code(404),
        };
        // The client may be gone.
        let _ = request.respond(answer);
    }
    Ok(())
}

fn scrape(names: &[String]) -> String {
    let account = |name: &String| match process(name).and_then(|pid| Look::at(pid, Depth::Whole)) {
        Ok(look) => Some(look.account()),
        Err(error) => {
            ui::warn(&format!("{name}: {error:#}"));
            None
        }
    };
    open_metrics(&names.iter().filter_map(account).collect::<Vec<_>>())
}
