//! `slabyard/pool.h`: one thread at a time, one kind of object.

use crate::{c_char, c_uint, c_void};

/// A pool; only ever behind a pointer.
#[repr(C)]
pub struct sy_pool {
    _opaque: [u8; 0],
    _neither_send_nor_moved: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// Memory is touched when it is reserved, not when it is first used.
pub const SY_POOL_PREFAULT: c_uint = 1 << 0;
/// Memory is asked for in huge pages.
pub const SY_POOL_HUGE: c_uint = 1 << 1;

/// What kind of objects; zeroes are sensible for all but `size`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sy_pool_config {
    /// Bytes of an object.
    pub size: usize,
    /// A power of two, or 0.
    pub align: usize,
    /// Bytes by which an unbounded pool grows, or 0.
    pub chunk_bytes: usize,
    /// Most live objects, or 0 for an unbounded pool.
    pub capacity: usize,
    /// `SY_POOL_...`, and [`crate::SY_CHECKED`] and others.
    pub flags: c_uint,
    /// Copied; for reports. Null: `"pool"`.
    pub name: *const c_char,
    /// Zero.
    pub reserved: [usize; 3],
}

impl Default for sy_pool_config {
    fn default() -> Self {
        // SAFETY: numbers and a pointer.
        unsafe { core::mem::zeroed() }
    }
}

extern "C" {
    /// A new pool, or null. The caller owns it.
    ///
    /// # Safety
    /// `config` is valid.
    pub fn sy_pool_create(config: *const sy_pool_config) -> *mut sy_pool;

    /// Takes an object; null when the pool is bounded and full, or there is no memory.
    ///
    /// # Safety
    /// No other thread is using the pool.
    pub fn sy_pool_alloc(pool: *mut sy_pool) -> *mut c_void;

    /// Gives an object back; null is a no-op.
    ///
    /// # Safety
    /// `object` is null or a live object of the pool; no other thread is using the pool.
    pub fn sy_pool_free(pool: *mut sy_pool, object: *mut c_void);

    /// Makes all objects free at once.
    ///
    /// # Safety
    /// No object of the pool is used again; no other thread is using the pool.
    pub fn sy_pool_reset(pool: *mut sy_pool);

    /// Destroys the pool with all its objects.
    ///
    /// # Safety
    /// No object of the pool is used again; no other thread is using the pool.
    pub fn sy_pool_destroy(pool: *mut sy_pool);

    /// Live objects, exact; counts the freelist.
    ///
    /// # Safety
    /// No other thread is using the pool.
    pub fn sy_pool_in_use(pool: *const sy_pool) -> usize;

    /// Bytes from one object to the next.
    ///
    /// # Safety
    /// None beyond the rules common to all doors.
    pub fn sy_pool_slot_size(pool: *const sy_pool) -> usize;

    /// Most live objects, or 0 for an unbounded pool.
    ///
    /// # Safety
    /// None beyond the rules common to all doors.
    pub fn sy_pool_capacity(pool: *const sy_pool) -> usize;
}
