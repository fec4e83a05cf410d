//! The library of the tool `slabyard`, which measures what a program's allocations cost on each
//! allocator.
//!
//! `record` writes a program's calls of malloc to a file; `compare` and `replay` repeat them on
//! each allocator and report. A recording passes through these modules in order: [`record`],
//! [`recording`], [`plan`], [`replay`], [`report`]; each uses only those before it. [`lifetimes`]
//! reads a recording too, and tells what mixed lifetimes of objects cost; [`profile`] tells whose
//! memory it is, by stack, and [`advise`] what some places would gain from pools and caches. Three more modules serve
//! other commands: [`faults`] lets a program's allocations fail, [`real`] runs the program itself on
//! each allocator, and [`preload`] loads a malloc into an unchanged program, which [`program`] runs.
//! [`service`] ends programs that do not end by themselves, and loads servers before.
//! [`perf_map`] names functions that programs make at run time. [`inspect`] looks into running processes. [`caveat`] is a reason why figures of either may mislead.

mod advise;
mod allocators;
mod caveat;
mod cli;
mod faults;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod inspect;
mod lifetimes;
mod machine;
mod perf_map;
mod plan;
mod preload;
mod profile;
mod program;
mod real;
mod record;
mod recording;
mod replay;
mod report;
mod run;
mod service;
mod signals;
mod ui;

/// Runs the tool: parses the command line, and returns the exit status.
pub fn main() -> std::process::ExitCode {
    cli::main()
}
