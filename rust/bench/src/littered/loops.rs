//! Loops over objects of mixed sizes, on a heap that is new or was fragmented before: by each
//! malloc, and by caches, epochs, pools and regions beside it.
//!
//! A littered heap is made as the paper says that `kernels/littered/litter.h` names: twice as many
//! objects as the loop has live, of the same sizes, of which a random half is freed. The malloc of
//! the program is littered: for Slabyard's caches, pools and regions its own heap. `cache`,
//! `epochs` and `pool` are then littered themselves as well, as those of a program that has run for
//! long; `cache-new` and `pool-new` are made after the litter, as the custom allocators of the
//! paper. In an epoch, the litter is outside of it.

use super::makers::{Bump, Caches, Maker, Malloc, Pools, Region};
use crate::alone::job::{Effort, Job, Sampled};
use crate::loops::Random;
use crate::machine;
use core::ptr::null_mut;
use std::time::Duration;

/// Bytes of the kinds of objects.
pub const SIZES: [usize; 6] = [32, 48, 64, 96, 160, 320];
/// How many objects of 32 are of each kind.
const SHARES: [usize; 6] = [10, 8, 6, 4, 3, 1];

/// The malloc of Slabyard, and of the others.
const OURS: &str = "heap";
const PEERS: [&str; 6] = [
    "glibc", "mimalloc", "snmalloc", "jemalloc", "tcmalloc", "rpmalloc",
];
/// Slabyard's allocators for kinds or phases, and the region of another crate.
const CUSTOM: [&str; 7] = [
    "cache",
    "cache-new",
    "epochs",
    "pool",
    "pool-new",
    "region",
    "bumpalo",
];

/// What a loop does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Phases: objects are made, read three times in the order in which they were made, and freed.
    Phases { live: usize },
    /// Random objects are replaced; then all of them are read.
    Replace { live: usize },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    pub what: What,
    pub littered: bool,
}

/// The times of the parts of a loop, for one object, and the memory that the loop added.
pub const METRICS: [&str; 5] = ["ns", "make ns", "read ns", "free ns", "MiB"];
/// Reads of a phase.
const READS: usize = 3;

impl Row {
    pub fn live(self) -> usize {
        match self.what {
            What::Phases { live } | What::Replace { live } => live,
        }
    }

    /// The name without the state of the heap.
    pub fn base(self) -> String {
        match self.what {
            What::Phases { live } => format!("phases/{live}"),
            What::Replace { live } => format!("replace/{live}"),
        }
    }

    /// Its contenders that are no malloc.
    pub fn custom(self) -> Vec<&'static str> {
        let of_phases = ["region", "bumpalo", "epochs"];
        let fits = |who: &&str| {
            let is_new = who.ends_with("-new");
            (self.littered || !is_new)
                && (matches!(self.what, What::Phases { .. }) || !of_phases.contains(who))
        };
        CUSTOM.into_iter().filter(fits).collect()
    }

    /// The malloc of all contenders.
    pub fn mallocs() -> impl Iterator<Item = &'static str> {
        std::iter::once(OURS).chain(PEERS)
    }
}

