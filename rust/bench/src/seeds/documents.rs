//! The documents of the five earlier systems: the rows of their tables, and the figures that they
//! claim.

/// A figure of a row, with what the document claims for its system and for the C library.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// By this name the measuring process tells it.
    pub metric: &'static str,
    pub system: Option<f64>,
    pub peer: Option<f64>,
}

/// What is measured in one process.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: &'static str,
    pub says: &'static str,
    pub unit: &'static str,
    /// The C library by this function, or by `Box`.
    pub peer: &'static str,
    pub threads: usize,
    pub figures: &'static [Figure],
}

/// One system's document.
#[derive(Clone, Copy, Debug)]
pub struct Document {
    /// Of the system, and what its rows' names begin with.
    pub name: &'static str,
    /// What is compared with: the version that Slabyard's headers are for.
    pub version: &'static str,
    /// Where the claimed figures were taken.
    pub machine: &'static str,
    /// Where the system is a crate: the part about the Rust crate measures both.
    pub in_rust: Option<InRust>,
    pub rows: &'static [Row],
}

/// By which names a crate and Slabyard are known in the part about the Rust crate.
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

const fn claim(metric: &'static str, system: f64, peer: f64) -> Figure {
    Figure {
        metric,
        system: Some(system),
        peer: Some(peer),
    }
}

/// Where the document says nothing of the C library.
const fn lone(metric: &'static str, system: f64) -> Figure {
    Figure {
        metric,
        system: Some(system),
        peer: None,
    }
}

/// Where the document has no figure, though its program measures one.
const fn unclaimed(metric: &'static str) -> Figure {
    Figure {
        metric,
        system: None,
        peer: None,
    }
}

const fn row(name: &'static str, says: &'static str, figures: &'static [Figure]) -> Row {
    Row {
        name,
        says,
        unit: "ns",
        peer: "malloc",
        threads: 1,
        figures,
    }
}

const fn threads(
    name: &'static str,
    says: &'static str,
    threads: usize,
    figures: &'static [Figure],
) -> Row {
    Row {
        threads,
        ..row(name, says, figures)
    }
}

/// Of nexus-slab; the names are those of the rows of `rust`.
const fn cycles(name: &'static str, says: &'static str, figures: &'static [Figure]) -> Row {
    Row {
        unit: "cycles",
        peer: "Box",
        ..row(name, says, figures)
    }
}

const fn memory(name: &'static str, figures: &'static [Figure]) -> Row {
    Row {
        unit: "MiB",
        ..row(
            name,
            "1,000,000 objects of so many bytes, with the array of their addresses",
            figures,
        )
    }
}

const CHURN: &str = "a value of so many bytes made, touched, dropped";
const FREE: &str = "a value of so many bytes dropped, newest first";
const TRAFFIC: &str = "as churn, ten at a time, while the program's boxes come and go";

const NEXUS_SLAB: Document = Document {
    name: "nexus-slab",
    version: "0.11.2 from crates.io",
    machine: "not named: Linux on x86-64, glibc",
    in_rust: Some(InRust {
        original: "nexus 0.11 BoxSlot",
        slabyard: "BoxSlot bounded",
    }),
    rows: &[
        cycles(
            "churn/32",
            CHURN,
            &[claim("p50", 5.0, 14.0), claim("p99.9", 8.0, 49.0)],
        ),
        cycles(
            "churn/64",
            CHURN,
            &[claim("p50", 7.0, 16.0), claim("p99.9", 16.0, 63.0)],
        ),
        cycles(
            "churn/128",
            CHURN,
            &[claim("p50", 11.0, 21.0), claim("p99.9", 35.0, 75.0)],
        ),
        cycles(
            "churn/4096",
            CHURN,
            &[claim("p50", 157.0, 175.0), claim("p99.9", 264.0, 329.0)],
        ),
        cycles("free-lifo/32", FREE, &[claim("p50", 2.0, 12.0)]),
        cycles("free-lifo/64", FREE, &[claim("p50", 2.0, 12.0)]),
        cycles("free-lifo/1024", FREE, &[claim("p50", 4.0, 24.0)]),
        cycles(
            "contended/64",
            TRAFFIC,
            &[claim("p50", 2.0, 18.0), claim("p99.9", 16.0, 106.0)],
        ),
        cycles(
            "contended/4096",
            TRAFFIC,
            &[claim("p50", 52.0, 112.0), claim("p99.9", 367.0, 809.0)],
        ),
    ],
};

