//! Objects and their owners: the loops, and their contenders.

use super::locals::{Bounded, Named, Nexus011, Static, Unbounded};
use super::makers::*;
use super::rows::{Owned, Row};
use crate::alone::job::{Effort, Job, Sampled};
use crate::kernels::Histogram;
use crate::loops::{enter, hide, ticks_after, ticks_before, Random};
use core::mem::MaybeUninit;
use nexus_slab::{bounded, unbounded};
use nexus_slab_2_here as ours;
use slabyard::{Cache, Pool};
use std::time::Instant;

/// Operations between two readings of the clock.
const SAMPLE: u64 = 100;
/// The same for the row in which the program allocates between samples.
const CONTENDED_SAMPLE: u64 = 10;
/// Objects of a batch.
pub const BATCH: usize = 2_000;
/// Live boxes of the program in the contended row. One in eight is replaced between samples.
const TRAFFIC: usize = 256;

/// Memory for owners, which the loops move in and out.
type Places<H> = Vec<MaybeUninit<H>>;

/// A value. The compiler does not know its content, and has to assume that it is read.
#[inline(always)]
fn born<const W: usize, M: Maker<W>>(maker: &'static M, seed: u64) -> M::Held {
    let mut held = maker.make(Object::new(seed));
    let object: *mut Object<W> = &mut *held;
    hide(object.cast());
    held
}

#[inline(always)]
fn died<const W: usize, M: Maker<W>>(maker: &'static M, held: M::Held) {
    maker.end(held);
    hide(core::ptr::null_mut());
}

#[inline(never)]
fn churn<const W: usize, M: Maker<W>, const LAYOUT: usize>(
    maker: &'static M,
    count: u64,
    seed: u64,
) -> u64 {
    enter!(LAYOUT);
    let start = ticks_before();
    for i in 0..count {
        died(maker, born(maker, seed + i));
    }
    ticks_after() - start
}

#[inline(never)]
fn fill<const W: usize, M: Maker<W>, const LAYOUT: usize>(
    maker: &'static M,
    places: &mut [MaybeUninit<M::Held>],
) -> u64 {
    enter!(LAYOUT);
    let start = ticks_before();
    for (i, place) in places.iter_mut().enumerate() {
        place.write(born(maker, i as u64));
    }
    ticks_after() - start
}

/// # Safety
/// All places are filled. They are empty afterwards.
#[inline(never)]
unsafe fn drain_lifo<const W: usize, M: Maker<W>, const LAYOUT: usize>(
    maker: &'static M,
    places: &[MaybeUninit<M::Held>],
) -> u64 {
    enter!(LAYOUT);
    let start = ticks_before();
    for place in places.iter().rev() {
        // SAFETY: as the caller says.
        died(maker, unsafe { place.assume_init_read() });
    }
    ticks_after() - start
}

/// # Safety
/// The places in `order` are filled. They are empty afterwards.
#[inline(never)]
unsafe fn drain_in_order<const W: usize, M: Maker<W>, const LAYOUT: usize>(
    maker: &'static M,
    places: &[MaybeUninit<M::Held>],
    order: &[u32],
) -> u64 {
    enter!(LAYOUT);
    let start = ticks_before();
    for &index in order {
        // SAFETY: as the caller says.
        died(maker, unsafe {
            places.get_unchecked(index as usize).assume_init_read()
        });
    }
    ticks_after() - start
}

/// # Safety
/// All places are filled, before and afterwards.
#[inline(never)]
unsafe fn replace<const W: usize, M: Maker<W>, const LAYOUT: usize>(
    maker: &'static M,
    places: &mut [MaybeUninit<M::Held>],
    count: u64,
    random: &mut Random,
) -> u64 {
    enter!(LAYOUT);
    let start = ticks_before();
    for i in 0..count {
        // SAFETY: as the caller says; the index is below the length.
        unsafe {
            let index = random.below(places.len());
            let place = places.get_unchecked_mut(index);
            died(maker, place.assume_init_read());
            place.write(born(maker, i));
        }
    }
    ticks_after() - start
}

/// The rest of the program: it makes and drops boxes of all sizes.
struct Traffic {
    boxes: Vec<Box<[u8]>>,
    random: Random,
}

impl Traffic {
    fn new(seed: u64) -> Traffic {
        let boxes = (0..TRAFFIC).map(|_| Box::default()).collect();
        let random = Random(seed);
        Traffic { boxes, random }
    }

    #[inline(never)]
    fn run(&mut self) {
        for _ in 0..TRAFFIC / 8 {
            let bytes = 16 + self.random.below(1024);
            let at = self.random.below(TRAFFIC);
            self.boxes[at] = vec![1; bytes].into_boxed_slice();
        }
    }
}

fn shuffled(count: usize, random: &mut Random) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    for last in (1..count).rev() {
        order.swap(last, random.below(last + 1));
    }
    order
}

