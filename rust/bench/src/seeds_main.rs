//! The command line of the part `seeds`. It is a program of its own because it needs none of the
//! allocators that the other parts are linked with.

use clap::Parser;
use slabyard_bench::{alone, rust, seeds};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "slabyard-seeds")]
enum Part {
    Seeds(seeds::Options),
    /// A process that measures a row of nexus-slab
    #[command(hide = true)]
    Rust(alone::Options),
}

fn main() -> ExitCode {
    let done = match Part::parse() {
        Part::Seeds(options) => seeds::bench(&options),
        Part::Rust(options) => alone::bench::<rust::Row>(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("slabyard-seeds: {message}");
            ExitCode::from(2)
        }
    }
}
