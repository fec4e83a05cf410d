//! Runs programs with another malloc: the loader puts a library in front of the C library
//! (LD_PRELOAD). The tool carries the library of its own version of Slabyard.
//!
//! [`elf`] reads the heads of files, [`target`] checks whether a library can be preloaded into a
//! program, [`serving`] finds out whose malloc it has without one, and [`options`] checks options for
//! SLABYARD.

pub mod elf;
pub mod options;
pub mod serving;
pub mod target;

use anyhow::{bail, Context, Result};
use elf::Elf;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// libslabyard-malloc.so as it was built with this tool.
pub static DROP_IN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/malloc.so"));

const DROP_IN_NAME: &str = "libslabyard-malloc.so";

/// A library to be preloaded.
pub struct Library {
    path: PathBuf,
    elf: Elf,
    /// The temporary folder of the carried library, which is removed with it.
    folder: Option<TempDir>,
}

impl Library {
    /// Writes the carried library to a file that exists as long as the result.
    pub fn carried() -> Result<Library> {
        let folder = temporary()?;
        let path = folder.path().join(DROP_IN_NAME);
        std::fs::write(&path, DROP_IN)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Library {
            path,
            elf: Elf::of_bytes(DROP_IN).context("the tool's own library is not one")?,
            folder: Some(folder),
        })
    }

    /// A library at a path that the user names.
    pub fn at(path: &Path) -> Result<Library> {
        let cannot = || format!("cannot use {}", path.display());
        // The path must be absolute: a program may change its folder before it starts others.
        let path = path.canonicalize().with_context(cannot)?;
        let Some(elf) = Elf::open(&path).with_context(cannot)? else {
            bail!("{} is not a library (an ELF file)", path.display());
        };
        if !can_stand_in_preload(&path) {
            bail!(
                "{}: the loader cannot preload a path with blanks, colons or semicolons; copy the \
                 library, or link to it, at another one",
                path.display()
            );
        }
        Ok(Library {
            path,
            elf,
            folder: None,
        })
    }

    /// The library's path. The carried one, whose path is new each time, is described instead.
    pub fn described(&self) -> String {
        match self.folder {
            Some(_) => format!(
                "{DROP_IN_NAME} {}, a part of this tool",
                env!("CARGO_PKG_VERSION")
            ),
            None => self.path.display().to_string(),
        }
    }

    /// Whether it is one of the peers' libraries that cargo builds with the tool (`preload`).
    pub fn is_built_with_tool(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("libpreload_")
    }

    /// Checks that `program` can run with the library; the error says why it cannot.
    pub fn must_serve(&self, program: &OsStr) -> Result<()> {
        let found = target::find(program, &self.elf)?;
        let elf = Elf::open(&found)?;
        if let Some(sanitizer) = elf.as_ref().and_then(|elf| elf.sanitizer) {
            bail!(
                "{} is built with {}, which needs a malloc of its own: run it without Slabyard, or \
                 build it without -fsanitize={}",
                found.display(),
                sanitizer.name,
                sanitizer.option
            );
        }
        match elf.and_then(|elf| elf.loader) {
            Some(loader) if can_list(&loader) => self.must_load(&found, &loader)?,
            _ => (),
        }
        // Asked last: the loader says better what is wrong with a damaged library.
        if self.elf.has_malloc == Some(false) {
            bail!(
                "{} has no malloc, so it would not replace that of {}",
                self.path.display(),
                found.display()
            );
        }
        Ok(())
    }

    /// Checks that the loader can load the library. Otherwise it would print a message and start
    /// the program without the library. If asked to list all libraries, it loads them and starts no
    /// program.
    fn must_load(&self, program: &Path, loader: &str) -> Result<()> {
        let listed = list(program, loader)
            .env("LD_PRELOAD", &self.path)
            .output()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let path = self.path.to_string_lossy();
        if String::from_utf8_lossy(&listed.stdout).contains(&*path) {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&listed.stderr);
        let why = said.lines().find(|line| line.contains("LD_PRELOAD"));
        bail!(
            "{} cannot be preloaded into {}: {}",
            path,
            program.display(),
            why.or(said.lines().next())
                .unwrap_or("the loader does not say why")
        )
    }

    /// Sets LD_PRELOAD for `command`, with this library before others.
    pub fn preload_into(&self, command: &mut Command) {
        command.env("LD_PRELOAD", before_others(&self.path));
    }
}