/// One contender in one copy of the loops.
struct Bench<const W: usize, M: Maker<W>> {
    maker: *mut M,
    places: Places<M::Held>,
    random: Random,
    floor: u64,
}

impl<const W: usize, M: Maker<W>> Bench<W, M> {
    fn open(capacity: usize, seed: u64, floor: u64) -> Self {
        Bench {
            maker: Box::into_raw(Box::new(M::open(capacity))),
            places: (0..capacity).map(|_| MaybeUninit::uninit()).collect(),
            random: Random(seed),
            floor,
        }
    }

    fn maker(&self) -> &'static M {
        // SAFETY: the maker is never dropped.
        unsafe { &*self.maker }
    }

    /// The ticks of operations, for the histogram.
    fn note(&self, histogram: &mut Histogram, ticks: u64) {
        histogram.add(ticks.saturating_sub(self.floor));
    }

    fn churn<const L: usize>(&mut self, until: Instant, contended: bool) -> Sampled {
        let mut histogram = Histogram::default();
        let count = if contended { CONTENDED_SAMPLE } else { SAMPLE };
        let mut traffic = contended.then(|| Traffic::new(self.random.0));
        churn::<W, M, L>(self.maker(), 10 * SAMPLE, 0);
        while histogram.total() == 0 || Instant::now() < until {
            for seed in 0..20 {
                if let Some(traffic) = &mut traffic {
                    traffic.run();
                }
                let ticks = churn::<W, M, L>(self.maker(), count, seed);
                self.note(&mut histogram, ticks);
            }
        }
        Sampled::new(histogram, count)
    }

    fn batch<const L: usize>(&mut self, until: Instant, row: Owned, frees: bool) -> Sampled {
        let mut histogram = Histogram::default();
        let order = shuffled(self.places.len(), &mut self.random);
        let mut warm = 0;
        while warm < 4 || Instant::now() < until {
            let mut places = core::mem::take(&mut self.places);
            for chunk in places.chunks_mut(SAMPLE as usize) {
                let ticks = fill::<W, M, L>(self.maker(), chunk);
                if row == Owned::Alloc && warm >= 3 {
                    self.note(&mut histogram, ticks);
                }
            }
            if !frees {
                // SAFETY: the maker's objects are not used again, and have no drop.
                unsafe { M::reset(self.maker) };
            } else if row == Owned::FreeRandom {
                for some in order.chunks(SAMPLE as usize) {
                    // SAFETY: all places are filled, and each is in the order once.
                    let ticks = unsafe { drain_in_order::<W, M, L>(self.maker(), &places, some) };
                    if warm >= 3 {
                        self.note(&mut histogram, ticks);
                    }
                }
            } else {
                for some in places.chunks(SAMPLE as usize).rev() {
                    // SAFETY: all places are filled.
                    let ticks = unsafe { drain_lifo::<W, M, L>(self.maker(), some) };
                    if row == Owned::FreeLifo && warm >= 3 {
                        self.note(&mut histogram, ticks);
                    }
                }
            }
            self.places = places;
            warm += 1;
        }
        Sampled::new(histogram, SAMPLE)
    }

    /// Fills all places, then replaces random objects, twice as many as there are.
    fn settle(&mut self) {
        let (maker, live) = (self.maker(), self.places.len() as u64);
        fill::<W, M, 0>(maker, &mut self.places);
        // SAFETY: all places are filled.
        unsafe { replace::<W, M, 0>(maker, &mut self.places, 2 * live, &mut self.random) };
    }

    /// After `settle`.
    fn steady<const L: usize>(&mut self, until: Instant) -> Sampled {
        let mut histogram = Histogram::default();
        let maker = self.maker();
        while histogram.total() == 0 || Instant::now() < until {
            for _ in 0..20 {
                // SAFETY: as above.
                let ticks = unsafe {
                    replace::<W, M, L>(maker, &mut self.places, SAMPLE, &mut self.random)
                };
                self.note(&mut histogram, ticks);
            }
        }
        Sampled::new(histogram, SAMPLE)
    }

    fn run<const L: usize>(&mut self, row: Owned, who: &Contender, until: Instant) -> Sampled {
        match row {
            Owned::Churn => self.churn::<L>(until, false),
            Owned::Contended => self.churn::<L>(until, true),
            Owned::Alloc | Owned::FreeLifo | Owned::FreeRandom => {
                self.batch::<L>(until, row, who.frees)
            }
            Owned::Steady { .. } => self.steady::<L>(until),
        }
    }
}

/// The ticks between two readings of the clock without an operation.
fn floor() -> u64 {
    let mut histogram = Histogram::default();
    for _ in 0..10_000 {
        let start = ticks_before();
        histogram.add(ticks_after() - start);
    }
    histogram.quantile(0.5)
}

