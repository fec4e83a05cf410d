//! The programs, their kinds, and how much each of them does: those of `kernels/truth`, and real
//! programs of the system with the inputs of [`crate::programs::real`].

use crate::programs::real;
use std::ffi::OsString;
use std::path::Path;

/// The executable with the programs of kernels/truth, built with this one.
pub const OWN: &str = env!("BENCH_TRUTH");

/// What the programs of a kind have in common, as far as a replay is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    System,
    Objects,
    Buffers,
    Threads,
    Processes,
    Short,
}

impl Kind {
    pub const ALL: [Kind; 6] = [
        Kind::System,
        Kind::Objects,
        Kind::Buffers,
        Kind::Threads,
        Kind::Processes,
        Kind::Short,
    ];

    pub fn says(self) -> &'static str {
        match self {
            Kind::System => "interpreters, compilers, databases",
            Kind::Objects => "mostly small objects",
            Kind::Buffers => "arrays and large buffers",
            Kind::Threads => "several threads",
            Kind::Processes => "several processes at a time",
            Kind::Short => "soon over",
        }
    }
}

/// Where a program comes from, and how much it does.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// kernels/truth
    Own,
    System,
}

/// One program.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub name: &'static str,
    pub says: &'static str,
    pub kind: Kind,
    source: Source,
    /// The size of a full run: about a quarter of a second.
    size: u64,
    /// The size of a quick run: about 0.03 s.
    quick: u64,
}

impl Program {
    /// Whether its processes have memory at the same time, so that one's peak is not that of all.
    pub fn has_several_processes(&self) -> bool {
        self.kind == Kind::Processes || ["gcc", "redis"].contains(&self.name)
    }

    pub fn size(&self, quick: bool) -> u64 {
        if quick {
            self.quick
        } else {
            self.size
        }
    }

    /// The command, whose input lies in `folder` then. An error if it cannot run here.
    pub fn command(&self, folder: &Path, quick: bool) -> Result<Vec<OsString>, String> {
        let size = self.size(quick);
        match self.source {
            Source::Own => Ok([OWN, self.name, &size.to_string()]
                .map(OsString::from)
                .into()),
            Source::System => {
                let found = real::ALL.iter().find(|one| one.name == self.name);
                found
                    .ok_or_else(|| format!("there is no input for {}", self.name))?
                    .command(folder, size)
            }
        }
    }
}

const fn own(
    name: &'static str,
    kind: Kind,
    says: &'static str,
    (size, quick): (u64, u64),
) -> Program {
    Program {
        name,
        says,
        kind,
        source: Source::Own,
        size,
        quick,
    }
}

const fn system(name: &'static str, says: &'static str, (size, quick): (u64, u64)) -> Program {
    Program {
        name,
        says,
        kind: Kind::System,
        source: Source::System,
        size,
        quick,
    }
}

/// All programs, in the order of the runs.
#[rustfmt::skip]
pub const ALL: [Program; 23] = [
    system("lua", "Lua: tables, strings, coroutines", (8, 1)),
    system("perl", "Perl: hashes of strings, records, patterns", (3, 1)),
    system("python", "Python: JSON, sorting, trees of objects; PYTHONMALLOC=malloc", (6, 1)),
    system("gcc", "gcc -O1 compiles copies of a C file", (3, 1)),
    system("sqlite", "SQLite: a database in memory", (40_000, 5000)),
    system("redis", "a Redis server executes commands from a pipe", (60_000, 6000)),
    own("messages", Kind::Threads, "four threads; the receiver frees", (3000, 200)),
    own("threads", Kind::Threads, "800 threads, 8 at a time, exchange blocks", (100, 8)),
    own("pool", Kind::Threads, "a pool of 8 threads works on bursts of jobs", (60, 4)),
    own("workers", Kind::Processes, "a process with six forked workers", (15_000, 1000)),
    own("json", Kind::Objects, "JSON texts become trees and texts again", (1800, 120)),
    own("strings", Kind::Objects, "texts are split into words, sorted, joined", (15, 1)),
    own("map", Kind::Objects, "a std::map of 100,000 keys, which change", (150_000, 20_000)),
    own("hash", Kind::Objects, "a server's table: set, get, delete by name", (500_000, 50_000)),
    own("graph", Kind::Objects, "graphs are built, walked, torn down", (5, 1)),
    own("survivors", Kind::Objects, "many sizes; a tenth of the objects lives on", (200, 20)),
    own("churn", Kind::Objects, "4,096 objects, replaced at random", (3_000_000, 200_000)),
    own("short", Kind::Short, "the same, and soon over", (5000, 1000)),
    own("vectors", Kind::Buffers, "arrays grow side by side by realloc", (20, 2)),
    own("zeroed", Kind::Buffers, "tables by calloc, filled in part", (400_000, 30_000)),
    own("aligned", Kind::Buffers, "vectors of numbers, aligned to 64 and 4096", (400_000, 30_000)),
    own("images", Kind::Buffers, "buffers of 64 KiB to 4 MiB, written whole", (100, 8)),
    own("sparse", Kind::Buffers, "8 MiB buffers, one page in 16 used", (4_000_000, 200_000)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_list_is_that_of_the_executable() {
        let output = Command::new(OWN).output().unwrap();
        let listed = String::from_utf8(output.stdout).unwrap();
        let mut listed: Vec<&str> = listed.lines().collect();
        let own = ALL.iter().filter(|one| matches!(one.source, Source::Own));
        let mut names: Vec<&str> = own.map(|one| one.name).collect();
        listed.sort_unstable();
        names.sort_unstable();
        assert_eq!(listed, names);
    }

    #[test]
    fn every_program_of_the_system_has_an_input() {
        let folder = tempfile::tempdir().unwrap();
        for one in ALL
            .iter()
            .filter(|one| matches!(one.source, Source::System))
        {
            match one.command(folder.path(), true) {
                Ok(command) => assert!(command.len() > 1, "{}", one.name),
                Err(why) => assert!(why.ends_with(" here"), "{why}"),
            }
        }
    }
}