impl crate::alone::Row for Row {
    const COMMAND: &'static str = "littered";
    const TABLES: &'static [&'static str] = &["ns", "MiB"];

    fn all() -> Vec<Row> {
        let whats = [
            What::Phases { live: 2_000 },
            What::Phases { live: 20_000 },
            What::Phases { live: 200_000 },
            What::Replace { live: 20_000 },
            What::Replace { live: 200_000 },
        ];
        let of_heap = |littered| whats.map(|what| Row { what, littered });
        [false, true].into_iter().flat_map(of_heap).collect()
    }

    fn conditions() -> Vec<String> {
        Vec::new()
    }

    fn name(self) -> String {
        let state = if self.littered { "littered" } else { "clean" };
        format!("{}/{state}", self.base())
    }

    fn describe(self) -> String {
        let heap = if self.littered {
            "after litter"
        } else {
            "on a new heap"
        };
        let live = self.live();
        match self.what {
            What::Phases { .. } => format!(
                "{live} objects of 32 to 320 B made, read {READS} times, freed, {heap}; CPU ns an object"
            ),
            What::Replace { .. } => {
                format!("random one of {live} objects replaced and read, {heap}; CPU ns an object")
            }
        }
    }

    fn names(self) -> Vec<&'static str> {
        Row::mallocs().chain(self.custom()).collect()
    }

    fn peer(self) -> &'static str {
        OURS
    }

    fn metrics(self) -> &'static [&'static str] {
        &METRICS
    }

    fn copies(self) -> usize {
        1
    }

    fn run(self, job: &Job<Row>) -> Option<Vec<Sampled>> {
        let who = self.names().into_iter().find(|name| *name == job.who)?;
        let peer = slabyard_peers::find(who);
        let _known = peer.map(slabyard_peers::ThreadGuard::new);
        let mut bench = Bench::new(self, &job.effort);
        let sampled = match who {
            "cache" => bench.measure_own(Caches::open(false), OURS),
            "cache-new" => bench.measure_new(|| Caches::open(false), OURS),
            "epochs" => bench.measure_own(Caches::open(true), OURS),
            "pool" => bench.measure_own(Pools::open(), OURS),
            "pool-new" => bench.measure_new(Pools::open, OURS),
            "region" => bench.measure_new(Region::default, OURS),
            "bumpalo" => bench.measure_new(Bump::default, "glibc"),
            _ => bench.measure_malloc(Malloc::open(who)?),
        };
        Some(vec![sampled])
    }
}

/// The beginning of an object.
#[repr(C)]
struct Node {
    next: *mut Node,
    value: u64,
}

/// An object and its kind.
#[derive(Clone, Copy)]
struct Held {
    object: *mut u8,
    kind: u8,
}

const NONE: Held = Held {
    object: null_mut(),
    kind: 0,
};

/// CPU time of the parts of a loop, in ns, for this number of objects.
#[derive(Default)]
struct Times {
    objects: usize,
    make: u64,
    read: u64,
    free: u64,
}

/// One measurement. Its arrays are touched before memory is read for the first time.
struct Bench {
    row: Row,
    sample: Duration,
    random: Random,
    /// The kinds of objects, in the order in which they are made.
    kinds: Vec<u8>,
    held: Vec<Held>,
    litter: Vec<Held>,
    times: Times,
    sum: u64,
}

fn draw_kind(random: &mut Random) -> u8 {
    let mut place = random.below(SHARES.iter().sum());
    let mut kind = 0;
    while place >= SHARES[kind] {
        place -= SHARES[kind];
        kind += 1;
    }
    kind as u8
}

/// A new object, which is written whole.
#[inline(always)]
fn make<M: Maker>(maker: &mut M, kind: u8, value: u64) -> Held {
    let kind = usize::from(kind);
    let object = maker.take(kind);
    assert!(!object.is_null(), "there is memory");
    // SAFETY: the object has this number of bytes, and is aligned for words.
    unsafe {
        object.write_bytes(value as u8, SIZES[kind]);
        object.cast::<Node>().write(Node {
            next: null_mut(),
            value,
        });
    }
    Held {
        object: crate::loops::hide(object.cast()).cast(),
        kind: kind as u8,
    }
}

/// # Safety
/// The object is live and of this maker.
#[inline(always)]
unsafe fn give<M: Maker>(maker: &mut M, held: Held) {
    // SAFETY: as the caller says.
    unsafe { maker.give(usize::from(held.kind), held.object) };
}

/// Adds the CPU time of `work` to `sum`.
fn timed<T>(sum: &mut u64, work: impl FnOnce() -> T) -> T {
    let begin = machine::cpu_ns();
    let result = work();
    *sum += machine::cpu_ns() - begin;
    result
}

/// Makes objects of these kinds, and links them in this order. Returns the first one.
fn make_list<M: Maker>(maker: &mut M, kinds: &[u8], held: &mut [Held]) -> *mut Node {
    let mut first = null_mut();
    let mut last: *mut Node = null_mut();
    for (value, (&kind, place)) in kinds.iter().zip(held).enumerate() {
        *place = make(maker, kind, value as u64);
        let node = place.object.cast::<Node>();
        if last.is_null() {
            first = node;
        } else {
            // SAFETY: the object before is live.
            unsafe { (*last).next = node };
        }
        last = node;
    }
    first
}

