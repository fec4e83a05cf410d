//! The Rust crate beside other crates for the same purpose, and beside `Box` over the peers.
//!
//! * `rows`: what is measured, as a list;
//! * `makers`, `locals`: the contenders that make objects: values, and types with static pools or
//!   caches; `owned`: the loops over them;
//! * `maps`: maps used by one thread; `shared`: maps shared by threads.
//!
//! The order of processes and the tables are in `alone`.

mod locals;
mod makers;
mod maps;
mod owned;
mod rows;
mod shared;

pub use rows::Row;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::job::{Effort, Job};
    use crate::alone::Row as _;

    #[test]
    fn everyone_has_a_figure_in_every_kind_of_row() {
        for name in ["churn/64", "alloc/32", "free-lifo/128", "free-random/512"]
            .into_iter()
            .chain(["contended/4096", "replace/64/1000", "map-pair/1000"])
            .chain(["map-replace/1000", "map-get/1000", "map-iterate/1000"])
            .chain(["shared-get/2", "shared-get-same/2", "shared-pair/2"])
        {
            let row = Row::find(name).unwrap();
            for who in row.names() {
                let job = Job {
                    row,
                    who: who.to_owned(),
                    effort: Effort::least(),
                };
                // A thread can initialise its pools only once: each job has its own thread.
                let figures = std::thread::spawn(move || job.figures().unwrap());
                let figures = figures.join().unwrap();
                assert!(!figures.is_empty(), "{name} {who}");
                assert!(figures.iter().all(|one| one.value >= 0.0), "{figures:?}");
            }
        }
    }

    #[test]
    fn rows_are_found_by_their_names() {
        for row in Row::all() {
            assert_eq!(Row::find(&row.name()), Some(row));
        }
        assert!(Row::find("churn/33").is_none());
    }
}
