//! Why there is no pool.

use core::fmt;

/// What keeps a pool from being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// A bounded pool was asked for that would have no slot, or did not say how many.
    NoCapacity,
    /// There is not that much memory.
    NoMemory,
    /// This thread's pool is there already.
    AlreadyBuilt,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BuildError::NoCapacity => "a bounded pool needs a capacity of at least one",
            BuildError::NoMemory => "there is not enough memory for the pool",
            BuildError::AlreadyBuilt => "this thread has the pool already",
        })
    }
}

impl core::error::Error for BuildError {}
