//! The C core, a module for each part of it. Under Miri, which runs no C, each part is a small
//! model in Rust with the same functions.

pub(crate) mod cache;
#[cfg_attr(miri, path = "handle_miri.rs")]
pub(crate) mod handle;
pub(crate) mod heap;
pub(crate) mod pool;
