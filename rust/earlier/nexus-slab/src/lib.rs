//! The interface of nexus-slab 0.11 over the pools of Slabyard. To run a program written for
//! nexus-slab with this crate, change one line of its `Cargo.toml`:
//!
//! ```toml
//! nexus-slab = { package = "slabyard-nexus-slab", path = "../slabyard/rust/earlier/nexus-slab" }
//! ```
//!
//! The names, types and macros are those of nexus-slab 0.11.2. `docs/compat.md` lists the
//! differences. A new program should use the crate `slabyard`: the slots of its pools free
//! themselves, and cannot be given to the wrong pool.
//!
//! | to allocate | use |
//! |---|---|
//! | by a name, with slots of 8 bytes that free themselves | [`bounded_allocator!`], [`unbounded_allocator!`] |
//! | the same, for values with several owners | [`bounded_rc_allocator!`], [`unbounded_rc_allocator!`] |
//! | from a value, with raw slots that you free | [`bounded::Slab`], [`unbounded::Slab`] |
//!
//! The slot freed last is allocated next. All types here stay on their thread.
//!
//! If the slot that was freed last is freed again, this is reported and ends the process. Other
//! double frees, and frees of addresses that are not slots, are reported with debug assertions or
//! the feature `checked`, and the environment variable `SLABYARD=check`.

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

pub use alloc::{Alloc, BoundedAlloc, BoxSlot, Full, LocalStatic, PinnedSlot, UnboundedAlloc};
pub use shared::{RcInner, Slot, SlotCell};
