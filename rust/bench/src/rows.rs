//! What is measured: the rows of the table.

use crate::allocators::{Allocator, Kind};

/// In which order a batch is freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    Lifo,
    Fifo,
    Random,
}

/// Latencies of single operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tail {
    /// Random replacement among many live objects, nobody else about.
    Quiet,
    /// The same, while another thread allocates and frees.
    Noisy,
    /// The first allocations of a process.
    Grow,
    /// The same, each with its first write.
    GrowWrite,
}

/// Resident memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// Of many live objects, over their bytes.
    Payload,
    /// After freeing all and asking to give back.
    FreeAll,
    /// After freeing a random 99 % and asking to give back.
    Random,
    /// The same with mixed sizes.
    Mixed,
    /// While one thread allocates and another frees.
    Remote,
    /// After many cycles of growing and shrinking.
    Cycles,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workload {
    Pair,
    Batch { order: Order, objects: usize },
    Steady,
    Cold,
    Churn { threads: usize },
    Ring { read: bool },
    Queue,
    Exchange,
    Tail(Tail),
    Memory(Memory),
}

/// One row: a workload with objects of one size. Mixed sizes are size 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    pub workload: Workload,
    pub size: usize,
}

/// The sizes that inline peers are compiled for, and that `--sizes` chooses from.
pub const SIZES: [usize; 6] = [8, 16, 64, 256, 1024, 4096];

impl Row {
    /// What `--rows` is matched with: `workload/size/detail`.
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
            Workload::Churn { threads } => format!("churn/{size}/{threads}"),
            Workload::Ring { read: false } => format!("ring/{size}"),
            Workload::Ring { read: true } => format!("ring-read/{size}"),
            Workload::Queue => format!("queue/{size}"),
            Workload::Exchange => format!("exchange/{size}"),
            Workload::Tail(Tail::Quiet) => format!("tail/{size}"),
            Workload::Tail(Tail::Noisy) => format!("tail-noisy/{size}"),
            Workload::Tail(Tail::Grow) => format!("tail-grow/{size}"),
            Workload::Tail(Tail::GrowWrite) => format!("tail-grow-write/{size}"),
            Workload::Memory(Memory::Payload) => format!("memory-payload/{size}"),
            Workload::Memory(Memory::FreeAll) => format!("memory-free-all/{size}"),
            Workload::Memory(Memory::Random) => format!("memory-random/{size}"),
            Workload::Memory(Memory::Mixed) => "memory-mixed".to_owned(),
            Workload::Memory(Memory::Remote) => format!("memory-remote/{size}"),
            Workload::Memory(Memory::Cycles) => "memory-cycles".to_owned(),
        }
    }

    /// The sentence over its block.
    pub fn describe(&self) -> String {
        let size = self.size;
        match self.workload {
            Workload::Pair => format!("alloc, touch, free of {size} B; CPU ns per pair"),
            Workload::Batch { order, objects } => {
                let order = format!("{order:?}").to_lowercase();
                format!("{objects} of {size} B allocated, then freed ({order}); CPU ns per alloc or free")
            }
            Workload::Steady => {
                format!("a random one of 100,000 live of {size} B replaced; CPU ns per replacement")
            }
            Workload::Cold => {
                format!("first allocations of a process, {size} B, written; CPU ns each")
            }
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
            Workload::Tail(Tail::Quiet) => {
                format!("latency, 100,000 live of {size} B; ns above the timer")
            }
            Workload::Tail(Tail::Noisy) => {
                format!("the same beside a busy thread, {size} B; ns above the timer")
            }
            Workload::Tail(Tail::Grow) => {
                format!("latency of the first allocations, {size} B; ns above the timer")
            }
            Workload::Tail(Tail::GrowWrite) => {
                format!("the same with the first write, {size} B; ns above the timer")
            }
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
                format!("one thread allocates, another frees, at most 1,024 live of {size} B; MiB")
            }
            Workload::Memory(Memory::Cycles) => {
                "cycles of 28 MiB and 2.8 MiB live, sizes of 32..4096 B; resident, MiB".to_owned()
            }
        }
    }

    /// Lines of a cache go between processors: the round trip is measured beside it.
    pub fn crosses(&self) -> bool {
        matches!(
            self.workload,
            Workload::Ring { .. } | Workload::Queue | Workload::Exchange
        )
    }

    /// Counted in the geometric means.
    pub fn is_time(&self) -> bool {
        !matches!(self.workload, Workload::Tail(_) | Workload::Memory(_))
    }

    /// A purge is part of it, whose effect may be looked at again later.
    pub fn waits(&self) -> bool {
        use Memory::{FreeAll, Mixed, Random};
        matches!(self.workload, Workload::Memory(FreeAll | Random | Mixed))
    }

    /// One layout a process: the workload is about a fresh one, or is long.
    pub fn one_layout(&self) -> bool {
        matches!(
            self.workload,
            Workload::Cold | Workload::Tail(_) | Workload::Memory(_)
        )
    }

    /// Memory hardly varies: more repeats would only take time.
    pub fn repeats(&self, wanted: usize) -> usize {
        match self.workload {
            Workload::Memory(Memory::Cycles) => 1,
            Workload::Memory(_) => wanted.min(3),
            _ => wanted,
        }
    }

    /// Whether an allocator can be asked to do this at all.
    pub fn suits(&self, allocator: &Allocator) -> bool {
        let possible = match self.workload {
            Workload::Churn { threads: 1 } => true,
            Workload::Churn { .. } | Workload::Tail(Tail::Noisy) => allocator.shared(),
            Workload::Ring { .. } | Workload::Queue | Workload::Exchange => allocator.shared(),
            Workload::Cold | Workload::Tail(Tail::Grow | Tail::GrowWrite) => allocator.grows(),
            Workload::Memory(Memory::Mixed | Memory::Cycles) => allocator.any_size().is_some(),
            Workload::Memory(Memory::Remote) => allocator.shared(),
            _ => true,
        };
        let measured = match allocator.kind {
            // One object stands for all: two threads must not write to it.
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
        };
        possible && measured && (self.size == 0 || allocator.kernels(0, self.size).is_some())
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
            // All orders at 64 B; the random one, which tells most, at every size.
            let wanted = |size| size == 64 || order == Order::Random;
            rows.extend(rows_of(sizes, wanted, Workload::Batch { order, objects }));
        }
    }
    rows
}

