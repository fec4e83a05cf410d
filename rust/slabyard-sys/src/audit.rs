//! `slabyard/audit.h`: tags, the last operations of a cache, and leaks.

use crate::{c_char, c_int, c_uint, c_void, sy_cache, sy_trace};

/// A part of the program; 0: none.
pub type sy_tag = c_uint;
/// Bytes of a tag's name that are kept.
pub const SY_TAG_NAME_MAX: usize = 31;
/// The maximum number of tags.
pub const SY_TAGS_MAX: usize = 255;

/// Statistics of a tag.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sy_tag_stats {
    /// The tag.
    pub tag: sy_tag,
    /// Its name; "" for untagged allocations.
    pub name: [c_char; SY_TAG_NAME_MAX + 1],
    /// The number of allocations.
    pub allocations: u64,
    /// The number of frees.
    pub frees: u64,
    /// The number of live objects.
    pub live: usize,
    /// The requested bytes of the live objects.
    pub live_bytes: usize,
    /// The maximum of these bytes so far.
    pub peak_bytes: usize,
}

/// An allocation or a free.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sy_operation {
    /// True: a free; false: an allocation.
    pub freed: bool,
    /// The address of the object.
    pub object: *const c_void,
    /// The requested bytes.
    pub size: usize,
    /// The code and thread, and the time.
    pub trace: sy_trace,
}

/// Flag: only objects to which nothing points.
pub const SY_LEAKS_UNREACHABLE: c_uint = 1;

/// Objects of one cache that were allocated by the same stack and are live.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sy_leak {
    /// The name of the cache, valid during the visit.
    pub cache: *const c_char,
    /// The number of objects.
    pub objects: usize,
    /// Their requested bytes.
    pub bytes: usize,
    /// Nanoseconds since the oldest of these allocations.
    pub oldest: u64,
    /// Nanoseconds since the newest of these allocations.
    pub newest: u64,
    /// The address of the oldest object.
    pub example: *const c_void,
    /// The allocation of the oldest object.
    pub allocated: sy_trace,
}

/// Called for each tag, until it returns another value than 0.
pub type sy_tag_visit = unsafe extern "C" fn(arg: *mut c_void, stats: *const sy_tag_stats) -> c_int;
/// Called for each operation, until it returns another value than 0.
pub type sy_operation_visit =
    unsafe extern "C" fn(arg: *mut c_void, operation: *const sy_operation) -> c_int;
/// Called for each group of leaks, until it returns another value than 0.
pub type sy_leak_visit = unsafe extern "C" fn(arg: *mut c_void, leak: *const sy_leak) -> c_int;

extern "C" {
    /// The tag with this name; 0 with `ENOMEM`: there are [`SY_TAGS_MAX`] already.
    ///
    /// # Safety
    /// `name` is a C string.
    pub fn sy_tag_open(name: *const c_char) -> sy_tag;

    /// Sets the tag for the following allocations of this thread; returns the previous tag.
    ///
    /// # Safety
    /// None beyond the rules of the crate.
    pub fn sy_tag_set(tag: sy_tag) -> sy_tag;

    /// Calls `visit` for each tag; the first one is for untagged allocations.
    ///
    /// # Safety
    /// `visit` may be called with `arg`.
    pub fn sy_tag_each(visit: sy_tag_visit, arg: *mut c_void) -> c_int;

    /// Calls `visit` for the last operations of a cache, the latest first.
    ///
    /// # Safety
    /// `visit` may be called with `arg`.
    pub fn sy_cache_history(
        cache: *mut sy_cache,
        visit: sy_operation_visit,
        arg: *mut c_void,
    ) -> c_int;

    /// Calls `visit` for each group of live objects: of one cache, or of all if `cache` is null.
    ///
    /// # Safety
    /// `visit` may be called with `arg`.
    pub fn sy_leak_each(
        cache: *mut sy_cache,
        flags: c_uint,
        visit: sy_leak_visit,
        arg: *mut c_void,
    ) -> c_int;

    /// Writes the same groups as a report; returns the number of objects.
    ///
    /// # Safety
    /// `cache` is a cache or null.
    pub fn sy_report_leaks(cache: *mut sy_cache, flags: c_uint) -> usize;
}
