//! The documents of the five earlier systems: the rows of their tables, and the figures that they
//! claim.

/// A figure of a row, with what the document claims for its system and for the C library.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// The name by which the measuring process reports it.
    pub metric: &'static str,
    pub system: Option<f64>,
    pub peer: Option<f64>,
}

/// A row of a document: the measurement of one process.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: &'static str,
    pub says: &'static str,
    pub unit: &'static str,
    /// The function of the C library that the row is compared with, or `Box`.
    pub peer: &'static str,
    pub threads: usize,
    pub figures: &'static [Figure],
}

/// One system's document.
#[derive(Clone, Copy, Debug)]
pub struct Document {
    /// The system's name. The full names of rows begin with it.
    pub name: &'static str,
    /// The version that is measured: Slabyard's headers repeat its API.
    pub version: &'static str,
    /// The machine on which the claimed figures were taken.
    pub machine: &'static str,
    /// If the system is a crate: its names in the part about the Rust crate, which measures it.
    pub in_rust: Option<InRust>,
    pub rows: &'static [Row],
}

/// The names of a crate and of Slabyard in the part about the Rust crate.
#[derive(Clone, Copy, Debug)]
pub struct InRust {
    pub original: &'static str,
    pub slabyard: &'static str,
}

impl Document {
    /// The system is a crate, and measured in Rust.
    pub fn is_rust(&self) -> bool {
        self.in_rust.is_some()
    }

    pub fn full_name(&self, row: &Row) -> String {
        format!("{}/{}", self.name, row.name)
    }
}

/// A row of a C program: nanoseconds of one thread beside `malloc`.
const ROW: Row = Row {
    name: "",
    says: "",
    unit: "ns",
    peer: "malloc",
    threads: 1,
    figures: &[],
};

/// A row of nexus-slab. The names are those of the rows of `rust`.
const CYCLES: Row = Row {
    unit: "cycles",
    peer: "Box",
    ..ROW
};

const MIB: Row = Row { unit: "MiB", ..ROW };

/// A claimed figure; `-` where the document has none.
macro_rules! claim {
    (-) => {
        None
    };
    ($value:literal) => {
        Some($value)
    };
}

/// Rows as a table: the row that a line is based on, with other values in braces; the name and what
/// is done; the metrics, each with the claims for the system and for the C library.
macro_rules! rows {
    ($($base:ident $({ $($field:ident: $value:expr),+ })? $name:literal $says:expr =>
        $($metric:literal $system:tt $peer:tt),+;)+) => {
        &[$(Row {
            name: $name,
            says: $says,
            figures: &[$(Figure {
                metric: $metric,
                system: claim!($system),
                peer: claim!($peer),
            }),+],
            $($($field: $value,)+)?
            ..$base
        }),+]
    };
}

const CHURN: &str = "a value of so many bytes made, touched, dropped";
const FREE: &str = "a value of so many bytes dropped, newest first";
const TRAFFIC: &str = "as churn, ten at a time, while the program's boxes come and go";
const MADE: &str = "a value of so many bytes made, one of 2,000";
const REPLACE: &str = "a random one of 100,000 values of 64 B dropped, another made";

const NEXUS_SLAB: Document = Document {
    name: "nexus-slab",
    version: "0.11.2 from crates.io",
    machine: "not named: Linux on x86-64, glibc",
    in_rust: Some(InRust {
        original: "nexus 0.11 BoxSlot",
        slabyard: "BoxSlot bounded",
    }),
    rows: rows! {
        CYCLES "churn/32" CHURN => "p50" 5.0 14.0, "p99.9" 8.0 49.0;
        CYCLES "churn/64" CHURN => "p50" 7.0 16.0, "p99.9" 16.0 63.0;
        CYCLES "churn/128" CHURN => "p50" 11.0 21.0, "p99.9" 35.0 75.0;
        CYCLES "churn/4096" CHURN => "p50" 157.0 175.0, "p99.9" 264.0 329.0;
        CYCLES "free-lifo/32" FREE => "p50" 2.0 12.0;
        CYCLES "free-lifo/64" FREE => "p50" 2.0 12.0;
        CYCLES "free-lifo/1024" FREE => "p50" 4.0 24.0;
        CYCLES "contended/64" TRAFFIC => "p50" 2.0 18.0, "p99.9" 16.0 106.0;
        CYCLES "contended/4096" TRAFFIC => "p50" 52.0 112.0, "p99.9" 367.0 809.0;
    },
};