fn measure<const W: usize, M: Maker<W>>(
    row: Owned,
    who: &Contender,
    effort: &Effort,
) -> Vec<Sampled> {
    let mut bench = Bench::<W, M>::open(row.live().max(BATCH), effort.seed, floor());
    if matches!(row, Owned::Steady { .. }) {
        bench.settle();
    }
    let mut all = Vec::new();
    for &layout in &effort.layouts {
        let until = Instant::now() + effort.sample;
        let sampled = match layout {
            0 => bench.run::<0>(row, who, until),
            1 => bench.run::<1>(row, who, until),
            _ => bench.run::<2>(row, who, until),
        };
        all.push(sampled);
    }
    all
}

type Measure = fn(Owned, &Contender, &Effort) -> Vec<Sampled>;

/// One contender: a maker of objects.
pub struct Contender {
    pub name: &'static str,
    /// Single objects can be given back.
    frees: bool,
    /// The peer whose rules for threads apply.
    peer: Option<&'static str>,
    /// Functions for 32, 64, 128, 512, 1024 and 4096 bytes.
    measure: [Measure; 6],
}

fn untyped<M>(name: &'static str, peer: Option<&'static str>) -> Contender
where
    M: Maker<4> + Maker<8> + Maker<16> + Maker<64> + Maker<128> + Maker<512>,
{
    Contender {
        name,
        frees: true,
        peer,
        measure: [
            measure::<4, M>,
            measure::<8, M>,
            measure::<16, M>,
            measure::<64, M>,
            measure::<128, M>,
            measure::<512, M>,
        ],
    }
}

/// For makers that know the type of their objects.
macro_rules! typed {
    ($name:literal, $maker:ident) => {
        typed!($name, |W| $maker<Object<W>>)
    };
    ($name:literal, |$words:ident| $maker:ty) => {{
        fn one<const $words: usize>(row: Owned, who: &Contender, effort: &Effort) -> Vec<Sampled>
        where
            Object<$words>: Named,
        {
            measure::<$words, $maker>(row, who, effort)
        }
        Contender {
            name: $name,
            frees: true,
            peer: None,
            measure: [one::<4>, one::<8>, one::<16>, one::<64>, one::<128>, one::<512>],
        }
    }};
}

/// All contenders, in the order of the tables.
pub fn all() -> Vec<Contender> {
    let arena = |who: Contender| Contender {
        frees: false,
        ..who
    };
    #[allow(unused_mut)] // without the peers
    let mut all = vec![
        typed!("BoxSlot bounded", Bounded),
        typed!("BoxSlot unbounded", Unbounded),
        typed!("Pool Slot", Pool),
        typed!("CacheBox", Cache),
        typed!("StaticBox", Static),
        untyped::<Boxes<OurHeap>>("Box on the heap", None),
        typed!("nexus bounded", |W| bounded::Slab<Object<W>>),
        typed!("nexus unbounded", |W| unbounded::Slab<Object<W>>),
        typed!("our nexus bounded", |W| ours::bounded::Slab<Object<W>>),
        typed!("our nexus unbounded", |W| ours::unbounded::Slab<Object<W>>),
        typed!("nexus 0.11 BoxSlot", Nexus011),
        arena(typed!("typed-arena", |W| Arena<W>)),
        arena(untyped::<bumpalo::Bump>("bumpalo", None)),
        untyped::<StdBox>("Box on glibc", Some("glibc")),
    ];
    #[cfg(feature = "peers")]
    all.extend([
        untyped::<Boxes<Mimalloc>>("Box on mimalloc", Some("mimalloc")),
        untyped::<Boxes<Snmalloc>>("Box on snmalloc", Some("snmalloc")),
        untyped::<Boxes<Jemalloc>>("Box on jemalloc", Some("jemalloc")),
        untyped::<Boxes<Tcmalloc>>("Box on tcmalloc", Some("tcmalloc")),
        untyped::<Boxes<Rpmalloc>>("Box on rpmalloc", Some("rpmalloc")),
    ]);
    all
}

/// The contenders of a row.
pub fn names(row: Owned) -> Vec<&'static str> {
    let fits = |who: &Contender| who.frees || row == Owned::Alloc;
    let all = all().into_iter().filter(fits);
    all.map(|who| who.name).collect()
}

/// Measures in this process, which does nothing else.
pub fn run(job: &Job<Row>, row: Owned, bytes: usize) -> Option<Vec<Sampled>> {
    let who = all().into_iter().find(|who| who.name == job.who)?;
    let size = super::rows::SIZES.iter().position(|&size| size == bytes)?;
    let peer = who.peer.and_then(slabyard_peers::find);
    let _known = peer.map(slabyard_peers::ThreadGuard::new);
    Some((who.measure[size])(row, &who, &job.effort))
}
