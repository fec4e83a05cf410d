//! A program that grows and shrinks, with sizes that change: resident memory at its peaks and
//! troughs, and after a while with few operations; CPU time and page faults of an operation.

use super::memory::mebibytes;
use super::{Bench, Random};
use crate::machine::{self, resident};
use core::ffi::c_void;
use core::ptr::dangling_mut;
use slabyard_peers::{FreeFn, MallocFn};
use std::time::{Duration, Instant};

/// Live bytes at a peak. At a trough a tenth of them is live.
const HIGH: usize = 28 << 20;
/// The size of the smallest object, which limits the number of objects at a peak.
const SMALLEST: usize = 32;
const LARGEST: usize = 4096;

/// The live objects, in an array that was touched before.
struct Population {
    malloc: MallocFn,
    free: FreeFn,
    /// In the order of allocation, if the oldest are freed.
    objects: Vec<(*mut c_void, usize)>,
    live: usize,
    random: Random,
}

impl Population {
    fn new(malloc: MallocFn, free: FreeFn, seed: u64) -> Population {
        let mut objects: Vec<(*mut c_void, usize)> = vec![(dangling_mut(), 1); HIGH / SMALLEST];
        std::hint::black_box(objects.as_mut_ptr());
        objects.clear();
        Population {
            malloc,
            free,
            objects,
            live: 0,
            random: Random(seed),
        }
    }

    /// Grows to the peak, with other sizes each time, so that memory freed in one size is needed in
    /// another.
    fn grow(&mut self, high: usize) {
        let share = self.random.below(1000) as f64 / 1000.0;
        let most = (2.0 * SMALLEST as f64 * (LARGEST as f64 / 64.0).powf(share)) as usize;
        while self.live < high {
            let size = most / 2 + self.random.below(most / 2) + 1;
            // SAFETY: the object has `size` bytes.
            unsafe {
                let object = (self.malloc)(size);
                object.cast::<u8>().write_bytes(0x5a, size);
                self.objects.push((object, size));
            }
            self.live += size;
        }
    }

    fn free(&mut self, object: *mut c_void, size: usize) {
        // SAFETY: the caller has taken the object out of `objects`.
        unsafe { (self.free)(object) };
        self.live -= size;
    }

    fn shrink_at_random(&mut self, low: usize) {
        while self.live > low {
            let chosen = self.random.below(self.objects.len());
            let (object, size) = self.objects.swap_remove(chosen);
            self.free(object, size);
        }
    }

    fn shrink_oldest(&mut self, low: usize) {
        let mut gone = 0;
        while self.live > low {
            let (object, size) = self.objects[gone];
            self.free(object, size);
            gone += 1;
        }
        self.objects.drain(..gone);
    }

    /// Bytes of the pages that contain at least one byte of a live object: the minimum for an
    /// allocator that does not move objects.
    fn page_bound(&self, pages: &mut Vec<usize>) -> u64 {
        let page = machine::page_size();
        pages.clear();
        for &(object, size) in &self.objects {
            pages.extend(object as usize / page..=(object as usize + size - 1) / page);
        }
        pages.sort_unstable();
        pages.dedup();
        (pages.len() * page) as u64
    }

