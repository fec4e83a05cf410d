//! The programs of the folder `programs`, one for each C system. Each is built over Slabyard's headers
//! with this program, and over the system itself if its folder is given.

use std::path::{Path, PathBuf};
use std::process::Command;

/// How to build a system, and how to recognise its folder.
struct Kernel {
    system: &'static str,
    source: &'static str,
    /// A header in the folder, and a function that it declares.
    mark: (&'static str, &'static str),
    /// Folders of headers.
    include: &'static str,
    /// Source files. A version may not have all of them.
    sources: &'static [&'static str],
    libraries: &'static [&'static str],
}

const HEADER: &str = include_str!("../programs/seeds.h");

const KERNELS: [Kernel; 4] = [
    Kernel {
        system: "magazine-slab",
        source: include_str!("../programs/magazine_slab.c"),
        mark: ("src/slab.h", "slab_cache_create"),
        include: "src",
        sources: &["src/slab.c", "src/vmem.c", "src/slab_tags.c"],
        libraries: &["-latomic"],
    },
    Kernel {
        system: "userland-slab",
        source: include_str!("../programs/userland_slab.c"),
        mark: ("src/slab.h", "objs_cache_init"),
        include: "src",
        sources: &["src/slab.c"],
        libraries: &[],
    },
    Kernel {
        system: "xslab",
        source: include_str!("../programs/xslab.c"),
        mark: ("x/base/slab.h", "xSlabCreate"),
        include: ".",
        sources: &["x/base/slab.c"],
        libraries: &[],
    },
    Kernel {
        system: "zns-slab",
        source: include_str!("../programs/zns_slab.c"),
        mark: ("include/slab_alloc.h", "alloc_obj"),
        include: "include",
        sources: &["src/slab_alloc.c"],
        libraries: &[],
    },
];

/// The path of the program over Slabyard's headers. It measures the C library too.
pub fn over_slabyard(system: &str) -> PathBuf {
    Path::new(env!("SEED_PROGRAMS")).join(format!("seeds_{system}"))
}

/// A system's own program.
pub struct Original {
    pub system: &'static str,
    pub program: PathBuf,
    /// The checkout.
    pub folder: PathBuf,
}

impl Kernel {
    fn is_in(&self, folder: &Path) -> bool {
        let (header, function) = self.mark;
        let text = std::fs::read(folder.join(header)).unwrap_or_default();
        String::from_utf8_lossy(&text).contains(function)
    }

    /// Compiles the program with the flags of `build.rs`.
    fn build(&self, folder: &Path, scratch: &Path) -> Result<PathBuf, String> {
        let file = scratch.join(format!("{}.c", self.system));
        let program = scratch.join(self.system);
        let wrong = |what: &str| format!("{}: {what}", folder.display());
        let write = |path: &Path, text: &str| {
            std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
        };
        write(&scratch.join("seeds.h"), HEADER)?;
        write(&file, self.source)?;
        let sources = self.sources.iter().map(|source| folder.join(source));
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let output = Command::new(&compiler)
            .args(["-O2", "-std=gnu11", "-w", "-I"])
            .arg(folder.join(self.include))
            .arg(file)
            .args(sources.filter(|source| source.exists()))
            .arg("-pthread")
            .args(self.libraries)
            .arg("-o")
            .arg(&program)
            .output()
            .map_err(|error| wrong(&format!("{}: {error}", compiler.to_string_lossy())))?;
        if output.status.success() {
            return Ok(program);
        }
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        let says_why = |line: &&str| line.contains("error:") || line.contains("undefined");
        let line = complaint.lines().find(says_why).unwrap_or("");
        Err(wrong(&format!("{} does not build: {line}", self.system)))
    }
}

/// The system whose header is in the folder.
fn kernel_of(folder: &Path) -> Result<&'static Kernel, String> {
    let mut kernels = KERNELS.iter();
    kernels.find(|kernel| kernel.is_in(folder)).ok_or_else(|| {
        let marks = KERNELS.iter().map(|kernel| {
            let (header, function) = kernel.mark;
            format!("{} has {function} in {header}", kernel.system)
        });
        format!(
            "{} is none of the four systems: {}",
            folder.display(),
            marks.collect::<Vec<_>>().join(", ")
        )
    })
}

/// Recognises the systems in these folders and builds their programs in `scratch`.
pub fn build(folders: &[PathBuf], scratch: &Path) -> Result<Vec<Original>, String> {
    let mut all: Vec<Original> = Vec::new();
    for folder in folders {
        let kernel = kernel_of(folder)?;
        if let Some(same) = all.iter().find(|one| one.system == kernel.system) {
            let [one, other] = [&same.folder, folder].map(|folder| folder.display());
            return Err(format!("{one} and {other} are both {}", kernel.system));
        }
        all.push(Original {
            system: kernel.system,
            program: kernel.build(folder, scratch)?,
            folder: folder.clone(),
        });
    }
    Ok(all)
}
