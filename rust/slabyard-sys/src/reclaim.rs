//! `slabyard/reclaim.h`: free memory goes back to the system. And `sy_verify` of `checks.h`.

use crate::c_int;

extern "C" {
    /// Gives the free memory of all caches, of the heap and of the library back; returns bytes.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_trim() -> usize;

    /// The same until so many bytes have gone back or so many nanoseconds have passed.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_trim_some(bytes: usize, budget_ns: u64) -> usize;

    /// Free memory that nobody uses goes back by itself within two to four times this; 0: never.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_set_decay(milliseconds: u64);

    /// Starts a thread that does what slow paths do otherwise; -1 with `EAGAIN` or `ENOMEM`.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_maintenance_start() -> c_int;

    /// Ends it.
    ///
    /// # Safety
    /// Not from a callback of Slabyard's, nor at a thread's end.
    pub fn sy_maintenance_stop();

    /// Violations of the library's invariants and damage to objects at present. Slow.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_verify() -> usize;
}
