//! `slabyard/pool.h`: pools of objects of one kind, used by one thread at a time.

use crate::{c_char, c_uint, c_void};

/// A pool; used only behind a pointer from [`sy_pool_create`]. The fields are private: only the
/// inline functions below use them (binary interface 1).
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

/// The settings of a pool. All fields but `size` may be 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sy_pool_config {
    /// Bytes of an object.
    pub size: usize,
    /// A power of two, or 0.
    pub align: usize,
    /// The minimum number of bytes by which an unbounded pool grows, or 0.
    pub chunk_bytes: usize,
    /// The maximum number of live objects, or 0 for an unbounded pool.
    pub capacity: usize,
    /// `SY_POOL_...` flags, and [`crate::SY_CHECKED`] and other checks.
    pub flags: c_uint,
    /// The name for reports, which is copied. Null: `"pool"`.
    pub name: *const c_char,
    /// Must be 0.
    pub reserved: [usize; 3],
}

impl Default for sy_pool_config {
    fn default() -> Self {
        // SAFETY: numbers and a pointer, for which 0 is valid.
        unsafe { core::mem::zeroed() }
    }
}

extern "C" {
    /// Creates a pool; null on failure. The caller owns it.
    ///
    /// # Safety
    /// `config` is valid.
    pub fn sy_pool_create(config: *const sy_pool_config) -> *mut sy_pool;

    /// Allocates an object; null if the pool is bounded and full, or there is no memory.
    ///
    /// # Safety
    /// No other thread is using the pool.
    pub fn sy_pool_alloc(pool: *mut sy_pool) -> *mut c_void;

    /// Frees an object; null is ignored.
    ///
    /// # Safety
    /// `object` is null or a live object of the pool; no other thread is using the pool.
    pub fn sy_pool_free(pool: *mut sy_pool, object: *mut c_void);

    /// Frees all objects at once.
    ///
    /// # Safety
    /// No object of the pool is used again; no other thread is using the pool.
    pub fn sy_pool_reset(pool: *mut sy_pool);

    /// Destroys the pool with all its objects.
    ///
    /// # Safety
    /// No object of the pool is used again; no other thread is using the pool.
    pub fn sy_pool_destroy(pool: *mut sy_pool);

    /// If no object is live, returns memory to the system. The result is the number of bytes.
    ///
    /// # Safety
    /// No other thread is using the pool.
    pub fn sy_pool_trim(pool: *mut sy_pool) -> usize;

    /// The exact number of live objects. It walks the free list.
    ///
    /// # Safety
    /// No other thread is using the pool.
    pub fn sy_pool_in_use(pool: *const sy_pool) -> usize;

    /// The distance in bytes from one object to the next.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    pub fn sy_pool_slot_size(pool: *const sy_pool) -> usize;

    /// The number of objects that fit: the capacity of a bounded pool; for other pools, the number
    /// that fits without growing.
    ///
    /// # Safety
    /// No other thread is using the pool.
    pub fn sy_pool_capacity(pool: *const sy_pool) -> usize;

    /// Grows a pool that has no free slot, and allocates an object; null if it cannot grow.
    ///
    /// # Safety
    /// [`sy_pool_pop`] has just returned null; no other thread is using the pool.
    #[link_name = "sy_pool_grow_abi_1"]
    pub fn sy_pool_grow(pool: *mut sy_pool) -> *mut c_void;

    /// Reports that an object was freed twice in a row; by default the process ends.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    #[link_name = "sy_pool_freed_twice_abi_1"]
    pub fn sy_pool_freed_twice(pool: *mut sy_pool, object: *mut c_void);
}

/// The first half of [`sy_pool_alloc_inline`]: allocates without growing; null if no slot is free.
///
/// # Safety
/// No other thread is using the pool.
#[inline(always)]
pub unsafe fn sy_pool_pop(pool: *mut sy_pool) -> *mut c_void {
    // SAFETY: the caller says that the pool exists and that no other thread uses it. The first word
    // of a free slot is the link to the next; bump is the address of a slot unless it equals the
    // limit.
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

/// Marks the calling branch as unlikely.
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

/// [`sy_pool_free`], compiled into the caller. It does not accept null.
///
/// # Safety
/// `object` is a live object of the pool; no other thread is using the pool.
#[inline(always)]
pub unsafe fn sy_pool_free_inline(pool: *mut sy_pool, object: *mut c_void) {
    // SAFETY: the caller owns the object and gives it up now.
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

/// A word that the caller may use, kept with the pool; initially 0.
///
/// # Safety
/// The pool exists for as long as the pointer is used.
#[inline(always)]
pub unsafe fn sy_pool_word(pool: *mut sy_pool) -> *mut usize {
    // SAFETY: the word follows the struct, in the same object.
    unsafe { pool.add(1).cast() }
}
