//! Compiles the C and C++ sources of the benchmark: the kernels, once for each layout, which places
//! the same code differently; the server of the part `server`; the programs of `truth`; the
//! workloads of `programs` and `threads`; and the libraries of `littered`.
//!
//! The flags are those of an ordinary program: -O2, position-independent executable, no tuning for
//! the machine. snmalloc's inline form is compiled from the source that its crate carries.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of no-operations at the entry of each kernel, and the alignment of its loops.
const LAYOUTS: [(u32, u32); 4] = [(1, 16), (22, 32), (44, 1), (1, 16)];
/// Layouts: those that are measured, and one that checks.
const MEASURED: usize = 3;

fn cpp(standard: &str) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std(standard)
        .opt_level(2)
        .debug(false)
        .force_frame_pointer(false)
        .pic(false)
        .flag("-fPIE")
        .include("kernels")
        .include(std::env::var_os("DEP_SLABYARD_INCLUDE").expect("set by slabyard-sys"))
        .warnings(true)
        .extra_warnings(true);
    build
}

fn placed(build: &mut cc::Build, layout: usize) -> &mut cc::Build {
    let (padding, loops) = LAYOUTS[layout];
    build
        .define("BENCH_LAYOUT", layout.to_string().as_str())
        .define("BENCH_PADDING", padding.to_string().as_str())
        .define("SY_STATIC", None)
        .flag("-falign-functions=64")
        .flag(format!("-falign-loops={loops}"))
}

/// The folder where cargo unpacked a crate that contains an allocator's source. Cargo lists only
/// whole workspaces, so it downloads the crates of the others if they are missing.
fn unpacked(name: &str) -> PathBuf {
    let target = std::env::var("TARGET").expect("set by cargo");
    let output = Command::new(std::env::var_os("CARGO").expect("set by cargo"))
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--filter-platform",
            &target,
        ])
        .output()
        .expect("cargo metadata runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let manifest = metadata["packages"]
        .as_array()
        .and_then(|packages| packages.iter().find(|package| package["name"] == name))
        .and_then(|package| package["manifest_path"].as_str())
        .expect("a dependency of that name");
    let folder = Path::new(manifest).parent();
    folder.expect("a file in a folder").to_owned()
}

/// Compiles mimalloc once more, as its secure variant. All its symbols but two become local, so
/// that they do not clash with the mimalloc that is linked already.
fn secure_mimalloc() {
    let source = unpacked("libmimalloc-sys").join("c_src/mimalloc/v3");
    let objects = cc::Build::new()
        .include(source.join("include"))
        .include(source.join("src"))
        .file(source.join("src/static.c"))
        .opt_level(3) // as its crate is built
        .debug(false)
        .force_frame_pointer(false)
        .define("MI_SECURE", "4")
        .define("MI_DEBUG", "0")
        .define("MI_BUILD_RELEASE", None)
        .define("NDEBUG", None)
        .define("mi_malloc", "bench_secure_malloc")
        .define("mi_free", "bench_secure_free")
        .flag("-ftls-model=initial-exec")
        .flag("-Wno-error=date-time")
        .warnings(false)
        .compile_intermediates();
    for object in &objects {
        let status = Command::new("objcopy")
            .arg("--keep-global-symbol=bench_secure_malloc")
            .arg("--keep-global-symbol=bench_secure_free")
            .arg(object)
            .status();
        assert!(status.expect("objcopy runs").success(), "{object:?}");
    }
    cc::Build::new()
        .objects(objects)
        .compile("bench_secure_mimalloc");
}

/// Whether Boost's pool is installed. It consists of headers only.
fn has_boost() -> bool {
    let compiler = cc::Build::new().cpp(true).get_compiler();
    let program = compiler
        .to_command()
        .args(["-std=c++17", "-fsyntax-only", "-include"])
        .args(["boost/pool/pool_alloc.hpp", "-x", "c++", "/dev/null"])
        .output();
    program.is_ok_and(|output| output.status.success())
}

/// Compiles the containers with each contender. If Boost is missing, it is looked for again after
/// packages have been installed.
fn containers() {
    let boost = has_boost();
    for layout in 0..MEASURED {
        let mut build = cpp("c++17");
        if boost {
            build.define("BENCH_BOOST", None);
        }
        placed(&mut build, layout)
            .file("kernels/cpp/containers.cpp")
            .compile(&format!("bench_containers_{layout}"));
    }
    let packages = "/var/lib/dpkg/status";
    if !boost && Path::new(packages).exists() {
        println!("cargo::rerun-if-changed={packages}");
    }
}

/// Links an executable or a library of these files.
fn link(build: &cc::Build, files: &[PathBuf], options: &[&str], output: &Path) {
    let mut command = build.get_compiler().to_command();
    command.args(files).args(options).arg("-o").arg(output);
    let status = command.status().expect("the compiler runs");
    assert!(status.success(), "{}", output.display());
}

