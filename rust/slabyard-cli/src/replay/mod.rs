//! Replay: executes a plan on one allocator, in a process of its own.
//!
//! [`crew`] runs the threads of a process and keeps them in step, and [`thread`] is the loop that
//! executes operations. [`mode`] defines the work around each call: touch memory as a program does,
//! time the call, or check every byte. [`worker`] is the process that replays; [`measure`] starts
//! workers and collects their results.

mod caches;
pub mod clock;
pub mod crew;
pub mod histogram;
pub mod measure;
pub mod memory;
pub mod mode;
mod startup;
pub mod thread;
pub mod turns;
pub mod worker;

#[cfg(test)]
mod tests;