const MADE: &str = "a value of so many bytes made, one of 2,000";

/// The rows have the figures of its first two tables, and where these have none of the older ones.
const NEXUS_SLAB_2: Document = Document {
    name: "nexus-slab-2",
    version: "2.4.0 from crates.io, bounded",
    machine: "Intel 14th generation, Linux, glibc",
    in_rust: Some(InRust {
        original: "nexus bounded",
        slabyard: "our nexus bounded",
    }),
    rows: &[
        cycles("churn/32", CHURN, &[claim("p50", 1.0, 15.0)]),
        cycles("churn/64", CHURN, &[claim("p50", 2.0, 17.0)]),
        cycles("churn/128", CHURN, &[claim("p50", 4.0, 23.0)]),
        cycles("churn/512", CHURN, &[claim("p50", 14.0, 44.0)]),
        cycles("churn/4096", CHURN, &[claim("p50", 78.0, 249.0)]),
        cycles(
            "alloc/32",
            MADE,
            &[claim("p50", 6.0, 15.0), claim("p99.9", 12.0, 53.0)],
        ),
        cycles(
            "alloc/64",
            MADE,
            &[claim("p50", 8.0, 17.0), claim("p99.9", 16.0, 56.0)],
        ),
        cycles(
            "alloc/128",
            MADE,
            &[claim("p50", 12.0, 35.0), claim("p99.9", 32.0, 96.0)],
        ),
        cycles(
            "alloc/512",
            MADE,
            &[claim("p50", 40.0, 54.0), claim("p99.9", 100.0, 129.0)],
        ),
        cycles("free-lifo/32", FREE, &[claim("p50", 0.0, 24.0)]),
        cycles("free-lifo/64", FREE, &[claim("p50", 0.0, 24.0)]),
        cycles("free-lifo/128", FREE, &[claim("p50", 0.0, 23.0)]),
        cycles("free-lifo/512", FREE, &[claim("p50", 0.0, 23.0)]),
        cycles("free-lifo/1024", FREE, &[claim("p50", 1.0, 24.0)]),
        cycles(
            "contended/64",
            TRAFFIC,
            &[claim("p50", 4.0, 14.0), claim("p99.9", 8.0, 58.0)],
        ),
        cycles(
            "contended/4096",
            TRAFFIC,
            &[claim("p50", 52.0, 123.0), claim("p99.9", 139.0, 251.0)],
        ),
    ],
};

/// Its document has no figures of these.
const NEXUS_SLAB_2_UNBOUNDED: Document = Document {
    name: "nexus-slab-2-unbounded",
    version: "2.4.0 from crates.io, unbounded",
    machine: "none",
    in_rust: Some(InRust {
        original: "nexus unbounded",
        slabyard: "our nexus unbounded",
    }),
    rows: &[
        cycles("churn/32", CHURN, &[unclaimed("p50")]),
        cycles("churn/64", CHURN, &[unclaimed("p50")]),
        cycles("alloc/64", MADE, &[unclaimed("p50")]),
        cycles("free-lifo/64", FREE, &[unclaimed("p50")]),
        cycles("contended/64", TRAFFIC, &[unclaimed("p50")]),
        cycles(
            "replace/64/100000",
            "a random one of 100,000 values of 64 B dropped, another made",
            &[unclaimed("p50")],
        ),
    ],
};

const ROUNDS: &str = "an operation, where each thread allocates 64 objects of 64 B and frees them";

