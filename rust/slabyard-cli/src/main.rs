//! The program `slabyard`. All of it is in the library beside, which fuzzers link too.

fn main() -> std::process::ExitCode {
    slabyard_tool::main()
}
