//! A program without `std` links and runs with no more than this `Cargo.toml` and `program.rs`: the
//! crate links the C library and libgcc, of which its C code needs functions.
#![cfg(not(any(miri, windows)))]

use std::fs;
use std::path::Path;
use std::process::Command;

const MANIFEST: &str = r#"
[package]
name = "no_std"
edition = "2021"

[[bin]]
name = "no_std"
path = "program.rs"

[dependencies]
slabyard = { path = "SLABYARD", default-features = false }

[profile.dev]
panic = "abort"

[profile.release]
panic = "abort"

[workspace]
"#;

#[test]
fn a_program_without_std_links_and_runs() {
    let slabyard = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no_std");
    fs::create_dir_all(&folder).unwrap();
    let manifest = MANIFEST.replace("SLABYARD", slabyard.to_str().unwrap());
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::copy(
        slabyard.join("tests/no_std/program.rs"),
        folder.join("program.rs"),
    )
    .unwrap();
    let locked = slabyard.join("../Cargo.lock"); // of packages that are at hand
    fs::copy(locked, folder.join("Cargo.lock")).unwrap();

    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--offline", "--target-dir", "target"])
        .current_dir(&folder)
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let program = folder.join("target/release/no_std");
    assert!(Command::new(program).status().unwrap().success());
}
