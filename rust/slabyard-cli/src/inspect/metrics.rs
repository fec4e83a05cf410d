//! Accounts as OpenMetrics text, for Prometheus, and a small server for it to scrape.

use super::account::{Account, CacheRow, OF_HEAP};
use super::process;
use super::tags::{Source, TagRow};
use super::{Depth, Look};
use crate::ui;
use anyhow::{anyhow, Context, Result};
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

const TAG: Family = Family(
    "slabyard_tag_live_bytes",
    "gauge",
    "Live memory of the allocations with a tag: estimated from samples, or of objects with audit.",
);
const TAG_OBJECTS: Family = Family(
    "slabyard_tag_live_objects",
    "gauge",
    "The same, as a number of objects.",
);
const TAG_SAMPLES: Family = Family(
    "slabyard_tag_samples",
    "gauge",
    "The samples that the live memory of a tag is estimated from.",
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

/// Labels, and the value that belongs to them.
type Row = (String, String);

/// A state of objects, and its figure.
type State<'a> = (&'a str, fn(&CacheRow) -> u64);

/// A row for each cache that is used, and for each state in which it has objects.
fn of_caches<const N: usize>(accounts: &[Account], states: [State; N]) -> Vec<Row> {
    let caches = accounts.iter().flat_map(|account| {
        let used = account.caches.iter().filter(|cache| cache.is_used());
        used.map(move |cache| (labels_of(account, cache), cache))
    });
    let rows = caches.flat_map(|(labels, cache)| {
        states.map(|(state, value)| {
            let labels = format!("{labels},{}", label("state", state));
            (labels, value(cache).to_string())
        })
    });
    rows.collect()
}

/// A row for each tag whose figures come from one of these sources.
fn of_tags(accounts: &[Account], sources: &[Source], value: fn(&TagRow) -> u64) -> Vec<Row> {
    let tagged = accounts
        .iter()
        .filter_map(|account| Some((account, account.tags.as_ref()?)));
    let tagged = tagged.filter(|(_, tags)| sources.contains(&tags.source));
    let rows = tagged.flat_map(|(account, tags)| {
        tags.rows.iter().map(move |row| {
            let from = match tags.source {
                Source::Samples => "samples",
                _ => "audit",
            };
            let labels = format!(
                "{},{},{}",
                of_process(account),
                label("tag", &row.name),
                label("from", from)
            );
            (labels, value(row).to_string())
        })
    });
    rows.collect()
}

/// A row for each cache that stays: separate heaps come and go, and the sum of those with one name
/// would fall, as no counter does.
fn counts(accounts: &[Account], value: fn(&CacheRow) -> u64) -> Vec<Row> {
    let rows = accounts.iter().flat_map(|account| {
        let used = account.caches.iter().filter(|cache| cache.is_used());
        let lasting = used.filter(|cache| cache.kind != OF_HEAP);
        lasting.map(move |cache| (labels_of(account, cache), value(cache).to_string()))
    });
    rows.collect()
}

fn labels_of(account: &Account, cache: &CacheRow) -> String {
    format!(
        "{},{},{},{}",
        of_process(account),
        label("cache", &cache.name),
        label("kind", &cache.kind),
        label("object_bytes", &cache.object_bytes.to_string())
    )
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
    let objects = of_caches(
        accounts,
        [
            ("live", |cache| cache.live_objects),
            ("waiting", |cache| cache.waiting_objects),
        ],
    );
    text.family(&OBJECTS, objects);
    let bytes = of_caches(
        accounts,
        [
            ("live", |cache| cache.live_bytes),
            ("waiting", |cache| cache.waiting_bytes),
            ("free", |cache| cache.free_bytes),
        ],
    );
    text.family(&CACHE, bytes);
    text.family(&REFILLS, counts(accounts, |cache| cache.refills));
    text.family(&FLUSHES, counts(accounts, |cache| cache.flushes));
    text.family(&REFUSED, counts(accounts, |cache| cache.limits_hit));
    let threads = accounts.iter().flat_map(|account| {
        account.threads.iter().map(move |thread| {
            let labels = format!(
                "{},{},{}",
                of_process(account),
                label("thread", &thread.number.to_string()),
                label("name", &thread.name)
            );
            (labels, thread.waiting_bytes.to_string())
        })
    });
    text.family(&THREAD, threads);
    let known = [Source::Samples, Source::Audit];
    text.family(&TAG, of_tags(accounts, &known, |row| row.live_bytes));
    let objects = of_tags(accounts, &known, |row| row.live_objects);
    text.family(&TAG_OBJECTS, objects);
    let samples = of_tags(accounts, &[Source::Samples], |row| row.samples);
    text.family(&TAG_SAMPLES, samples);
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
    let mut accounts: Vec<Account> = Vec::new();
    for name in names {
        match process(name).and_then(|pid| Look::at(pid, Depth::Whole)) {
            // A process may have been named twice, by its name and by its number.
            Ok(look) if accounts.iter().any(|one| one.pid == look.pid) => {}
            Ok(look) => accounts.push(look.account()),
            Err(error) => ui::warn(&format!("{name}: {error:#}")),
        }
    }
    open_metrics(&accounts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The dashboard for Grafana asks for metrics by name.
    #[test]
    fn a_dashboard_asks_for_metrics_that_there_are() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tools/grafana/slabyard.json"
        );
        let text = std::fs::read_to_string(file).unwrap();
        let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
        let families = [
            &RESIDENT, &SHARE, &RESIDUAL, &SPACE, &OBJECTS, &CACHE, &REFILLS, &FLUSHES, &REFUSED,
            &THREAD,
        ];
        let known: Vec<String> = families
            .iter()
            .map(|Family(name, kind, _)| match *kind {
                "counter" => format!("{name}_total"),
                _ => name.to_string(),
            })
            .collect();
        let panels = dashboard["panels"].as_array().unwrap();
        assert!(panels.len() > 5);
        for panel in panels {
            let asked = panel["targets"][0]["expr"].as_str().unwrap();
            let is_name = |one: &char| one.is_ascii_alphanumeric() || *one == '_';
            let names: Vec<String> = asked
                .match_indices("slabyard_")
                .map(|(at, _)| asked[at..].chars().take_while(is_name).collect())
                .collect();
            assert!(!names.is_empty(), "{asked}");
            for name in names {
                assert!(known.contains(&name), "{name}");
            }
        }
    }
}
