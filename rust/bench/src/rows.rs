//! The rows of the table: what the benchmark measures.

use crate::allocators::{Allocator, Kind};

/// The order in which a batch is freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    Lifo,
    Fifo,
    Random,
}

/// Objects by their names: handles, keys, and plain pointers beside them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Named {
    Pair,
    /// Look-ups of this number of live objects.
    Get {
        live: usize,
    },
    Pin,
    Steady,
    Churn {
        threads: usize,
    },
}

/// The state of the heap while single operations are timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heap {
    /// Many live objects; random objects of them are replaced.
    Warm,
    /// New: the first allocations of a process, and their frees.
    Cold,
    /// The same, each with its first write.
    ColdWritten,
}

/// Latencies of single operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tail {
    pub heap: Heap,
    /// Another thread allocates and frees meanwhile, as hard as it can.
    pub noisy: bool,
}

/// How a vector grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    Double,
    Half,
}

/// Resident memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// Of many live objects, relative to their bytes.
    Payload,
    /// After freeing all and asking to give back.
    FreeAll,
    /// After freeing a random 99 % and asking to give back.
    Random,
    /// The same with mixed sizes.
    Mixed,
    /// While one thread allocates and another frees.
    Remote,
    /// Of many threads that have freed everything, while they wait and after they ended.
    Threads,
    /// After many cycles of growing and shrinking. Random objects are freed, or the oldest.
    Cycles { oldest: bool },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workload {
    Pair,
    Batch {
        order: Order,
        objects: usize,
    },
    Steady,
    Cold,
    /// The same with ten times as many objects, and their resident memory.
    ColdLarge,
    Churn {
        threads: usize,
    },
    Ring {
        read: bool,
    },
    Queue,
    Exchange,
    Named(Named),
    Tail(Tail),
    Vectors(Growth),
    Memory(Memory),
}

/// One row: a workload with objects of one size. Mixed sizes are size 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    pub workload: Workload,
    pub size: usize,
}

/// Far more threads than a machine has processors.
pub const MANY_THREADS: usize = 1000;

/// The sizes that inline peers are compiled for, and that `--sizes` chooses from.
pub const SIZES: [usize; 6] = [8, 16, 64, 256, 1024, 4096];

impl Row {
    /// The name for `--rows`: `workload/size/detail`.
    pub fn name(&self) -> String {
        let size = self.size;
        match self.workload {
            Workload::Pair => format!("pair/{size}"),
            Workload::Batch { order, objects } => {
                let order = format!("{order:?}").to_lowercase();
                format!("batch-{order}/{size}/{objects}")
            }
            Workload::Steady => format!("steady/{size}"),
            Workload::Cold => format!("cold/{size}"),
            Workload::ColdLarge => format!("cold-large/{size}"),
            Workload::Churn { threads } => format!("churn/{size}/{threads}"),
            Workload::Ring { read: false } => format!("ring/{size}"),
            Workload::Ring { read: true } => format!("ring-read/{size}"),
            Workload::Queue => format!("queue/{size}"),
            Workload::Exchange => format!("exchange/{size}"),
            Workload::Named(Named::Pair) => format!("handle-pair/{size}"),
            Workload::Named(Named::Get { live }) => format!("handle-get/{size}/{live}"),
            Workload::Named(Named::Pin) => format!("handle-pin/{size}"),
            Workload::Named(Named::Steady) => format!("handle-steady/{size}"),
            Workload::Named(Named::Churn { threads }) => format!("handle-churn/{size}/{threads}"),
            Workload::Tail(Tail { heap, noisy }) => {
                let heap = match heap {
                    Heap::Warm => "",
                    Heap::Cold => "-grow",
                    Heap::ColdWritten => "-grow-write",
                };
                format!("tail{heap}{}/{size}", if noisy { "-noisy" } else { "" })
            }
            Workload::Vectors(Growth::Double) => "vectors-double".to_owned(),
            Workload::Vectors(Growth::Half) => "vectors-half".to_owned(),
            Workload::Memory(Memory::Payload) => format!("memory-payload/{size}"),
            Workload::Memory(Memory::FreeAll) => format!("memory-free-all/{size}"),
            Workload::Memory(Memory::Random) => format!("memory-random/{size}"),
            Workload::Memory(Memory::Mixed) => "memory-mixed".to_owned(),
            Workload::Memory(Memory::Remote) => format!("memory-remote/{size}"),
            Workload::Memory(Memory::Threads) => format!("memory-threads/{size}"),
            Workload::Memory(Memory::Cycles { oldest: false }) => "memory-cycles".to_owned(),
            Workload::Memory(Memory::Cycles { oldest: true }) => "memory-cycles-fifo".to_owned(),
        }
    }

