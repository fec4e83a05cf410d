//! The modes of a replay: the work around each call of the allocator.

use super::clock;
use super::histogram::{bucket, BUCKETS};
use super::memory::Shared;
use crate::plan::touch::{next_touch, Touched, LINE};
use crate::plan::{size_class, SIZE_LIMIT};
use anyhow::Result;
use core::ffi::c_void;

/// The kind of a timed call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Allocate = 0,
    Free = 1,
    Reallocate = 2,
}

pub const CALLS: usize = 3;
/// The number of size classes; see [`size_class`].
pub const SIZES: usize = SIZE_LIMIT.ilog2() as usize - 2;

/// Functions that the replay loop calls. An object has `size` bytes at `object`, which is never
/// NULL.
///
/// # Safety
/// The loop passes objects that the allocator just returned, or that are about to be given back to
/// it.
pub unsafe trait Mode {
    /// Wraps a call. `size` is the object's; for a realloc, the new one.
    fn call<R>(&mut self, call: Call, size: usize, f: impl FnOnce() -> R) -> R;
    /// After an allocation. `touched`: the share of its pages that the program touched. In `zeroed`
    /// and `resized` it means the zeroed memory and the added memory.
    unsafe fn allocated(
        &mut self,
        object: *mut c_void,
        size: usize,
        align: usize,
        slot: u32,
        touched: Touched,
    );
    unsafe fn zeroed(&mut self, object: *mut c_void, size: usize, slot: u32, touched: Touched);
    /// Before a free or a realloc. `size` may be less than the object's.
    unsafe fn used(&mut self, object: *mut c_void, size: usize, slot: u32);
    /// After a realloc, which moves the object from one slot to another. `old` is at most the old
    /// size.
    unsafe fn resized(
        &mut self,
        object: *mut c_void,
        old: usize,
        size: usize,
        slots: (u32, u32),
        touched: Touched,
    );
}

/// Writes into `from..to` as the program did, or, if that is unknown, as programs usually do.
///
/// # Safety
/// The object has `to` bytes.
#[inline(always)]
unsafe fn touch_write(object: *mut c_void, from: usize, to: usize, touched: Touched) {
    if touched.is_known() {
        return unsafe { touch_places(object, from, to, touched) };
    }
    let mut at = from;
    while at < to {
        // SAFETY: `at` is inside the object.
        unsafe { object.cast::<u8>().add(at).write_volatile(1) };
        at = next_touch(at);
    }
}

/// # Safety
/// The object has `to` bytes.
#[cold]
unsafe fn touch_places(object: *mut c_void, from: usize, to: usize, touched: Touched) {
    for at in touched.places(from, to) {
        // SAFETY: `at` is inside the object.
        unsafe { object.cast::<u8>().add(at).write_volatile(1) };
    }
}

/// The mode that touches memory as a program would, and does nothing else.
pub struct Touch;

// SAFETY: it stays inside the objects.
unsafe impl Mode for Touch {
    #[inline(always)]
    fn call<R>(&mut self, _: Call, _: usize, f: impl FnOnce() -> R) -> R {
        f()
    }

    #[inline(always)]
    unsafe fn allocated(
        &mut self,
        object: *mut c_void,
        size: usize,
        _: usize,
        _: u32,
        touched: Touched,
    ) {
        unsafe { touch_write(object, 0, size, touched) };
    }

    /// Reads zeroed memory and writes its first line only, unless the touched share is known.
    #[inline(always)]
    unsafe fn zeroed(&mut self, object: *mut c_void, size: usize, _: u32, touched: Touched) {
        if touched.is_known() {
            return unsafe { touch_places(object, 0, size, touched) };
        }
        let mut at = 0;
        while at < size {
            unsafe { object.cast::<u8>().add(at).read_volatile() };
            at = next_touch(at);
        }
        unsafe { touch_write(object, 0, size.min(LINE), Touched::UNKNOWN) };
    }

