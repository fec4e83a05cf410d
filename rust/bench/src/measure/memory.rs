//! Resident memory of live objects, and after they were freed.

use super::{pointers, Bench, Lines, Random, LARGE, MANY};
use crate::allocators::State;
use crate::kernels;
use crate::machine::{self, resident, team};
use crate::rows::MANY_THREADS;
use core::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Barrier;

/// Bytes as the tables show them.
pub(super) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}

/// Rounds of `churn` in which a thread fills what an allocator keeps for it.
const ROUNDS_BEFORE_IDLE: u64 = 100;

/// Resident memory while threads wait that have each run `work`.
///
/// Each thread has touched the same pages of its stack first. So a difference of two calls is not
/// one of stacks.
fn resident_of_idle<Held>(
    threads: usize,
    enter: impl Fn() -> Held + Sync,
    work: impl Fn() + Sync,
) -> u64 {
    let (found, is_read) = (AtomicU64::new(0), Barrier::new(threads));
    let warm = |_| {
        std::hint::black_box(&mut [1u8; 16 << 10]);
        work();
    };
    let wait = |index| {
        if index == 0 {
            found.store(resident(), Ordering::Relaxed);
        }
        is_read.wait();
    };
    team(threads, enter, warm, wait);
    found.into_inner()
}