/// The rows have the figures of the document's first two tables, or else those of the older tables.
const NEXUS_SLAB_2: Document = Document {
    name: "nexus-slab-2",
    version: "2.4.0 from crates.io, bounded",
    machine: "Intel 14th generation, Linux, glibc",
    in_rust: Some(InRust {
        original: "nexus bounded",
        slabyard: "our nexus bounded",
    }),
    rows: rows! {
        CYCLES "churn/32" CHURN => "p50" 1.0 15.0;
        CYCLES "churn/64" CHURN => "p50" 2.0 17.0;
        CYCLES "churn/128" CHURN => "p50" 4.0 23.0;
        CYCLES "churn/512" CHURN => "p50" 14.0 44.0;
        CYCLES "churn/4096" CHURN => "p50" 78.0 249.0;
        CYCLES "alloc/32" MADE => "p50" 6.0 15.0, "p99.9" 12.0 53.0;
        CYCLES "alloc/64" MADE => "p50" 8.0 17.0, "p99.9" 16.0 56.0;
        CYCLES "alloc/128" MADE => "p50" 12.0 35.0, "p99.9" 32.0 96.0;
        CYCLES "alloc/512" MADE => "p50" 40.0 54.0, "p99.9" 100.0 129.0;
        CYCLES "free-lifo/32" FREE => "p50" 0.0 24.0;
        CYCLES "free-lifo/64" FREE => "p50" 0.0 24.0;
        CYCLES "free-lifo/128" FREE => "p50" 0.0 23.0;
        CYCLES "free-lifo/512" FREE => "p50" 0.0 23.0;
        CYCLES "free-lifo/1024" FREE => "p50" 1.0 24.0;
        CYCLES "contended/64" TRAFFIC => "p50" 4.0 14.0, "p99.9" 8.0 58.0;
        CYCLES "contended/4096" TRAFFIC => "p50" 52.0 123.0, "p99.9" 139.0 251.0;
    },
};

/// The document has no figures for the unbounded slab.
const NEXUS_SLAB_2_UNBOUNDED: Document = Document {
    name: "nexus-slab-2-unbounded",
    version: "2.4.0 from crates.io, unbounded",
    machine: "none",
    in_rust: Some(InRust {
        original: "nexus unbounded",
        slabyard: "our nexus unbounded",
    }),
    rows: rows! {
        CYCLES "churn/32" CHURN => "p50" - -;
        CYCLES "churn/64" CHURN => "p50" - -;
        CYCLES "alloc/64" MADE => "p50" - -;
        CYCLES "free-lifo/64" FREE => "p50" - -;
        CYCLES "contended/64" TRAFFIC => "p50" - -;
        CYCLES "replace/64/100000" REPLACE => "p50" - -;
    },
};

const STEADY: &str = "one of 1,000 objects of 64 B freed, another allocated";
const BULK: &str = "500,000 objects of 64 B allocated in new memory and written to, then freed";
const BULK_NO_MAGAZINES: &str = "the same with SLAB_NO_MAGAZINES";
const ROUNDS: &str = "an operation, where each thread allocates 64 objects of 64 B and frees them";

const MAGAZINE_SLAB: Document = Document {
    name: "magazine-slab",
    version: "1.0 (9815b82)",
    machine: "ARM64, Linux 6.12 in Docker, GCC 12, glibc 2.36",
    in_rust: None,
    rows: rows! {
        ROW "steady" STEADY => "ns" 3.4 5.5;
        ROW "bulk" BULK => "alloc" 62.0 5.0, "free" 4.0 6.0;
        ROW "bulk-no-magazines" BULK_NO_MAGAZINES => "alloc" 46.0 5.0, "free" 1626.0 6.0;
        ROW { threads: 1 } "threads-1" ROUNDS => "ns" 3.0 5.0;
        ROW { threads: 2 } "threads-2" ROUNDS => "ns" 2.0 3.0;
        ROW { threads: 4 } "threads-4" ROUNDS => "ns" 1.0 1.0;
        ROW { threads: 8 } "threads-8" ROUNDS => "ns" 1.0 1.0;
    },
};

const MEMORY: &str = "1,000,000 objects of so many bytes, with the array of their addresses";

