//! Object caches for the sizes that the program asks for most, as the program would use them if it
//! were written for Slabyard's caches.

use crate::allocators::SLABYARD_CACHES;
use crate::plan::{HotSize, HOT_SIZES};
use anyhow::{bail, Result};
use core::ffi::{c_uint, c_void};
use slabyard_peers::Allocator;
use slabyard_sys as sys;

/// The caches, by their number in an operation. Number 0 means no cache.
pub struct Caches([*mut sys::sy_cache; HOT_SIZES + 1]);

// SAFETY: any thread may use a cache; the pointers do not change.
unsafe impl Sync for Caches {}

impl Caches {
    /// Creates the caches; `None` for all allocators except the one that has caches.
    pub fn of(allocator: &Allocator, hot: &[HotSize]) -> Result<Option<Self>> {
        if allocator.name != SLABYARD_CACHES {
            return Ok(None);
        }
        let mut caches = [std::ptr::null_mut(); HOT_SIZES + 1];
        for (cache, hot) in caches[1..].iter_mut().zip(hot) {
            *cache = create(hot.size as usize, 0)?;
        }
        Ok(Some(Caches(caches)))
    }

    /// # Safety
    /// `number` is the number of a cache.
    #[inline(always)]
    pub unsafe fn alloc(&self, number: u32) -> *mut c_void {
        // SAFETY: the cache exists, because caches are never destroyed.
        unsafe { sys::sy_cache_alloc_inline(self.0[number as usize]) }
    }

    /// # Safety
    /// `number` is the number of a cache.
    pub unsafe fn zalloc(&self, number: u32) -> *mut c_void {
        // SAFETY: as above.
        unsafe { sys::sy_cache_zalloc(self.0[number as usize]) }
    }

    /// # Safety
    /// The object is a live object of cache number `number`.
    #[inline(always)]
    pub unsafe fn free(&self, number: u32, object: *mut c_void) {
        // SAFETY: as the caller says.
        unsafe { sys::sy_cache_free_inline(self.0[number as usize], object) }
    }
}

/// A cache without a name for objects of this size. `flags`: of `sy_cache_config`.
pub fn create(size: usize, flags: c_uint) -> Result<*mut sys::sy_cache> {
    let config = sys::sy_cache_config {
        size,
        flags,
        // SAFETY: all zero is a valid configuration.
        ..unsafe { std::mem::zeroed() }
    };
    // SAFETY: the configuration is complete.
    let cache = unsafe { sys::sy_cache_create(&config) };
    if cache.is_null() {
        bail!(
            "no cache for {size} bytes: {}",
            std::io::Error::last_os_error()
        );
    }
    Ok(cache)
}
