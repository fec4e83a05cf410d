//! Compiles the C core: everything under `src/` except the fake operating system of the tests. It
//! tells dependent crates where the headers, the sources and the library are (`DEP_SLABYARD_INCLUDE`,
//! `DEP_SLABYARD_CORE`, `DEP_SLABYARD_LIBRARY`).

use std::path::{Path, PathBuf};

/// Finds all C sources under `folder`, in a stable order.
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

/// Layers that are compiled with frame pointers, as in cmake/flags.cmake: stack traces are taken by
/// them. The other layers have fast paths that are functions, which frame pointers would slow down.
const FRAMED: [&str; 7] = [
    "cache", "chunk", "debug", "magazine", "pool", "reclaim", "report",
];

fn is_framed(path: &Path, core: &Path) -> bool {
    FRAMED
        .iter()
        .any(|layer| path.starts_with(core.join(layer)))
}

fn build_of(core: &Path, include: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .std("gnu11")
        .opt_level(2)
        .force_frame_pointer(false)
        .flag("-fvisibility=hidden")
        .flag("-fexceptions")
        .flag("-ffunction-sections") // cmake/first.ld names the sections
        .flag("-fdata-sections")
        .flag_if_supported("-fno-plt") // see cmake/flags.cmake
        .include(include)
        .include(core);
    if std::env::var_os("CARGO_FEATURE_DLOPEN").is_some() {
        build.define("SY_DLOPEN", None);
    }
    build
}

/// What Cargo says about the target; empty: nothing.
fn of_target(name: &str) -> String {
    std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default()
}

/// Links what the C code needs and a program without `std` lacks: the C library, and the functions
/// of libgcc that unwind the stack.
fn link_what_std_links() {
    let is_static = of_target("FEATURE").contains("crt-static");
    let unwinder = if is_static { "gcc_eh" } else { "gcc_s" };
    println!("cargo::rustc-link-lib={unwinder}");
    println!("cargo::rustc-link-lib=c");
}

/// Operating systems that the C core knows (`src/os/platform.h`).
const SYSTEMS: [&str; 10] = [
    "linux",
    "android",
    "macos",
    "ios",
    "freebsd",
    "openbsd",
    "netbsd",
    "dragonfly",
    "windows",
    "wasi",
];

/// Says in one sentence why the crate cannot be built for the target. The compiler would end at a
/// header that the system lacks, and Cargo would show all the environment that was looked at.
fn why_not() -> Option<String> {
    let system = of_target("OS");
    if !SYSTEMS.contains(&system.as_str()) {
        return Some(format!(
            "Slabyard does not know the system \"{system}\": see docs/platforms.md"
        ));
    }
    let is_wide = of_target("POINTER_WIDTH") == "64";
    (!is_wide).then(|| "Slabyard's crates need pointers of 64 bits: see docs/platforms.md".into())
}

fn main() {
    if let Some(reason) = why_not() {
        println!("cargo::error={reason}");
        return;
    }
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    // These are links in the repository, and folders in the packaged crate.
    let [core, include] = ["core", "include"].map(|folder| {
        let folder = here.join(folder).canonicalize();
        folder.expect("the C sources are in the crate")
    });

    let (mut framed, mut build) = (build_of(&core, &include), build_of(&core, &include));
    framed
        .flag("-fno-omit-frame-pointer")
        .flag_if_supported("-momit-leaf-frame-pointer");
    for path in sources(&core) {
        if path.ends_with("os/fake.c") {
            continue;
        }
        let to = if is_framed(&path, &core) {
            &mut framed
        } else {
            &mut build
        };
        to.file(path);
    }
    build.objects(framed.compile_intermediates());
    build.compile("slabyard");
    let is_gnu = of_target("ENV") == "gnu";
    if of_target("OS") == "windows" {
        println!("cargo::rustc-link-lib=advapi32"); // random numbers
    } else if is_gnu && std::env::var_os("CARGO_FEATURE_STD").is_none() {
        link_what_std_links();
    }

    let output = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    println!("cargo::metadata=include={}", include.display());
    println!("cargo::metadata=core={}", core.display());
    println!(
        "cargo::metadata=library={}",
        output.join("libslabyard.a").display()
    );
    println!("cargo::rerun-if-changed={}", core.display());
    println!("cargo::rerun-if-changed={}", include.display());
}
