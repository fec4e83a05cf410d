//! What is done around each call of the allocator.

use super::clock;
use super::histogram::{bucket, BUCKETS};
use super::memory::Shared;
use crate::plan::touch::{next_touch, LINE};
use crate::plan::{size_class, SIZE_LIMIT};
use anyhow::Result;
use core::ffi::c_void;

/// Which kind of call is timed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Allocate = 0,
    Free = 1,
    Reallocate = 2,
}

pub const CALLS: usize = 3;
/// Classes of sizes, see [`size_class`].
pub const SIZES: usize = SIZE_LIMIT.ilog2() as usize - 2;

/// Hooks of the replay loop. An object is `size` bytes at `object`, which is never NULL.
///
/// # Safety
/// The loop passes objects that the allocator just gave, or is about to be given back.
pub unsafe trait Mode {
    /// `size` is the object's, after a realloc.
    fn call<R>(&mut self, call: Call, size: usize, f: impl FnOnce() -> R) -> R;
    unsafe fn allocated(&mut self, object: *mut c_void, size: usize, align: usize, slot: u32);
    unsafe fn zeroed(&mut self, object: *mut c_void, size: usize, slot: u32);
    /// Before a free or a realloc; `size` may be less than the object's.
    unsafe fn used(&mut self, object: *mut c_void, size: usize, slot: u32);
    /// After a realloc; `old` is at most the old size.
    unsafe fn resized(&mut self, object: *mut c_void, old: usize, size: usize, from: u32, to: u32);
}

/// Writes into `from..to`.
///
/// # Safety
/// The object has `to` bytes.
#[inline(always)]
unsafe fn touch_write(object: *mut c_void, from: usize, to: usize) {
    let mut at = from;
    while at < to {
        // SAFETY: inside the object.
        unsafe { object.cast::<u8>().add(at).write_volatile(1) };
        at = next_touch(at);
    }
}

/// Touches memory as a program would, and does nothing else.
pub struct Touch;

// SAFETY: stays inside the objects.
unsafe impl Mode for Touch {
    #[inline(always)]
    fn call<R>(&mut self, _: Call, _: usize, f: impl FnOnce() -> R) -> R {
        f()
    }

    #[inline(always)]
    unsafe fn allocated(&mut self, object: *mut c_void, size: usize, _: usize, _: u32) {
        unsafe { touch_write(object, 0, size) };
    }

    /// Memory that is asked for zeroed is read; what is written first is its beginning.
    #[inline(always)]
    unsafe fn zeroed(&mut self, object: *mut c_void, size: usize, _: u32) {
        let mut at = 0;
        while at < size {
            unsafe { object.cast::<u8>().add(at).read_volatile() };
            at = next_touch(at);
        }
        unsafe { touch_write(object, 0, size.min(LINE)) };
    }

    #[inline(always)]
    unsafe fn used(&mut self, object: *mut c_void, size: usize, _: u32) {
        if size > 0 {
            unsafe { object.cast::<u8>().read_volatile() };
        }
    }

    #[inline(always)]
    unsafe fn resized(&mut self, object: *mut c_void, old: usize, size: usize, _: u32, _: u32) {
        unsafe { touch_write(object, old, size) };
    }
}

/// Touches, and times every call. All threads of a process share the counts of their own thread.
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

    /// The time of all calls of a kind, by the class of their size.
    pub fn sums(&self, call: Call) -> &[i64; SIZES] {
        &self.sums[call as usize]
    }
}

// SAFETY: does to objects what Touch does.
unsafe impl Mode for Timed {
    #[inline(always)]
    fn call<R>(&mut self, call: Call, size: usize, f: impl FnOnce() -> R) -> R {
        let start = clock::ticks();
        let result = f();
        let elapsed = (clock::ticks() - start) as i64 - self.overhead as i64;
        // Less than nothing is less than the clock's step, as nothing is: no percentile tells it.
        let bucket = bucket(elapsed.max(0) as u64);
        self.counts.as_mut_slice()[call as usize * BUCKETS + bucket] += 1;
        self.sums[call as usize][size_class(size as u64)] += elapsed;
        result
    }

    #[inline(always)]
    unsafe fn allocated(&mut self, object: *mut c_void, size: usize, align: usize, slot: u32) {
        unsafe { Touch.allocated(object, size, align, slot) };
    }