/// The key-value server of the examples, as a user builds it.
fn key_value_server() {
    let source = PathBuf::from("../../examples/kv_server.c");
    let [include, library] = ["INCLUDE", "LIBRARY"]
        .map(|what| std::env::var_os(format!("DEP_SLABYARD_{what}")).expect("set by slabyard-sys"));
    let mut build = c_program();
    build.std("c11").warnings(false).include(include);
    let (files, program) = (
        [source, library.into()],
        output_folder("server").join("kv_server"),
    );
    link(&build, &files, &["-pthread"], &program);
    for file in files {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    println!("cargo::rustc-env=BENCH_KV_SERVER={}", program.display());
}

/// The programs that are run for real, and recorded and replayed.
fn truth_programs() {
    let program = output_folder("truth").join("truth_programs");
    let sources = files_in("kernels/truth", "cpp");
    link(&cpp("c++17"), &sources, &["-pthread"], &program);
    println!("cargo::rustc-env=BENCH_TRUTH={}", program.display());
}

/// The C compiler with the options of programs that are measured.
fn c_program() -> cc::Build {
    let mut build = cc::Build::new();
    build
        .std("gnu11")
        .opt_level(2)
        .debug(false)
        .force_frame_pointer(false)
        .pic(false)
        .warnings(true)
        .extra_warnings(true);
    build
}

/// The files in a folder with this ending.
fn files_in(folder: impl AsRef<Path>, ending: &str) -> Vec<PathBuf> {
    let has_ending = |path: &PathBuf| path.extension().is_some_and(|found| found == ending);
    let mut files: Vec<PathBuf> = entries(folder.as_ref()).filter(has_ending).collect();
    files.sort();
    files
}

/// The C sources in a folder and in the folders below.
fn sources_below(folder: &Path) -> Vec<PathBuf> {
    let folders = entries(folder).filter(|path| path.is_dir());
    let below = folders.flat_map(|folder| sources_below(&folder));
    files_in(folder, "c").into_iter().chain(below).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of this repository");
    entries.map(|entry| entry.expect("its entries can be read").path())
}

/// A folder in cargo's, which is made.
fn output_folder(name: &str) -> PathBuf {
    let output = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo")).join(name);
    std::fs::create_dir_all(&output).expect("a folder can be made in cargo's");
    output
}

/// Makes an executable of each C file in a folder.
fn programs_of(folder: &str, build: &cc::Build, more: &[PathBuf], options: &[&str], output: &Path) {
    for source in files_in(folder, "c") {
        let program = output.join(source.file_stem().expect("it has an ending"));
        link(build, &[&[source], more].concat(), options, &program);
    }
}

/// The programs that repeat the workloads of published benchmarks of allocators.
fn allocator_programs() {
    let output = output_folder("programs");
    programs_of("programs", &c_program(), &[], &["-pthread"], &output);
    println!("cargo::rerun-if-changed=programs");
    println!("cargo::rustc-env=BENCH_PROGRAMS={}", output.display());
}

/// The workloads of people whose process was killed.
fn thread_programs() {
    let output = output_folder("threads");
    programs_of("kernels/threads", &c_program(), &[], &["-pthread"], &output);
    println!("cargo::rustc-env=BENCH_THREADS={}", output.display());
}

/// Linked statically with musl, the same workloads once more: with musl's malloc in the folder `own`,
/// and with Slabyard's in the folder `slabyard`. If there is no compiler for musl, it is looked for
/// again after packages have been installed.
fn musl_programs() {
    let packages = "/var/lib/dpkg/status";
    let has_compiler = Command::new("musl-gcc").arg("--version").output().is_ok();
    if !has_compiler {
        println!("cargo::rustc-env=BENCH_MUSL=");
        if Path::new(packages).exists() {
            println!("cargo::rerun-if-changed={packages}");
        }
        return;
    }
    let output = output_folder("musl");
    let library = musl_library(&output);
    for (folder, objects) in [("own", Vec::new()), ("slabyard", library)] {
        let folder = output_folder(&format!("musl/{folder}"));
        // As tests/install/musl.sh links the drop-in malloc.
        let options = [
            "-static",
            "-pthread",
            "-Wl,--eh-frame-hdr",
            "-Wl,-u,pthread_once",
        ];
        programs_of(
            "kernels/threads",
            &musl_compiler(),
            &objects,
            &options,
            &folder,
        );
    }
    println!("cargo::rustc-env=BENCH_MUSL={}", output.display());
}

/// The libraries that fragment a program's heap before it begins, and that find its sizes.
fn litter_library() {
    let output = output_folder("littered");
    for name in ["litter", "record"] {
        // The compiler must not take the malloc that is defined here for one that it knows.
        let source = PathBuf::from(format!("kernels/littered/{name}.c"));
        let library = output.join(format!("lib{name}.so"));
        let build = c_program();
        link(
            &build,
            &[source],
            &["-fPIC", "-fno-builtin", "-shared"],
            &library,
        );
    }
    println!("cargo::rustc-env=BENCH_LITTER={}", output.display());
}

fn musl_compiler() -> cc::Build {
    let mut build = cc::Build::new();
    build
        .compiler("musl-gcc")
        .std("gnu11")
        .opt_level(2)
        .debug(false)
        .pic(false)
        .warnings(false);
    build
}

/// Compiles the library and the drop-in malloc for musl. Returns the objects.
fn musl_library(output: &Path) -> Vec<PathBuf> {
    let compiler = || {
        let mut build = musl_compiler();
        build
            .flag("-fexceptions")
            .flag("-fvisibility=hidden")
            .force_frame_pointer(true)
            .includes(["../../include", "../../src", "../.."])
            .out_dir(output);
        build
    };
    let mut sources = sources_below(Path::new("../../src"));
    sources.retain(|path| !path.ends_with("os/fake.c"));
    let library = compiler()
        .files(sources)
        .file("../../tests/install/musl_unwinder.c")
        .compile_intermediates();
    let version = concat!("\"", env!("CARGO_PKG_VERSION"), "\"");
    // The compiler must not take the malloc that the shim defines for one that it knows.
    let shim = compiler()
        .flag("-fno-builtin")
        .define("SLABYARD_VERSION", version)
        .files(files_in("../../shim", "c"))
        .compile_intermediates();
    for folder in ["src", "shim", "include"] {
        println!("cargo::rerun-if-changed=../../{folder}");
    }
    [library, shim].concat()
}

fn compiler_version() -> String {
    let tool = cc::Build::new().cpp(true).get_compiler();
    let output = tool.to_command().arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.ok()
        .and_then(|text| text.lines().next().map(str::to_owned))
        .unwrap_or_default()
}

fn rustc_version() -> String {
    let output = Command::new(std::env::var_os("RUSTC").expect("set by cargo"))
        .arg("--version")
        .output();
    output
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}

fn main() {
    println!("cargo::rustc-env=BENCH_CXX={}", compiler_version());
    println!("cargo::rustc-env=BENCH_RUSTC={}", rustc_version());
    let has = |feature: &str| std::env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    let is_whole = has("KERNELS") && has("PEERS");
    let programs: [(&str, fn()); 6] = [
        ("BENCH_KV_SERVER", key_value_server),
        ("BENCH_TRUTH", truth_programs),
        ("BENCH_PROGRAMS", allocator_programs),
        ("BENCH_THREADS", thread_programs),
        ("BENCH_MUSL", musl_programs),
        ("BENCH_LITTER", litter_library),
    ];
    for (name, compile) in programs {
        if is_whole {
            compile();
        } else {
            println!("cargo::rustc-env={name}=");
        }
    }
    println!("cargo::rerun-if-changed=kernels");
    if is_whole {
        linked_kernels();
    }
}

/// The loops that are linked with the program, and the allocators that they need.
fn linked_kernels() {
    let snmalloc = unpacked("snmalloc-sys").join("upstream/src");
    for layout in 0..LAYOUTS.len() {
        placed(&mut cpp("c++17"), layout)
            .file("kernels/kernels.cpp")
            .compile(&format!("bench_kernels_{layout}"));
        placed(&mut cpp("c++17"), layout)
            .file("kernels/vmem_pairs.cpp")
            .compile(&format!("bench_vmem_{layout}"));
        placed(&mut cpp("c++17"), layout)
            .flag("-fno-omit-frame-pointer")
            .file("kernels/checks.cpp")
            .compile(&format!("bench_checks_{layout}"));
        placed(&mut cpp("c++20"), layout)
            .include(&snmalloc)
            .define("NDEBUG", None)
            .define("SNMALLOC_USE_WAIT_ON_ADDRESS", "1")
            .flag("-mcx16")
            .flag("-fno-exceptions")
            .flag("-fno-rtti")
            .flag_if_supported("-Wno-unknown-pragmas")
            .file("kernels/snmalloc_inline.cpp")
            .compile(&format!("bench_snmalloc_{layout}"));
    }
    placed(&mut cpp("c++17"), 0)
        .file("kernels/vmem_segments.cpp")
        .compile("bench_vmem_segments");
    cpp("c++17")
        .files(["kernels/limits.cpp", "kernels/verify.cpp"])
        .compile("bench_support");
    containers();
    secure_mimalloc();
}
