//! Explores the atomic variables of the Rust crate under loom, which runs them in many orders of
//! the threads, and with every value that the memory orders allow a load to see.
//!
//! - [`counts`]: the counts of shared objects; the crate's file itself is compiled.
//! - [`map`]: the words of maps, transcribed from `rust/slabyard/src/handle/word.rs`.
//!
//! [`map`] is transcribed statement by statement. Its memory orders are in a structure of rules, so
//! a test can weaken one rule and check that the model then fails: a rule that can be weakened
//! without a failure is not tested. If you change `word.rs`, change [`map`] too.
//!
//! The models of the C core are in `tests/models`, and compile the C sources themselves.

pub mod counts;
pub mod map;
