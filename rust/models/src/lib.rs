//! The algorithms of the C core that are not plain lock and data, transcribed for loom, which runs
//! them in every interleaving of their threads and with every value that their memory orders let a
//! load see.
//!
//! - [`counts`]: those of shared objects in the Rust crate: the file itself.
//! - [`depot`]: the stack of magazines in `src/magazine/depot.c`.
//! - [`handle`]: the words of `include/slabyard/handle.h` and `src/cache/handle.c`.
//! - [`map`]: the same words in `rust/slabyard/src/handle/word.rs`, for values that are dropped.
//! - [`lock`]: the lock in `src/os/lock.h` and `src/os/lock.c`, over a model of the futex.
//! - [`park`]: how a thread's record is parked and claimed, in `src/magazine/thread.c`.
//!
//! Each is transcribed statement by statement, with the C code's memory orders in a structure of
//! rules, so that a test can weaken one and show that the model then fails: a rule whose absence
//! goes unseen is not being tested. Whoever changes the C changes this with it.

pub mod counts;
pub mod depot;
pub mod handle;
pub mod lock;
pub mod map;
pub mod park;