/// The value of LD_PRELOAD with this library before the ones that are there already.
pub fn before_others(library: &Path) -> OsString {
    let mut preload = library.as_os_str().to_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(" ");
        preload.push(others);
    }
    preload
}

/// Whether a path can be written in LD_PRELOAD, where blanks and colons separate libraries.
pub fn can_stand_in_preload(path: &Path) -> bool {
    let text = path.as_os_str().to_string_lossy();
    !text.contains([' ', ':', ';', '\n', '\t'])
}

/// Whether this is the loader of glibc or musl, which list libraries on request. Others might start
/// the program.
fn can_list(loader: &str) -> bool {
    let name = Path::new(loader).file_name().map(OsStr::to_string_lossy);
    name.is_some_and(|name| {
        ["ld-linux", "ld64", "ld-musl"]
            .iter()
            .any(|start| name.starts_with(start))
    })
}

/// The command that lets a program's loader list the libraries that it loads, and starts no program.
fn list(program: &Path, loader: &str) -> Command {
    let mut command = Command::new(program);
    if target::is_musl(loader) {
        command = Command::new(loader);
        command.arg("--list").arg(program);
    }
    command
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .stdin(Stdio::null());
    command
}

/// Makes a folder from which libraries can be preloaded, also by processes of other users.
fn temporary() -> Result<TempDir> {
    let places = [std::env::temp_dir(), "/tmp".into(), "/dev/shm".into()];
    let fits = |place: &&PathBuf| can_stand_in_preload(place) && allows_programs(place);
    let Some(place) = places.iter().find(fits) else {
        bail!("no folder for temporary files can hold a library: set TMPDIR to one that is not mounted \
               with noexec, or name an installed {DROP_IN_NAME} with --library");
    };
    tempfile::Builder::new()
        .prefix("slabyard-")
        .permissions(PermissionsExt::from_mode(0o755))
        .tempdir_in(place)
        .with_context(|| format!("cannot make a folder in {}", place.display()))
}

fn allows_programs(place: &Path) -> bool {
    let Ok(name) = CString::new(place.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: a statvfs may be all zero, and the call fills it.
    unsafe {
        let mut about: libc::statvfs = std::mem::zeroed();
        libc::statvfs(name.as_ptr(), &mut about) == 0 && about.f_flag & libc::ST_NOEXEC == 0
    }
}

/// Parses any bytes as the head of a program and discards it, for the fuzzers.
#[cfg(any(test, feature = "fuzz"))]
pub fn try_bytes(bytes: &[u8]) {
    elf::try_bytes(bytes);
    target::try_line(bytes);
    serving::try_line(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_carried_library_loads_into_a_program_and_its_file_goes() {
        let library = Library::carried().unwrap();
        library.must_serve(OsStr::new("true")).unwrap();
        let path = library.path.clone();
        assert!(path.exists());
        drop(library);
        assert!(!path.parent().unwrap().exists());
    }

    #[test]
    fn libraries_that_cannot_be_preloaded_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let said = |path: &Path| Library::at(path).map(|_| ()).unwrap_err().to_string();
        let text = folder.path().join("text.so");
        assert!(said(&text).contains("cannot use"), "{}", said(&text));
        std::fs::write(&text, "no library").unwrap();
        assert!(said(&text).contains("is not a library"), "{}", said(&text));
        let blank = folder.path().join("a b.so");
        std::fs::write(&blank, DROP_IN).unwrap();
        assert!(said(&blank).contains("with blanks"), "{}", said(&blank));
        // The head of a library without the rest of it: only the loader can find that out.
        let torn = folder.path().join("torn.so");
        std::fs::write(&torn, &DROP_IN[..4096]).unwrap();
        let library = Library::at(&torn).unwrap();
        let why = library.must_serve(OsStr::new("true")).unwrap_err();
        assert!(why.to_string().contains("cannot be preloaded"), "{why}");
    }
}
