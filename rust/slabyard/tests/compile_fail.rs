//! Programs that must not compile, one for each hole in safety, with the compiler's messages of one
//! version of rustc. With other versions, whose messages differ, they are not tested.
#![cfg(not(any(miri, windows)))]

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
