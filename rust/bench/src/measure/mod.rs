//! Measures a row, inside a child process that does nothing else.
//!
//! Counts are chosen so that one sample takes about the time that was asked for. A first run warms
//! up and is thrown away; a second run shows how long the operations take.
//!
//! Here are the rows about time; `names` has objects by handle, `tails` latencies, `vectors` growth
//! by realloc, `memory` and `cycles` resident memory.

use crate::allocators::{Allocator, State};
use crate::kernels::{self, Kernels};
use crate::machine::{self, cpu_ns, team, Times};
use crate::rows::{Memory, Order, Row, Workload};
use core::ffi::c_void;
use core::ptr::{dangling_mut, null_mut};
use std::time::Duration;

mod cycles;
mod memory;
mod names;
mod tails;
mod vectors;

/// The extent of a measurement.
#[derive(Clone, Debug)]
pub struct Effort {
    /// Time of one sample.
    pub sample: Duration,
    /// Divides numbers of objects, for tests: they check that a row runs, not its figures.
    pub fewer_objects: usize,
    /// Divides counts of repetitions that are not chosen by time.
    pub fewer_rounds: usize,
    /// The time after a purge when resident memory is read again. Zero: it is not read again.
    pub later: Duration,
    /// The time that a program continues at a trough, in the rows about memory that is given back.
    pub trickle: Duration,
}

/// Long enough for decay by time to have an effect.
pub const TRICKLE: Duration = Duration::from_secs(3);

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub metric: &'static str,
    pub layout: usize,
    pub value: f64,
    /// Nanoseconds of a cache line's round trip to the other thread, measured around this sample.
    pub round_trip: Option<f64>,
}

/// Live objects of the rows that replace random objects.
const STEADY_LIVE: usize = 100_000;
/// Objects of the rows about cold and full heaps.
const MANY: usize = 500_000;
/// Objects of the row beyond 128 MiB, where caches begin to take huge pages (option `huge`).
const LARGE: usize = 5_000_000;
/// The most bytes of all these objects.
const MANY_BYTES: usize = 512 << 20;
/// Shared places of the exchange.
const EXCHANGE_SLOTS: usize = 2048;

/// An array of pointers. Its memory is touched, so that storing them later causes no page fault.
fn pointers(count: usize) -> Vec<*mut c_void> {
    let mut objects = vec![dangling_mut(); count];
    std::hint::black_box(objects.as_mut_ptr());
    objects.fill(null_mut());
    objects
}

/// A random generator for code outside of timed loops.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 32).wrapping_mul(bound as u64) >> 32) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// A measurement in progress: an allocator, the layouts of its loops, and the samples so far.
struct Bench<'a> {
    row: Row,
    allocator: Allocator,
    effort: &'a Effort,
    layouts: Vec<(usize, Kernels)>,
    seed: u64,
    samples: Vec<Sample>,
}

/// Measures a row for an allocator, with these layouts in this order.
pub fn measure(
    row: Row,
    allocator: Allocator,
    layouts: &[usize],
    effort: &Effort,
    seed: u64,
) -> Vec<Sample> {
    let tables = layouts.iter().filter_map(|&layout| {
        // Mixed sizes go through malloc and free; no loop is used.
        let size = if row.size == 0 { 64 } else { row.size };
        allocator
            .kernels(layout, size)
            .map(|kernels| (layout, kernels))
    });
    let mut bench = Bench {
        row,
        allocator,
        effort,
        layouts: tables.collect(),
        seed,
        samples: Vec::new(),
    };
    let _guard = allocator.enter_thread();
    bench.run();
    bench.samples
}

/// A thread's use of an allocator. Its beginning and end are announced to the library in the right
/// order.
struct Member<'a> {
    state: &'a State,
    _guard: Option<slabyard_peers::ThreadGuard<'static>>,
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.state.thread_end();
    }
}

