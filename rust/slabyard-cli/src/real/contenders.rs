//! Finds the allocators that a program can run on: glibc's malloc, which needs no library,
//! Slabyard, the libraries that the system has, and those that the user names.

use crate::preload::serving::{self, Serving, LIBC};
use crate::preload::Library;
use crate::ui;
use anyhow::{bail, Result};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub const SLABYARD: &str = "slabyard";

/// The names of allocators' library files, the best first: those that are built with the tool, then
/// those of Debian and elsewhere. `*` stands for any ending.
const KNOWN: [(&str, &[&str]); 5] = [
    (
        "mimalloc",
        &[
            "libpreload_mimalloc.so",
            "libmimalloc.so.3",
            "libmimalloc.so.2",
        ],
    ),
    (
        "snmalloc",
        &[
            "libpreload_snmalloc.so",
            "libsnmallocshim.so*",
            "libsnmallocshim*",
        ],
    ),
    ("jemalloc", &["libpreload_jemalloc.so", "libjemalloc.so.2"]),
    (
        "tcmalloc",
        &["libpreload_tcmalloc.so", "libtcmalloc_minimal.so.4"],
    ),
    ("rpmalloc", &["libpreload_rpmalloc.so"]),
];

/// Whether an allocator's library is looked for under this name.
pub fn is_known(name: &str) -> bool {
    KNOWN.iter().any(|(known, _)| *known == name)
}

/// An allocator with its name and its library; glibc has none.
pub struct Contender {
    pub name: String,
    pub library: Option<Library>,
}

/// An allocator that the user names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    Named(String),
    At(String, PathBuf),
}

/// The allocators to run: first the malloc that the program has without a library, which is mostly
/// glibc's, and glibc's, then Slabyard. Names without a path in `wanted` choose among
/// the allocators that were found. A name with a path adds an allocator, or replaces the one of
/// that name.
pub fn of(wanted: &[Wanted], program: &OsStr) -> Result<Vec<Contender>> {
    choose(wanted, program, &library_folders())
}

fn choose(wanted: &[Wanted], program: &OsStr, folders: &[PathBuf]) -> Result<Vec<Contender>> {
    let given = |name: &str| {
        wanted
            .iter()
            .any(|one| matches!(one, Wanted::At(n, _) if n == name))
    };
    let names: Vec<&str> = wanted.iter().filter_map(Wanted::name_alone).collect();
    let is_wanted = |name: &str| !given(name) && (names.is_empty() || names.contains(&name));
    // The checks of libraries say better what is wrong with a program.
    let own = serving::of(program).unwrap_or(None);
    let mut all = own_first(own.as_ref());
    if let Some(libc) = own.as_ref().and_then(Serving::libc_behind) {
        if is_wanted(LIBC) {
            all.push(serving(LIBC, Library::at(libc)?, program)?);
        }
    }
    if is_wanted(SLABYARD) {
        all.push(serving(SLABYARD, Library::carried()?, program)?);
    }
    let has = |name: &str| own.as_ref().is_some_and(|own| own.name == name);
    for (name, files) in KNOWN
        .iter()
        .filter(|(name, _)| is_wanted(name) && !has(name))
    {
        let Some(path) = find(files, folders) else {
            if names.contains(name) {
                let files = files.join(" or ");
                bail!(
                    "there is no {files} in the system's folders; --allocator {name}=PATH \
                     names one"
                );
            }
            continue;
        };
        match Library::at(&path).and_then(|library| serving(name, library, program)) {
            Ok(contender) => all.push(contender),
            Err(error) if names.contains(name) => return Err(error),
            Err(error) => ui::warn(&format!("{name} is left out: {error:#}")),
        }
    }
    for one in wanted {
        if let Wanted::At(name, path) = one {
            all.push(serving(name, Library::at(path)?, program)?);
        }
    }
    if all.len() == 1 {
        bail!("there is no allocator to compare {LIBC} with");
    }
    Ok(all)
}

/// The program without a library. Its row is called after its malloc, and apart from that of a library
/// with this malloc.
fn own_first(own: Option<&Serving>) -> Vec<Contender> {
    let name = match own.map_or(LIBC, |own| &own.name) {
        SLABYARD => "slabyard (linked)",
        name => name,
    };
    vec![Contender {
        name: name.to_string(),
        library: None,
    }]
}

fn serving(name: &str, library: Library, program: &OsStr) -> Result<Contender> {
    library.must_serve(program)?;
    Ok(Contender {
        name: name.to_string(),
        library: Some(library),
    })
}

impl Wanted {
    fn name_alone(&self) -> Option<&str> {
        match self {
            Wanted::Named(name) => Some(name),
            Wanted::At(..) => None,
        }
    }

    /// Whether this is the name of an allocator that the tool only replays.
    pub fn is_only_replayed(&self) -> bool {
        let is_run = |name: &str| [LIBC, SLABYARD].contains(&name) || is_known(name);
        self.name_alone().is_some_and(|name| !is_run(name))
    }

