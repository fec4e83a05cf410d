//! What the crates `slabyard-nexus-slab` and `slabyard-nexus-slab-2` are made of: pools without
//! types, slabs of a fixed number of slots a chunk over them, and the end of a thread. Not for
//! programs, and free to change with each version.

mod store;
mod typed;

#[cfg(feature = "std")]
pub use crate::local::end::{register as at_thread_end, End};
pub use crate::raw::pool::{Name, RawPool, Shape, CALLS};
pub use store::{Free, Store};
pub use typed::{Bounded, Kind, Taken, TypedStore, Unbounded};
