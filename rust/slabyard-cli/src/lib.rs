//! `slabyard`: what would a program's allocations cost on each allocator?
//!
//! `record` writes what a program asks of malloc, `compare` and `replay` run that on allocators
//! and report. From the file to the page: [`record`], [`recording`], [`plan`], [`replay`],
//! [`report`]; each knows only what stands before it. Beside them stand [`faults`]: what does a
//! program do when its allocations fail? And [`real`]: what does the program itself take on each
//! allocator? [`preload`] puts a malloc into a program that does not know of it, [`program`] runs it.

mod allocators;
mod cli;
mod faults;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod machine;
mod plan;
mod preload;
mod program;
mod real;
mod record;
mod recording;
mod replay;
mod report;
mod run;
mod signals;
mod ui;

/// The tool: reads the command line, and says how the process is to end.
pub fn main() -> std::process::ExitCode {
    cli::main()
}