/// Reads a list. Returns the sum of its values.
fn read_list(first: *mut Node) -> u64 {
    let (mut node, mut sum) = (first, 0u64);
    while !node.is_null() {
        // SAFETY: all objects of the list are live.
        unsafe {
            sum = sum.wrapping_add((*node).value);
            node = (*node).next;
        }
    }
    sum
}

impl Bench {
    fn new(row: Row, effort: &Effort) -> Bench {
        let live = row.live();
        let mut random = Random(effort.seed);
        let kinds = (0..live).map(|_| draw_kind(&mut random)).collect();
        let filled = |count: usize| {
            let mut array = vec![Held { kind: 1, ..NONE }; count];
            std::hint::black_box(array.as_mut_ptr());
            array.fill(NONE);
            array
        };
        Bench {
            row,
            sample: effort.sample,
            random,
            kinds,
            held: filled(live),
            litter: filled(if row.littered { 2 * live } else { 0 }),
            times: Times::default(),
            sum: 0,
        }
    }

    /// Makes twice the objects of the loop, and frees a random half. The others live on.
    fn litter<M: Maker>(&mut self, maker: &mut M) {
        let mut litter = core::mem::take(&mut self.litter);
        for place in &mut litter {
            *place = make(maker, draw_kind(&mut self.random), 0);
        }
        for left in (litter.len() / 2..litter.len()).rev() {
            let chosen = self.random.below(left + 1);
            litter.swap(chosen, left);
            // SAFETY: it is live, and of this maker.
            unsafe { give(maker, litter[left]) };
        }
        self.litter = litter;
    }

    /// A malloc, which is littered if the row says so.
    fn measure_malloc(&mut self, mut malloc: Malloc) -> Sampled {
        self.litter(&mut malloc);
        self.measure(&mut malloc)
    }

    /// A maker that is littered itself, as well as the malloc of the program.
    fn measure_own<M: Maker>(&mut self, mut maker: M, malloc: &str) -> Sampled {
        let room = self.litter.clone();
        self.litter(&mut Malloc::open(malloc).expect("a malloc"));
        self.litter = room;
        self.litter(&mut maker);
        self.measure(&mut maker)
    }

    /// A maker that is made after the malloc of the program was littered.
    fn measure_new<M: Maker>(&mut self, open: impl FnOnce() -> M, malloc: &str) -> Sampled {
        self.litter(&mut Malloc::open(malloc).expect("a malloc"));
        self.measure(&mut open())
    }

    /// Runs the loop once, not timed, then until the time of a sample is over, and once more. The
    /// memory is read in the first and in the last.
    fn measure<M: Maker>(&mut self, maker: &mut M) -> Sampled {
        let before = machine::resident();
        self.begin(maker);
        let first = self.once(maker, true);
        self.times = Times::default();
        let begin = machine::cpu_ns();
        // At least twice, since the first phase after another one may differ.
        let mut count = 0;
        while count < 2 || machine::cpu_ns() - begin < self.sample.as_nanos() as u64 {
            self.once(maker, false);
            count += 1;
        }
        let times = core::mem::take(&mut self.times);
        let most = first.max(self.once(maker, true));
        let added = most.saturating_sub(before) as f64 / (1 << 20) as f64;
        let each = |ns: u64| ns as f64 / times.objects as f64;
        Sampled(vec![
            ("ns", each(times.make + times.read + times.free)),
            ("make ns", each(times.make)),
            ("read ns", each(times.read)),
            ("free ns", each(times.free)),
            ("MiB", added),
            (crate::alone::SUM, self.sum as f64),
        ])
    }

    /// In rows of replacements: the live objects are made.
    fn begin<M: Maker>(&mut self, maker: &mut M) {
        self.sum = 0;
        if matches!(self.row.what, What::Replace { .. }) {
            maker.begin_phase();
            for (place, &kind) in self.held.iter_mut().zip(&self.kinds) {
                *place = make(maker, kind, 1);
            }
        }
    }