    /// The sentence over its block.
    pub fn describe(&self) -> String {
        let size = self.size;
        match self.workload {
            Workload::Pair => format!("alloc, touch, free of {size} B; CPU ns per pair"),
            Workload::Batch { order, objects } => {
                let order = format!("{order:?}").to_lowercase();
                format!("allocate {objects} of {size} B, then free ({order}); CPU ns per operation")
            }
            Workload::Steady => {
                format!("random one of 100,000 live {size} B objects replaced; CPU ns each")
            }
            Workload::Cold => {
                format!("first allocations of a process, {size} B, written; CPU ns each")
            }
            Workload::ColdLarge => format!(
                "first 5,000,000 of a process, {size} B, written; CPU ns each, resident / payload"
            ),
            Workload::Churn { threads } => {
                format!(
                    "64 allocated, 64 freed, {size} B, {threads} threads; CPU ns per alloc or free"
                )
            }
            Workload::Ring { read } => format!(
                "one thread allocates, another {}frees, ring of 1,024, {size} B; ns per object",
                if read { "reads and " } else { "" }
            ),
            Workload::Queue => {
                format!("batches of 120 from one thread to another, {size} B; ns per object")
            }
            Workload::Exchange => {
                format!("2 threads, 2,048 shared slots, {size} B; CPU ns per alloc or free")
            }
            Workload::Named(named) => describe_named(named, size),
            Workload::Tail(tail) => describe_tail(tail, size),
            Workload::Vectors(growth) => format!(
                "4 vectors grown in turn from 4 KiB to 64 MiB, {}, and written; CPU us, MiB",
                match growth {
                    Growth::Double => "to twice as much",
                    Growth::Half => "by a half",
                }
            ),
            Workload::Memory(Memory::Payload) => format!("resident / payload, {size} B"),
            Workload::Memory(Memory::FreeAll) => {
                format!("resident after freeing all of {size} B and purge, % of peak")
            }
            Workload::Memory(Memory::Random) => {
                format!("resident after freeing a random 99 % of {size} B and purge, % of peak")
            }
            Workload::Memory(Memory::Mixed) => {
                "the same with sizes of 16..1024 B, % of peak".to_owned()
            }
            Workload::Memory(Memory::Remote) => {
                format!("one thread allocates, another frees, at most 1,024 live, {size} B; MiB")
            }
            Workload::Memory(Memory::Threads) => {
                format!("1,000 threads that have freed all objects of {size} B; resident, MiB")
            }
            Workload::Memory(Memory::Cycles { oldest }) => {
                format!(
                "cycles of 28 MiB and 2.8 MiB live, frees {}, sizes of 32..4096 B; resident, MiB; CPU ns and \
                 page faults of a thousand",
                if oldest { "the oldest objects" } else { "random objects" }
            )
            }
        }
    }

    /// Whether cache lines go between processors. Then the round trip is measured too.
    pub fn crosses(&self) -> bool {
        matches!(
            self.workload,
            Workload::Ring { .. } | Workload::Queue | Workload::Exchange
        )
    }

    /// Whether the row is in the geometric means.
    pub fn is_time(&self) -> bool {
        !matches!(
            self.workload,
            Workload::Tail(_) | Workload::Vectors(_) | Workload::Memory(_)
        )
    }

