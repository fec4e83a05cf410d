//! Parts of the crates `slabyard-nexus-slab` and `slabyard-nexus-slab-2`: untyped pools, slabs with
//! a fixed number of slots in each chunk, and the end of a thread. Programs should not use this
//! module: it may change with each version.

mod store;
mod typed;

#[cfg(feature = "std")]
pub use crate::local::end::{at_thread_end, End};
pub use crate::raw::pool::{Name, RawPool, Shape, CALLS};
pub use store::{Free, Store};
pub use typed::{Bounded, Kind, Taken, TypedStore, Unbounded};
