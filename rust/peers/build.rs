//! Hands the versions of the peers' crates, which Cargo.toml pins, to the crate.

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
    let manifest = manifest.join("Cargo.toml");
    println!("cargo:rerun-if-changed={}", manifest.display());
    println!("cargo:rerun-if-changed=build.rs");
    let text = fs::read_to_string(&manifest).expect("the crate has a manifest");
    for name in CRATES {
        let version = pinned_version(&text, name).expect("Cargo.toml pins each peer");
        let variable = name.to_uppercase().replace('-', "_");
        println!("cargo:rustc-env=PEER_{variable}={version}");
    }
}

/// The version of a dependency `name = { version = "=..." }`. A published crate has a table
/// `[dependencies.name]` with this version.
fn pinned_version<'a>(manifest: &'a str, name: &str) -> Option<&'a str> {
    let forms = [format!("\n{name} = {{"), format!("[dependencies.{name}]")];
    let start = forms.iter().find_map(|form| manifest.find(form))?;
    let (_, version) = manifest[start..].split_once("version = \"=")?;
    version.split('"').next()
}
