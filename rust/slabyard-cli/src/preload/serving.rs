//! Whose malloc serves a program that is started without a library: that of the C library, of another
//! library that it is linked with, or one of its own.
//!
//! The loader takes the first malloc in the order in which it loads files, the program's own before all
//! others. A program may also call an allocator by the allocator's own names (mi_malloc, _rjem_malloc),
//! as Rust programs do; no library replaces these calls.

use super::elf::Elf;
use super::{can_list, list, target};
use anyhow::{Context, Result};
use memchr::memmem;
use memmap2::Mmap;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The name of the C library's malloc.
pub use slabyard_peers::LIBC;

/// Allocators, the beginnings of their libraries' names, and a text in each program that one is linked
/// into, even if the program has no symbols.
const KNOWN: [(&str, &str, Option<&[u8]>); 5] = [
    ("jemalloc", "libjemalloc", Some(b"<jemalloc>: ")),
    ("mimalloc", "libmimalloc", Some(b"mimalloc: warning: ")),
    ("tcmalloc", "libtcmalloc", Some(b"TCMALLOC_")),
    ("snmalloc", "libsnmalloc", None),
    ("slabyard", "libslabyard-malloc", None),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    /// The allocator's name, or that of the file that has the malloc.
    pub name: String,
    /// The file that has the malloc: the program itself, or a library.
    pub file: PathBuf,
    /// Whether this is the program itself, so that no library comes before it.
    pub is_program: bool,
    /// The C library.
    pub libc: Option<PathBuf>,
    /// An allocator inside the program that it may call by names of its own.
    pub inside: Option<&'static str>,
}

/// The malloc of the program that a user names, or of its interpreter. `None`: it cannot be found out,
/// because the loader is neither glibc's nor musl's, or there is none.
pub fn of(program: &OsStr) -> Result<Option<Serving>> {
    of_executable(&target::executable(program)?)
}

/// As [`of`], for the path of an executable.
pub fn of_executable(program: &Path) -> Result<Option<Serving>> {
    let cannot = || format!("cannot read {}", program.display());
    let Some(elf) = Elf::open(program).with_context(cannot)? else {
        return Ok(None);
    };
    let Some(loader) = elf.loader.as_deref().filter(|loader| can_list(loader)) else {
        return Ok(None);
    };
    let libraries = loaded(program, loader)?;
    let has_malloc = |file: &PathBuf| {
        let elf = Elf::open(file).ok().flatten();
        elf.is_some_and(|elf| elf.has_malloc == Some(true))
    };
    let is_program = elf.has_malloc == Some(true);
    let inside = contained(program);
    let file = match is_program {
        true => program,
        false => match libraries.iter().find(|file| has_malloc(file)) {
            Some(library) => library,
            None => return Ok(None),
        },
    };
    let name = match is_program {
        true => inside.map_or_else(|| format!("{}'s own", file_name(file)), str::to_string),
        false => named(&file_name(file)),
    };
    Ok(Some(Serving {
        name,
        is_program,
        inside: inside.filter(|_| !is_program),
        libc: libraries.iter().find(|file| is_libc(file)).cloned(),
        file: file.to_path_buf(),
    }))
}

impl Serving {
    pub fn is_libc_own(&self) -> bool {
        self.name == LIBC
    }

    /// The C library, if another library's malloc comes before its own.
    pub fn libc_behind(&self) -> Option<&Path> {
        let is_behind = !self.is_libc_own() && !self.is_program;
        self.libc.as_deref().filter(|_| is_behind)
    }

    /// Where the malloc is, unless it is the C library's.
    pub fn described(&self) -> Option<String> {
        let place = if self.is_program {
            "inside the program"
        } else {
            "with which the program is linked"
        };
        (!self.is_libc_own()).then(|| format!("{}, {place}", self.file.display()))
    }

    /// What a reader of the figures must know, if a library does not replace all of the malloc.
    pub fn caveat(&self, program: &str) -> Option<String> {
        if self.is_program {
            return Some(format!(
                "{program} has a malloc of its own, which comes before that of any library: none \
                 replaces it, except in programs that it starts."
            ));
        }
        let inside = self.inside?;
        Some(format!(
            "{program} contains {inside}, which it may call by {inside}'s own names. No library replaces \
             these calls."
        ))
    }
}

