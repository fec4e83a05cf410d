//! The error of an insertion that found no room in a bounded pool, cache or map.

use core::fmt;

/// There is no room. The error holds the value that could not be inserted.
/// [`last_refusal`](crate::last_refusal) tells which limit was reached, if it was one of a cache,
/// of a map or of the process.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Full<T>(pub T);

impl<T> Full<T> {
    /// The value that could not be inserted.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Full(..)")
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no room for another object")
    }
}

impl<T> core::error::Error for Full<T> {}
