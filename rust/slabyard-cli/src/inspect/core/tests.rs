use super::sample::{self, LIVE, PROCESS, PROGRAM};
use super::*;
use crate::inspect::account::What;
use crate::inspect::Look;
use std::io::Write;

fn look(bytes: &[u8]) -> Result<Look> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Look::of(read(&file, Path::new("/nowhere/core"), false)?)
}

fn fails(bytes: &[u8]) -> String {
    match look(bytes) {
        Ok(_) => panic!("it is no good core"),
        Err(error) => format!("{error:#}"),
    }
}

fn cache() -> &'static str {
    sample::CACHE.to_str().unwrap()
}

#[test]
fn a_core_has_an_account() {
    let sample = sample::the();
    let look = look(&sample.core).unwrap();
    let account = look.account();
    assert_eq!(account.pid, PROCESS);
    assert_eq!(account.program, PROGRAM);
    assert!(account.problems.is_empty(), "{:?}", account.problems);
    assert!(account.of(What::Live) > 0 && account.of(What::Large) > 0);
    let all: u64 = account.resident.values().map(|one| one.bytes).sum();
    assert_eq!(all, account.rss_bytes);
    let cache = account
        .caches
        .iter()
        .find(|one| one.name == cache())
        .unwrap();
    assert_eq!(cache.live_objects, LIVE as u64);
    assert!(
        account.remarks[0].contains("SIGABRT"),
        "{:?}",
        account.remarks
    );
}

#[test]
fn the_objects_of_a_cache_are_listed() {
    let look = look(&sample::the().core).unwrap();
    let (lines, count) = look.walk(cache(), false, 10).unwrap();
    assert_eq!(count, LIVE as u64);
    assert_eq!(lines.lines().count(), 10);
    let (address, bytes) = lines.lines().next().unwrap().split_once(' ').unwrap();
    assert_eq!(bytes, "40");
    let address = u64::from_str_radix(&address[2..], 16).unwrap();
    let what = look.what_is(address);
    assert!(
        what.starts_with("a live object of sample objects, 40 bytes"),
        "{what}"
    );
    let (lines, free) = look.walk(cache(), true, 1).unwrap();
    let places = ["in a magazine of thread", "in the depot", "in its slab"];
    let has_place = places.iter().any(|place| lines.contains(place));
    assert!(free > 0 && has_place, "{free}: {lines}");
    assert!(look.walk("none", false, 1).is_err());
}

#[test]
fn a_core_that_is_cut_off_says_so() {
    let sample = sample::the();
    let cut = &sample.core[..sample.core.len() - 4096];
    let account = look(cut).unwrap().account();
    let remarks = account.remarks.join(" ");
    assert!(
        remarks.contains("cut off: 4.0 KiB of memory are missing"),
        "{remarks}"
    );
    assert!(fails(&sample.core[..100]).contains("cut off before its list"));
}

#[test]
fn other_files_are_refused() {
    assert!(fails(b"").contains("not an ELF file"));
    assert!(fails(b"#!/bin/sh\n").contains("not an ELF file"));
    let mut other = sample::the().core.clone();
    other[16] = 3;
    assert!(fails(&other).contains("not a core"));
    other[16] = 4;
    other[18] = 243;
    assert!(fails(&other).contains("another processor"));
}

#[test]
fn a_core_without_the_library_says_so() {
    let sample = sample::the();
    let note = memchr::memmem::find_iter(&sample.core, b"Slabyard\0");
    let mut core = sample.core.clone();
    for at in note {
        core[at] = b's';
    }
    assert!(fails(&core).contains("no Slabyard in this process"));
}

#[test]
fn a_core_is_decompressed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("core.zst");
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let packed = ruzstd::encoding::compress_to_vec(&sample::the().core[..], level);
    std::fs::write(&path, packed).unwrap();
    let look = Look::of_core(&path).unwrap();
    assert_eq!(look.account().program, PROGRAM);
    std::fs::write(&path, b"\xfd7zXZ\0\0\0").unwrap();
    let Err(error) = open(&path) else {
        panic!("it is compressed with xz");
    };
    assert!(error.to_string().contains("compressed with xz"), "{error}");
}
