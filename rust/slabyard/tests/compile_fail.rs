//! What must not compile, a program for each hole.
#![cfg(not(miri))]

#[test]
fn holes_are_closed() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*/*.rs");
}
