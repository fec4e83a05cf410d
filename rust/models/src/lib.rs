//! The algorithms of the C core that are not plain lock and data, transcribed for loom, which runs
//! them in every interleaving of their threads and with every value that their memory orders let a
//! load see.
//!
//! - [`depot`]: the stack of magazines in `src/magazine/depot.c`.
//! - [`handle`]: the words of `include/slabyard/handle.h` and `src/cache/handle.c`.
//! - [`lock`]: the lock in `src/os/lock.h` and `src/os/lock.c`, over a model of the futex.
//!
//! Each is transcribed statement by statement, with the C code's memory orders in a structure of
//! rules, so that a test can weaken one and show that the model then fails: a rule whose absence
//! goes unseen is not being tested. Whoever changes the C changes this with it.

pub mod depot;
pub mod handle;
pub mod lock;
