//! The programs of `kernels/truth`, and how much each of them does.

/// One program.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub name: &'static str,
    pub says: &'static str,
    /// The size of a full run: about 0.3 s.
    size: u64,
    /// The size of a quick run: about 0.02 s.
    quick: u64,
}

impl Program {
    pub fn size(&self, quick: bool) -> u64 {
        if quick {
            self.quick
        } else {
            self.size
        }
    }
}

const fn program(name: &'static str, says: &'static str, size: u64, quick: u64) -> Program {
    Program {
        name,
        says,
        size,
        quick,
    }
}

/// A program that does no work. Its memory is subtracted from that of the others.
pub const NOTHING: Program = program("nothing", "", 0, 0);

/// All programs, in the order of the tables.
pub const ALL: [Program; 15] = [
    program("json", "JSON texts become trees and texts again", 1800, 120),
    program(
        "strings",
        "texts are split into words, sorted, joined",
        15,
        1,
    ),
    program(
        "map",
        "a std::map of 100,000 keys, which change",
        150_000,
        20_000,
    ),
    program(
        "hash",
        "a server's table: set, get, delete by name",
        500_000,
        50_000,
    ),
    program("graph", "graphs are built, walked, torn down", 5, 1),
    program(
        "survivors",
        "many sizes; a tenth of the objects lives on",
        200,
        20,
    ),
    program(
        "churn",
        "4,096 objects, replaced at random",
        3_000_000,
        200_000,
    ),
    program("short", "the same, and soon over", 5000, 1000),
    program("vectors", "arrays grow side by side by realloc", 20, 2),
    program(
        "zeroed",
        "tables by calloc, filled in part",
        400_000,
        30_000,
    ),
    program(
        "aligned",
        "vectors of numbers, aligned to 64 and 4096",
        400_000,
        30_000,
    ),
    program(
        "images",
        "buffers of 64 KiB to 4 MiB, written whole",
        100,
        8,
    ),
    program(
        "sparse",
        "8 MiB buffers, one page in 16 used",
        4_000_000,
        200_000,
    ),
    program("messages", "four threads; the receiver frees", 3000, 200),
    program(
        "threads",
        "800 threads, 8 at a time, exchange blocks",
        100,
        8,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::real;

    #[test]
    fn the_list_is_that_of_the_executable() {
        let listed = real::listed().unwrap();
        let names: Vec<&str> = [NOTHING].iter().chain(&ALL).map(|one| one.name).collect();
        assert_eq!(listed, names);
    }
}