fn file_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn is_libc(file: &Path) -> bool {
    let name = file_name(file);
    ["libc.so", "libc-2.", "ld-musl"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// The name of the allocator in a library: `libjemalloc.so.2` gives `jemalloc`, and `libmine-1.so.3`
/// gives `mine-1`.
fn named(library: &str) -> String {
    if is_libc(Path::new(library)) {
        return LIBC.to_string();
    }
    let known = KNOWN
        .iter()
        .find(|(_, start, _)| library.starts_with(start));
    if let Some((name, ..)) = known {
        return (*name).to_string();
    }
    let stem = library.split(".so").next().unwrap_or(library);
    stem.strip_prefix("lib").unwrap_or(stem).to_string()
}

/// The allocator that is linked into a program.
fn contained(program: &Path) -> Option<&'static str> {
    let file = File::open(program).ok()?;
    // SAFETY: a program that is changed while it is searched may end this process, which has not
    // begun its work.
    let bytes = unsafe { Mmap::map(&file) }.ok()?;
    let holds = |text: &[u8]| memmem::find(&bytes, text).is_some();
    let mut found = KNOWN.iter().filter(|(_, _, text)| text.is_some_and(holds));
    found.next().map(|one| one.0)
}

/// The libraries that the loader loads for a program, in its order. If asked to list them, it starts
/// no program.
fn loaded(program: &Path, loader: &str) -> Result<Vec<PathBuf>> {
    let listed = list(program, loader)
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let text = String::from_utf8_lossy(&listed.stdout);
    Ok(text.lines().filter_map(path_in).collect())
}

/// The path in a line such as `libm.so.6 => /lib/libm.so.6 (0x00007f...)` or `/lib/ld.so (0x...)`.
fn path_in(line: &str) -> Option<PathBuf> {
    let line = line.trim();
    let path = line.split_once(" => ").map_or(line, |(_, path)| path);
    let (path, _) = path.rsplit_once(" (0x")?;
    path.starts_with('/').then(|| PathBuf::from(path))
}

/// Parses any line as one of the loader's and discards it, for the fuzzers.
#[cfg(any(test, feature = "fuzz"))]
pub fn try_line(line: &[u8]) {
    let line = String::from_utf8_lossy(line);
    assert!(path_in(&line).is_none_or(|path| path.is_absolute()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_named_after_their_allocators() {
        for (library, name) in [
            ("libc.so.6", "glibc"),
            ("libc-2.31.so", "glibc"),
            ("ld-musl-x86_64.so.1", "glibc"),
            ("libcrypt.so.1", "crypt"),
            ("libjemalloc.so.2", "jemalloc"),
            ("libtcmalloc_minimal.so.4", "tcmalloc"),
            ("libslabyard-malloc.so.1", "slabyard"),
            ("libmine-1.so.3", "mine-1"),
        ] {
            assert_eq!(named(library), name, "{library}");
        }
    }

    #[test]
    fn lines_of_the_loader_are_read() {
        for (line, path) in [
            (
                "\tlibm.so.6 => /lib/libm.so.6 (0x00007f0)",
                Some("/lib/libm.so.6"),
            ),
            (
                "\t/lib64/ld-linux-x86-64.so.2 (0x00007f0)",
                Some("/lib64/ld-linux-x86-64.so.2"),
            ),
            ("\tlinux-vdso.so.1 (0x00007ffd0)", None),
            ("\tlibnone.so => not found", None),
            ("\tstatically linked", None),
            ("", None),
        ] {
            assert_eq!(path_in(line).as_deref(), path.map(Path::new), "{line}");
        }
    }

    #[test]
    fn an_ordinary_program_has_the_malloc_of_the_c_library() {
        let found = of(OsStr::new("true")).unwrap().unwrap();
        assert!(found.is_libc_own() && !found.is_program, "{found:?}");
        assert_eq!(Some(&found.file), found.libc.as_ref());
        assert_eq!((found.described(), found.inside), (None, None));
        assert!(of(OsStr::new("/no/such/program")).is_err());
    }
}
