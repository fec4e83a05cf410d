//! `slabyard/count.h`: what a thread allocates, for tests.

use crate::c_int;

/// What a thread allocated while it counted.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct sy_counted {
    /// Objects that the thread allocated.
    pub allocations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frees of these objects, by any thread.
    pub frees: u64,
    /// Objects that are left at the end.
    pub live: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// The most bytes that were live at a time.
    pub peak_bytes: u64,
}

extern "C" {
    /// Begins to count what the calling thread allocates. Returns 0, or -1 with `errno`.
    ///
    /// # Safety
    /// None beyond those common to all functions.
    pub fn sy_count_begin() -> c_int;

    /// Fills `size` bytes at `counted`; -1 with `EINVAL` for null, or if the first version of the
    /// struct had more bytes.
    ///
    /// # Safety
    /// `counted` is null or valid for a write of `size` bytes.
    pub fn sy_count_end_sized(counted: *mut sy_counted, size: usize) -> c_int;
}

/// Ends the count of the calling thread and fills `counted`. Returns 0, or -1 with `errno`.
///
/// # Safety
/// `counted` is null or valid for a write.
#[inline]
pub unsafe fn sy_count_end(counted: *mut sy_counted) -> c_int {
    // SAFETY: as much is valid as this crate's struct has.
    unsafe { sy_count_end_sized(counted, size_of::<sy_counted>()) }
}
