//! The programs of `kernels/threads` and the server in `examples/server`, and the executables that
//! each of them has: one into which an allocator is preloaded, and those that have one of their
//! own.

use crate::preloaded::{Contender, OURS};
use std::path::{Path, PathBuf};

/// The folder of the executables, and the folders with those that are linked statically with musl:
/// with its own malloc, and with Slabyard's. Both are empty if there is no compiler for musl.
const FOLDER: &str = env!("BENCH_THREADS");
const MUSL: &str = env!("BENCH_MUSL");

/// One program.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub name: &'static str,
    pub says: &'static str,
    /// More than the memory of any contender at its peak.
    pub mib: u64,
    /// Seconds after which memory is read.
    full: &'static [u32],
    quick: &'static [u32],
    /// Whether it is an example in Rust.
    is_rust: bool,
}

const fn in_c(
    name: &'static str,
    says: &'static str,
    mib: u64,
    full: &'static [u32],
    quick: &'static [u32],
) -> Program {
    Program {
        name,
        says,
        mib,
        full,
        quick,
        is_rust: false,
    }
}

/// All programs, in the order of the report.
pub const ALL: [Program; 7] = [
    in_c(
        "spike-kept",
        "8 threads with 160 MiB each, of which one block of 16 stays",
        2000,
        &[5, 10, 30],
        &[1, 2, 3],
    ),
    in_c(
        "spike-freed",
        "8 threads with 160 MiB each, all freed",
        2000,
        &[5, 10, 30],
        &[1, 2, 3],
    ),
    in_c(
        "holes",
        "300,000 blocks of 512 B to 2 KiB, of which one of 20 stays",
        400,
        &[3, 10],
        &[1, 3],
    ),
    in_c(
        "idle",
        "a server of one thread with 29 MiB has freed all, and waits in poll",
        100,
        &[1, 4],
        &[1, 2],
    ),
    in_c(
        "quiet",
        "8 threads have freed all, and make a call a second each",
        150,
        &[5, 10],
        &[1, 3],
    ),
    in_c(
        "pool",
        "8 threads cut 800 files into objects and have ended",
        300,
        &[5],
        &[1],
    ),
    Program {
        name: "server",
        says: "a server in Rust after 400 MB of answers, under light load",
        mib: 700,
        full: &[1, 5, 10],
        quick: &[1, 3],
        is_rust: true,
    },
];

/// An executable of a program, and the allocator under it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variant {
    pub who: &'static str,
    pub executable: PathBuf,
    pub library: Option<PathBuf>,
}

/// Whether this program was compiled where musl's compiler was installed.
pub fn has_musl() -> bool {
    !MUSL.is_empty()
}

impl Program {
    pub fn waits(&self, quick: bool) -> &'static [u32] {
        if quick {
            self.quick
        } else {
            self.full
        }
    }

    /// The arguments of all executables.
    pub fn arguments(&self, quick: bool) -> Vec<String> {
        let waits = self.waits(quick).iter().map(u32::to_string);
        std::iter::once(u8::from(quick).to_string())
            .chain(waits)
            .collect()
    }

    /// The executables that have an allocator of their own.
    fn linked(&self, output: &Path) -> Vec<Variant> {
        let variant = |who, executable| Variant {
            who,
            executable,
            library: None,
        };
        if self.is_rust {
            let crates = output.join("examples/server_slabyard");
            return vec![variant("slabyard crate", crates)];
        }
        if !has_musl() {
            return Vec::new();
        }
        let of_musl = |folder: &str| Path::new(MUSL).join(folder).join(self.name);
        vec![
            variant("musl", of_musl("own")),
            variant("slabyard on musl", of_musl(OURS)),
        ]
    }

    /// All executables: with each contender preloaded, and those that are linked with an allocator.
    /// `output` is the folder where cargo puts the examples' one.
    pub fn variants(&self, who: &[Contender], output: &Path) -> Vec<Variant> {
        let executable = if self.is_rust {
            output.join("examples/server_system")
        } else {
            Path::new(FOLDER).join(self.name)
        };
        let preloaded = who.iter().map(|one| Variant {
            who: one.name,
            executable: executable.clone(),
            library: one.library.clone(),
        });
        let linked = self.linked(output);
        let wanted = |_: &Variant| who.iter().any(|one| one.name == OURS);
        preloaded.chain(linked.into_iter().filter(wanted)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preloaded::chosen;

    #[test]
    fn every_source_is_a_program() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/threads");
        let paths = std::fs::read_dir(folder).unwrap();
        let mut sources: Vec<String> = paths
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "c"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        let in_c = ALL.iter().filter(|one| !one.is_rust);
        let mut names: Vec<&str> = in_c.map(|one| one.name).collect();
        sources.sort();
        names.sort_unstable();
        assert_eq!(sources, names);
    }

    #[test]
    fn the_linked_executables_are_shown_with_slabyard() {
        let names = |program: &Program, only: &[&str]| -> Vec<&str> {
            let only: Vec<String> = only.iter().map(|&one| one.to_owned()).collect();
            let who = chosen(&only, Path::new("/out")).unwrap();
            let variants = program.variants(&who, Path::new("/out"));
            variants.iter().map(|one| one.who).collect()
        };
        let server = ALL.iter().find(|one| one.is_rust).unwrap();
        assert_eq!(names(server, &["mimalloc"]), ["glibc", "mimalloc"]);
        assert_eq!(
            names(server, &["slabyard"]),
            ["glibc", "slabyard", "slabyard crate"]
        );
        assert_eq!(names(server, &[]).len(), 8);
        let expected = if has_musl() { 9 } else { 7 };
        assert_eq!(names(&ALL[0], &[]).len(), expected);
    }
}
