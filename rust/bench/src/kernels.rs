//! The tables of loops: the C side of `kernels/kernels.h`, field by field.

use core::ffi::{c_char, c_int, c_void};

/// Copies of the same code, placed differently.
pub const LAYOUTS: usize = 3;
/// The copy that checks every object instead of being measured.
pub const VERIFY: usize = 3;

/// Any thread may allocate, and free what another allocated.
pub const SHARED: u64 = 1 << 0;
/// Opening does not touch the memory of all objects.
pub const GROWS: u64 = 1 << 1;

/// Objects in one batch of the queue.
pub const BATCH: u64 = 120;

/// All copies, in the order of a repeat: each repeat begins with another copy.
pub fn layouts(repeat: usize) -> Vec<usize> {
    let mut layouts: Vec<usize> = (0..LAYOUTS).collect();
    layouts.rotate_left(repeat % LAYOUTS);
    layouts
}

/// Copies as an argument of a measuring process.
pub fn encode_layouts(layouts: &[usize]) -> String {
    let layouts: Vec<String> = layouts.iter().map(usize::to_string).collect();
    layouts.join(",")
}

pub fn decode_layouts(text: &str) -> Option<Vec<usize>> {
    text.split(',').map(|layout| layout.parse().ok()).collect()
}

const EXACT_TICKS: usize = 2048;
const STEPS: usize = 64;
const OCTAVES: usize = 53;
const BUCKETS: usize = EXACT_TICKS + STEPS * OCTAVES;

pub type Objects = *mut *mut c_void;
pub type OpenFn = unsafe extern "C" fn(usize, usize) -> *mut c_void;
pub type StateFn = unsafe extern "C" fn(*mut c_void);
pub type ObjectsFn = unsafe extern "C" fn(*mut c_void, Objects, usize);
pub type CountFn = unsafe extern "C" fn(*mut c_void, u64);
pub type BatchFn = unsafe extern "C" fn(*mut c_void, Objects, usize, u64);
pub type OrderFn = unsafe extern "C" fn(*mut c_void, Objects, *const u32, usize, u64);
pub type SteadyFn = unsafe extern "C" fn(*mut c_void, Objects, usize, u64, u64);
pub type QueueFn = unsafe extern "C" fn(*mut c_void, *mut c_void, u64);
pub type TailSteadyFn = unsafe extern "C" fn(
    *mut c_void,
    Objects,
    usize,
    u64,
    u64,
    *mut RawHistogram,
    *mut RawHistogram,
);
pub type TailGrowFn = unsafe extern "C" fn(*mut c_void, Objects, usize, c_int, *mut RawHistogram);
pub type TailDrainFn = unsafe extern "C" fn(*mut c_void, Objects, usize, *mut RawHistogram);

/// `bench_histogram`.
#[repr(C)]
pub struct RawHistogram {
    buckets: [u64; BUCKETS],
}

/// `bench_allocator`. The loops across threads are missing if one thread owns the objects, and in
/// tables from `loops`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Kernels {
    pub name: *const c_char,
    pub traits: u64,
    pub open: OpenFn,
    pub close: StateFn,
    pub thread_end: StateFn,
    pub fill: ObjectsFn,
    pub drain: ObjectsFn,
    pub pair: CountFn,
    pub batch_lifo: BatchFn,
    pub batch_fifo: BatchFn,
    pub batch_random: OrderFn,
    pub steady: SteadyFn,
    pub churn: CountFn,
    pub get: BatchFn,
    pub pin: Option<BatchFn>,
    pub ring_put: Option<QueueFn>,
    pub ring_take: Option<QueueFn>,
    pub ring_read: Option<QueueFn>,
    pub queue_put: Option<QueueFn>,
    pub queue_take: Option<QueueFn>,
    pub exchange: Option<SteadyFn>,
    pub tail_steady: TailSteadyFn,
    pub tail_grow: TailGrowFn,
    pub tail_drain: TailDrainFn,
}

// SAFETY: a table of functions and a static string, never written.
unsafe impl Sync for Kernels {}
// SAFETY: as above.
unsafe impl Send for Kernels {}

#[cfg(feature = "peers")]
extern "C" {
    fn bench_table_0(count: *mut usize) -> *const Kernels;
    fn bench_table_1(count: *mut usize) -> *const Kernels;
    fn bench_table_2(count: *mut usize) -> *const Kernels;
    fn bench_table_3(count: *mut usize) -> *const Kernels;
    fn bench_heap_0(size: usize) -> *const Kernels;
    fn bench_heap_1(size: usize) -> *const Kernels;
    fn bench_heap_2(size: usize) -> *const Kernels;
    fn bench_heap_3(size: usize) -> *const Kernels;
    fn bench_snmalloc_0(size: usize) -> *const Kernels;
    fn bench_snmalloc_1(size: usize) -> *const Kernels;
    fn bench_snmalloc_2(size: usize) -> *const Kernels;
    fn bench_snmalloc_3(size: usize) -> *const Kernels;
    fn bench_ring_bytes() -> usize;
    fn bench_queue_bytes() -> usize;
    fn bench_timer_floor() -> u64;
    fn bench_verify_live() -> usize;
}

// The generic loops in Rust call these in the layout that checks.
extern "C" {
    pub(crate) fn bench_verify_born(object: *mut c_void, size: usize, name: *mut c_void);
    pub(crate) fn bench_verify_seen(object: *mut c_void, name: *mut c_void);
    pub(crate) fn bench_verify_died(object: *mut c_void, size: usize, name: *mut c_void);
}

