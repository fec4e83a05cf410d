//! Repeats the lives of a place's objects with several allocators, and measures them.
//!
//! The objects of the place alone are made and freed, by one thread, in the recorded order, and the
//! first word of each is written. The rest of the program is left out, so its effects on the CPU's
//! caches are too.

use super::lives::Life;
use crate::replay::caches::create;
use anyhow::{bail, Result};
use core::ffi::{c_uint, c_void};
use slabyard_sys as sys;
use std::time::Instant;

/// The fastest of so many rounds counts: everything that disturbs a round makes it slower.
const ROUNDS: usize = 5;

/// The figures of a place, each for one allocation or free.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    pub malloc_ns: f64,
    pub cache_ns: f64,
    /// `None`: several threads use the objects, so a pool is not possible.
    pub pool_ns: Option<f64>,
    pub cache_slot: u64,
    pub pool_slot: u64,
}

/// An allocator of objects of one size.
pub trait Maker {
    fn make(&mut self) -> *mut c_void;
    /// # Safety
    /// The object is live, and from this maker.
    unsafe fn end(&mut self, object: *mut c_void);
}

struct Malloc(usize);

impl Maker for Malloc {
    fn make(&mut self) -> *mut c_void {
        // SAFETY: any size may be asked for.
        unsafe { libc::malloc(self.0) }
    }
    unsafe fn end(&mut self, object: *mut c_void) {
        // SAFETY: as the caller says.
        unsafe { libc::free(object) }
    }
}

pub struct Cache(*mut sys::sy_cache);

impl Cache {
    pub fn new(size: usize, flags: c_uint) -> Result<Self> {
        Ok(Cache(create(size, flags)?))
    }

    /// The bytes that its slabs hold when all free memory has been given back.
    pub fn settled_bytes(&self) -> u64 {
        // SAFETY: the cache exists.
        unsafe {
            sys::sy_thread_flush();
            sys::sy_cache_trim(self.0);
        }
        let stats = self.stats();
        stats.mapped.saturating_sub(stats.discarded) as u64
    }

    fn stats(&self) -> sys::sy_cache_stats {
        // SAFETY: zero is a value of each field, and the cache exists.
        unsafe {
            let mut stats: sys::sy_cache_stats = std::mem::zeroed();
            sys::sy_cache_get_stats_sized(self.0, &mut stats, size_of_val(&stats));
            stats
        }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        // SAFETY: no object of it is used any more.
        unsafe { sys::sy_cache_destroy_all(self.0) }
    }
}

impl Maker for Cache {
    #[inline(always)]
    fn make(&mut self) -> *mut c_void {
        // SAFETY: the cache exists.
        unsafe { sys::sy_cache_alloc_inline(self.0) }
    }
    #[inline(always)]
    unsafe fn end(&mut self, object: *mut c_void) {
        // SAFETY: as the caller says.
        unsafe { sys::sy_cache_free_inline(self.0, object) }
    }
}

struct Pool(*mut sys::sy_pool);

impl Pool {
    fn new(size: usize) -> Result<Self> {
        let config = sys::sy_pool_config {
            size,
            ..sys::sy_pool_config::default()
        };
        // SAFETY: the configuration is complete.
        let pool = unsafe { sys::sy_pool_create(&config) };
        if pool.is_null() {
            bail!(
                "no pool for {size} bytes: {}",
                std::io::Error::last_os_error()
            );
        }
        Ok(Pool(pool))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: no object of it is used any more.
        unsafe { sys::sy_pool_destroy(self.0) }
    }
}

impl Maker for Pool {
    #[inline(always)]
    fn make(&mut self) -> *mut c_void {
        // SAFETY: the pool exists, and this thread alone uses it.
        unsafe { sys::sy_pool_alloc_inline(self.0) }
    }
    #[inline(always)]
    unsafe fn end(&mut self, object: *mut c_void) {
        // SAFETY: as the caller says.
        unsafe { sys::sy_pool_free_inline(self.0, object) }
    }
}

/// Makes and ends the objects as they were. `after` is called after each change, with the number of
/// changes until then. Objects that are left stay in `objects`.
#[inline(always)]
pub fn repeat_until<M: Maker>(
    life: &Life,
    maker: &mut M,
    objects: &mut [*mut c_void],
    mut after: impl FnMut(usize, &M),
) -> Result<()> {
    for (index, change) in life.changes.iter().enumerate() {
        let object = &mut objects[change.slot as usize];
        if change.begins {
            *object = maker.make();
            if object.is_null() {
                bail!("there is not enough memory to repeat the allocations of a place");
            }
            // SAFETY: objects have at least a byte.
            unsafe { object.cast::<u8>().write_volatile(1) };
        } else {
            // SAFETY: `change` ends what another one began.
            unsafe { maker.end(std::mem::replace(object, std::ptr::null_mut())) };
        }
        after(index + 1, maker);
    }
    Ok(())
}

/// Returns the nanoseconds of one change, and ends what is left untimed.
fn repeat<M: Maker>(life: &Life, maker: &mut M, objects: &mut [*mut c_void]) -> Result<f64> {
    let begin = Instant::now();
    repeat_until(life, maker, objects, |_, _| ())?;
    let ns = begin.elapsed().as_nanos() as f64;
    for object in objects.iter_mut().filter(|object| !object.is_null()) {
        // SAFETY: it is live.
        unsafe { maker.end(std::mem::replace(object, std::ptr::null_mut())) };
    }
    Ok(ns / life.changes.len().max(1) as f64)
}

pub fn fastest<M: Maker>(life: &Life, maker: &mut M) -> Result<f64> {
    let mut objects = vec![std::ptr::null_mut(); life.slots()];
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        best = best.min(repeat(life, maker, &mut objects)?);
    }
    Ok(best)
}

pub fn measure(life: &Life, size: usize) -> Result<Measured> {
    let size = size.max(1);
    let mut cache = Cache::new(size, 0)?;
    let mut measured = Measured {
        malloc_ns: fastest(life, &mut Malloc(size))?,
        cache_ns: fastest(life, &mut cache)?,
        cache_slot: cache.stats().slot_size as u64,
        ..Measured::default()
    };
    if life.in_one_thread {
        let mut pool = Pool::new(size)?;
        measured.pool_ns = Some(fastest(life, &mut pool)?);
        // SAFETY: the pool exists.
        measured.pool_slot = unsafe { sys::sy_pool_slot_size(pool.0) } as u64;
    }
    Ok(measured)
}
