//! Tests of `slabyard advise`: programs of which it is known what they would gain.

mod common;

use common::{done, ends_with, program, record_stacks, stdout};
use tempfile::TempDir;

#[track_caller]
fn advice(folder: &TempDir, words: &[&str]) -> String {
    let binary = program(folder, "sites", &["-O2", "-g"]);
    let command = [binary.to_str().unwrap()];
    record_stacks(
        folder.path(),
        command.into_iter().chain(words.iter().copied()),
    );
    stdout(&done(folder.path(), ["advise", "sites.syrec"]))
}

#[test]
fn a_program_that_makes_lists_gets_a_pool_and_the_lines_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let text = advice(&folder, &["lists", "50", "20000", "0"]);
    let place = text.find("\n1. make_lists at sites.c:").expect(&text);
    let place = &text[place..];
    assert!(
        place.contains("1,000,000 objects of 72 bytes, at most 20,000 at a time, by one thread"),
        "{text}"
    );
    assert!(
        place.contains("with a cache") && place.contains("with a pool"),
        "{text}"
    );
    assert!(place.contains(".size = 72}"), "{text}");
    assert!(
        place.contains("A pool that is reset 50 times, whenever none")
            && place.contains("sy_pool_reset(pool)"),
        "{text}"
    );
}

#[test]
fn a_program_whose_connections_end_one_by_one_gets_epochs() {
    let folder = tempfile::tempdir().unwrap();
    let text = advice(&folder, &["connections", "20", "10000"]);
    let place = text.find(". serve at sites.c:").expect(&text);
    let place = &text[place..];
    assert!(
        place.contains("100.0% of its objects are freed in 20 groups"),
        "{text}"
    );
    let saved = place.split("An epoch for each group would save ").nth(1);
    let saved = saved
        .expect(&text)
        .split_once(" MiB on average")
        .expect(&text)
        .0;
    // 14 MB are needed for all, and half of that on average.
    let saved: f64 = saved.parse().expect(&text);
    assert!((4.0..8.0).contains(&saved), "{text}");
    assert!(
        place.contains(".flags = SY_EPOCHS});")
            && place.contains("epoch.scope(|| cache.insert(value))"),
        "{text}"
    );
}

#[test]
fn a_program_that_would_gain_nothing_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let text = advice(&folder, &["plain"]);
    assert!(text.contains("No place would gain"), "{text}");
}

#[test]
fn without_stacks_there_is_no_advice() {
    let folder = tempfile::tempdir().unwrap();
    let binary = program(&folder, "sites", &[]);
    done(
        folder.path(),
        [
            "record",
            "-o",
            "bare.syrec",
            "--",
            binary.to_str().unwrap(),
            "plain",
        ],
    );
    let said = ends_with(folder.path(), ["advise", "bare.syrec"], 1);
    assert!(said.contains("slabyard record --stacks"), "{said}");
}
