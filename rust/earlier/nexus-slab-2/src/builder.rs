//! The common part of the builders of growing slabs.

use crate::slab::Slab;
use crate::unbounded::Unbounded;

/// The default number of slots of a chunk.
const CHUNK_SLOTS: usize = 256;

/// The settings of a growing slab.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) chunk_capacity: usize,
    pub(crate) initial_chunks: usize,
}

impl Plan {
    pub(crate) const fn new() -> Self {
        Plan {
            chunk_capacity: CHUNK_SLOTS,
            initial_chunks: 0,
        }
    }

    /// # Panics
    /// If the size of a chunk is 0, or there is no memory for the initial chunks.
    #[inline]
    #[track_caller]
    pub(crate) fn build<T>(&self) -> Slab<T, Unbounded> {
        assert!(self.chunk_capacity > 0, "chunk_capacity must be non-zero");
        let slab = Slab::of_chunks(self.chunk_capacity);
        slab.reserve_chunks(self.initial_chunks);
        slab
    }
}

/// Defines a builder without its `build`.
macro_rules! builder {
    ($(#[$doc:meta])*) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct Builder(Plan);

        impl Builder {
            /// Starts with chunks of 256 slots and no initial chunk.
            #[inline]
            pub fn new() -> Self {
                Builder(Plan::new())
            }

            /// Sets the number of slots of a chunk. If it is 0, `build` panics.
            #[inline]
            pub fn chunk_capacity(mut self, slots: usize) -> Self {
                self.0.chunk_capacity = slots;
                self
            }

            /// Sets the number of initial chunks.
            #[inline]
            pub fn initial_chunks(mut self, chunks: usize) -> Self {
                self.0.initial_chunks = chunks;
                self
            }
        }

        impl Default for Builder {
            fn default() -> Self {
                Self::new()
            }
        }

        impl fmt::Debug for Builder {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct("Builder")
                    .field("chunk_capacity", &self.0.chunk_capacity)
                    .field("initial_chunks", &self.0.initial_chunks)
                    .finish()
            }
        }
    };
}

pub(crate) use builder;
