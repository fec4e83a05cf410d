//! Allocators as libraries to be preloaded: the contenders of the parts about whole programs. The
//! libraries are the examples of this package; cargo puts them beside its program.

use crate::part;
use crate::truth::stated;
use std::path::{Path, PathBuf};

/// One contender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contender {
    /// Its name in `slabyard compare` too.
    pub name: &'static str,
    /// None: the C library's own malloc.
    pub library: Option<PathBuf>,
}

/// The contender that ratios and differences are relative to.
pub const PEER: &str = "glibc";
/// The contender whose library the tool carries.
pub const OURS: &str = "slabyard";
const OTHERS: [&str; 6] = [
    OURS, "mimalloc", "snmalloc", "jemalloc", "tcmalloc", "rpmalloc",
];

/// Options of the parts about whole programs.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Choice {
    /// Of the allocators that are preloaded only these beside glibc, separated by commas
    #[arg(long, value_delimiter = ',')]
    allocators: Vec<String>,
    /// The tool [default: slabyard, in the folder of this program]
    #[arg(long)]
    tool: Option<PathBuf>,
}

/// The contenders that are here, and the tool.
pub struct Preloaded {
    pub who: Vec<Contender>,
    pub tool: PathBuf,
    /// Lines of the report's head: the versions, and those that are missing.
    pub head: Vec<String>,
}

impl Choice {
    /// What the options choose. Slabyard's library is the one that the tool carries, written into
    /// `folder`, or an example like the others if there is no folder.
    pub fn preloaded(&self, folder: Option<&Path>) -> Result<Preloaded, String> {
        let output = part::output_folder()?;
        let tool = part::tool(self.tool.as_deref(), &output)?;
        let mut wanted = chosen(&self.allocators, &output)?;
        if let Some(folder) = folder {
            for one in wanted.iter_mut().filter(|one| one.name == OURS) {
                one.library = Some(stated::carried(&tool, folder)?);
            }
        }
        let (who, missing) = present(wanted);
        let versions: Vec<String> = who.iter().map(|one| version_of(one.name)).collect();
        let mut head = vec![format!("allocators     {}", versions.join(", "))];
        head.extend(missing);
        Ok(Preloaded { who, tool, head })
    }
}

impl Preloaded {
    pub fn names(&self) -> Vec<&'static str> {
        self.who.iter().map(|one| one.name).collect()
    }
}

/// An allocator's name with its version.
pub fn version_of(name: &str) -> String {
    match slabyard_peers::find(name) {
        Some(peer) => format!("{name} {}", (peer.version)()),
        None if name == OURS => format!("{name} {}", env!("CARGO_PKG_VERSION")),
        None => name.to_owned(),
    }
}

/// Names as the heads of columns: with their versions.
pub fn heads<'a>(names: &'a [&str]) -> impl Iterator<Item = String> + 'a {
    names.iter().map(|who| version_of(who))
}

/// The contenders with these names, or all if there are no names. glibc is always the first.
pub fn chosen(names: &[String], folder: &Path) -> Result<Vec<Contender>, String> {
    part::check_names("allocator", names, &[&[PEER], &OTHERS[..]].concat())?;
    let wanted = |name: &&str| part::is_among(name, names);
    let others = OTHERS.into_iter().filter(wanted).map(|name| Contender {
        name,
        library: Some(folder.join(format!("examples/libpreload_{name}.so"))),
    });
    let peer = Contender {
        name: PEER,
        library: None,
    };
    Ok(std::iter::once(peer).chain(others).collect())
}

/// A line of the head for something that cannot run here.
pub fn left_out(name: &str, why: &str) -> String {
    format!("left out       {name}: {why}")
}

/// The contenders whose library exists, and a line of text for each of the others.
pub fn present(wanted: Vec<Contender>) -> (Vec<Contender>, Vec<String>) {
    let is_here = |one: &Contender| one.library.as_ref().is_none_or(|library| library.exists());
    let (here, absent): (Vec<Contender>, Vec<Contender>) = wanted.into_iter().partition(is_here);
    let line = |one: &Contender| {
        let library = one.library.clone().unwrap_or_default();
        left_out(one.name, &format!("there is no {}", library.display()))
    };
    (here, absent.iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glibc_is_always_there_and_absent_libraries_are_named() {
        let names = ["mimalloc".to_owned()];
        let wanted = chosen(&names, Path::new("/nowhere")).unwrap();
        let (here, missing) = present(wanted);
        assert_eq!(here.len(), 1);
        assert_eq!(here[0].name, PEER);
        assert_eq!(
            missing,
            ["left out       mimalloc: there is no /nowhere/examples/libpreload_mimalloc.so"]
        );
        assert!(chosen(&["nonsense".to_owned()], Path::new("/")).is_err());
        assert_eq!(chosen(&[], Path::new("/")).unwrap().len(), 7);
    }
}
