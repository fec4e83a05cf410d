//! The command line of the program.

use clap::Parser;
use slabyard_bench::{alone, rust};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "slabyard-seeds")]
enum Part {
    Seeds(slabyard_seeds::Options),
    /// A process that measures a row of nexus-slab
    #[command(hide = true)]
    Rust(alone::Options),
}

fn main() -> ExitCode {
    let done = match Part::parse() {
        Part::Seeds(options) => slabyard_seeds::bench(&options),
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
