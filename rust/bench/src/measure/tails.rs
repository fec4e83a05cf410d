//! Latencies: every operation timed alone, with a warm heap or a new one, alone or beside a thread
//! that allocates and frees as hard as it can.

use super::{pointers, Bench, Random, MANY, STEADY_LIVE};
use crate::allocators::State;
use crate::kernels::{self, Histogram};
use crate::machine;
use crate::rows::{Heap, Tail};
use core::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

/// Operations of each kind with a warm heap.
const PAIRS: usize = 500_000;
/// Objects that the other thread allocates before it frees them all. They are far more than a
/// thread's own cache holds, so most of the time the thread uses what all threads share.
const NOISE: usize = 4_096;

const ALLOCS: [&str; 5] = [
    "alloc p50",
    "alloc p99",
    "alloc p99.9",
    "alloc p99.99",
    "alloc max",
];
const FREES: [&str; 5] = [
    "free p50",
    "free p99",
    "free p99.9",
    "free p99.99",
    "free max",
];
const SHARES: [f64; 5] = [0.5, 0.99, 0.999, 0.9999, 1.0];

impl Bench<'_> {
    pub(super) fn tail(&mut self, tail: Tail) {
        match tail.heap {
            Heap::Warm => self.tail_steady(tail.noisy),
            Heap::Cold => self.tail_grow(tail.noisy, false),
            Heap::ColdWritten => self.tail_grow(tail.noisy, true),
        }
    }

    fn sample_tail(&mut self, names: [&'static str; 5], histogram: &Histogram) {
        let floor = kernels::timer_floor();
        let per_ns = machine::ticks_per_ns();
        let layout = self.layouts[0].0;
        for (name, share) in names.into_iter().zip(SHARES) {
            let above = histogram.quantile(share).saturating_sub(floor);
            self.sample(name, layout, above as f64 / per_ns);
        }
    }

    /// Allocates and frees until `stop` is set. Sets a flag when it has begun.
    fn noise(&self, state: &State, begun: &AtomicBool, stop: &AtomicBool) {
        let _member = self.enter(state);
        let kernels = self.layouts[0].1;
        let mut objects = pointers(self.noise_objects());
        let (places, count) = (objects.as_mut_ptr(), objects.len());
        while !stop.load(Ordering::Relaxed) {
            // SAFETY: the state is shared, and there is room for `count` objects.
            unsafe {
                (kernels.fill)(state.pointer(), places, count);
                (kernels.drain)(state.pointer(), places, count);
            }
            begun.store(true, Ordering::Relaxed);
        }
    }

    fn noise_objects(&self) -> usize {
        (NOISE / self.effort.fewer_objects).max(1)
    }

    /// Runs `timed`, beside the noise if the row has it.
    fn beside(&self, noisy: bool, state: &State, timed: impl FnOnce()) {
        let (begun, stop) = (AtomicBool::new(!noisy), AtomicBool::new(false));
        std::thread::scope(|scope| {
            if noisy {
                scope.spawn(|| self.noise(state, &begun, &stop));
            }
            while !begun.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            timed();
            stop.store(true, Ordering::Relaxed);
        });
    }

    fn tail_steady(&mut self, noisy: bool) {
        let live = STEADY_LIVE / self.effort.fewer_objects;
        let count = (PAIRS / self.effort.fewer_rounds.div_ceil(4)) as u64;
        let state = self.open(live + self.noise_objects());
        let mut objects = pointers(live);
        self.settled(&state, &mut objects);
        let (mut allocs, mut frees) = (Histogram::default(), Histogram::default());
        let (kernels, seed) = (self.layouts[0].1, self.seed);
        let places = objects.as_mut_ptr();
        // SAFETY: the state is of this table, and all objects are live.
        self.beside(noisy, &state, || unsafe {
            let (allocs, frees) = (allocs.raw(), frees.raw());
            (kernels.tail_steady)(state.pointer(), places, live, count, seed, allocs, frees);
        });
        self.sample_tail(ALLOCS, &allocs);
        self.sample_tail(FREES, &frees);
        self.drain(&state, &mut objects);
    }

    fn tail_grow(&mut self, noisy: bool, write: bool) {
        let count = self.many(MANY);
        let state = self.open(count + self.noise_objects());
        let mut objects = pointers(count);
        let (mut allocs, mut frees) = (Histogram::default(), Histogram::default());
        let (kernels, seed) = (self.layouts[0].1, self.seed);
        let objects: &mut [*mut c_void] = &mut objects;
        self.beside(noisy, &state, || {
            let places = objects.as_mut_ptr();
            let write = write.into();
            // SAFETY: the state is of this table, and there is room for `count` objects.
            unsafe { (kernels.tail_grow)(state.pointer(), places, count, write, allocs.raw()) };
            Random(seed).shuffle(objects);
            // SAFETY: they are live, and freed once.
            unsafe {
                (kernels.tail_drain)(state.pointer(), objects.as_mut_ptr(), count, frees.raw());
            }
        });
        self.sample_tail(ALLOCS, &allocs);
        self.sample_tail(FREES, &frees);
    }
}