const MAGAZINE_SLAB: Document = Document {
    name: "magazine-slab",
    version: "1.0 (9815b82)",
    machine: "ARM64, Linux 6.12 in Docker, GCC 12, glibc 2.36",
    in_rust: None,
    rows: &[
        row(
            "steady",
            "one of 1,000 objects of 64 B freed, another allocated",
            &[claim("ns", 3.4, 5.5)],
        ),
        row(
            "bulk",
            "500,000 objects of 64 B allocated in new memory and written to, then freed",
            &[claim("alloc", 62.0, 5.0), claim("free", 4.0, 6.0)],
        ),
        row(
            "bulk-no-magazines",
            "the same with SLAB_NO_MAGAZINES",
            &[claim("alloc", 46.0, 5.0), claim("free", 1626.0, 6.0)],
        ),
        threads("threads-1", ROUNDS, 1, &[claim("ns", 3.0, 5.0)]),
        threads("threads-2", ROUNDS, 2, &[claim("ns", 2.0, 3.0)]),
        threads("threads-4", ROUNDS, 4, &[claim("ns", 1.0, 1.0)]),
        threads("threads-8", ROUNDS, 8, &[claim("ns", 1.0, 1.0)]),
    ],
};

const USERLAND_SLAB: Document = Document {
    name: "userland-slab",
    version: "c05fbbc",
    machine: "Arch Linux on x86-64, GCC 6.2.1",
    in_rust: None,
    rows: &[
        memory("memory-8", &[claim("MiB", 15.3, 38.0)]),
        memory("memory-16", &[claim("MiB", 23.0, 38.0)]),
        memory("memory-32", &[claim("MiB", 38.7, 53.4)]),
        memory("memory-48", &[claim("MiB", 54.0, 68.7)]),
        memory("memory-64", &[claim("MiB", 70.2, 83.9)]),
        memory("memory-128", &[claim("MiB", 135.2, 145.0)]),
        memory("memory-256", &[claim("MiB", 271.0, 266.9)]),
    ],
};

const BATCH: &str = "so many slots of 32 B allocated, then freed in that order";
const PAIRS: &str = "xSlabMt: a slot of 32 B allocated and freed, as each thread sees it";

const XSLAB: Document = Document {
    name: "xslab",
    version: "5ed9bc0 of mivinci/x",
    machine: "Apple Mac15,7 (12 cores), macOS, its malloc",
    in_rust: None,
    rows: &[
        row(
            "pair",
            "a slot of 32 B allocated and freed",
            &[claim("ns", 2.58, 18.9)],
        ),
        Row {
            peer: "calloc",
            ..row(
                "pair-calloc",
                "the same beside calloc",
                &[claim("ns", 2.58, 16.9)],
            )
        },
        row("batch-16", BATCH, &[claim("ns", 37.9, 287.0)]),
        row("batch-256", BATCH, &[claim("ns", 590.0, 4409.0)]),
        row("batch-4096", BATCH, &[claim("ns", 15_236.0, 73_612.0)]),
        threads("threads-1", PAIRS, 1, &[claim("ns", 9.79, 18.8)]),
        threads("threads-2", PAIRS, 2, &[claim("ns", 80.0, 91.3)]),
        threads("threads-4", PAIRS, 4, &[claim("ns", 540.0, 476.0)]),
        threads("threads-8", PAIRS, 8, &[claim("ns", 1100.0, 46.4)]),
    ],
};

const ZNS_SLAB: Document = Document {
    name: "zns-slab",
    version: "56725b5 of temporal-slab",
    machine: "Intel Core Ultra 7 165H, Linux, GCC 13.3 -O3",
    in_rust: None,
    rows: &[
        row(
            "latency",
            "the first 1,000,000 objects of 128 B, allocated and written to, then freed, each timed \
             alone",
            &[
                lone("alloc average", 70.0),
                unclaimed("alloc p50"),
                unclaimed("alloc p99"),
                unclaimed("alloc p99.9"),
                lone("free average", 12.0),
                unclaimed("free p50"),
                unclaimed("free p99"),
                unclaimed("free p99.9"),
            ],
        ),
        Row {
            unit: "MiB",
            ..row(
                "churn",
                "100,000 objects of 128 B before and after 1,000 cycles that replace 10,000 of them",
                &[
                    lone("before", 15.30),
                    lone("after", 15.64),
                    lone("after / before", 1.022),
                ],
            )
        },
    ],
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
    use crate::alone::Row as _;

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
                let found = crate::rust::Row::find(row.name).unwrap_or_else(|| panic!("{row:?}"));
                let measured = found.names();
                assert!(measured.contains(&names.original) && measured.contains(&names.slabyard));
            }
        }
    }
}
