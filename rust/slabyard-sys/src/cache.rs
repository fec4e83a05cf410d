//! `slabyard/cache.h`: object caches.

use crate::{c_char, c_int, c_uint, c_void};
use crate::{
    sy_loaded_pop, sy_loaded_push_once, sy_loaded_slot, sy_loaded_slots, SY_LOADED_INLINE,
};

/// A cache; used only behind a pointer.
#[repr(C)]
pub struct sy_cache {
    _opaque: [u8; 0],
    _neither_send_nor_moved: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// Slabs without a tail give up one slot, so that successive slabs begin at different cache lines.
pub const SY_COLOUR: c_uint = 1 << 1;
/// `limit` counts live objects exactly.
pub const SY_LIMIT_EXACT: c_uint = 1 << 2;
/// Objects have handles (`slabyard/handle.h`).
pub const SY_HANDLES: c_uint = 1 << 3;
/// With [`SY_HANDLES`]: the library may move objects.
pub const SY_MOVABLE: c_uint = 1 << 5;
/// Objects of an epoch (`slabyard/epoch.h`) lie in slabs of their own.
pub const SY_EPOCHS: c_uint = 1 << 4;

/// Called once for an object before it is first given out; anything but 0 fails the allocation.
pub type sy_construct = unsafe extern "C" fn(object: *mut c_void, arg: *mut c_void) -> c_int;
/// Called once for a constructed object before its memory goes away.
pub type sy_destruct = unsafe extern "C" fn(object: *mut c_void, arg: *mut c_void);
/// Moves an object of a cache with [`SY_MOVABLE`].
pub type sy_relocate = unsafe extern "C" fn(from: *mut c_void, to: *mut c_void, arg: *mut c_void);

/// Memory that the program provides (`slabyard/memory.h`).
#[repr(C)]
pub struct sy_memory {
    _opaque: [u8; 0],
}

/// The settings of a cache. All fields but `size` may be 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sy_cache_config {
    /// The name for reports, which is copied. May be null.
    pub name: *const c_char,
    /// Bytes of an object.
    pub size: usize,
    /// A power of two up to 2 MiB, or 0.
    pub align: usize,
    /// Called before an object is first allocated.
    pub construct: Option<sy_construct>,
    /// Called before the memory of a constructed object is returned.
    pub destruct: Option<sy_destruct>,
    /// Passed to both functions.
    pub arg: *mut c_void,
    /// The maximum number of live objects; 0: no limit.
    pub limit: usize,
    /// `SY_...` flags, including [`crate::SY_CHECKED`] and other checks.
    pub flags: c_uint,
    /// The memory for the objects; null: the system's.
    pub memory: *mut sy_memory,
    /// Called for a freed object with a handle, by the last thread that holds it.
    pub dispose: Option<sy_destruct>,
    /// Moves an object, with [`SY_MOVABLE`]; `None`: its bytes are copied.
    pub relocate: Option<sy_relocate>,
    /// Must be 0.
    pub reserved: [usize; 5],
}

impl Default for sy_cache_config {
    fn default() -> Self {
        sy_cache_config {
            name: core::ptr::null(),
            size: 0,
            align: 0,
            construct: None,
            destruct: None,
            arg: core::ptr::null_mut(),
            limit: 0,
            flags: 0,
            memory: core::ptr::null_mut(),
            dispose: None,
            relocate: None,
            reserved: [0; 5],
        }
    }
}