    /// Returns the memory while all objects are live, if `looks`.
    fn once<M: Maker>(&mut self, maker: &mut M, looks: bool) -> u64 {
        match self.row.what {
            What::Phases { live } => self.phase(maker, live, looks),
            What::Replace { live } => self.replacements(maker, live, looks),
        }
    }

    fn phase<M: Maker>(&mut self, maker: &mut M, live: usize, looks: bool) -> u64 {
        let (kinds, held, times) = (&self.kinds, &mut self.held, &mut self.times);
        let first = timed(&mut times.make, || {
            maker.begin_phase();
            make_list(maker, kinds, held)
        });
        self.sum = timed(&mut times.read, || {
            let sums = (0..READS).map(|_| read_list(std::hint::black_box(first)));
            sums.fold(0, u64::wrapping_add)
        });
        let resident = if looks { machine::resident() } else { 0 };
        timed(&mut times.free, || {
            if M::FREES {
                for &one in held.iter() {
                    // SAFETY: it is live, and of this maker.
                    unsafe { give(maker, one) };
                }
            }
            maker.end_phase();
        });
        times.objects += live;
        resident
    }

    fn replacements<M: Maker>(&mut self, maker: &mut M, live: usize, looks: bool) -> u64 {
        let (held, times, random) = (&mut self.held, &mut self.times, &mut self.random);
        timed(&mut times.make, || {
            for _ in 0..live {
                let place = random.below(live);
                // SAFETY: it is live, and of this maker.
                unsafe { give(maker, held[place]) };
                held[place] = make(maker, draw_kind(random), 1);
            }
        });
        self.sum = timed(&mut times.read, || {
            // SAFETY: all objects are live.
            let value = |one: &Held| unsafe { (*one.object.cast::<Node>()).value };
            held.iter().map(value).sum()
        });
        times.objects += live;
        if looks {
            machine::resident()
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::Row as _;

    fn run(name: &str, who: &str) -> Vec<(&'static str, f64)> {
        let row = Row::find(name).unwrap();
        let job = Job {
            row,
            who: who.to_owned(),
            effort: Effort {
                sample: Duration::from_micros(10),
                layouts: vec![0],
                seed: 3,
            },
        };
        // A thread of its own, since a peer wants to know each thread.
        let sampled = std::thread::spawn(move || row.run(&job).unwrap().remove(0).0);
        sampled.join().unwrap()
    }

    #[test]
    fn everyone_reads_what_it_wrote_on_every_heap() {
        for row in [
            "phases/2000/clean",
            "phases/2000/littered",
            "replace/20000/littered",
        ] {
            let expected = match Row::find(row).unwrap().what {
                What::Phases { live } => (live * (live - 1) / 2 * READS) as f64,
                What::Replace { live } => live as f64,
            };
            for who in Row::find(row).unwrap().names() {
                let found = run(row, who);
                let of = |name: &str| found.iter().find(|one| one.0 == name).unwrap().1;
                assert_eq!(of(crate::alone::SUM), expected, "{row} {who}");
                assert!(of("ns") > 0.0 && of("MiB") >= 0.0, "{row} {who}: {found:?}");
            }
        }
    }

    #[test]
    fn regions_and_epochs_are_for_phases() {
        let names = |name: &str| Row::find(name).unwrap().custom();
        assert_eq!(names("phases/2000/littered"), CUSTOM);
        assert_eq!(
            names("phases/2000/clean"),
            ["cache", "epochs", "pool", "region", "bumpalo"]
        );
        assert_eq!(
            names("replace/20000/littered"),
            ["cache", "cache-new", "pool", "pool-new"]
        );
    }

    #[test]
    fn kinds_are_as_frequent_as_their_shares_say() {
        let (mut random, mut counts) = (Random(5), [0; SIZES.len()]);
        for _ in 0..32_000 {
            counts[usize::from(draw_kind(&mut random))] += 1;
        }
        for (count, share) in counts.iter().zip(SHARES) {
            let wanted = 1000 * share;
            assert!(
                (wanted * 8 / 10..wanted * 12 / 10).contains(count),
                "{counts:?}"
            );
        }
    }
}
