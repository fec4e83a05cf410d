//! Compiles the programs that repeat the tables of the earlier C systems, over Slabyard's headers for
//! users of these systems. `originals.rs` builds them in the same way over the systems themselves.

use std::path::PathBuf;

fn main() {
    let variable = |name: &str| PathBuf::from(std::env::var_os(name).expect("set by cargo"));
    let (include, library) = (
        variable("DEP_SLABYARD_INCLUDE"),
        variable("DEP_SLABYARD_LIBRARY"),
    );
    let output = variable("OUT_DIR");
    for system in ["magazine-slab", "userland-slab", "xslab", "zns-slab"] {
        let headers = format!("../../../compat/{system}");
        let status = cc::Build::new()
            .std("gnu11")
            .opt_level(2)
            .debug(false)
            .force_frame_pointer(false)
            .pic(false)
            .warnings(true)
            .extra_warnings(true)
            .include(&headers)
            .include(&include)
            .get_compiler()
            .to_command()
            .arg(format!("programs/{}.c", system.replace('-', "_")))
            .arg(&library)
            .args(["-pthread", "-o"])
            .arg(output.join(format!("seeds_{system}")))
            .status();
        assert!(status.expect("the C compiler runs").success(), "{system}");
        println!("cargo::rerun-if-changed={headers}");
    }
    println!("cargo::rerun-if-changed=programs");
    println!("cargo::rustc-env=SEED_PROGRAMS={}", output.display());
}
