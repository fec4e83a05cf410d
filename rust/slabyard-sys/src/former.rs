//! Former names of functions.

use crate::{
    c_int, c_uint, c_void, sy_cache, sy_cache_visit, sy_leak_visit, sy_option_visit, sy_tag_visit,
};

/// Calls [`sy_cache_each`](crate::sy_cache_each).
///
/// # Safety
/// As for `sy_cache_each`.
#[deprecated(since = "1.3.0", note = "it is called `sy_cache_each`")]
pub unsafe fn sy_each_cache(visit: sy_cache_visit, arg: *mut c_void) -> c_int {
    // SAFETY: the caller's.
    unsafe { crate::sy_cache_each(visit, arg) }
}

/// Calls [`sy_tag_each`](crate::sy_tag_each).
///
/// # Safety
/// As for `sy_tag_each`.
#[deprecated(since = "1.3.0", note = "it is called `sy_tag_each`")]
pub unsafe fn sy_each_tag(visit: sy_tag_visit, arg: *mut c_void) -> c_int {
    // SAFETY: the caller's.
    unsafe { crate::sy_tag_each(visit, arg) }
}

/// Calls [`sy_option_each`](crate::sy_option_each).
///
/// # Safety
/// As for `sy_option_each`.
#[deprecated(since = "1.3.0", note = "it is called `sy_option_each`")]
pub unsafe fn sy_each_option(visit: sy_option_visit, arg: *mut c_void) -> c_int {
    // SAFETY: the caller's.
    unsafe { crate::sy_option_each(visit, arg) }
}

/// Calls [`sy_leak_each`](crate::sy_leak_each).
///
/// # Safety
/// As for `sy_leak_each`.
#[deprecated(since = "1.3.0", note = "it is called `sy_leak_each`")]
pub unsafe fn sy_each_leak(
    cache: *mut sy_cache,
    flags: c_uint,
    visit: sy_leak_visit,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { crate::sy_leak_each(cache, flags, visit, arg) }
}
