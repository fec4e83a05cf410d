//! `slabyard/heap.h`: memory of any size.

use crate::c_void;

extern "C" {
    /// `size` bytes aligned to 16 (to 8 for sizes up to 8). Size 0 gives a unique pointer.
    ///
    /// # Safety
    /// None beyond the rules common to all doors.
    pub fn sy_malloc(size: usize) -> *mut c_void;

    /// `count` times `size` bytes, all zero; null where the product overflows.
    ///
    /// # Safety
    /// None beyond the rules common to all doors.
    pub fn sy_calloc(count: usize, size: usize) -> *mut c_void;

    /// The object at `size` bytes, moved if it must be.
    ///
    /// # Safety
    /// `object` is null or live and of the heap; unless null is returned, the old pointer is gone.
    pub fn sy_realloc(object: *mut c_void, size: usize) -> *mut c_void;

    /// `size` bytes at a multiple of `align`, which is a power of two.
    ///
    /// # Safety
    /// None beyond the rules common to all doors.
    pub fn sy_aligned_alloc(align: usize, size: usize) -> *mut c_void;

    /// Frees an object of the heap; null is a no-op.
    ///
    /// # Safety
    /// `object` is null or live and of the heap, and is not used again.
    pub fn sy_free(object: *mut c_void);

    /// Frees an object of the heap whose requested size the caller knows.
    ///
    /// # Safety
    /// As [`sy_free`], and `size` is what was asked for.
    pub fn sy_free_sized(object: *mut c_void, size: usize);

    /// Frees an object of the heap whose alignment and requested size the caller knows.
    ///
    /// # Safety
    /// As [`sy_free`], and `align` and `size` are what was asked for.
    pub fn sy_free_aligned_sized(object: *mut c_void, align: usize, size: usize);

    /// Bytes that may be used at `object`: at least as many as were asked for.
    ///
    /// # Safety
    /// `object` is null or live and of the heap.
    pub fn sy_usable_size(object: *const c_void) -> usize;

    /// Bytes that may be used of an object of `size` bytes.
    ///
    /// # Safety
    /// None beyond the rules common to all doors.
    pub fn sy_good_size(size: usize) -> usize;
}
