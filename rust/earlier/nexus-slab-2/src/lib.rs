//! The interface of nexus-slab 2 over the pools of Slabyard. To run a program written for
//! nexus-slab with this crate, change one line of its `Cargo.toml`:
//!
//! ```toml
//! nexus-slab = { package = "slabyard-nexus-slab-2", path = "../slabyard/rust/earlier/nexus-slab-2" }
//! ```
//!
//! The names, types and features are those of nexus-slab 2.4.0. `docs/compat.md` lists the
//! differences. A new program should use the crate `slabyard`: the slots of its pools free
//! themselves, and cannot be given to the wrong pool.
//!
//! | to allocate | use |
//! |---|---|
//! | values of one type | [`bounded::Slab`], [`unbounded::Slab`] |
//! | values of several types, in slots of a fixed size | [`byte::bounded::Slab`], [`byte::unbounded::Slab`] |
//! | values with several owners (feature `rc`) | `rc::bounded::Slab`, `rc::unbounded::Slab` |
//!
//! ```
//! # use nexus_slab_2 as nexus_slab;
//! use nexus_slab::bounded::Slab;
//!
//! // SAFETY: the slot is given back to this slab.
//! let slab = unsafe { Slab::with_capacity(1024) };
//! let slot = slab.alloc(42u64);
//! assert_eq!(*slot, 42);
//! slab.free(slot);
//! ```
//!
//! A slot is an address of 8 bytes, which must be given back to its slab. The slot freed last is
//! allocated next.
//!
//! A debug build panics if a slot is dropped instead of given back, if it is given to another slab,
//! and if a slab is dropped while slots are taken. With debug assertions or the feature `checked`,
//! a second free in a row of one slot is reported and ends the process. With the environment
//! variable `SLABYARD=check` in addition, other double frees, frees to the wrong slab, and writes
//! behind a value are reported too. Two `free_raw` in a row of one slot are reported in every
//! build.

#![cfg_attr(not(feature = "std"), no_std)]
#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod bounded;
mod builder;
pub mod byte;
mod handle;
#[cfg(feature = "rc")]
pub mod rc;
#[doc(hidden)]
pub mod shared;
mod slab;
pub mod unbounded;

#[cfg(feature = "rc")]
pub use rc::{RcSlot, Ref, RefMut};
pub use shared::{Full, PinnedSlot, Slot, SlotCell};