impl Bench<'_> {
    /// Resident memory that does not belong to the allocator. Some libraries allocate memory when
    /// the process starts: the resident part of the mapping of their first object belongs to them.
    pub(super) fn resident_before(&self) -> u64 {
        let mappings = machine::mappings();
        let before = resident();
        let Some((malloc, free)) = self.allocator.any_size() else {
            return before;
        };
        // SAFETY: freed once and not used.
        let address = unsafe {
            let object = malloc(self.row.size.max(64));
            free(object);
            object as u64
        };
        let of_first = mappings
            .iter()
            .find(|mapping| mapping.range.contains(&address));
        before - of_first.map_or(0, |mapping| mapping.resident)
    }

    pub(super) fn purge(&self) {
        if let Some(purge) = self.allocator.purge() {
            // SAFETY: this thread has entered the allocator.
            unsafe { purge() };
        }
    }

    /// Allocates `count` objects and writes them whole. Also returns the memory that was resident
    /// before the allocator was opened.
    pub(super) fn filled(&self, count: usize) -> (u64, State, Vec<*mut c_void>) {
        let mut objects = pointers(count);
        let before = self.resident_before();
        let state = self.open(count);
        // SAFETY: there is room for `count` objects, each of which has `size` bytes.
        unsafe {
            (self.layouts[0].1.fill)(state.pointer(), objects.as_mut_ptr(), count);
            for &object in &objects {
                object.cast::<u8>().write_bytes(0x5a, self.row.size);
            }
        }
        (before, state, objects)
    }

    /// Resident memory in times of the bytes of `count` objects.
    fn sample_payload(&mut self, before: u64, count: usize) {
        let used = resident().saturating_sub(before);
        self.sample(
            "ratio",
            self.layouts[0].0,
            used as f64 / (count * self.row.size) as f64,
        );
    }

    pub(super) fn memory_payload(&mut self) {
        let count = self.many(MANY);
        let (before, state, mut objects) = self.filled(count);
        self.sample_payload(before, count);
        self.drain(&state, &mut objects);
    }

    /// Growth beyond the size from which caches take huge pages: its time, and resident memory in
    /// times of the payload.
    pub(super) fn cold_large(&mut self) {
        let mut objects = pointers(self.many(LARGE));
        let before = self.resident_before();
        let state = self.grow(&mut objects);
        self.sample_payload(before, objects.len());
        self.drain(&state, &mut objects);
    }

    /// Resident memory after a purge, and later, in percent of `peak`.
    pub(super) fn sample_left(&mut self, before: u64, peak: u64) {
        self.purge();
        let percent = |now: u64| 100.0 * now.saturating_sub(before) as f64 / peak.max(1) as f64;
        let layout = self.layouts[0].0;
        self.sample("left", layout, percent(resident()));
        if !self.effort.later.is_zero() {
            std::thread::sleep(self.effort.later);
            self.sample("left later", layout, percent(resident()));
        }
    }

    pub(super) fn memory_free_all(&mut self) {
        let (before, state, mut objects) = self.filled(self.many(MANY));
        let peak = resident().saturating_sub(before);
        Random(self.seed).shuffle(&mut objects);
        self.drain(&state, &mut objects);
        self.sample_left(before, peak);
    }

    pub(super) fn memory_random(&mut self) {
        let count = self.many(2 * MANY);
        let (before, state, mut objects) = self.filled(count);
        let peak = resident().saturating_sub(before);
        Random(self.seed).shuffle(&mut objects);
        let (freed, kept) = objects.split_at_mut(count * 99 / 100);
        self.drain(&state, freed);
        self.sample_left(before, peak);
        self.drain(&state, kept);
    }

    pub(super) fn memory_mixed(&mut self) {
        let (malloc, free) = self.allocator.any_size().expect("a suitable allocator");
        let mut random = Random(self.seed);
        let mut objects = pointers(MANY / self.effort.fewer_objects);
        let before = self.resident_before();
        for place in &mut objects {
            // SAFETY: the object has `size` bytes.
            unsafe {
                let size = 16 + random.below(1024 - 16 + 1);
                *place = malloc(size);
                place.cast::<u8>().write_bytes(0x5a, size);
            }
        }
        let peak = resident().saturating_sub(before);
        random.shuffle(&mut objects);
        let (freed, kept) = objects.split_at(objects.len() * 99 / 100);
        // SAFETY: each is live and freed once.
        freed.iter().for_each(|&object| unsafe { free(object) });
        self.sample_left(before, peak);
        // SAFETY: as above.
        kept.iter().for_each(|&object| unsafe { free(object) });
    }

    pub(super) fn memory_remote(&mut self) {
        let early = (1_000_000 / self.effort.fewer_rounds) as u64;
        let late = 9 * early;
        let before = self.resident_before();
        let state = self.open(2048);
        let ring = Lines::new(kernels::ring_bytes());
        let (layout, kernels) = self.layouts[0];
        let found = [const { std::sync::atomic::AtomicU64::new(0) }; 2];
        let run = |index: usize| {
            let take = kernels.ring_take.expect("shared");
            let put = kernels.ring_put.expect("shared");
            // SAFETY: the ring is zeroed, one thread at each side.
            unsafe {
                if index == 0 {
                    put(state.pointer(), ring.pointer(), early + late);
                    return;
                }
                for (count, place) in [early, late].into_iter().zip(&found) {
                    take(state.pointer(), ring.pointer(), count);
                    place.store(resident().saturating_sub(before), Ordering::Relaxed);
                }
            }
        };
        team(2, || self.enter(&state), |_| (), run);
        for (metric, bytes) in ["after a tenth", "at the end"].into_iter().zip(found) {
            self.sample(metric, layout, mebibytes(bytes.into_inner()));
        }
    }

    pub(super) fn memory_threads(&mut self) {
        let threads = (MANY_THREADS / self.effort.fewer_objects).max(2);
        // The C library keeps its records of ended threads: the first team makes them.
        resident_of_idle(threads, || (), || ());
        let before = self.resident_before();
        let alone = resident();
        let of_threads = resident_of_idle(threads, || (), || ()).saturating_sub(alone);
        let state = self.open(128);
        let (layout, kernels) = self.layouts[0];
        let idle = resident_of_idle(
            threads,
            || self.enter(&state),
            // SAFETY: the state is of this table, and shared.
            || unsafe { (kernels.churn)(state.pointer(), ROUNDS_BEFORE_IDLE) },
        );
        let ended = resident();
        let used = |now: u64, not_ours: u64| mebibytes(now.saturating_sub(not_ours));
        self.sample("while idle", layout, used(idle, before + of_threads));
        self.sample("at the end", layout, used(ended, before));
    }
}