    #[inline(always)]
    unsafe fn used(&mut self, object: *mut c_void, size: usize, _: u32) {
        if size > 0 {
            unsafe { object.cast::<u8>().read_volatile() };
        }
    }

    #[inline(always)]
    unsafe fn resized(
        &mut self,
        object: *mut c_void,
        old: usize,
        size: usize,
        _: (u32, u32),
        touched: Touched,
    ) {
        unsafe { touch_write(object, old, size, touched) };
    }
}

/// The mode that touches memory and times every call. Each thread counts in memory of its own.
pub struct Timed {
    counts: Shared<u64>,
    sums: [[i64; SIZES]; CALLS],
    overhead: u64,
}

impl Timed {
    pub fn new(overhead: u64) -> Result<Self> {
        let mut counts = Shared::new(CALLS * BUCKETS)?;
        counts.as_mut_slice().fill(0);
        Ok(Timed {
            counts,
            sums: [[0; SIZES]; CALLS],
            overhead,
        })
    }

    pub fn counts(&self, call: Call) -> &[u64] {
        &self.counts.as_slice()[call as usize * BUCKETS..][..BUCKETS]
    }

    /// The total time of the calls of a kind, by the class of their size.
    pub fn sums(&self, call: Call) -> &[i64; SIZES] {
        &self.sums[call as usize]
    }
}

// SAFETY: it accesses objects only as Touch does.
unsafe impl Mode for Timed {
    #[inline(always)]
    fn call<R>(&mut self, call: Call, size: usize, f: impl FnOnce() -> R) -> R {
        let start = clock::ticks();
        let result = f();
        let elapsed = (clock::ticks() - start) as i64 - self.overhead as i64;
        // A negative time counts as 0. Both are below the clock's step, where percentiles are not
        // distinguished.
        let bucket = bucket(elapsed.max(0) as u64);
        self.counts.as_mut_slice()[call as usize * BUCKETS + bucket] += 1;
        self.sums[call as usize][size_class(size as u64)] += elapsed;
        result
    }

    #[inline(always)]
    unsafe fn allocated(
        &mut self,
        object: *mut c_void,
        size: usize,
        align: usize,
        slot: u32,
        touched: Touched,
    ) {
        unsafe { Touch.allocated(object, size, align, slot, touched) };
    }

    #[inline(always)]
    unsafe fn zeroed(&mut self, object: *mut c_void, size: usize, slot: u32, touched: Touched) {
        unsafe { Touch.zeroed(object, size, slot, touched) };
    }

    #[inline(always)]
    unsafe fn used(&mut self, object: *mut c_void, size: usize, slot: u32) {
        unsafe { Touch.used(object, size, slot) };
    }

    #[inline(always)]
    unsafe fn resized(
        &mut self,
        object: *mut c_void,
        old: usize,
        size: usize,
        slots: (u32, u32),
        touched: Touched,
    ) {
        unsafe { Touch.resized(object, old, size, slots, touched) };
    }
}

/// The mode that writes every byte of every object, and checks at the object's end that no byte
/// changed. In a large object with pages that the program did not touch, it writes the touched part
/// only.
///
/// The pattern depends on the slot, so that overlapping objects are found. The written part is
/// noted beside the slots (see [`Written`]): stored before the object is published, read after it
/// is taken.
pub struct Verify<'a> {
    written: &'a [std::sync::atomic::AtomicU64],
    pub checked: u64,
    pub wrong: u64,
    pub first_wrong: Option<String>,
}

impl<'a> Verify<'a> {
    pub fn new(written: &'a [std::sync::atomic::AtomicU64]) -> Self {
        Verify {
            written,
            checked: 0,
            wrong: 0,
            first_wrong: None,
        }
    }

    fn expect(&mut self, right: bool, complaint: impl FnOnce() -> String) {
        if !right {
            self.wrong += 1;
            self.first_wrong.get_or_insert_with(complaint);
        }
    }

