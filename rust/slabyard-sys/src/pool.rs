//! `slabyard/pool.h`: one thread at a time, one kind of object.

use crate::{c_char, c_uint, c_void};

/// A pool; only ever behind a pointer that [`sy_pool_create`] gave. The fields are not for callers:
/// the functions below that are inline know them (binary interface 1).
#[repr(C)]
pub struct sy_pool {
    #[doc(hidden)]
    pub extent: *mut c_void,
    #[doc(hidden)]
    pub carved_before: usize,
    #[doc(hidden)]
    pub capacity: usize,
    #[doc(hidden)]
    pub chunk_bytes: usize,
    #[doc(hidden)]
    pub stride: usize,
    #[doc(hidden)]
    pub free: *mut c_void,
    #[doc(hidden)]
    pub limit: *mut u8,
    #[doc(hidden)]
    pub bump: *mut u8,
    pub(crate) _neither_send_nor_moved:
        core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
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

    /// Where no object is live, gives the memory back to the system; returns bytes.
    ///
    /// # Safety
    /// No other thread is using the pool.
    pub fn sy_pool_trim(pool: *mut sy_pool) -> usize;

    /// Live objects, exact; counts the free list.
    ///
    /// # Safety
    /// No other thread is using the pool.
    pub fn sy_pool_in_use(pool: *const sy_pool) -> usize;

    /// Bytes from one object to the next.
    ///
    /// # Safety
    /// None beyond the rules common to all doors.
    pub fn sy_pool_slot_size(pool: *const sy_pool) -> usize;

    /// Objects that fit: the capacity of a bounded pool; of another, what it holds before it grows.
    ///
    /// # Safety
    /// No other thread is using the pool.
    pub fn sy_pool_capacity(pool: *const sy_pool) -> usize;

    /// Grows a pool of which no slot is free, and takes an object; null where it cannot.
    ///
    /// # Safety
    /// [`sy_pool_pop`] just found nothing; no other thread is using the pool.
    #[link_name = "sy_pool_grow_abi_1"]
    pub fn sy_pool_grow(pool: *mut sy_pool) -> *mut c_void;

    /// Reports that the object that was freed last is freed again; by default the process ends.
    ///
    /// # Safety
    /// None beyond the rules common to all doors.
    #[link_name = "sy_pool_freed_twice_abi_1"]
    pub fn sy_pool_freed_twice(pool: *mut sy_pool, object: *mut c_void);
}

/// The first half of [`sy_pool_alloc_inline`]: an object without growing, or null.
///
/// # Safety
/// No other thread is using the pool.
#[inline(always)]
pub unsafe fn sy_pool_pop(pool: *mut sy_pool) -> *mut c_void {
    // SAFETY: the caller says that the pool exists and is ours; the first word of a free slot is
    // the link to the next, and bump is a slot unless it is the limit.
    unsafe {
        let object = (*pool).free;
        if !object.is_null() {
            (*pool).free = *object.cast::<*mut c_void>();
            return object;
        }
        seldom();
        let fresh = (*pool).bump;
        if fresh == (*pool).limit {
            return core::ptr::null_mut();
        }
        (*pool).bump = fresh.add((*pool).stride);
        core::hint::assert_unchecked(!fresh.is_null());
        fresh.cast()
    }
}

/// Says that what calls it is not the usual way.
#[cold]
#[inline(always)]
fn seldom() {}

/// [`sy_pool_alloc`], compiled into the caller.
///
/// # Safety
/// No other thread is using the pool.
#[inline(always)]
pub unsafe fn sy_pool_alloc_inline(pool: *mut sy_pool) -> *mut c_void {
    // SAFETY: as the caller says.
    unsafe {
        let object = sy_pool_pop(pool);
        if object.is_null() {
            sy_pool_grow(pool)
        } else {
            object
        }
    }
}

/// [`sy_pool_free`], compiled into the caller; unlike it, not for null.
///
/// # Safety
/// `object` is a live object of the pool; no other thread is using the pool.
#[inline(always)]
pub unsafe fn sy_pool_free_inline(pool: *mut sy_pool, object: *mut c_void) {
    // SAFETY: the object is the caller's, and nobody's from here on.
    unsafe {
        let newest = (*pool).free;
        if object == newest {
            seldom();
            sy_pool_freed_twice(pool, object);
            return;
        }
        object.cast::<*mut c_void>().write(newest);
        (*pool).free = object;
    }
}

/// A word of the caller's that goes with the pool; 0 at first.
///
/// # Safety
/// The pool exists for as long as the pointer is used.
#[inline(always)]
pub unsafe fn sy_pool_word(pool: *mut sy_pool) -> *mut usize {
    // SAFETY: the word follows the struct, in the same object.
    unsafe { pool.add(1).cast() }
}
