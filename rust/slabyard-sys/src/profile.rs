//! `slabyard/profile.h`: profiles of the heap, from samples.

use crate::c_int;

/// The usual distance of samples, in allocated bytes.
pub const SY_PROFILE_MEAN: usize = 512 << 10;

extern "C" {
    /// Begins a profile with a sample for each `mean` allocated bytes. Returns 0, or -1 with `errno`.
    ///
    /// # Safety
    /// None beyond those common to all functions.
    pub fn sy_profile_start(mean: usize) -> c_int;

    /// Ends the profile. Returns 0, or -1 with `ENOENT`.
    ///
    /// # Safety
    /// None beyond those common to all functions.
    pub fn sy_profile_stop() -> c_int;

    /// Writes the profile in pprof's format. Returns 0, or -1 with `errno`.
    ///
    /// # Safety
    /// `fd` is a descriptor that may be written.
    pub fn sy_profile_write(fd: c_int) -> c_int;
}