    unsafe fn write(&mut self, object: *mut c_void, written: Written, slot: u32) {
        let start = object.cast::<u8>();
        // SAFETY: the object has `size` bytes.
        written.each(|at| unsafe { start.add(at).write(pattern(slot, at)) });
        let order = std::sync::atomic::Ordering::Relaxed;
        self.written[slot as usize].store(written.word(), order);
    }

    /// Checks the first `kept` bytes.
    unsafe fn check(&mut self, object: *mut c_void, kept: usize, slot: u32, when: &str) {
        let (start, written) = (object.cast::<u8>(), self.written(slot));
        let mut wrong = None;
        written.each(|at| {
            // SAFETY: the object has `kept` bytes.
            if at < kept && unsafe { start.add(at).read() } != pattern(slot, at) {
                wrong.get_or_insert(at);
            }
        });
        self.expect(wrong.is_none(), || {
            let at = wrong.unwrap_or(0);
            format!("byte {at} of {kept} at {object:p} had changed {when}")
        });
        self.checked += 1;
    }

    fn written(&self, slot: u32) -> Written {
        Written::of(self.written[slot as usize].load(std::sync::atomic::Ordering::Relaxed))
    }
}

/// The bytes of an object that have been written.
#[derive(Clone, Copy)]
struct Written {
    size: usize,
    touched: Touched,
}

impl Written {
    /// Packs both fields. Sizes have 40 bits; see [`SIZE_LIMIT`].
    fn word(self) -> u64 {
        self.size as u64 | u64::from(self.touched.0) << SIZE_LIMIT.ilog2()
    }

    fn of(word: u64) -> Self {
        Written {
            size: (word & (SIZE_LIMIT - 1)) as usize,
            touched: Touched((word >> SIZE_LIMIT.ilog2()) as u16),
        }
    }

    fn each(self, visit: impl FnMut(usize)) {
        if self.touched.is_known() {
            self.touched.places(0, self.size).for_each(visit);
        } else {
            (0..self.size).for_each(visit);
        }
    }
}

/// A byte that differs between neighbouring slots, bytes and pages.
#[inline(always)]
fn pattern(slot: u32, index: usize) -> u8 {
    let mixed = slot.wrapping_mul(0x9E37_79B1) >> 24;
    (mixed as usize + index + (index >> 8)) as u8
}

// SAFETY: it stays inside the objects; sizes come from `write`.
unsafe impl Mode for Verify<'_> {
    fn call<R>(&mut self, _: Call, _: usize, f: impl FnOnce() -> R) -> R {
        f()
    }

    unsafe fn allocated(
        &mut self,
        object: *mut c_void,
        size: usize,
        align: usize,
        slot: u32,
        touched: Touched,
    ) {
        let due = align.max(if size < 16 { 8 } else { 16 });
        self.expect((object as usize).is_multiple_of(due), || {
            format!("{object:p} of {size} bytes is not a multiple of {due}")
        });
        unsafe { self.write(object, Written { size, touched }, slot) };
    }

    unsafe fn zeroed(&mut self, object: *mut c_void, size: usize, slot: u32, touched: Touched) {
        // SAFETY: the object has `size` bytes.
        let bytes = unsafe { std::slice::from_raw_parts(object.cast::<u8>(), size) };
        let dirty = bytes.iter().position(|&byte| byte != 0);
        self.expect(dirty.is_none(), || {
            format!(
                "byte {} of {size} from calloc is not zero",
                dirty.unwrap_or(0)
            )
        });
        unsafe { self.write(object, Written { size, touched }, slot) };
    }

    unsafe fn used(&mut self, object: *mut c_void, _: usize, slot: u32) {
        let size = self.written(slot).size;
        unsafe { self.check(object, size, slot, "when it was freed") };
    }

    unsafe fn resized(
        &mut self,
        object: *mut c_void,
        _: usize,
        size: usize,
        (from, to): (u32, u32),
        touched: Touched,
    ) {
        let kept = self.written(from).size.min(size);
        unsafe {
            self.check(object, kept, from, "by realloc");
            self.write(object, Written { size, touched }, to);
        }
    }
}
