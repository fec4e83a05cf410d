//! The C side of `kernels/vmem.h`, field by field, and safe functions over it.

use crate::kernels::Kernels;
use core::ffi::{c_char, c_void, CStr};
use core::ptr::null_mut;

extern "C" {
    fn bench_vmem_table_0(count: *mut usize) -> *const Kernels;
    fn bench_vmem_table_1(count: *mut usize) -> *const Kernels;
    fn bench_vmem_table_2(count: *mut usize) -> *const Kernels;
    fn bench_vmem_table_3(count: *mut usize) -> *const Kernels;
    fn bench_fits(count: *mut usize) -> *const Fit;
    fn bench_choose(segments: *mut Segment, live: usize, tail: usize, random: *mut u64);
    fn bench_resize(segments: *mut Segment, count: usize, most: usize, random: *mut u64);
    fn bench_chase_open(nodes: *mut Node, count: usize, random: u64);
    fn bench_chase(from: *const Node, steps: u64) -> *const Node;
}

/// The loops over an arena's quantum cache, over an arena without it, and over a cache whose
/// functions are called.
pub fn pairs(layout: usize) -> &'static [Kernels] {
    let of = [
        bench_vmem_table_0,
        bench_vmem_table_1,
        bench_vmem_table_2,
        bench_vmem_table_3,
    ][layout];
    let mut count = 0;
    // SAFETY: gives a static array and its length.
    unsafe { core::slice::from_raw_parts(of(&mut count), count) }
}

/// `bench_segment`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    pub value: usize,
    pub size: usize,
}

impl Segment {
    /// Whether the allocation was refused: the value is `BENCH_REFUSED`.
    pub fn is_refused(&self) -> bool {
        self.value == usize::MAX
    }
}

/// `bench_counts`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub allocs: u64,
    pub frees: u64,
    pub probes: u64,
    pub steps: u64,
    pub segments: usize,
    pub buckets: usize,
}

/// `bench_gaps`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    pub units: usize,
    pub segments: usize,
    pub largest: usize,
}

/// `bench_population`.
#[repr(C)]
struct RawPopulation {
    segments: *mut Segment,
    live: usize,
    room: usize,
    volume: usize,
    random: u64,
    asked: u64,
    refused: u64,
}

/// `bench_fit`: one way to give out a range of integers in segments.
#[repr(C)]
pub struct Fit {
    name: *const c_char,
    open: unsafe extern "C" fn(usize) -> *mut c_void,
    close: unsafe extern "C" fn(*mut c_void),
    alloc: unsafe extern "C" fn(*mut c_void, *mut Segment, usize),
    free: unsafe extern "C" fn(*mut c_void, *const Segment, usize),
    age: unsafe extern "C" fn(*mut c_void, *mut RawPopulation, usize, u64),
    count: unsafe extern "C" fn(*mut c_void, *mut Counts),
    gaps: unsafe extern "C" fn(*mut c_void, *mut Gaps),
}

// SAFETY: a table of functions and a static string, never written.
unsafe impl Sync for Fit {}

/// All fits, in the order of the tables.
pub fn fits() -> &'static [Fit] {
    let mut count = 0;
    // SAFETY: gives a static array and its length.
    unsafe { core::slice::from_raw_parts(bench_fits(&mut count), count) }
}

impl Fit {
    pub fn name(&self) -> &'static str {
        // SAFETY: every table carries a static string.
        let name = unsafe { CStr::from_ptr(self.name) };
        name.to_str().expect("a name is ASCII")
    }
}

/// The range `0..units`, allocated by one fit. If `free` gets a segment that is not allocated, the
/// library reports it and ends the process.
struct Range {
    fit: &'static Fit,
    state: *mut c_void,
}

impl Range {
    fn open(fit: &'static Fit, units: usize) -> Range {
        // SAFETY: the table's own function.
        let state = unsafe { (fit.open)(units) };
        assert!(!state.is_null(), "an arena can be created");
        Range { fit, state }
    }

    fn alloc(&mut self, segments: &mut [Segment]) {
        // SAFETY: the state is of this table, and the slice of segments may be written.
        unsafe { (self.fit.alloc)(self.state, segments.as_mut_ptr(), segments.len()) }
    }

    fn free(&mut self, segments: &[Segment]) {
        // SAFETY: the state is of this table, and the slice of segments may be read.
        unsafe { (self.fit.free)(self.state, segments.as_ptr(), segments.len()) }
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        // SAFETY: the state is of this table.
        unsafe { (self.fit.count)(self.state, &mut counts) };
        counts
    }

    fn gaps(&self) -> Gaps {
        let mut gaps = Gaps::default();
        // SAFETY: the state is of this table.
        unsafe { (self.fit.gaps)(self.state, &mut gaps) };
        gaps
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: opened by this table, and used no more.
        unsafe { (self.fit.close)(self.state) }
    }
}

