//! Why a pool could not be built.

use core::fmt;

/// Why a pool could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// A bounded pool was requested with capacity 0 or without a capacity.
    NoCapacity,
    /// There is not enough memory.
    NoMemory,
    /// This thread has built the pool already.
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
