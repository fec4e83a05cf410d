//! What the crate `slabyard-nexus-slab` is made of: pools without types, and the end of a thread.
//! Not for programs, and free to change with each version.

pub use crate::local::end::{register as at_thread_end, End};
pub use crate::raw::pool::{Name, RawPool, Shape, CALLS};
