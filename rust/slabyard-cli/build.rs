//! Builds the recorder, a shared object to be preloaded, for `record` to carry inside the tool; and
//! tells the tests where the library is, for programs that use it.

use std::{env, path::PathBuf, process::Command};

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let folder = manifest.join("../../recorder");
    let output = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("recorder.so");
    println!("cargo:rerun-if-changed={}", folder.display());
    println!("cargo:rerun-if-changed=build.rs");

    for what in ["INCLUDE", "LIBRARY"] {
        let place = env::var(format!("DEP_SLABYARD_{what}")).expect("set by slabyard-sys");
        println!("cargo:rustc-env=SLABYARD_{what}={place}");
    }

    let mut command: Command = cc::Build::new()
        .opt_level(2)
        .pic(true)
        .flag("-std=gnu11")
        .flag("-fvisibility=hidden")
        .flag("-fno-builtin")
        .flag("-Wall")
        .flag("-Wextra")
        .warnings(false)
        .get_compiler()
        .to_command();
    let status = command
        .args(["-shared", "-Wl,--no-undefined", "-o"])
        .arg(&output)
        .arg(folder.join("record.c"))
        .args(["-lpthread", "-ldl"])
        .status()
        .expect("the C compiler runs");
    assert!(status.success(), "the recorder does not build");
}
