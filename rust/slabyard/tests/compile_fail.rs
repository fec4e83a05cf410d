//! What must not compile, a program for each hole; and what the compiler says of it, for the version
//! of rustc that those words are of. Others word it otherwise: they are asked nothing.
#![cfg(not(miri))]

use std::process::Command;

const WORDS_OF: &str = "rustc 1.95.";

#[test]
fn holes_are_closed() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    let version = String::from_utf8(version.expect("rustc runs").stdout).expect("text");
    if !version.starts_with(WORDS_OF) {
        eprintln!("skipped: {} is not {WORDS_OF}x", version.trim());
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*/*.rs");
}
