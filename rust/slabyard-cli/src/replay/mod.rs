//! Replay: a plan executed on one allocator, in a process of its own.
//!
//! [`crew`] runs a process's threads and keeps them in order, [`thread`] is the loop that executes
//! operations, [`mode`] is what is done around each call: touching memory as a program would,
//! timing it, or checking every byte. [`worker`] is the process; [`measure`] starts workers and
//! gathers what they say.

mod caches;
pub mod clock;
pub mod crew;
pub mod histogram;
pub mod measure;
pub mod memory;
pub mod mode;
mod startup;
pub mod thread;
pub mod worker;

#[cfg(test)]
mod tests;
