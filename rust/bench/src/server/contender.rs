//! The contenders: the allocators that the server takes its memory from.

use super::process::Server;
use std::path::{Path, PathBuf};

/// One contender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contender {
    pub name: String,
    /// The server's argument: `slabyard` for its own caches and heaps, or `malloc`.
    pub memory: &'static str,
    /// The shared library that has this `malloc`. None: the C library's.
    pub library: Option<PathBuf>,
    /// The package that contains the library.
    pub from: &'static str,
}

/// The contender that the ratios of the tables are relative to.
pub const PEER: &str = "glibc";
const OURS: &str = "slabyard";

fn who(name: &str, library: Option<&Path>, from: &'static str) -> Contender {
    Contender {
        name: name.to_owned(),
        memory: if name == OURS { OURS } else { "malloc" },
        library: library.map(Path::to_owned),
        from,
    }
}

/// All, in the order of the tables.
pub fn all() -> Vec<Contender> {
    let debian = |name, library: &str, package| who(name, Some(Path::new(library)), package);
    vec![
        who(OURS, None, ""),
        who(PEER, None, ""),
        debian("mimalloc", "libmimalloc.so.2", "Debian: libmimalloc2.0"),
        debian("jemalloc", "libjemalloc.so.2", "Debian: libjemalloc2"),
        debian(
            "tcmalloc",
            "libtcmalloc_minimal.so.4",
            "Debian: libtcmalloc-minimal4",
        ),
    ]
}

/// Parses `NAME=LIBRARY`, one more contender.
pub fn parse(text: &str) -> Result<Contender, String> {
    match text.split_once('=') {
        Some((name, library)) if !name.is_empty() && !library.is_empty() => {
            Ok(who(name, Some(Path::new(library)), "--preload"))
        }
        _ => Err(format!("'{text}' is not NAME=LIBRARY")),
    }
}

/// The contenders whose library is installed, and a line of text for each of the others. To find
/// out, a server is started with the library preloaded. If it maps the library, the contender gets
/// the path of the mapped file.
pub fn present(wanted: Vec<Contender>) -> Result<(Vec<Contender>, Vec<String>), String> {
    let (mut here, mut missing) = (Vec::new(), Vec::new());
    for mut one in wanted {
        let Some(library) = &one.library else {
            here.push(one);
            continue;
        };
        let name = one.name.clone();
        let named = |what| format!("{name}: {what}");
        let server = Server::start(&one, None).map_err(named)?;
        match server.mapped(library) {
            Some(file) => {
                one.library = Some(file);
                here.push(one);
            }
            None => missing.push(format!(
                "left out       {}: there is no {} here ({})",
                one.name,
                library.file_name().unwrap_or_default().to_string_lossy(),
                one.from
            )),
        }
        server.end().map_err(named)?;
    }
    Ok((here, missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_left_out_by_name() {
        let absent = parse("absent=libslabyard-no-such.so").unwrap();
        assert_eq!(absent.memory, "malloc");
        let (here, missing) = present(vec![all()[0].clone(), absent]).unwrap();
        assert_eq!(here.len(), 1);
        assert_eq!(
            (here[0].name.as_str(), here[0].memory),
            ("slabyard", "slabyard")
        );
        assert_eq!(missing.len(), 1);
        assert!(missing[0].contains("absent: there is no libslabyard-no-such.so"));
        assert!(parse("nothing").is_err() && parse("=x.so").is_err());
    }
}