extern "C" {
    /// Creates a cache; null on failure. The caller owns it.
    ///
    /// # Safety
    /// `config` is valid, its name null or a C string, and its functions may be called from any
    /// thread with its `arg`.
    pub fn sy_cache_create(config: *const sy_cache_config) -> *mut sy_cache;

    /// Destroys a cache without live objects. If an object is live, returns -1 with `EBUSY`, and
    /// nothing changes.
    ///
    /// # Safety
    /// No other thread is using the cache.
    pub fn sy_cache_destroy(cache: *mut sy_cache) -> c_int;

    /// Destroys a cache, live objects included.
    ///
    /// # Safety
    /// No other thread is using the cache, and none of its objects is used again.
    pub fn sy_cache_destroy_all(cache: *mut sy_cache);

    /// Allocates an object. Its content is undefined, or as it was constructed or freed.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    pub fn sy_cache_alloc(cache: *mut sy_cache) -> *mut c_void;

    /// Allocates an object and zeroes it; null with `EINVAL` for a cache with a constructor.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    pub fn sy_cache_zalloc(cache: *mut sy_cache) -> *mut c_void;

    /// Frees an object; null is ignored. Any thread may free it.
    ///
    /// # Safety
    /// `object` is null or a live object of `cache`, and is not used again.
    pub fn sy_cache_free(cache: *mut sy_cache, object: *mut c_void);

    /// Frees `object` if it is a live object of the cache; returns whether it was.
    ///
    /// # Safety
    /// Any address may be passed. If true is returned, the object is not used again.
    pub fn sy_cache_try_free(cache: *mut sy_cache, object: *mut c_void) -> bool;

    /// Allocates up to `count` objects into the first elements of `objects`; returns their number.
    ///
    /// # Safety
    /// `objects` has room for `count` pointers.
    pub fn sy_cache_alloc_batch(
        cache: *mut sy_cache,
        objects: *mut *mut c_void,
        count: usize,
    ) -> usize;

    /// Frees `count` objects; null pointers among them are skipped.
    ///
    /// # Safety
    /// As [`sy_cache_free`] for each of them.
    pub fn sy_cache_free_batch(cache: *mut sy_cache, objects: *const *mut c_void, count: usize);

    /// Provides memory for the next `count` allocations of the process.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    pub fn sy_cache_reserve(cache: *mut sy_cache, count: usize) -> c_int;

    /// Puts `count` objects into this thread's magazines; -1 with `EINVAL` if they hold fewer.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    pub fn sy_thread_reserve(cache: *mut sy_cache, count: usize) -> c_int;

    /// Returns free memory of the cache to the system; the result is the number of bytes.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    pub fn sy_cache_trim(cache: *mut sy_cache) -> usize;

    /// The number of live objects. It is exact while no other thread uses the cache.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    pub fn sy_cache_in_use(cache: *const sy_cache) -> usize;

    /// The distance in bytes from one object to the next.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    pub fn sy_cache_slot_size(cache: *const sy_cache) -> usize;

    /// Lets other threads take the free objects in this thread's magazines until its next
    /// operation.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    pub fn sy_thread_idle();

    /// Gives the free objects in this thread's magazines back to their slabs.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    pub fn sy_thread_flush();
}

extern "C" {
    /// The slow path of [`sy_cache_alloc_inline`], for a slot of this thread that is shut.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    pub fn sy_cache_alloc_slow(cache: *mut sy_cache) -> *mut c_void;

    /// The slow path of [`sy_cache_free_inline`], for a slot of this thread that is shut.
    ///
    /// # Safety
    /// As [`sy_cache_free`], and not null.
    pub fn sy_cache_free_slow(cache: *mut sy_cache, object: *mut c_void);
}

/// The part of a cache that the functions below read; the rest is private to the library.
#[repr(C)]
pub(crate) struct sy_cache_head {
    pub(crate) reserved: [usize; 5],
    pub(crate) loaded_offset: usize,
    pub(crate) reserved_too: [usize; 2],
}

/// The distance in bytes from [`sy_loaded_slots`] to the loaded slot of the cache; it never
/// changes. At 0 there is a slot that is shut in every thread, for code that has no cache yet.
///
/// # Safety
/// The cache exists.
#[inline(always)]
pub unsafe fn sy_cache_loaded_offset(cache: *const sy_cache) -> usize {
    // SAFETY: a cache begins with its head, which never changes.
    unsafe { (*cache.cast::<sy_cache_head>()).loaded_offset }
}

/// This thread's loaded slot of the cache.
///
/// # Safety
/// The cache exists.
#[inline(always)]
unsafe fn loaded(cache: *mut sy_cache) -> *mut sy_loaded_slot {
    // SAFETY: the offset leads to a slot of this thread.
    unsafe { sy_loaded_slots().byte_add(sy_cache_loaded_offset(cache)) }
}

/// [`sy_cache_alloc`], compiled into the caller if [`SY_LOADED_INLINE`].
///
/// # Safety
/// None beyond the rules common to all functions.
#[inline(always)]
pub unsafe fn sy_cache_alloc_inline(cache: *mut sy_cache) -> *mut c_void {
    // SAFETY: as the caller says.
    unsafe {
        if !SY_LOADED_INLINE {
            return sy_cache_alloc(cache);
        }
        match sy_loaded_pop(loaded(cache)) {
            Some(object) => core::ptr::with_exposed_provenance_mut(object),
            None => sy_cache_alloc_slow(cache),
        }
    }
}

/// [`sy_cache_free`], compiled into the caller if [`SY_LOADED_INLINE`].
///
/// # Safety
/// `object` is a live object of the cache, not null, and is not used again.
#[inline(always)]
pub unsafe fn sy_cache_free_inline(cache: *mut sy_cache, object: *mut c_void) {
    // SAFETY: as the caller says.
    unsafe {
        if !SY_LOADED_INLINE {
            return sy_cache_free(cache, object);
        }
        if !sy_loaded_push_once(loaded(cache), object.expose_provenance()) {
            sy_cache_free_slow(cache, object);
        }
    }
}