/// The document has no sizes that are multiples of 4 or 8, but not of 16. They are added.
const USERLAND_SLAB: Document = Document {
    name: "userland-slab",
    version: "c05fbbc",
    machine: "Arch Linux on x86-64, GCC 6.2.1",
    in_rust: None,
    rows: rows! {
        MIB "memory-8" MEMORY => "MiB" 15.3 38.0;
        MIB "memory-12" MEMORY => "MiB" - -;
        MIB "memory-16" MEMORY => "MiB" 23.0 38.0;
        MIB "memory-20" MEMORY => "MiB" - -;
        MIB "memory-24" MEMORY => "MiB" - -;
        MIB "memory-32" MEMORY => "MiB" 38.7 53.4;
        MIB "memory-40" MEMORY => "MiB" - -;
        MIB "memory-48" MEMORY => "MiB" 54.0 68.7;
        MIB "memory-56" MEMORY => "MiB" - -;
        MIB "memory-64" MEMORY => "MiB" 70.2 83.9;
        MIB "memory-72" MEMORY => "MiB" - -;
        MIB "memory-104" MEMORY => "MiB" - -;
        MIB "memory-128" MEMORY => "MiB" 135.2 145.0;
        MIB "memory-256" MEMORY => "MiB" 271.0 266.9;
    },
};

const PAIR: &str = "a slot of 32 B allocated and freed";
const PAIR_CALLOC: &str = "the same beside calloc";
const BATCH: &str = "so many slots of 32 B allocated, then freed in that order";
const PAIRS: &str = "xSlabMt: a slot of 32 B allocated and freed, as each thread sees it";

const XSLAB: Document = Document {
    name: "xslab",
    version: "5ed9bc0 of mivinci/x",
    machine: "Apple Mac15,7 (12 cores), macOS, its malloc",
    in_rust: None,
    rows: rows! {
        ROW "pair" PAIR => "ns" 2.58 18.9;
        ROW { peer: "calloc" } "pair-calloc" PAIR_CALLOC => "ns" 2.58 16.9;
        ROW "batch-16" BATCH => "ns" 37.9 287.0;
        ROW "batch-256" BATCH => "ns" 590.0 4409.0;
        ROW "batch-4096" BATCH => "ns" 15_236.0 73_612.0;
        ROW { threads: 1 } "threads-1" PAIRS => "ns" 9.79 18.8;
        ROW { threads: 2 } "threads-2" PAIRS => "ns" 80.0 91.3;
        ROW { threads: 4 } "threads-4" PAIRS => "ns" 540.0 476.0;
        ROW { threads: 8 } "threads-8" PAIRS => "ns" 1100.0 46.4;
    },
};

const LATENCY: &str =
    "the first 1,000,000 objects of 128 B, allocated and written to, then freed, \
                       each timed alone";
const CYCLING: &str = "100,000 objects of 128 B before and after 1,000 cycles that replace 10,000 \
                       of them";

const ZNS_SLAB: Document = Document {
    name: "zns-slab",
    version: "56725b5 of temporal-slab",
    machine: "Intel Core Ultra 7 165H, Linux, GCC 13.3 -O3",
    in_rust: None,
    rows: rows! {
        ROW "latency" LATENCY =>
            "alloc average" 70.0 -, "alloc p50" - -, "alloc p99" - -, "alloc p99.9" - -,
            "free average" 12.0 -, "free p50" - -, "free p99" - -, "free p99.9" - -;
        MIB "churn" CYCLING => "before" 15.30 -, "after" 15.64 -, "after / before" 1.022 -;
    },
};

/// In the order of the tables.
pub const ALL: [Document; 7] = [
    NEXUS_SLAB,
    NEXUS_SLAB_2,
    NEXUS_SLAB_2_UNBOUNDED,
    MAGAZINE_SLAB,
    USERLAND_SLAB,
    XSLAB,
    ZNS_SLAB,
];

#[cfg(test)]
mod tests {
    use super::*;
    use slabyard_bench::alone::Row as _;

    #[test]
    fn names_are_unique() {
        let mut names = Vec::new();
        for document in &ALL {
            names.extend(document.rows.iter().map(|row| document.full_name(row)));
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn the_rust_part_has_the_rows_of_nexus_slab() {
        for document in &ALL {
            let Some(names) = document.in_rust else {
                continue;
            };
            for row in document.rows {
                let found =
                    slabyard_bench::rust::Row::find(row.name).unwrap_or_else(|| panic!("{row:?}"));
                let measured = found.names();
                assert!(measured.contains(&names.original) && measured.contains(&names.slabyard));
            }
        }
    }
}
