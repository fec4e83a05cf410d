//! Builds the two shared objects that the tool carries: the recorder for `record`, and the drop-in
//! malloc for `run`. It also tells the tests where the library is, for programs that use it.
//!
//! The crate has their sources: `recorder`, `shim` and the files in `link` are links in the repository.

use std::path::{Path, PathBuf};
use std::{env, process::Command};

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let output = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    println!("cargo:rerun-if-changed=build.rs");

    for what in ["INCLUDE", "LIBRARY"] {
        println!("cargo:rustc-env=SLABYARD_{what}={}", of_library(what));
    }

    build_recorder(&here, &output.join("recorder.so"));
    build_malloc(&here, &output.join("malloc.so"));
}

/// Where slabyard-sys has the library, its headers or its sources.
fn of_library(what: &str) -> String {
    env::var(format!("DEP_SLABYARD_{what}")).expect("set by slabyard-sys")
}

/// The C compiler, with the arguments for a shared object.
fn compiler() -> Command {
    let mut command: Command = cc::Build::new()
        .opt_level(2)
        .pic(true)
        .flag("-std=gnu11")
        .flag("-fvisibility=hidden")
        .flag("-fno-builtin")
        .flag("-ffunction-sections")
        .flag("-fdata-sections")
        .flag("-Wall")
        .flag("-Wextra")
        .warnings(false)
        .get_compiler()
        .to_command();
    command.args(["-shared", "-Wl,--no-undefined"]);
    command
}

fn must_build(command: &mut Command, what: &str) {
    let status = command.status().expect("the C compiler runs");
    assert!(status.success(), "{what} does not build");
}

/// A source that takes stacks, in a function that no linker leaves out.
const UNWINDS: &str = r#"
void _Unwind_Backtrace(void);
__attribute__((visibility("default"))) void unwind(void) { _Unwind_Backtrace(); }
"#;

/// Whether a library of this source can be linked with these arguments.
fn can_link(text: &str, arguments: &[String], output: &Path) -> bool {
    let source = output.with_extension("c");
    std::fs::write(&source, text).expect("the output folder can be written");
    let mut command = compiler();
    command.arg("-o").arg(output).arg(source).args(arguments);
    command.output().is_ok_and(|done| done.status.success())
}

/// The flags of SLABYARD_SHARED_FLAGS and SLABYARD_UNWIND_FLAGS in cmake/flags.cmake, and the list of
/// operators, as far as the linker accepts them. The library may be copied to an older system, so its
/// relocations are not packed. zig's linker knows few of them, and brings LLVM's unwinder.
fn flags_of_linker(link: &Path, unwinder: &Path, output: &Path) -> Vec<String> {
    let ordered = vec![
        format!("-Wl,-T,{}", link.join("first.ld").display()),
        "-Wl,-z,max-page-size=65536".into(),
        "-Wl,--sort-section=alignment".into(),
    ];
    let operators = link.join("operators.list");
    let replaceable = vec![format!("-Wl,--dynamic-list={}", operators.display())];
    // The list of exported functions has some that musl lacks.
    let lacking = vec!["-Wl,--undefined-version".into()];

    let probe = output.with_extension("probe.so");
    let mut flags: Vec<String> = [ordered, replaceable, lacking]
        .into_iter()
        .filter(|flags| can_link("int variable;\n", flags, &probe))
        .flatten()
        .collect();
    let unwinders = ["-static-libgcc", "-lunwind"]
        .map(|library| vec![library.to_string(), "-Wl,--wrap=_Unwind_Resume".into()]);
    let unwinds = unwinders
        .into_iter()
        .find(|flags| can_link(UNWINDS, flags, &probe));
    if let Some(unwinds) = unwinds {
        flags.extend(unwinds);
        flags.push(unwinder.display().to_string());
    }
    flags
}

fn build_recorder(here: &Path, output: &Path) {
    let folder = here.join("recorder");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut command = compiler();
    // The walk of a stack begins at the frame of the function that the program has called.
    command.args(["-fno-omit-frame-pointer", "-o"]).arg(output);
    let core = of_library("CORE");
    command.arg(format!("-I{core}"));
    command.args(c_files(&folder));
    // It reads unwinding tables as the library does.
    command.arg(Path::new(&core).join("os/linux/rows.c"));
    // It must fit below a limit of the size of files, where the user has set one (ulimit -f).
    command.args(["-Wl,--strip-debug", "-lpthread", "-ldl"]);
    must_build(&mut command, "the recorder");
}

/// Links the library that slabyard-sys has compiled as CMakeLists.txt links libslabyard-malloc.so.
fn build_malloc(here: &Path, output: &Path) {
    let [library, include, core] = ["LIBRARY", "INCLUDE", "CORE"].map(of_library);
    let [shim, link] = ["shim", "link"].map(|folder| here.join(folder));
    for input in [&shim, &link, &PathBuf::from(&library)] {
        println!("cargo:rerun-if-changed={}", input.display());
    }
    let mut command = compiler();
    command
        .args(["-fexceptions", "-o"])
        .arg(output)
        .args([&here.display().to_string(), &core, &include].map(|folder| format!("-I{folder}")))
        .arg(format!(
            "-DSLABYARD_VERSION=\"{}\"",
            env!("CARGO_PKG_VERSION")
        ))
        .args(c_files(&shim))
        .args(["shared/users.c", "shared/code.c"].map(|file| shim.join(file)))
        .args(flags_of_linker(
            &link,
            &shim.join("shared/unwinder.c"),
            output,
        ))
        .args(["-Wl,--whole-archive", &library, "-Wl,--no-whole-archive"])
        // Profilers need the function names; line numbers would make the tool a sixth larger.
        .args(["-Wl,-z,nodelete", "-Wl,--strip-debug"])
        // A program that is linked with an installed library must not get a second copy of it.
        .arg(format!(
            "-Wl,-soname,libslabyard-malloc.so.{}",
            abi(&include)
        ))
        .arg(format!(
            "-Wl,--version-script={}",
            link.join("malloc.map").display()
        ));
    must_build(command.args(["-lpthread", "-ldl"]), "the drop-in malloc");
}

fn c_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let files = entries.map(|entry| entry.expect("its entries can be read").path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    files.sort();
    files
}

/// `#define SY_ABI 1`: `1`
fn abi(include: &str) -> String {
    let header = Path::new(include).join("slabyard/base.h");
    let text = std::fs::read_to_string(header).expect("the header can be read");
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix("#define SY_ABI "));
    value.expect("base.h defines SY_ABI").trim().to_string()
}