    #[inline(always)]
    unsafe fn zeroed(&mut self, object: *mut c_void, size: usize, slot: u32) {
        unsafe { Touch.zeroed(object, size, slot) };
    }

    #[inline(always)]
    unsafe fn used(&mut self, object: *mut c_void, size: usize, slot: u32) {
        unsafe { Touch.used(object, size, slot) };
    }

    #[inline(always)]
    unsafe fn resized(&mut self, object: *mut c_void, old: usize, size: usize, from: u32, to: u32) {
        unsafe { Touch.resized(object, old, size, from, to) };
    }
}

/// Writes every byte of every object and looks whether it is still there at the end.
///
/// The pattern is made of the slot, so that two objects that overlap are seen. Sizes are kept
/// beside the slots, written before the object is published and read after it was taken.
pub struct Verify<'a> {
    sizes: &'a [std::sync::atomic::AtomicU64],
    pub checked: u64,
    pub wrong: u64,
    pub first_wrong: Option<String>,
}

impl<'a> Verify<'a> {
    pub fn new(sizes: &'a [std::sync::atomic::AtomicU64]) -> Self {
        Verify {
            sizes,
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

    unsafe fn write(&mut self, object: *mut c_void, size: usize, slot: u32) {
        // SAFETY: the object has size bytes.
        let bytes = unsafe { std::slice::from_raw_parts_mut(object.cast::<u8>(), size) };
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = pattern(slot, index);
        }
        let order = std::sync::atomic::Ordering::Relaxed;
        self.sizes[slot as usize].store(size as u64, order);
    }

    unsafe fn check(&mut self, object: *mut c_void, size: usize, slot: u32, when: &str) {
        // SAFETY: the object has size bytes.
        let bytes = unsafe { std::slice::from_raw_parts(object.cast::<u8>(), size) };
        let wrong = (0..size).find(|&index| bytes[index] != pattern(slot, index));
        self.expect(wrong.is_none(), || {
            let at = wrong.unwrap_or(0);
            format!("byte {at} of {size} at {object:p} had changed {when}")
        });
        self.checked += 1;
    }

    fn size(&self, slot: u32) -> usize {
        self.sizes[slot as usize].load(std::sync::atomic::Ordering::Relaxed) as usize
    }
}

/// Differs between neighbouring slots, bytes and pages.
#[inline(always)]
fn pattern(slot: u32, index: usize) -> u8 {
    let mixed = slot.wrapping_mul(0x9E37_79B1) >> 24;
    (mixed as usize + index + (index >> 8)) as u8
}

// SAFETY: stays inside the objects; sizes come from `write`.
unsafe impl Mode for Verify<'_> {
    fn call<R>(&mut self, _: Call, _: usize, f: impl FnOnce() -> R) -> R {
        f()
    }

    unsafe fn allocated(&mut self, object: *mut c_void, size: usize, align: usize, slot: u32) {
        let due = align.max(if size < 16 { 8 } else { 16 });
        self.expect((object as usize).is_multiple_of(due), || {
            format!("{object:p} of {size} bytes is not a multiple of {due}")
        });
        unsafe { self.write(object, size, slot) };
    }

    unsafe fn zeroed(&mut self, object: *mut c_void, size: usize, slot: u32) {
        // SAFETY: the object has size bytes.
        let bytes = unsafe { std::slice::from_raw_parts(object.cast::<u8>(), size) };
        let dirty = bytes.iter().position(|&byte| byte != 0);
        self.expect(dirty.is_none(), || {
            format!(
                "byte {} of {size} from calloc is not zero",
                dirty.unwrap_or(0)
            )
        });
        unsafe { self.write(object, size, slot) };
    }

    unsafe fn used(&mut self, object: *mut c_void, _: usize, slot: u32) {
        let size = self.size(slot);
        unsafe { self.check(object, size, slot, "when it was freed") };
    }

    unsafe fn resized(&mut self, object: *mut c_void, _: usize, size: usize, from: u32, to: u32) {
        let kept = self.size(from).min(size);
        unsafe {
            self.check(object, kept, from, "by realloc");
            self.write(object, size, to);
        }
    }
}
