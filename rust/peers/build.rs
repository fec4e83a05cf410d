//! Hands the versions of the peers' crates, as Cargo.lock pins them, to the crate.

use std::{env, fs, path::PathBuf};

const CRATES: [&str; 5] = [
    "libmimalloc-sys",
    "libtcmalloc-sys",
    "rpmalloc-sys",
    "snmalloc-sys",
    "tikv-jemalloc-sys",
];

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let lock = manifest.join("../Cargo.lock");
    println!("cargo:rerun-if-changed={}", lock.display());
    println!("cargo:rerun-if-changed=build.rs");
    let text = fs::read_to_string(&lock).unwrap_or_default();
    for name in CRATES {
        let version = locked_version(&text, name).unwrap_or("unknown");
        let variable = name.to_uppercase().replace('-', "_");
        println!("cargo:rustc-env=PEER_{variable}={version}");
    }
}

/// The version that follows `name = "..."` in a lock file.
fn locked_version<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let entry = format!("name = \"{name}\"\nversion = \"");
    let start = lock.find(&entry)? + entry.len();
    lock[start..].split('"').next()
}
