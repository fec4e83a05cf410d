//! The Rust crate's own atomic variables under loom, which runs them in many orders of their threads
//! and with every value that their memory orders let a load see.
//!
//! - [`counts`]: those of shared objects: the crate's file itself.
//! - [`map`]: the words of maps, `rust/slabyard/src/handle/word.rs`, transcribed.
//!
//! [`map`] is transcribed statement by statement, with the memory orders in a structure of rules, so
//! that a test can weaken one and show that the model then fails: a rule whose absence goes unseen is
//! not being tested. Whoever changes `word.rs` changes this with it.
//!
//! The C core's are in `tests/models`, over the C sources themselves.

pub mod counts;
pub mod map;
