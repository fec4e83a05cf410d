//! `slabyard/audit.h`: who has what: tags, the last operations of a cache, leaks.

use crate::{c_char, c_int, c_uint, c_void, sy_cache, sy_trace};

/// A part of the program; 0: none.
pub type sy_tag = c_uint;
/// Bytes of a tag's name that are kept.
pub const SY_TAG_NAME_MAX: usize = 31;
/// Tags that there can be.
pub const SY_TAGS_MAX: usize = 255;

/// What was allocated under a tag.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sy_tag_stats {
    /// The tag.
    pub tag: sy_tag,
    /// Its name; "": of what has no tag.
    pub name: [c_char; SY_TAG_NAME_MAX + 1],
    /// Number of.
    pub allocations: u64,
    /// Number of.
    pub frees: u64,
    /// Objects that are live.
    pub live: usize,
    /// Bytes of these that were asked for.
    pub live_bytes: usize,
    /// The most there have been of these.
    pub peak_bytes: usize,
}

/// An allocation or a free.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sy_operation {
    /// Else allocated.
    pub freed: bool,
    /// Its address.
    pub object: *const c_void,
    /// Bytes that were asked for.
    pub size: usize,
    /// By whom, and when.
    pub trace: sy_trace,
}

/// Only what nothing points to.
pub const SY_LEAKS_UNREACHABLE: c_uint = 1;

/// Objects of one cache that were allocated by the same stack and are live.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sy_leak {
    /// Name of the cache, as long as the visit lasts.
    pub cache: *const c_char,
    /// Number of.
    pub objects: usize,
    /// That were asked for.
    pub bytes: usize,
    /// Nanoseconds since the first of these allocations.
    pub oldest: u64,
    /// And since the last.
    pub newest: u64,
    /// The oldest.
    pub example: *const c_void,
    /// Who allocated that one.
    pub allocated: sy_trace,
}

/// Called for each tag, until it returns something else than 0.
pub type sy_tag_visit = unsafe extern "C" fn(arg: *mut c_void, stats: *const sy_tag_stats) -> c_int;
/// Called for each operation, until it returns something else than 0.
pub type sy_operation_visit =
    unsafe extern "C" fn(arg: *mut c_void, operation: *const sy_operation) -> c_int;
/// Called for each group of leaks, until it returns something else than 0.
pub type sy_leak_visit = unsafe extern "C" fn(arg: *mut c_void, leak: *const sy_leak) -> c_int;

extern "C" {
    /// The tag of a name; 0 with `ENOMEM`: there are [`SY_TAGS_MAX`].
    ///
    /// # Safety
    /// `name` is a C string.
    pub fn sy_tag_open(name: *const c_char) -> sy_tag;

    /// What this thread allocates from now on has the tag; gives the one before.
    ///
    /// # Safety
    /// None beyond the rules of the crate.
    pub fn sy_tag_set(tag: sy_tag) -> sy_tag;

    /// Calls `visit` for each tag, the untagged first.
    ///
    /// # Safety
    /// `visit` may be called with `arg`.
    pub fn sy_each_tag(visit: sy_tag_visit, arg: *mut c_void) -> c_int;

    /// Calls `visit` for the last operations of a cache, the latest first.
    ///
    /// # Safety
    /// `visit` may be called with `arg`.
    pub fn sy_cache_history(
        cache: *mut sy_cache,
        visit: sy_operation_visit,
        arg: *mut c_void,
    ) -> c_int;

    /// Calls `visit` for each group of live objects, of one cache or, for null, of all.
    ///
    /// # Safety
    /// `visit` may be called with `arg`.
    pub fn sy_each_leak(
        cache: *mut sy_cache,
        flags: c_uint,
        visit: sy_leak_visit,
        arg: *mut c_void,
    ) -> c_int;

    /// Writes the same as a report; how many objects are in it.
    ///
    /// # Safety
    /// `cache` is a cache or null.
    pub fn sy_report_leaks(cache: *mut sy_cache, flags: c_uint) -> usize;
}
