//! `slabyard/reclaim.h`: returning free memory to the system; and `sy_verify` of `checks.h`.

use crate::{c_int, c_void};

extern "C" {
    /// Returns the free memory of all caches, of the heap and of the library; the result is the
    /// number of bytes.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_trim() -> usize;

    /// Returns free memory until `bytes` were returned or the given number of nanoseconds has
    /// passed.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_trim_some(bytes: usize, budget_ns: u64) -> usize;

    /// Sets the decay time: memory that stays unused is returned after two to four times this; 0:
    /// never.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_set_decay(milliseconds: u64);

    /// The decay time in milliseconds, as it was set last; 0: never.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_get_decay() -> u64;

    /// Bounds the memory that Slabyard holds: to the most that live objects needed at a moment of the
    /// last one to two seconds, plus so many per cent of it, at least 4 MiB. 0: no bound.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_set_slack(percent: usize);

    /// The bound that was set last, in per cent; 0: none.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_get_slack() -> usize;

    /// Starts a background thread that returns unused memory; -1 with `EAGAIN`, `ENOMEM`
    /// or `EPERM`.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_maintenance_start() -> c_int;

    /// Stops the background thread.
    ///
    /// # Safety
    /// It is not called in a callback of Slabyard or at a thread's end.
    pub fn sy_maintenance_stop();

    /// Prepares for a sandbox: ends the background threads, and from then on asks the system for
    /// memory alone.
    ///
    /// # Safety
    /// It is not called in a callback of Slabyard or at a thread's end.
    pub fn sy_enter_sandbox();

    /// Moves the object out of a slab that should become empty, and frees the old one: the new
    /// address, or null if the object stays.
    ///
    /// # Safety
    /// It is a live object, which no other thread uses during the call. All pointers to it are
    /// changed to the new address.
    pub fn sy_try_move(object: *mut c_void) -> *mut c_void;

    /// Whether the object lies in a slab that should become empty, for programs that move their
    /// objects themselves.
    ///
    /// # Safety
    /// It is a live object, or no object of the library.
    pub fn sy_should_move(object: *const c_void) -> bool;

    /// The number of violated invariants and damaged objects. This is slow.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_verify() -> usize;
}
