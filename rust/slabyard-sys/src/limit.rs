//! `slabyard/limit.h`: limits in bytes, and why an allocation was refused.

use crate::{c_char, c_int, c_uint, c_void};

/// What is in use has reached the soft limit, or would have to pass the hard one.
pub type sy_limit_callback =
    Option<unsafe extern "C" fn(arg: *mut c_void, used: usize, soft: usize)>;

/// Bytes; zeroes: no limit.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sy_limit {
    /// Never more than this is taken.
    pub hard: usize,
    /// From here on `callback` is called.
    pub soft: usize,
    /// Without any lock held.
    pub callback: sy_limit_callback,
    /// Passed to it.
    pub arg: *mut c_void,
    /// Zero.
    pub reserved: [usize; 4],
}

/// Why an allocation was refused; the numbers of `sy_refusal`.
pub type sy_refusal = c_uint;
/// None was.
pub const SY_REFUSAL_NONE: sy_refusal = 0;
/// The system gave none, or the program's memory is full.
pub const SY_REFUSAL_SYSTEM: sy_refusal = 1;
/// The limit of the cache is reached.
pub const SY_REFUSAL_CACHE_LIMIT: sy_refusal = 2;
/// That of the heap.
pub const SY_REFUSAL_HEAP_LIMIT: sy_refusal = 3;
/// That of the process.
pub const SY_REFUSAL_PROCESS_LIMIT: sy_refusal = 4;
/// A constructor failed.
pub const SY_REFUSAL_CONSTRUCTOR: sy_refusal = 5;

extern "C" {
    /// Sets the limit of the process; null: none. -1 with `EINVAL` or `ENOMEM`.
    ///
    /// # Safety
    /// `limit` is null or valid; its callback may be called from any thread from now on, and from
    /// threads that are in it already after it was replaced.
    pub fn sy_set_limit(limit: *const sy_limit) -> c_int;

    /// What counts for the process now.
    ///
    /// # Safety
    /// Any thread.
    pub fn sy_limit_used() -> usize;

    /// Why the last allocation of this thread that was refused was so.
    ///
    /// # Safety
    /// Any thread.
    pub fn sy_last_refusal() -> sy_refusal;

    /// What it says in English: a constant string.
    ///
    /// # Safety
    /// Any thread.
    pub fn sy_refusal_text(refusal: sy_refusal) -> *const c_char;
}
