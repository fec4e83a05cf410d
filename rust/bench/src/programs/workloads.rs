//! The programs in the folder `programs`, each of which build.rs makes an executable: the classic
//! allocator programs, and the service of the part `service`.

use super::{Group, Job};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// One workload.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    pub name: &'static str,
    says: &'static str,
    /// The SIZE of a full run. A classic program takes about a second with glibc on two processors.
    full: u64,
    /// The SIZE of a quick run. A classic program does about a tenth of the work.
    quick: u64,
}

/// The folder of the executables.
const FOLDER: &str = env!("BENCH_PROGRAMS");

/// The program that starts the others: `programs/start.c`.
pub fn starter() -> PathBuf {
    Path::new(FOLDER).join("start")
}

/// The program that has just started: `programs/small.c`.
pub fn small() -> PathBuf {
    Path::new(FOLDER).join("small")
}

impl Workload {
    pub fn executable(&self) -> PathBuf {
        Path::new(FOLDER).join(self.name)
    }

    /// The executable and its SIZE.
    pub fn command(&self, quick: bool) -> Vec<OsString> {
        let size = if quick { self.quick } else { self.full };
        vec![
            self.executable().into_os_string(),
            OsString::from(size.to_string()),
        ]
    }

    pub fn job(&self, quick: bool) -> Job {
        Job {
            name: self.name,
            says: self.says,
            group: Group::Classic,
            command: self.command(quick),
        }
    }
}

const fn workload(name: &'static str, says: &'static str, full: u64, quick: u64) -> Workload {
    Workload {
        name,
        says,
        full,
        quick,
    }
}

/// The workload of the part `service`. Its SIZE is the length of a day, in rounds of 10 ms.
pub const SERVICE: Workload = workload(
    "service",
    "a service by day and night; four threads",
    1200,
    240,
);

/// The classic workloads, in the order of the report.
pub const ALL: [Workload; 15] = [
    workload(
        "cfrac",
        "factors numbers; small integers, one thread",
        60,
        6,
    ),
    workload(
        "espresso",
        "minimises logic; small sets and lists that grow, one thread",
        80,
        8,
    ),
    workload("larson", "a server whose threads are replaced", 100, 10),
    workload("xmalloc", "two threads allocate, two free", 2400, 240),
    workload(
        "cache-scratch",
        "writes to blocks in place of neighbours; four threads",
        16_000,
        1600,
    ),
    workload(
        "cache-thrash",
        "writes to small blocks; four threads",
        16_000,
        1600,
    ),
    workload(
        "mstress",
        "phases of four threads; blocks change hands",
        250,
        25,
    ),
    workload(
        "rptest",
        "batches of 16 B to 16 KB, some for other threads",
        8000,
        800,
    ),
    workload(
        "sh6",
        "waves of all sizes, freed in two orders; four threads",
        400,
        40,
    ),
    workload(
        "sh8",
        "the same, and a fifth is freed by other threads",
        400,
        40,
    ),
    workload(
        "glibc-simple",
        "blocks of one size, up and down; one thread and two",
        5,
        1,
    ),
    workload(
        "glibc-thread",
        "1,024 places, mostly small blocks; four threads",
        14_000,
        1400,
    ),
    workload(
        "alloc-test",
        "the load of a real program; four threads",
        5000,
        500,
    ),
    workload("mleak", "threads that leave a block behind", 3000, 300),
    workload("malloc-large", "blocks of 5 to 25 MiB, filled", 200, 20),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn every_source_is_a_workload() {
        let entries = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/programs")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut sources: Vec<String> = paths
            .filter(|path| path.extension().is_some_and(|ending| ending == "c"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        let mut names: Vec<&str> = ALL.iter().map(|one| one.name).collect();
        names.extend([SERVICE.name, "small", "start"]);
        sources.sort();
        names.sort_unstable();
        assert_eq!(sources, names);
    }

    #[test]
    fn a_workload_finds_the_same_number_again() {
        for one in ALL.iter().chain([&SERVICE]) {
            let run = || Command::new(one.executable()).arg("1").output().unwrap();
            let (first, second) = (run(), run());
            assert!(first.status.success(), "{}: {first:?}", one.name);
            assert!(first.stdout.len() > 1, "{}", one.name);
            assert_eq!(first.stdout, second.stdout, "{}", one.name);
        }
    }
}