    /// Allocates and frees one object each millisecond.
    fn trickle(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            let size = SMALLEST + self.random.below(LARGEST - SMALLEST + 1);
            // SAFETY: the object has `size` bytes, and is freed once.
            unsafe {
                let object = (self.malloc)(size);
                object.cast::<u8>().write_bytes(0x5a, size);
                (self.free)(object);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Population {
    fn drop(&mut self) {
        for &(object, _) in &self.objects {
            // SAFETY: it is live and freed once.
            unsafe { (self.free)(object) };
        }
    }
}

/// CPU time and page faults of the operations so far.
#[derive(Default)]
struct Cost {
    operations: usize,
    cpu_ns: u64,
    faults: u64,
}

impl Cost {
    /// Adds the cost of `work`, without its operations.
    fn add(&mut self, work: impl FnOnce()) {
        let (cpu, faults) = (machine::cpu_ns(), machine::faults());
        work();
        self.cpu_ns += machine::cpu_ns() - cpu;
        self.faults += machine::faults() - faults;
    }

    fn of_each(&self, total: u64) -> f64 {
        total as f64 / self.operations.max(1) as f64
    }
}

/// Resident memory at the peaks of all cycles.
#[derive(Default)]
struct Peaks {
    count: u64,
    sum: u64,
    highest: u64,
    last: u64,
}

impl Peaks {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.sum += bytes;
        self.highest = self.highest.max(bytes);
        self.last = bytes;
    }

    fn mean(&self) -> u64 {
        self.sum / self.count.max(1)
    }
}

impl Bench<'_> {
    pub(super) fn memory_cycles(&mut self, oldest: bool) {
        let (malloc, free) = self.allocator.any_size().expect("a suitable allocator");
        let mut population = Population::new(malloc, free, self.seed);
        let mut pages = vec![usize::MAX; HIGH / SMALLEST];
        std::hint::black_box(pages.as_mut_ptr());
        let before = self.resident_before();
        let used = || resident().saturating_sub(before);
        let high = HIGH / self.effort.fewer_objects;
        let (mut peaks, mut trough) = (Peaks::default(), 0);
        let mut cost = Cost::default();
        for _ in 0..(1000 / self.effort.fewer_rounds).max(2) {
            let survivors = population.objects.len();
            cost.add(|| population.grow(high));
            let grown = population.objects.len();
            peaks.add(used());
            cost.add(|| {
                if oldest {
                    population.shrink_oldest(high / 10);
                } else {
                    population.shrink_at_random(high / 10);
                }
            });
            cost.operations += 2 * grown - survivors - population.objects.len();
            trough = used();
        }
        let bound = population.page_bound(&mut pages);
        population.trickle(self.effort.trickle);
        let decayed = used();
        self.purge();
        let found = [
            ("mean of the peaks", peaks.mean()),
            ("highest peak", peaks.highest),
            ("at the peak", peaks.last),
            ("at the trough", trough),
            ("page bound", bound),
            ("after a while", decayed),
            ("purged", used()),
        ];
        let layout = self.layouts[0].0;
        for (metric, bytes) in found {
            self.sample(metric, layout, mebibytes(bytes));
        }
        self.sample("ns of an operation", layout, cost.of_each(cost.cpu_ns));
        let faults = 1000.0 * cost.of_each(cost.faults);
        self.sample("faults of a thousand", layout, faults);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn population() -> Population {
        let glibc = slabyard_peers::find("glibc").unwrap();
        Population::new(glibc.malloc, glibc.free, 7)
    }

    #[test]
    fn the_peaks_of_all_cycles_count() {
        let mut peaks = Peaks::default();
        for bytes in [10, 40, 25] {
            peaks.add(bytes);
        }
        assert_eq!((peaks.mean(), peaks.highest, peaks.last), (25, 40, 25));
    }

    #[test]
    fn the_cost_is_that_of_the_work_alone() {
        let touch = |pages: usize| {
            let block = vec![1u8; pages * machine::page_size()];
            std::hint::black_box(block.as_ptr());
        };
        let mut cost = Cost::default();
        touch(4000);
        cost.add(|| ());
        assert!(cost.faults < 100, "{}", cost.faults);
        cost.add(|| touch(4000));
        cost.operations = 4000;
        let each = cost.of_each(cost.faults);
        // With huge pages, a fault is one of 512 pages.
        assert!(each > 0.9 / 512.0 && each < 1.5, "{each}");
        assert!(cost.cpu_ns > 0);
    }

    #[test]
    fn the_oldest_go_first() {
        let mut population = population();
        population.grow(1 << 20);
        let all: Vec<_> = population.objects.clone();
        population.shrink_oldest(1 << 18);
        assert!(population.live <= 1 << 18 && !population.objects.is_empty());
        let kept = population.objects.len();
        assert_eq!(population.objects, all[all.len() - kept..]);
        let live: usize = population.objects.iter().map(|object| object.1).sum();
        assert_eq!(population.live, live);
    }

    #[test]
    fn random_ones_go_and_the_count_agrees() {
        let mut population = population();
        population.grow(1 << 20);
        population.shrink_at_random(1 << 18);
        assert!(population.live <= 1 << 18);
        let live: usize = population.objects.iter().map(|object| object.1).sum();
        assert_eq!(population.live, live);
    }

    #[test]
    fn the_page_bound_counts_each_page_once() {
        let (page, mut population) = (machine::page_size(), population());
        let at = |offset: usize| (16 * page + offset) as *mut c_void;
        population.objects = vec![
            (at(0), 8),
            (at(page - 8), 8),
            (at(2 * page - 1), 2),
            (at(5 * page), page),
        ];
        assert_eq!(population.page_bound(&mut Vec::new()), 4 * page as u64);
        population.objects.clear();
    }
}