    /// Whether the row has a purge, whose effect may be measured again later.
    pub fn waits(&self) -> bool {
        use Memory::{FreeAll, Mixed, Random};
        matches!(self.workload, Workload::Memory(FreeAll | Random | Mixed))
    }

    /// Whether a process measures only one layout: the workload needs a fresh process, or takes
    /// long.
    pub fn one_layout(&self) -> bool {
        matches!(
            self.workload,
            Workload::Cold
                | Workload::ColdLarge
                | Workload::Tail(_)
                | Workload::Vectors(_)
                | Workload::Memory(_)
        )
    }

    /// Whether a quick run leaves the row out, unless it is asked for.
    pub fn is_long(&self) -> bool {
        self.workload == Workload::ColdLarge
    }

    /// The number of repeats. Memory hardly varies, so its rows have fewer.
    pub fn repeats(&self, wanted: usize) -> usize {
        match self.workload {
            Workload::Memory(Memory::Cycles { .. }) => 1,
            Workload::Memory(_) | Workload::Vectors(_) => wanted.min(3),
            _ => wanted,
        }
    }

    /// Whether the row is about objects by their names. Such rows have other allocators than the
    /// rest.
    pub fn is_named(&self) -> bool {
        matches!(self.workload, Workload::Named(_))
    }

    /// Whether an allocator can do the workload at all.
    pub fn suits(&self, allocator: &Allocator) -> bool {
        let possible = match self.workload {
            Workload::Churn { threads: 1 } => true,
            Workload::Churn { .. } => allocator.shared(),
            Workload::Ring { .. } | Workload::Queue | Workload::Exchange => allocator.shared(),
            Workload::Cold => allocator.grows(),
            // Pools of one thread take no huge pages.
            Workload::ColdLarge => allocator.grows() && allocator.shared(),
            Workload::Tail(Tail { heap, noisy }) => {
                (allocator.shared() || !noisy) && (allocator.grows() || heap == Heap::Warm)
            }
            Workload::Vectors(_) => allocator.realloc().is_some(),
            Workload::Memory(Memory::Mixed | Memory::Cycles { .. }) => {
                allocator.any_size().is_some()
            }
            Workload::Memory(Memory::Remote | Memory::Threads) => allocator.shared(),
            _ => true,
        };
        let compiled = self.size == 0 || allocator.kernels(0, self.size).is_some();
        possible && compiled && self.compares(allocator)
    }

    /// Whether the row is meant for an allocator: some allocators are only for some rows.
    fn compares(&self, allocator: &Allocator) -> bool {
        if let Workload::Named(named) = self.workload {
            return compares_named(named, allocator.name);
        }
        match allocator.name {
            "handles" => return matches!(self.workload, Workload::Tail(_)),
            "slotmap" | "sharded-slab" | "cas" => return false,
            _ => (),
        }
        match allocator.kind {
            // This allocator has one object for all allocations: two threads must not write to it.
            Kind::Floor => matches!(
                self.workload,
                Workload::Pair
                    | Workload::Batch { .. }
                    | Workload::Steady
                    | Workload::Churn { threads: 1 }
                    | Workload::Ring { read: false }
                    | Workload::Queue
            ),
            Kind::Limit => !matches!(self.workload, Workload::Memory(_)),
            _ => true,
        }
    }
}

fn describe_named(named: Named, size: usize) -> String {
    match named {
        Named::Pair => format!("alloc, touch, free of {size} B by name; CPU ns per pair"),
        Named::Get { live } => {
            format!("look-ups of {live} live objects of {size} B in random order; CPU ns each")
        }
        Named::Pin => format!("pin and unpin, 1,000 live objects of {size} B; CPU ns per pair"),
        Named::Steady => {
            format!("random one of 100,000 live {size} B objects replaced; CPU ns each")
        }
        Named::Churn { threads } => format!(
            "64 allocated, 64 freed by name, {size} B, {threads} threads; CPU ns per alloc or free"
        ),
    }
}