/// Live segments of 1 to `most` units in a range, which are replaced at random.
pub struct Steady {
    range: Range,
    segments: Vec<Segment>,
    most: usize,
    random: u64,
}

/// The steps of `Steady::replace`, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    Chosen,
    Freed,
    Sized,
    Allocated,
}

impl Steady {
    pub fn open(fit: &'static Fit, units: usize, live: usize, most: usize, seed: u64) -> Steady {
        let mut steady = Steady {
            range: Range::open(fit, units),
            segments: vec![Segment::default(); live],
            most,
            random: seed,
        };
        let all = &mut steady.segments;
        // SAFETY: `live` segments may be written.
        unsafe { bench_resize(all.as_mut_ptr(), live, most, &mut steady.random) };
        steady.range.alloc(all);
        steady
    }

    /// Frees `count` random segments and allocates as many. Calls `done` after each step.
    pub fn replace(&mut self, count: usize, mut done: impl FnMut(Step)) {
        let live = self.segments.len();
        // SAFETY: there are `live` segments, and `count` is at most that.
        unsafe {
            bench_choose(
                self.segments.as_mut_ptr(),
                live,
                count.min(live),
                &mut self.random,
            );
        }
        let tail = &mut self.segments[live - count.min(live)..];
        done(Step::Chosen);
        self.range.free(tail);
        done(Step::Freed);
        // SAFETY: the slice of segments may be written.
        unsafe {
            bench_resize(tail.as_mut_ptr(), tail.len(), self.most, &mut self.random);
        }
        done(Step::Sized);
        self.range.alloc(tail);
        done(Step::Allocated);
    }

    pub fn name(&self) -> &'static str {
        self.range.fit.name()
    }

    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    pub fn counts(&self) -> Counts {
        self.range.counts()
    }

    pub fn gaps(&self) -> Gaps {
        self.range.gaps()
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        self.range.free(&self.segments);
    }
}

/// Segments of a range that live and die at random; see `age` in `kernels/vmem.h`.
pub struct Population {
    range: Range,
    segments: Vec<Segment>,
    raw: RawPopulation,
}

impl Population {
    pub fn open(fit: &'static Fit, units: usize, room: usize, seed: u64) -> Population {
        Population {
            range: Range::open(fit, units),
            segments: vec![Segment::default(); room],
            raw: RawPopulation {
                segments: null_mut(),
                live: 0,
                room,
                volume: 0,
                random: seed,
                asked: 0,
                refused: 0,
            },
        }
    }

    /// Keeps `volume` units live until `units` more were asked for. Returns the number of
    /// allocations, and how many of them were refused.
    pub fn age(&mut self, volume: usize, units: u64) -> (u64, u64) {
        let before = (self.raw.asked, self.raw.refused);
        self.raw.segments = self.segments.as_mut_ptr();
        // SAFETY: the state is of this table, and there is room for as many segments as it says.
        unsafe { (self.range.fit.age)(self.range.state, &mut self.raw, volume, units) };
        (self.raw.asked - before.0, self.raw.refused - before.1)
    }

    pub fn segments(&self) -> &[Segment] {
        &self.segments[..self.raw.live]
    }

    pub fn gaps(&self) -> Gaps {
        self.range.gaps()
    }
}

impl Drop for Population {
    fn drop(&mut self) {
        self.range.free(&self.segments[..self.raw.live]);
    }
}

/// `bench_node`.
#[repr(C, align(64))]
#[derive(Clone)]
struct Node {
    next: *mut Node,
    _rest: [u64; 7],
}

/// A walk through memory. Each step depends on the step before.
pub struct Chase {
    nodes: Vec<Node>,
    at: usize,
}

/// Bytes of one node: as many as a tag has.
pub const NODE: usize = size_of::<Node>();

impl Chase {
    pub fn open(bytes: usize, seed: u64) -> Chase {
        let empty = Node {
            next: null_mut(),
            _rest: [0; 7],
        };
        let mut nodes = vec![empty; bytes.div_ceil(NODE).max(2)];
        // SAFETY: the slice of nodes may be written.
        unsafe { bench_chase_open(nodes.as_mut_ptr(), nodes.len(), seed) };
        Chase { nodes, at: 0 }
    }

    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Continues the walk. Returns the index of the node where it arrives.
    pub fn walk(&mut self, steps: u64) -> usize {
        // SAFETY: every node leads to another node of this array, which does not move.
        self.at = unsafe {
            let end = bench_chase(self.nodes.as_ptr().add(self.at), steps);
            end.offset_from_unsigned(self.nodes.as_ptr())
        };
        self.at
    }
}
