//! Tests profiles of a program whose global allocator is Slabyard: the sum of the live bytes in the
//! profile's file is the truth, within 3 %.
#![cfg(all(not(miri), target_os = "linux", target_pointer_width = "64"))]

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

#[path = "../examples/heap_profile.rs"]
mod heap_profile; // with the global allocator

/// A number of 7 bits a byte, as Protocol Buffers have it.
fn number(bytes: &mut &[u8]) -> u64 {
    let mut result = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        result |= u64::from(first & 127) << shift;
        if first & 128 == 0 {
            return result;
        }
    }
    unreachable!()
}

/// The sum of inuse_space, the last value of each sample.
fn live_bytes() -> u64 {
    let path = std::env::temp_dir().join(format!("slabyard-profile-{}.pb", std::process::id()));
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    slabyard::profile::write(&file).unwrap();
    let mut content = Vec::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_end(&mut content).unwrap();
    let (mut bytes, mut sum) = (&content[..], 0);
    while !bytes.is_empty() {
        let (key, length) = (number(&mut bytes), number(&mut bytes));
        if key & 7 == 0 {
            continue;
        }
        let (mut message, rest) = bytes.split_at(usize::try_from(length).unwrap());
        bytes = rest;
        let (mut space, mut frames) = (0, 0);
        while key >> 3 == 2 && !message.is_empty() {
            let (field, value) = (number(&mut message) >> 3, number(&mut message));
            frames += u32::from(field == 1);
            space = if field == 2 { value } else { space };
        }
        assert!(key >> 3 != 2 || frames > 2, "each sample has a stack");
        sum += space;
    }
    sum
}

fn is_near(estimate: u64, truth: usize) {
    let ratio = estimate as f64 / truth as f64;
    assert!((0.97..=1.03).contains(&ratio), "{ratio} of the truth");
}

fn slab_of_bytes(n: usize) -> Box<[u8]> {
    vec![1; 16 + n * 7919 % 3000].into_boxed_slice()
}

/// One test, since a profile is one of the process.
#[test]
fn live_bytes_are_those_of_the_program() {
    const COUNT: usize = 60_000;
    let cache = slabyard::Cache::<[u64; 20]>::new("rows");
    let before: Vec<_> = (0..COUNT).map(slab_of_bytes).collect();
    slabyard::profile::start(1024).unwrap();
    assert!(slabyard::profile::start(0).is_err());
    let mut boxes: Vec<_> = (0..COUNT).map(slab_of_bytes).collect();
    let rows: Vec<_> = (0..COUNT).map(|n| cache.insert([n as u64; 20])).collect();
    let others = std::thread::spawn(|| (0..COUNT).map(slab_of_bytes).collect::<Vec<_>>());
    let others = others.join().unwrap();
    for (n, block) in boxes.iter_mut().enumerate() {
        *block = slab_of_bytes(n + 1); // each in the place of the one before
    }
    let bytes: usize = boxes.iter().chain(&others).map(|block| block.len()).sum();
    let vectors = COUNT * (2 * size_of::<Box<[u8]>>() + size_of_val(&rows[0]));
    is_near(live_bytes(), bytes + COUNT * 160 + vectors);
    drop((boxes, others, before));
    is_near(live_bytes(), COUNT * 160 + COUNT * size_of_val(&rows[0]));
    slabyard::profile::stop().unwrap();
    assert!(slabyard::profile::stop().is_err());
    drop(rows);
    heap_profile::main().unwrap();
}
