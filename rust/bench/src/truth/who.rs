//! The allocators, as libraries to be preloaded: the examples of this package, beside its program.

use crate::part;
use std::path::{Path, PathBuf};

/// One of those compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Who {
    /// By which `slabyard compare` knows it too.
    pub name: &'static str,
    /// The C library's own without.
    pub library: Option<PathBuf>,
}

/// Differences are to this one.
pub const PEER: &str = "glibc";
const OTHERS: [&str; 6] = [
    "slabyard", "mimalloc", "snmalloc", "jemalloc", "tcmalloc", "rpmalloc",
];

/// Those with these names, all if there are none; glibc comes first, and always.
pub fn chosen(names: &[String], folder: &Path) -> Result<Vec<Who>, String> {
    part::check_names("allocator", names, &[&[PEER], &OTHERS[..]].concat())?;
    let wanted = |name: &&str| part::is_among(name, names);
    let others = OTHERS.into_iter().filter(wanted).map(|name| Who {
        name,
        library: Some(folder.join(format!("examples/libpreload_{name}.so"))),
    });
    let peer = Who {
        name: PEER,
        library: None,
    };
    Ok(std::iter::once(peer).chain(others).collect())
}

/// Those whose library is there, and a line each for the others.
pub fn present(wanted: Vec<Who>) -> (Vec<Who>, Vec<String>) {
    let is_here = |one: &Who| one.library.as_ref().is_none_or(|library| library.exists());
    let (here, absent): (Vec<Who>, Vec<Who>) = wanted.into_iter().partition(is_here);
    let line = |one: &Who| {
        let library = one.library.clone().unwrap_or_default();
        format!(
            "left out       {}: there is no {}",
            one.name,
            library.display()
        )
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
