//! `slabyard/heap.h`: memory of any size.

use crate::c_void;

extern "C" {
    /// `size` bytes aligned to 16 (to 8 for sizes up to 8). Size 0 gives a unique pointer.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    pub fn sy_malloc(size: usize) -> *mut c_void;

    /// `count` times `size` bytes, all zero; null if the product overflows.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    pub fn sy_calloc(count: usize, size: usize) -> *mut c_void;

    /// `size` bytes, all zero.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    pub fn sy_zalloc(size: usize) -> *mut c_void;

    /// Resizes the object to `size` bytes, and moves it if needed.
    ///
    /// # Safety
    /// `object` is null or a live object of the heap. Unless null is returned, it is not used
    /// again.
    pub fn sy_realloc(object: *mut c_void, size: usize) -> *mut c_void;

    /// As [`sy_realloc`], to `count` times `size` bytes; null if the product overflows.
    ///
    /// # Safety
    /// As for [`sy_realloc`].
    pub fn sy_reallocarray(object: *mut c_void, count: usize, size: usize) -> *mut c_void;

    /// Resizes the object to `size` bytes in place. False: it is as it was.
    ///
    /// # Safety
    /// `object` is null or a live object of the heap. If true is returned, bytes beyond `size` are
    /// not used again.
    pub fn sy_expand(object: *mut c_void, size: usize) -> bool;

    /// `size` bytes at a multiple of `align`, which is a power of two.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    pub fn sy_aligned_alloc(align: usize, size: usize) -> *mut c_void;

    /// `count` times `size` bytes, all zero, at a multiple of `align`, which is a power of two; null
    /// if the product overflows.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    pub fn sy_aligned_calloc(align: usize, count: usize, size: usize) -> *mut c_void;

    /// Frees an object of the heap; null is ignored.
    ///
    /// # Safety
    /// `object` is null or a live object of the heap, and is not used again.
    pub fn sy_free(object: *mut c_void);

    /// Frees an object of the heap whose requested size is known.
    ///
    /// # Safety
    /// As for [`sy_free`], and `size` is the requested size.
    pub fn sy_free_sized(object: *mut c_void, size: usize);

    /// Frees an object of the heap whose alignment and requested size are known.
    ///
    /// # Safety
    /// As for [`sy_free`], and `align` and `size` are the requested ones.
    pub fn sy_free_aligned_sized(object: *mut c_void, align: usize, size: usize);

    /// The number of usable bytes at `object`: at least the requested size.
    ///
    /// # Safety
    /// `object` is null or a live object of the heap.
    pub fn sy_usable_size(object: *const c_void) -> usize;

    /// The number of usable bytes of an object of `size` bytes.
    ///
    /// # Safety
    /// None beyond the rules common to all functions.
    pub fn sy_good_size(size: usize) -> usize;
}
