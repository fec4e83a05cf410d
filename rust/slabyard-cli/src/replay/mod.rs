//! Replay: executes a plan on one allocator, in a process of its own.
//!
//! [`crew`] runs the threads of a process and keeps them in step, and [`thread`] is the loop that
//! executes operations. [`mode`] defines the work around each call: touch memory as a program does,
//! time the call, or check every byte. [`worker`] is the process that replays, and [`launch`] starts
//! it. [`race`] runs workers on all allocators in turn, as much as [`budget`] finds time for, and
//! [`measure`] computes figures from their results;
//! [`foretell`] is on the memory of the whole program.

mod budget;
pub mod caches;
pub mod clock;
pub mod crew;
pub mod foretell;
pub mod histogram;
mod launch;
pub mod measure;
pub mod memory;
pub mod mode;
mod race;
mod startup;
pub mod thread;
pub mod turns;
pub mod worker;

#[cfg(test)]
mod tests;
