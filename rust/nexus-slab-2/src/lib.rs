//! The interface of nexus-slab 2 over the pools of Slabyard. A program that was written for
//! nexus-slab runs with this crate instead, when one line of its `Cargo.toml` says so:
//!
//! ```toml
//! nexus-slab = { package = "slabyard-nexus-slab-2", path = "../slabyard/rust/nexus-slab-2" }
//! ```
//!
//! The names, types and features are those of nexus-slab 2.4.0. What differs is in
//! `docs/compat.md`. A new program should use the crate `slabyard`, whose pools give slots that free
//! themselves and cannot be given to the wrong pool.
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
//! A slot is an address of 8 bytes, which you give back to the slab that it came from. The slot that
//! was freed last is the next one to be given.
//!
//! Debug builds panic when a slot is dropped instead of given back, when it is given to another
//! slab, and when a slab is dropped while slots are taken. With debug assertions or the feature
//! `checked`, a second free of the slot that was freed last is reported and ends the process; with
//! the environment variable `SLABYARD=check` too, so are other double frees, frees to the wrong slab,
//! and writes behind a value. Two `free_raw` in a row of one slot are reported in every build.

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
