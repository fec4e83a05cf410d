//! `slabyard/limit.h`: limits in bytes, and why an allocation was refused.

use crate::{c_char, c_int, c_uint, c_void};

/// Called when the memory in use has reached the soft limit, or would exceed the hard limit.
pub type sy_limit_callback =
    Option<unsafe extern "C" fn(arg: *mut c_void, used: usize, soft: usize)>;

/// A limit in bytes; 0: no limit.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sy_limit {
    /// The hard limit: an allocation that would exceed it is refused.
    pub hard: usize,
    /// The soft limit: `callback` is called when it is reached.
    pub soft: usize,
    /// Called without a lock held.
    pub callback: sy_limit_callback,
    /// Passed to the callback.
    pub arg: *mut c_void,
    /// Must be 0.
    pub reserved: [usize; 4],
}

/// Why an allocation was refused; the numbers of `sy_refusal`.
pub type sy_refusal = c_uint;
/// No allocation was refused.
pub const SY_REFUSAL_NONE: sy_refusal = 0;
/// The system gave no memory, or the memory that the program provides is full.
pub const SY_REFUSAL_SYSTEM: sy_refusal = 1;
/// The limit of the cache is reached.
pub const SY_REFUSAL_CACHE_LIMIT: sy_refusal = 2;
/// The limit of the heap is reached.
pub const SY_REFUSAL_HEAP_LIMIT: sy_refusal = 3;
/// The limit of the process is reached.
pub const SY_REFUSAL_PROCESS_LIMIT: sy_refusal = 4;
/// A constructor failed.
pub const SY_REFUSAL_CONSTRUCTOR: sy_refusal = 5;
/// The heaps have as many size classes together as they may have.
pub const SY_REFUSAL_CACHES: sy_refusal = 6;

extern "C" {
    /// Sets the limit of the process; null: no limit. -1 with `EINVAL` or `ENOMEM`.
    ///
    /// # Safety
    /// `limit` is null or valid. Its callback may be called from any thread from now on. A thread
    /// that is running the callback may still do so after the limit was replaced.
    pub fn sy_set_limit(limit: *const sy_limit) -> c_int;

    /// Fills `limit` with the limit of the process. -1 with `EINVAL` or `ENOMEM`.
    ///
    /// # Safety
    /// `limit` is null or valid for a write.
    pub fn sy_get_limit(limit: *mut sy_limit) -> c_int;

    /// The number of bytes that count for the process limit now.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_limit_used() -> usize;

    /// Why an allocation of this thread was last refused.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_last_refusal() -> sy_refusal;

    /// The refusal as English text: a constant string.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_refusal_text(refusal: sy_refusal) -> *const c_char;
}