/// The compiled-in tables of one layout that serve any size.
#[cfg(feature = "peers")]
pub fn table(layout: usize) -> &'static [Kernels] {
    let of = [bench_table_0, bench_table_1, bench_table_2, bench_table_3][layout];
    let mut count = 0;
    // SAFETY: gives a static array and its length.
    unsafe { core::slice::from_raw_parts(of(&mut count), count) }
}

/// Slabyard's heap, inlined for a constant size, for the sizes that were compiled.
#[cfg(feature = "peers")]
pub fn heap_constant(layout: usize, size: usize) -> Option<&'static Kernels> {
    let of = [bench_heap_0, bench_heap_1, bench_heap_2, bench_heap_3][layout];
    // SAFETY: gives null or a static table.
    unsafe { of(size).as_ref() }
}

/// snmalloc's inline form, for the sizes that were compiled.
#[cfg(feature = "peers")]
pub fn snmalloc_inline(layout: usize, size: usize) -> Option<&'static Kernels> {
    let of = [
        bench_snmalloc_0,
        bench_snmalloc_1,
        bench_snmalloc_2,
        bench_snmalloc_3,
    ][layout];
    // SAFETY: gives null or a static table.
    unsafe { of(size).as_ref() }
}

#[cfg(feature = "peers")]
pub fn ring_bytes() -> usize {
    // SAFETY: returns a constant.
    unsafe { bench_ring_bytes() }
}

#[cfg(feature = "peers")]
pub fn queue_bytes() -> usize {
    // SAFETY: returns a constant.
    unsafe { bench_queue_bytes() }
}

/// Ticks between two readings of the clock without an operation.
#[cfg(feature = "peers")]
pub fn timer_floor() -> u64 {
    // SAFETY: reads the clock.
    unsafe { bench_timer_floor() }
}

/// Objects in the ledger of the verifying layout.
#[cfg(feature = "peers")]
pub fn verify_live() -> usize {
    // SAFETY: takes a lock and counts.
    unsafe { bench_verify_live() }
}

/// Ticks of many operations.
pub struct Histogram(Box<RawHistogram>);

impl RawHistogram {
    /// Adds one operation, into the bucket that the kernels would choose.
    #[inline(always)]
    pub fn add(&mut self, ticks: u64) {
        self.buckets[bucket_of(ticks)] += 1;
    }
}

impl Default for Histogram {
    fn default() -> Self {
        let empty = vec![0u64; BUCKETS].into_boxed_slice();
        // SAFETY: RawHistogram is repr(C) around an array of exactly that many words.
        Histogram(unsafe { Box::from_raw(Box::into_raw(empty).cast::<RawHistogram>()) })
    }
}

impl Histogram {
    pub fn raw(&mut self) -> *mut RawHistogram {
        &mut *self.0
    }

    pub fn total(&self) -> u64 {
        self.0.buckets.iter().sum()
    }

    /// Adds one operation, or a batch of them.
    #[inline(always)]
    pub fn add(&mut self, ticks: u64) {
        self.0.add(ticks);
    }

    /// The mean ticks of the shortest operations, as many as this share (to the bucket).
    pub fn mean_of_shortest(&self, share: f64) -> f64 {
        let wanted = ((self.total() as f64 * share).ceil() as u64).max(1);
        let (mut seen, mut ticks) = (0, 0.0);
        for (bucket, &count) in self.0.buckets.iter().enumerate() {
            let taken = count.min(wanted - seen);
            ticks += taken as f64 * ticks_of(bucket) as f64;
            seen += taken;
        }
        ticks / seen.max(1) as f64
    }

    /// The least ticks that at least this share of the operations did not exceed (to the bucket).
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = ((self.total() as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.0.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return ticks_of(bucket);
            }
        }
        0
    }
}

#[inline(always)]
fn bucket_of(ticks: u64) -> usize {
    if ticks < EXACT_TICKS as u64 {
        return ticks as usize;
    }
    let octave = (ticks.ilog2() - EXACT_TICKS.ilog2()) as usize;
    EXACT_TICKS + octave * STEPS + (ticks >> (octave + 5)) as usize % STEPS
}

/// The least ticks that fall into a bucket.
fn ticks_of(bucket: usize) -> u64 {
    if bucket < EXACT_TICKS {
        return bucket as u64;
    }
    let (octave, step) = (
        (bucket - EXACT_TICKS) / STEPS,
        (bucket - EXACT_TICKS) % STEPS,
    );
    ((STEPS + step) as u64) << (octave + 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_and_ticks_are_inverse() {
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(ticks_of(bucket)), bucket);
        }
        for ticks in [0, 1, 2047, 2048, 2049, 5000, 123_456, 1 << 40, u64::MAX] {
            let least = ticks_of(bucket_of(ticks));
            assert!(
                least <= ticks && (ticks - least) <= ticks / 64,
                "{ticks} {least}"
            );
        }
    }

    #[test]
    fn quantiles_of_a_known_histogram() {
        let mut histogram = Histogram::default();
        for ticks in 1..=1000 {
            histogram.0.add(ticks);
        }
        assert_eq!(histogram.total(), 1000);
        assert_eq!(histogram.quantile(0.5), 500);
        assert_eq!(histogram.quantile(0.99), 990);
        assert_eq!(histogram.quantile(0.999), 999);
        assert_eq!(histogram.quantile(1.0), 1000);
        assert_eq!(histogram.mean_of_shortest(1.0), 500.5);
        assert_eq!(histogram.mean_of_shortest(0.5), 250.5);
        assert_eq!(Histogram::default().mean_of_shortest(0.5), 0.0);
        assert_eq!(Histogram::default().quantile(0.5), 0);
    }
}
