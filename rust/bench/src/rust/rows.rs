//! The rows about the Rust crate, as a list.

use super::{maps, owned, shared};
use crate::alone::job::{Job, Sampled};

/// Bytes of objects.
pub const SIZES: [usize; 6] = [32, 64, 128, 512, 1024, 4096];

/// Objects and their owners.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owned {
    Churn,
    Alloc,
    FreeLifo,
    FreeRandom,
    Contended,
    Steady { live: usize },
}

impl Owned {
    /// Objects that live at a time.
    pub fn live(self) -> usize {
        match self {
            Owned::Steady { live } => live,
            _ => 0,
        }
    }
}

/// Maps used by one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Local {
    Pair,
    Replace,
    Get,
    Iterate,
}

/// Maps shared by threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shared {
    /// Each thread looks up values of its own, or all threads the same values.
    Get {
        same: bool,
    },
    Pair,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Row {
    Owned { what: Owned, bytes: usize },
    Local { what: Local, live: usize },
    Shared { what: Shared, threads: usize },
}

impl crate::alone::Row for Row {
    const COMMAND: &'static str = "rust";
    const TABLES: &'static [&'static str] = &["ns"];

    fn all() -> Vec<Row> {
        all()
    }

    fn conditions() -> Vec<String> {
        Vec::new()
    }

    fn name(self) -> String {
        match self {
            Row::Owned { what, bytes } => match what {
                Owned::Churn => format!("churn/{bytes}"),
                Owned::Alloc => format!("alloc/{bytes}"),
                Owned::FreeLifo => format!("free-lifo/{bytes}"),
                Owned::FreeRandom => format!("free-random/{bytes}"),
                Owned::Contended => format!("contended/{bytes}"),
                Owned::Steady { live } => format!("replace/{bytes}/{live}"),
            },
            Row::Local { what, live } => {
                format!("map-{}/{live}", format!("{what:?}").to_lowercase())
            }
            Row::Shared { what, threads } => match what {
                Shared::Get { same: false } => format!("shared-get/{threads}"),
                Shared::Get { same: true } => format!("shared-get-same/{threads}"),
                Shared::Pair => format!("shared-pair/{threads}"),
            },
        }
    }

    fn describe(self) -> String {
        match self {
            Row::Owned { what, bytes } => match what {
                Owned::Churn => format!("a value of {bytes} B made, touched, dropped"),
                Owned::Alloc => format!("one of 2,000 values of {bytes} B made"),
                Owned::FreeLifo => {
                    format!("one of 2,000 values of {bytes} B dropped, newest first")
                }
                Owned::FreeRandom => {
                    format!("one of 2,000 values of {bytes} B dropped, in random order")
                }
                Owned::Contended => format!(
                    "as churn/{bytes}, ten at a time, while the program's boxes come and go"
                ),
                Owned::Steady { live } => {
                    format!("random one of {live} values of {bytes} B replaced")
                }
            },
            Row::Local { what, live } => match what {
                Local::Pair => format!("insert and remove, beside {live} live values"),
                Local::Replace => format!("random one of {live} values removed, another inserted"),
                Local::Get => format!("get of a random one of {live} values"),
                Local::Iterate => format!("visit of one of {live} values, a third removed before"),
            },
            Row::Shared { what, threads } => match what {
                Shared::Get { same: false } => {
                    format!("get and drop, {threads} threads, each with 1,000 values of its own")
                }
                Shared::Get { same: true } => {
                    format!("get and drop, {threads} threads, all with the same 1,000 values")
                }
                Shared::Pair => format!("insert and remove, {threads} threads"),
            },
        }
    }

    fn peer(self) -> &'static str {
        match self {
            Row::Owned { .. } => "nexus bounded",
            Row::Local { .. } => "slotmap",
            Row::Shared { .. } => "sharded-slab",
        }
    }

    fn names(self) -> Vec<&'static str> {
        match self {
            Row::Owned { what, .. } => owned::names(what),
            Row::Local { .. } => maps::names(),
            Row::Shared { what, .. } => shared::names(what),
        }
    }

    fn metrics(self) -> &'static [&'static str] {
        match self {
            Row::Owned { .. } => &["ns", "p50", "p99.9"],
            _ => &["ns"],
        }
    }

    fn run(self, job: &Job<Row>) -> Option<Vec<Sampled>> {
        match self {
            Row::Owned { what, bytes } => owned::run(job, what, bytes),
            Row::Local { what, live } => maps::run_job(job, what, live),
            Row::Shared { what, threads } => shared::run_job(job, what, threads),
        }
    }
}

/// All rows, in the order of the tables.
fn all() -> Vec<Row> {
    let kinds = [
        Owned::Churn,
        Owned::Alloc,
        Owned::FreeLifo,
        Owned::FreeRandom,
        Owned::Contended,
    ];
    // For 1,024 bytes nexus-slab's document has figures of frees only.
    let wanted = |what, bytes| bytes != 1024 || what == Owned::FreeLifo;
    let mut rows = Vec::new();
    for what in kinds {
        let sizes = SIZES.into_iter().filter(|&bytes| wanted(what, bytes));
        rows.extend(sizes.map(|bytes| Row::Owned { what, bytes }));
    }
    for live in [1_000, 10_000, 100_000, 1_000_000] {
        let what = Owned::Steady { live };
        rows.push(Row::Owned { what, bytes: 64 });
    }
    for what in [Local::Pair, Local::Replace, Local::Get, Local::Iterate] {
        rows.extend([1_000, 100_000].map(|live| Row::Local { what, live }));
    }
    let shared = [
        Shared::Get { same: false },
        Shared::Get { same: true },
        Shared::Pair,
    ];
    for what in shared {
        rows.extend([1, 2, 4, 8, 16].map(|threads| Row::Shared { what, threads }));
    }
    rows
}
