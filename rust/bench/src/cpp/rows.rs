//! The rows about containers, as a list.

use super::kernels::{self, Operation};
use super::measure;
use crate::alone::job::{Job, Sampled};
use crate::kernels::LAYOUTS;

/// The measurement of a row: a time or memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    Time(Operation),
    /// Resident bytes of an element, and how many of them stay.
    Memory,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// The container, as `kernels` names it.
    pub kind: &'static str,
    pub what: What,
    /// Elements.
    pub live: usize,
    /// Threads, each with a container of its own.
    pub threads: usize,
}

const MILLION: usize = 1_000_000;
/// Memory hardly varies.
const MEMORY_REPEATS: usize = 3;

impl Row {
    fn operation(self) -> String {
        match self.what {
            What::Time(Operation::Replace) if self.kind.ends_with("list") => "queue".to_owned(),
            What::Time(operation) => format!("{operation:?}").to_lowercase(),
            What::Memory => "memory".to_owned(),
        }
    }

    fn noun(self) -> &'static str {
        match self.kind {
            "list" => "std::list",
            "map" => "std::map",
            "unordered" => "std::unordered_map",
            "shared" => "shared_ptr of allocate_shared",
            "single" => "unique_ptr",
            "pmr-list" => "std::pmr::list of texts",
            _ => "std::pmr::map of texts",
        }
    }
}

impl crate::alone::Row for Row {
    const COMMAND: &'static str = "cpp";
    const TABLES: &'static [&'static str] = &["ns", "bytes", "erased", "trimmed"];

    fn all() -> Vec<Row> {
        all()
    }

    fn conditions() -> Vec<String> {
        let boost = kernels::boost().map_or_else(
            || "not found when this was built (libboost-dev): its columns are left out".to_owned(),
            |version| version.replace('_', "."),
        );
        vec![format!("Boost          {boost}")]
    }

    fn name(self) -> String {
        let (kind, operation, live) = (self.kind, self.operation(), self.live);
        match self.what {
            What::Memory => format!("{operation}-{kind}"),
            What::Time(Operation::Pair) => format!("{kind}-{operation}"),
            What::Time(_) if self.threads > 1 => format!("two-{kind}-{operation}/{live}"),
            What::Time(_) => format!("{kind}-{operation}/{live}"),
        }
    }

    fn describe(self) -> String {
        let (noun, live) = (self.noun(), self.live);
        let what = match self.what {
            What::Memory => {
                let each = "resident bytes for each";
                return format!(
                    "{noun}: {each} of {live} elements, after erasing all, and after a trim"
                );
            }
            What::Time(Operation::Pair) => "one element made, read, destroyed".to_owned(),
            What::Time(Operation::Find) => format!("random one of {live} elements found"),
            What::Time(Operation::Build) => format!("one of {live} elements made, read, destroyed"),
            What::Time(Operation::Replace) if self.operation() == "queue" => {
                format!("one element pushed, the oldest of {live} erased")
            }
            What::Time(Operation::Replace) => format!("random one of {live} elements replaced"),
        };
        match self.threads {
            1 => format!("{noun}: {what}"),
            _ => format!("{noun}: {what}, two threads with a container each; time on the clock"),
        }
    }

    fn names(self) -> Vec<&'static str> {
        let takes_part = |one: &kernels::Maker| {
            one.kind() == self.kind && (self.threads == 1 || one.is_shared())
        };
        let makers = kernels::all(0).filter(takes_part);
        makers.map(|one| one.who()).collect()
    }

    fn peer(self) -> &'static str {
        match self.kind {
            "single" => "std::make_unique",
            "pmr-list" | "pmr-map" => "new_delete_resource",
            _ => "std::allocator",
        }
    }

    fn metrics(self) -> &'static [&'static str] {
        match self.what {
            What::Time(_) => &["ns"],
            What::Memory => &["bytes", "erased", "trimmed"],
        }
    }

    /// Filling a large container takes longer than a sample.
    fn copies(self) -> usize {
        if self.live >= MILLION {
            1
        } else {
            LAYOUTS
        }
    }

    fn repeats(self, wanted: usize) -> usize {
        match self.what {
            What::Memory => wanted.min(MEMORY_REPEATS),
            What::Time(_) => wanted,
        }
    }

    fn run(self, job: &Job<Row>) -> Option<Vec<Sampled>> {
        measure::run(job)
    }
}

fn all() -> Vec<Row> {
    use Operation::{Build, Find, Pair, Replace};
    let row = |kind, what, live, threads| Row {
        kind,
        what,
        live,
        threads,
    };
    let mut rows = Vec::new();
    let mut timed = |kind, operation, lives: &[usize]| {
        let what = What::Time(operation);
        rows.extend(lives.iter().map(|&live| row(kind, what, live, 1)));
    };
    timed("list", Replace, &[1_000, 100_000]);
    timed("list", Build, &[1_000, 100_000]);
    for kind in ["map", "unordered"] {
        timed(kind, Replace, &[1_000, 100_000, MILLION]);
        timed(kind, Find, &[1_000, 100_000]);
    }
    timed("shared", Pair, &[1]);
    timed("shared", Replace, &[1_000, 100_000, MILLION]);
    timed("single", Pair, &[1]);
    timed("single", Replace, &[1_000, 100_000]);
    timed("single", Build, &[1_000, 10_000]);
    for kind in ["pmr-list", "pmr-map"] {
        timed(kind, Replace, &[1_000, 100_000]);
    }
    for kind in ["list", "map", "unordered", "shared", "pmr-map"] {
        rows.push(row(kind, What::Time(Replace), 1_000, 2));
    }
    for kind in ["list", "map", "unordered", "shared", "pmr-map"] {
        rows.push(row(kind, What::Memory, MILLION, 1));
    }
    rows
}