impl Bench<'_> {
    fn run(&mut self) {
        match self.row.workload {
            Workload::Pair => self.pair(),
            Workload::Batch { order, objects } => self.batch(order, objects),
            Workload::Steady => self.steady(),
            Workload::Cold => self.cold(),
            Workload::ColdLarge => self.cold_large(),
            Workload::Churn { threads } => self.churn(threads),
            Workload::Ring { read } => self.ring(read),
            Workload::Queue => self.queue(),
            Workload::Exchange => self.exchange(),
            Workload::Named(named) => self.named(named),
            Workload::Tail(tail) => self.tail(tail),
            Workload::Vectors(growth) => self.vectors(growth),
            Workload::Memory(Memory::Payload) => self.memory_payload(),
            Workload::Memory(Memory::FreeAll) => self.memory_free_all(),
            Workload::Memory(Memory::Random) => self.memory_random(),
            Workload::Memory(Memory::Mixed) => self.memory_mixed(),
            Workload::Memory(Memory::Remote) => self.memory_remote(),
            Workload::Memory(Memory::Threads) => self.memory_threads(),
            Workload::Memory(Memory::Cycles { oldest }) => self.memory_cycles(oldest),
        }
    }

    fn open(&self, capacity: usize) -> State {
        let kernels = self.layouts.first().expect("a suitable row has loops").1;
        State::open(kernels, self.row.size, capacity).expect("the allocator can be opened")
    }

    fn enter<'s>(&self, state: &'s State) -> Member<'s> {
        Member {
            state,
            _guard: self.allocator.enter_thread(),
        }
    }

    fn sample(&mut self, metric: &'static str, layout: usize, value: f64) {
        self.samples.push(Sample {
            metric,
            layout,
            value,
            round_trip: None,
        });
    }

    /// The count for a sample of the requested time, computed from the time that `least` took.
    fn scaled(&self, least: u64, took_ns: u64) -> u64 {
        let wanted = self.effort.sample.as_nanos() as f64;
        let factor = (wanted / took_ns.max(1) as f64).clamp(1.0, 1e6);
        (least as f64 * factor) as u64
    }

    /// The count of a first run. It is smaller in a quick run.
    fn least(&self, full: u64) -> u64 {
        (full / self.effort.fewer_rounds as u64).max(1)
    }

    /// Samples of a loop of one thread; `run` does `count` units of `operations` each.
    fn sample_loops(&mut self, least: u64, operations: f64, run: impl Fn(&Kernels, u64)) {
        let timed = |kernels: &Kernels, count: u64| {
            let start = cpu_ns();
            run(kernels, count);
            cpu_ns() - start
        };
        let least = self.least(least);
        let first = self.layouts[0].1;
        timed(&first, least);
        let count = self.scaled(least, timed(&first, least));
        for (layout, kernels) in self.layouts.clone() {
            let took = timed(&kernels, count);
            self.sample("time", layout, took as f64 / (count as f64 * operations));
        }
    }

    fn pair(&mut self) {
        let state = self.open(1024);
        // SAFETY: the state is of this table, and this is its only thread.
        self.sample_loops(10_000, 1.0, |kernels, count| unsafe {
            (kernels.pair)(state.pointer(), count);
        });
    }

    fn batch(&mut self, order: Order, size: usize) {
        let state = self.open(size);
        let mut objects = pointers(size);
        let objects = objects.as_mut_ptr();
        let mut places: Vec<u32> = (0..size as u32).collect();
        Random(self.seed).shuffle(&mut places);
        let least = (20_000 / size as u64).max(1);
        self.sample_loops(least, 2.0 * size as f64, |kernels, rounds| {
            // SAFETY: the state is of this table; `objects` and `places` have `size` entries.
            unsafe {
                match order {
                    Order::Lifo => (kernels.batch_lifo)(state.pointer(), objects, size, rounds),
                    Order::Fifo => (kernels.batch_fifo)(state.pointer(), objects, size, rounds),
                    Order::Random => {
                        let places = places.as_ptr();
                        (kernels.batch_random)(state.pointer(), objects, places, size, rounds);
                    }
                }
            }
        });
    }

    /// Allocates `live` objects, and replaces them often enough that they lie at random.
    fn settled(&self, state: &State, objects: &mut [*mut c_void]) {
        let kernels = self.layouts[0].1;
        let (pointer, live) = (state.pointer(), objects.len());
        // SAFETY: the state is of this table, and there is room for `live` objects.
        unsafe {
            (kernels.fill)(pointer, objects.as_mut_ptr(), live);
            (kernels.steady)(
                pointer,
                objects.as_mut_ptr(),
                live,
                2 * live as u64,
                self.seed,
            );
        }
    }

    fn drain(&self, state: &State, objects: &mut [*mut c_void]) {
        // SAFETY: all of them are live objects of the state.
        unsafe {
            (self.layouts[0].1.drain)(state.pointer(), objects.as_mut_ptr(), objects.len());
        }
    }

    fn steady(&mut self) {
        let live = STEADY_LIVE / self.effort.fewer_objects;
        let state = self.open(live);
        let mut objects = pointers(live);
        self.settled(&state, &mut objects);
        let (places, seed) = (objects.as_mut_ptr(), self.seed);
        self.sample_loops(20_000, 1.0, |kernels, count| {
            // SAFETY: the state is of this table, and all `live` objects are live.
            unsafe { (kernels.steady)(state.pointer(), places, live, count, seed ^ count) };
        });
        self.drain(&state, &mut objects);
    }

    /// The number of objects of rows about cold and full heaps, within their limit of bytes.
    fn many(&self, wanted: usize) -> usize {
        (wanted / self.effort.fewer_objects)
            .min(MANY_BYTES / self.row.size.max(1))
            .max(1)
    }

    /// Fills the places with the first objects of the process, timed.
    fn grow(&mut self, objects: &mut [*mut c_void]) -> State {
        let (layout, kernels) = self.layouts[0];
        let count = objects.len();
        let start = cpu_ns();
        let state = self.open(count);
        // SAFETY: the state is of this table, and there is room for `count` objects.
        unsafe { (kernels.fill)(state.pointer(), objects.as_mut_ptr(), count) };
        let took = cpu_ns() - start;
        self.sample("time", layout, took as f64 / count as f64);
        state
    }

    fn cold(&mut self) {
        let mut objects = pointers(self.many(MANY));
        let state = self.grow(&mut objects);
        self.drain(&state, &mut objects);
    }

    /// Samples of loops on several threads, in the unit that `value` makes of their times.
    fn sample_teams(
        &mut self,
        state: &State,
        threads: usize,
        least: u64,
        operations: f64,
        value: fn(&[Times]) -> u64,
        run: impl Fn(&Kernels, usize, u64) + Sync,
    ) {
        let least = self.least(least);
        let timed = |kernels: &Kernels, count: u64| {
            let enter = || self.enter(state);
            let warm = |index| run(kernels, index, (count / 8).max(least));
            team(threads, enter, warm, |index| run(kernels, index, count))
        };
        let first = self.layouts[0].1;
        let times = timed(&first, least);
        // Threads that do not wait for each other may share processors. Then the time on the clock
        // is mostly that of their start.
        let took = if self.row.crosses() {
            machine::wall_of(&times)
        } else {
            machine::cpu_each_of(&times)
        };
        let count = self.scaled(least, took);
        let mut samples = Vec::new();
        for (layout, kernels) in &self.layouts {
            let trip = || {
                if self.row.crosses() {
                    machine::round_trip()
                } else {
                    None
                }
            };
            let before = trip();
            let took = value(&timed(kernels, count));
            let after = trip();
            samples.push(Sample {
                metric: "time",
                layout: *layout,
                value: took as f64 / (count as f64 * operations),
                round_trip: before
                    .zip(after)
                    .map(|(before, after)| (before + after) / 2.0),
            });
        }
        self.samples.extend(samples);
    }

    fn churn(&mut self, threads: usize) {
        let state = self.open(128);
        let operations = threads as f64 * 128.0;
        // Many threads do no more in total than sixteen.
        let least = (1600 / threads as u64).clamp(10, 100);
        let run = |kernels: &Kernels, _: usize, rounds: u64| {
            // SAFETY: the state is of this table, and shared where there are more threads.
            unsafe { (kernels.churn)(state.pointer(), rounds) };
        };
        if self.allocator.shared() {
            self.sample_teams(&state, threads, least, operations, machine::cpu_of, run);
        } else {
            self.sample_loops(least, operations, |kernels, rounds| run(kernels, 0, rounds));
        }
    }

    fn ring(&mut self, read: bool) {
        let state = self.open(2048);
        let ring = Lines::new(kernels::ring_bytes());
        self.sample_teams(
            &state,
            2,
            20_000,
            1.0,
            machine::wall_of,
            |kernels, index, count| {
                let take = if read {
                    kernels.ring_read
                } else {
                    kernels.ring_take
                };
                let side = if index == 0 { kernels.ring_put } else { take };
                // SAFETY: the ring is zeroed or as the same loops left it, one thread at each side.
                unsafe { side.expect("shared")(state.pointer(), ring.pointer(), count) };
            },
        );
    }

    fn queue(&mut self) {
        let state = self.open(4096);
        let queue = Lines::new(kernels::queue_bytes());
        let operations = kernels::BATCH as f64;
        let wall = machine::wall_of;
        self.sample_teams(
            &state,
            2,
            200,
            operations,
            wall,
            |kernels, index, batches| {
                let side = if index == 0 {
                    kernels.queue_put
                } else {
                    kernels.queue_take
                };
                // SAFETY: as in `ring`.
                unsafe { side.expect("shared")(state.pointer(), queue.pointer(), batches) };
            },
        );
    }

    fn exchange(&mut self) {
        let state = self.open(2 * EXCHANGE_SLOTS);
        let slots = Lines::new(EXCHANGE_SLOTS * size_of::<usize>());
        let places = &slots;
        let seed = self.seed;
        self.sample_teams(
            &state,
            2,
            20_000,
            4.0,
            machine::cpu_of,
            |kernels, index, count| {
                let seed = seed ^ (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ count;
                let exchange = kernels.exchange.expect("shared");
                // SAFETY: the places are null or live objects of the state.
                unsafe {
                    exchange(
                        state.pointer(),
                        places.pointer().cast(),
                        EXCHANGE_SLOTS,
                        count,
                        seed,
                    );
                }
            },
        );
        // SAFETY: the memory holds exactly this number of pointers, and no thread uses them any
        // more.
        let left = unsafe {
            core::slice::from_raw_parts_mut(slots.pointer().cast::<*mut c_void>(), EXCHANGE_SLOTS)
        };
        let mut live: Vec<_> = left
            .iter()
            .copied()
            .filter(|object| !object.is_null())
            .collect();
        self.drain(&state, &mut live);
    }
}

/// Zeroed memory shared by two threads, on cache lines of its own.
struct Lines(Vec<Line>);

#[repr(align(128))]
#[derive(Clone)]
struct Line(#[allow(dead_code)] [u8; 128]);

// SAFETY: only the address is shared; the kernels' own protocol orders the accesses.
unsafe impl Sync for Lines {}

impl Lines {
    fn new(bytes: usize) -> Lines {
        Lines(vec![Line([0; 128]); bytes.div_ceil(128)])
    }

    fn pointer(&self) -> *mut c_void {
        self.0.as_ptr().cast_mut().cast()
    }
}
