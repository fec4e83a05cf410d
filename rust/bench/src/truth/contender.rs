//! The contenders: allocators as libraries to be preloaded. The libraries are the examples of this
//! package; cargo puts them beside its program.

use crate::part;
use std::path::{Path, PathBuf};

/// One contender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contender {
    /// Its name in `slabyard compare` too.
    pub name: &'static str,
    /// None: the C library's own malloc.
    pub library: Option<PathBuf>,
}

/// The contender that differences are relative to.
pub const PEER: &str = "glibc";
const OTHERS: [&str; 6] = [
    "slabyard", "mimalloc", "snmalloc", "jemalloc", "tcmalloc", "rpmalloc",
];

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

/// The contenders whose library exists, and a line of text for each of the others.
pub fn present(wanted: Vec<Contender>) -> (Vec<Contender>, Vec<String>) {
    let is_here = |one: &Contender| one.library.as_ref().is_none_or(|library| library.exists());
    let (here, absent): (Vec<Contender>, Vec<Contender>) = wanted.into_iter().partition(is_here);
    let line = |one: &Contender| {
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