    /// Refuses unknown names without a path, and a name that is given to two libraries.
    pub fn check(wanted: &[Wanted]) -> Result<()> {
        let known = || {
            [LIBC, SLABYARD]
                .into_iter()
                .chain(KNOWN.map(|(name, _)| name))
        };
        let mut seen = Vec::new();
        for one in wanted {
            match one {
                Wanted::Named(name) if !known().any(|known| known == name) => bail!(
                    "with --run there are {}; --allocator {name}=PATH names the library of another one",
                    known().collect::<Vec<_>>().join(", ")
                ),
                Wanted::At(name, _) if name == LIBC => {
                    bail!("{LIBC} is the program without a library; give the library another name")
                }
                Wanted::At(name, _) if seen.contains(&name) => {
                    bail!("two libraries are called {name}")
                }
                Wanted::At(name, _) => seen.push(name),
                Wanted::Named(_) => (),
            }
        }
        Ok(())
    }
}

/// The folders beside the tool where cargo or a package puts the libraries that are built with it, those
/// of Debian's packages, the usual ones of other systems, and those of a user's own builds.
fn library_folders() -> Vec<PathBuf> {
    let tool = std::env::current_exe().unwrap_or_default();
    let beside = tool.parent().unwrap_or(Path::new("/"));
    let debian = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let folders = ["/usr/local/lib", &debian, "/usr/lib64", "/usr/lib"];
    let mut all = vec![beside.join("examples"), beside.join("../lib/slabyard")];
    all.extend(folders.map(PathBuf::from));
    all
}

fn find(files: &[&str], folders: &[PathBuf]) -> Option<PathBuf> {
    let all = files
        .iter()
        .flat_map(|file| folders.iter().map(move |folder| (file, folder)));
    all.into_iter()
        .find_map(|(file, folder)| match file.strip_suffix('*') {
            Some(start) => beginning_with(folder, start),
            None => Some(folder.join(file)).filter(|path| path.is_file()),
        })
}

fn beginning_with(folder: &Path, start: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let fits = |path: &PathBuf| {
        let name = path.file_name().map(OsStr::to_string_lossy);
        name.is_some_and(|name| name.starts_with(start) && name.contains(".so")) && path.is_file()
    };
    entries.map(|entry| entry.path()).filter(fits).min()
}

/// Parses `NAME` or `NAME=PATH`.
pub fn parse(text: &str) -> Result<Wanted> {
    match text.split_once('=') {
        None => Ok(Wanted::Named(text.to_string())),
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok(Wanted::At(name.to_string(), PathBuf::from(path)))
        }
        Some(_) => bail!("a library is given as NAME=PATH"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preload;

    fn names(wanted: &[&str], folder: &Path) -> Result<Vec<String>> {
        let wanted: Vec<Wanted> = wanted.iter().map(|text| parse(text).unwrap()).collect();
        Wanted::check(&wanted)?;
        let all = choose(&wanted, OsStr::new("true"), &[folder.to_path_buf()])?;
        Ok(all.into_iter().map(|one| one.name).collect())
    }

    /// Makes a folder that holds Slabyard's library under these names.
    fn folder_with(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            std::fs::write(folder.path().join(file), preload::DROP_IN).unwrap();
        }
        folder
    }

    #[test]
    fn allocators_that_the_system_has_are_found() {
        let folder = folder_with(&["libjemalloc.so.2", "libsnmallocshim-checks.so"]);
        let all = names(&[], folder.path()).unwrap();
        assert_eq!(all, ["glibc", "slabyard", "snmalloc", "jemalloc"]);
        let files = ["libmimalloc.so.3", "libmimalloc.so.2"];
        let folder = folder_with(&files);
        let found = find(KNOWN[0].1, &[folder.path().to_path_buf()]).unwrap();
        assert!(found.ends_with("libmimalloc.so.3"), "{found:?}");
    }

    #[test]
    fn the_user_chooses_and_adds() {
        let folder = folder_with(&["libjemalloc.so.2", "mine.so"]);
        let mine = format!("mine={}", folder.path().join("mine.so").display());
        let names = |wanted: &[&str]| names(wanted, folder.path());
        assert_eq!(names(&["jemalloc"]).unwrap(), ["glibc", "jemalloc"]);
        let all = names(&[&mine]).unwrap();
        assert_eq!(all, ["glibc", "slabyard", "jemalloc", "mine"]);
        let all = names(&["slabyard", &mine]).unwrap();
        assert_eq!(all, ["glibc", "slabyard", "mine"]);
        let replaced = mine.replace("mine=", "slabyard=");
        let all = names(&[&replaced]).unwrap();
        assert_eq!(all, ["glibc", "jemalloc", "slabyard"]);
        for (wanted, why) in [
            (&["mimalloc"][..], "there is no libpreload_mimalloc.so"),
            (
                &["nomalloc"],
                "with --run there are glibc, slabyard, mimalloc",
            ),
            (&[&mine, &mine], "two libraries are called mine"),
            (&["glibc=x"], "glibc is the program without a library"),
            (&["glibc"], "there is no allocator to compare glibc with"),
            (&["mine=/no/such.so"], "cannot use /no/such.so"),
        ] {
            let said = names(wanted).unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        }
        assert!(parse("=x").is_err() && parse("x=").is_err());
    }

    /// A library that exists and cannot be loaded is reported and left out.
    #[test]
    fn what_the_system_has_and_cannot_load_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("libjemalloc.so.2"), "torn").unwrap();
        let all = names(&[], folder.path()).unwrap();
        assert_eq!(all, ["glibc", "slabyard"]);
        assert!(names(&["jemalloc"], folder.path()).is_err());
    }
}
