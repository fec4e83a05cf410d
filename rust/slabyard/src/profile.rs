//! Profiles of the heap, from samples: which stacks allocate, and whose objects are live.
//!
//! One object in so many allocated bytes is sampled, with its stack. If [`Slabyard`](crate::Slabyard) is the
//! global allocator, all of a program's memory is sampled; without it, the objects of caches. Objects
//! of pools, maps and epochs are in no profile. While a profile is taken, each free takes some 180
//! instructions.
//!
//! ```
//! # use std::fs::File;
//! slabyard::profile::start(slabyard::profile::MEAN)?;
//! let cache = slabyard::Cache::new("orders");
//! let order = cache.insert([0u64; 8]);
//! # let path = std::env::temp_dir().join(format!("now-{}.pb", std::process::id()));
//! slabyard::profile::write(File::create(&path)?)?;
//! slabyard::profile::stop()?;
//! # std::fs::remove_file(path)?;
//! # drop(order);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! `go tool pprof -sample_index=inuse_space PROGRAM now.pb` shows the profile, and so do other viewers of
//! pprof's format.

use std::io::Result;

use slabyard_sys as sys;

use crate::os::{result_of, write as write_to, AsFile};

/// The usual distance of samples: 512 KiB of allocated bytes.
pub const MEAN: usize = sys::SY_PROFILE_MEAN;

/// Begins a profile: one object is sampled in `mean` allocated bytes, on average. An earlier profile
/// is forgotten. If one is being taken already, only the mean changes.
///
/// # Errors
/// The mean is 0 or more than 1 GiB, the platform records no stacks, or there is no memory.
pub fn start(mean: usize) -> Result<()> {
    // SAFETY: a call without conditions.
    result_of(unsafe { sys::sy_profile_start(mean) })
}

/// Ends the profile, which stays until the next one begins. Objects of up to 128 KiB that are live now
/// stay live in it.
///
/// # Errors
/// No profile is being taken.
pub fn stop() -> Result<()> {
    // SAFETY: a call without conditions.
    result_of(unsafe { sys::sy_profile_stop() })
}

/// Writes the profile to a file, in pprof's format.
///
/// # Errors
/// No profile was begun, there is no memory, or the error of the write.
pub fn write(to: impl AsFile) -> Result<()> {
    // SAFETY: the descriptor is open during the call.
    write_to(to, |file| unsafe { sys::sy_profile_write(file) })
}
