//! The program `slabyard`. All its code is in the library beside it, which the fuzzers link too.

fn main() -> std::process::ExitCode {
    slabyard_tool::main()
}