fn describe_tail(tail: Tail, size: usize) -> String {
    let heap = match tail.heap {
        Heap::Warm => "100,000 live",
        Heap::Cold => "a new heap",
        Heap::ColdWritten => "a new heap, with the first write",
    };
    let noise = if tail.noisy {
        ", beside a busy thread"
    } else {
        ""
    };
    format!("latency, {size} B, {heap}{noise}; ns above the timer")
}

/// The allocators whose objects have names. Beside them: pointers, and the costs that no name
/// avoids.
fn compares_named(named: Named, allocator: &str) -> bool {
    match allocator {
        "handles" | "sharded-slab" => true,
        "slotmap" => match named {
            Named::Pin => false,
            Named::Churn { threads } => threads == 1,
            _ => true,
        },
        "cache" => named != Named::Pin,
        "cas" => named == Named::Pair,
        _ => false,
    }
}

fn rows_of(sizes: &[usize], wanted: impl Fn(usize) -> bool, workload: Workload) -> Vec<Row> {
    let sizes = sizes.iter().filter(|size| wanted(**size));
    sizes.map(|&size| Row { workload, size }).collect()
}

fn batches(sizes: &[usize]) -> Vec<Row> {
    let mut rows = Vec::new();
    for objects in [16, 256, 4096, 65536] {
        for order in [Order::Lifo, Order::Fifo, Order::Random] {
            // All orders at 64 B, first in first out at 1 KiB too. Random order, which shows most,
            // at every size.
            let wanted = |size| {
                size == 64 || order == Order::Random || (order == Order::Fifo && size == 1024)
            };
            rows.extend(rows_of(sizes, wanted, Workload::Batch { order, objects }));
        }
    }
    rows
}

fn threads(sizes: &[usize]) -> Vec<Row> {
    let mut rows = Vec::new();
    for threads in [1, 2, 4, 8, 16, MANY_THREADS] {
        let wanted = |size| size == 64 || (threads <= 2 && (size == 16 || size >= 1024));
        rows.extend(rows_of(sizes, wanted, Workload::Churn { threads }));
    }
    let ends = |size| size == 64 || size == 1024;
    rows.extend(rows_of(sizes, ends, Workload::Ring { read: false }));
    rows.extend(rows_of(sizes, ends, Workload::Ring { read: true }));
    rows.extend(rows_of(sizes, ends, Workload::Queue));
    rows.extend(rows_of(sizes, ends, Workload::Exchange));
    rows
}

fn names(sizes: &[usize]) -> Vec<Row> {
    let mut all = vec![Named::Pair];
    all.extend([1_000, 100_000].map(|live| Named::Get { live }));
    all.extend([Named::Pin, Named::Steady]);
    all.extend([1, 2, 4, 8, 16].map(|threads| Named::Churn { threads }));
    all.into_iter()
        .flat_map(|named| rows_of(sizes, |size| size == 64, Workload::Named(named)))
        .collect()
}

fn tails(sizes: &[usize]) -> Vec<Row> {
    let mut rows = Vec::new();
    for heap in [Heap::Warm, Heap::Cold, Heap::ColdWritten] {
        for noisy in [false, true] {
            let workload = Workload::Tail(Tail { heap, noisy });
            rows.extend(rows_of(sizes, |size| size == 64, workload));
        }
    }
    rows
}

/// Rows whose workload chooses the sizes.
fn mixed(workloads: &[Workload]) -> Vec<Row> {
    let row = |&workload| Row { workload, size: 0 };
    workloads.iter().map(row).collect()
}

fn memories(sizes: &[usize]) -> Vec<Row> {
    let mut rows = rows_of(sizes, |_| true, Workload::Memory(Memory::Payload));
    let ends = |size| size == 64 || size == 1024;
    rows.extend(rows_of(sizes, ends, Workload::Memory(Memory::FreeAll)));
    rows.extend(rows_of(
        sizes,
        |size| size == 64,
        Workload::Memory(Memory::Random),
    ));
    rows.extend(mixed(&[Workload::Memory(Memory::Mixed)]));
    rows.extend(rows_of(
        sizes,
        |size| size == 64,
        Workload::Memory(Memory::Remote),
    ));
    rows.extend(rows_of(
        sizes,
        |size| size == 64,
        Workload::Memory(Memory::Threads),
    ));
    let cycles = |oldest| Workload::Memory(Memory::Cycles { oldest });
    rows.extend(mixed(&[cycles(false), cycles(true)]));
    rows
}

