//! Bindings to the C core, one module for each part. Miri cannot run C, so under Miri each part is
//! a small model in Rust with the same functions.

pub(crate) mod cache;
#[cfg_attr(miri, path = "handle_miri.rs")]
pub(crate) mod handle;
pub(crate) mod heap;
pub(crate) mod pool;