fn threads(sizes: &[usize]) -> Vec<Row> {
    let mut rows = Vec::new();
    for threads in [1, 2, 4, 8, 16] {
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

fn tails(sizes: &[usize]) -> Vec<Row> {
    [Tail::Quiet, Tail::Noisy, Tail::Grow, Tail::GrowWrite]
        .into_iter()
        .flat_map(|tail| rows_of(sizes, |size| size == 64, Workload::Tail(tail)))
        .collect()
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
    rows.push(Row {
        workload: Workload::Memory(Memory::Mixed),
        size: 0,
    });
    rows.extend(rows_of(
        sizes,
        |size| size == 64,
        Workload::Memory(Memory::Remote),
    ));
    rows.push(Row {
        workload: Workload::Memory(Memory::Cycles),
        size: 0,
    });
    rows
}

/// All rows for these sizes, in the order of the table.
pub fn all(sizes: &[usize]) -> Vec<Row> {
    let mut rows = rows_of(sizes, |_| true, Workload::Pair);
    rows.extend(batches(sizes));
    rows.extend(rows_of(sizes, |_| true, Workload::Steady));
    rows.extend(rows_of(sizes, |size| size >= 16, Workload::Cold));
    rows.extend(threads(sizes));
    rows.extend(tails(sizes));
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
        let mixed = find("memory-mixed").unwrap();
        assert!(!mixed.suits(&cache));
        assert!(mixed.suits(&crate::allocators::find("heap").unwrap()));
    }
}