/// All rows for these sizes, in the order of the table.
pub fn all(sizes: &[usize]) -> Vec<Row> {
    let mut rows = rows_of(sizes, |_| true, Workload::Pair);
    rows.extend(batches(sizes));
    rows.extend(rows_of(sizes, |_| true, Workload::Steady));
    rows.extend(rows_of(sizes, |size| size >= 16, Workload::Cold));
    rows.extend(rows_of(sizes, |size| size == 64, Workload::ColdLarge));
    rows.extend(threads(sizes));
    rows.extend(names(sizes));
    rows.extend(tails(sizes));
    rows.extend(mixed(
        &[Growth::Double, Growth::Half].map(Workload::Vectors),
    ));
    rows.extend(memories(sizes));
    rows
}

/// The row of that name.
pub fn find(name: &str) -> Option<Row> {
    all(&SIZES).into_iter().find(|row| row.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found_again() {
        let rows = all(&SIZES);
        for row in &rows {
            assert_eq!(find(&row.name()), Some(*row), "{}", row.name());
            assert!(!row.describe().is_empty());
        }
    }

    #[test]
    fn what_one_thread_owns_is_not_shared() {
        let pool = crate::allocators::find("pool").unwrap();
        let cache = crate::allocators::find("cache").unwrap();
        let ring = find("ring/64").unwrap();
        assert!(!ring.suits(&pool) && ring.suits(&cache));
        assert!(find("pair/64").unwrap().suits(&pool));
        let noisy = find("tail-grow-noisy/64").unwrap();
        assert!(!noisy.suits(&pool) && noisy.suits(&cache));
        for name in ["churn/64/1000", "memory-threads/64", "cold-large/64"] {
            let row = find(name).unwrap();
            assert!(!row.suits(&pool) && row.suits(&cache), "{name}");
        }
        let mixed = find("memory-mixed").unwrap();
        assert!(!mixed.suits(&cache));
        assert!(mixed.suits(&crate::allocators::find("heap").unwrap()));
    }

    /// The allocators of a row, in the order of the tables.
    fn suited(name: &str) -> Vec<&'static str> {
        let row = find(name).unwrap();
        let all = crate::allocators::ALL.into_iter();
        all.filter(|one| row.suits(one))
            .map(|one| one.name)
            .collect()
    }

    #[test]
    fn names_are_compared_with_names_and_pointers() {
        let all = ["cache", "handles", "slotmap", "sharded-slab"];
        assert_eq!(suited("handle-pair/64"), [&all[..], &["cas"]].concat());
        assert_eq!(suited("handle-get/64/1000"), all);
        assert_eq!(suited("handle-steady/64"), all);
        assert_eq!(suited("handle-churn/64/1"), all);
        assert_eq!(
            suited("handle-churn/64/8"),
            ["cache", "handles", "sharded-slab"]
        );
        assert_eq!(suited("handle-pin/64"), ["handles", "sharded-slab"]);
        for name in ["pair/64", "steady/64", "churn/64/2", "memory-payload/64"] {
            let others = suited(name);
            assert!(others.contains(&"cache") && !others.contains(&"handles"));
            assert!(!others.contains(&"sharded-slab") && !others.contains(&"cas"));
        }
    }

    #[test]
    fn vectors_grow_where_there_is_realloc() {
        let peers = ["mimalloc", "jemalloc", "tcmalloc", "rpmalloc", "glibc"];
        let expected = [&["heap", "snmalloc"][..], &peers].concat();
        assert_eq!(suited("vectors-double"), expected);
        assert_eq!(suited("vectors-half"), expected);
    }
}
