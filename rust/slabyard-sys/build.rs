//! Compiles the C core, everything under `src/` but the fake operating system of the tests, and
//! tells dependents where the headers are (`DEP_SLABYARD_INCLUDE`).

use std::path::{Path, PathBuf};

/// All C sources under `folder`, in a stable order.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).expect("the folder of the C core can be read");
    for entry in entries {
        let path = entry.expect("a folder entry can be read").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "c") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let root = here
        .join("../..")
        .canonicalize()
        .expect("the repository is around the crate");
    let core = root.join("src");
    let include = root.join("include");

    let mut build = cc::Build::new();
    build
        .std("gnu11")
        .opt_level(2)
        .force_frame_pointer(false)
        .flag("-fvisibility=hidden")
        .include(&include)
        .include(&core);
    for path in sources(&core) {
        if !path.ends_with("os/fake.c") {
            build.file(path);
        }
    }
    build.file("src/layout.c");
    build.compile("slabyard");

    println!("cargo::metadata=include={}", include.display());
    println!("cargo::rerun-if-changed=src/layout.c");
    println!("cargo::rerun-if-changed={}", core.display());
    println!("cargo::rerun-if-changed={}", include.display());
}
