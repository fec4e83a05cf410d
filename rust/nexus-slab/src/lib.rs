//! The interface of nexus-slab 0.11 over the pools of Slabyard. A program that was written for
//! nexus-slab runs with this crate instead, when one line of its `Cargo.toml` says so:
//!
//! ```toml
//! nexus-slab = { package = "slabyard-nexus-slab", path = "../slabyard/rust/nexus-slab" }
//! ```
//!
//! The names, types and macros are those of nexus-slab 0.11.2. What differs is in `docs/compat.md`.
//! A new program should use the crate `slabyard`, whose pools give slots that free themselves and
//! cannot be given to the wrong pool.
//!
//! | to allocate | use |
//! |---|---|
//! | by a name, with slots of 8 bytes that free themselves | [`bounded_allocator!`], [`unbounded_allocator!`] |
//! | the same, for values with several owners | [`bounded_rc_allocator!`], [`unbounded_rc_allocator!`] |
//! | from a value, with raw slots that you free | [`bounded::Slab`], [`unbounded::Slab`] |
//!
//! A slot that was freed last is the next one to be given. Nothing here may leave its thread.
//!
//! A second free of the slot that was freed last is reported and ends the process. With debug
//! assertions or the feature `checked`, and the environment variable `SLABYARD=check`, so are other
//! double frees, and frees of what is no slot.

#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod alloc;
pub mod bounded;
#[doc(hidden)]
pub mod local;
#[doc(hidden)]
pub mod macros;
#[doc(hidden)]
pub mod shared;
mod slab;
pub mod unbounded;

pub use alloc::{Alloc, BoundedAlloc, BoxSlot, Full, LocalStatic, UnboundedAlloc};
pub use shared::{RcInner, Slot, SlotCell};
