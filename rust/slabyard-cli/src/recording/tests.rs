//! Tests of recordings: a written recording reads back the same; a damaged one is refused at the
//! right offset, without a panic.

use super::blocks::{ReadError, Strictness};
use super::records::{Operation, Record};
use super::writer::{header, put_varint as put, write_block, write_finish, write_samples, Head};
use super::*;
use proptest::prelude::*;

/// Encodes records as the recorder does.
pub(crate) fn encode(records: &[Record], stamp: u64) -> Vec<u8> {
    let (mut out, mut last, mut address) = (Vec::new(), stamp, 0u64);
    for record in records {
        encode_one(&mut out, record, &mut last, &mut address);
    }
    out
}

fn encode_one(out: &mut Vec<u8>, record: &Record, last: &mut u64, address: &mut u64) {
    let (kind, first, second, size, align) = match record.operation {
        Operation::Malloc { object, size } => (0, object, None, Some(size), 3),
        Operation::Free { object } => (1, object, None, None, 3),
        Operation::Realloc {
            old,
            new,
            took,
            size,
        } => (2, old, Some((new, took)), Some(size), 3),
        Operation::Calloc { object, size } => (3, object, None, Some(size), 3),
        Operation::Aligned {
            object,
            size,
            align_log2,
        } => (4, object, None, Some(size), align_log2),
        Operation::Failed { size } => (5, 0, None, Some(size), 3),
        Operation::Touched { object, bytes } => (6, object, None, Some(bytes), 3),
    };
    let to = second.map_or(first, |(new, _)| new);
    let coarse = (first | to | *address) & 15 == 0;
    let align = align - 3;
    out.push(kind | if coarse { 8 } else { 0 } | align.min(15) << 4);
    if align >= 15 {
        put(out, u64::from(align));
    }
    put(out, record.stamp - *last);
    *last = record.stamp;
    let mut distance = |from: u64, to: u64| {
        let distance = (to.wrapping_sub(from) as i64) >> if coarse { 4 } else { 0 };
        put(out, ((distance << 1) ^ (distance >> 63)) as u64);
    };
    distance(*address, first);
    if let Some((new, took)) = second {
        distance(first, new);
        put(out, took);
        *last += took;
    }
    if let Some(size) = size {
        put(out, size);
    }
    *address = to;
}

/// A process of a recording that a test builds.
pub(crate) struct Sketch {
    pub pid: u32,
    pub parent: u32,
    pub forked: bool,
    pub birth: u64,
    /// The blocks of operations, each with its thread.
    pub blocks: Vec<(u32, Vec<Record>)>,
    pub ended: bool,
    /// Runs of pages that are not in RAM at the end, one block each.
    pub untouched: Vec<Vec<(u64, u64)>>,
    /// Samples of its memory, and their times.
    pub samples: Vec<(u64, u64)>,
}

impl Default for Sketch {
    fn default() -> Self {
        Sketch {
            pid: 100,
            parent: 1,
            forked: false,
            birth: 0,
            blocks: Vec::new(),
            ended: true,
            untouched: Vec::new(),
            samples: Vec::new(),
        }
    }
}

/// Encodes runs of pages. Each run is relative to the end of the previous run.
fn encode_runs(runs: &[(u64, u64)]) -> Vec<u8> {
    let (mut out, mut page) = (Vec::new(), 0);
    for &(first, pages) in runs {
        put(&mut out, first - page);
        put(&mut out, pages);
        page = first + pages;
    }
    out
}

/// Makes a complete file of these processes.
pub(crate) fn file_of(processes: &[Sketch]) -> Vec<u8> {
    let mut file = header().to_vec();
    let (mut blocks, mut records) = (0, 0);
    for process in processes {
        let mut payload = Vec::new();
        for word in [process.pid, process.parent, u32::from(process.forked), 4096] {
            payload.extend(word.to_le_bytes());
        }
        payload.extend(process.birth.to_le_bytes());
        payload.extend(process.birth.to_le_bytes());
        payload.extend(b"/usr/bin/program\0argument\0");
        let head = Head {
            kind: KIND_PROCESS,
            stamp: process.birth,
            ..Head::default()
        };
        write_block(&mut file, head, &payload).unwrap();
        for (thread, of_block) in &process.blocks {
            let stamp = of_block.first().map_or(0, |record| record.stamp);
            let head = Head {
                kind: KIND_OPERATIONS,
                thread: *thread,
                records: of_block.len() as u32,
                stamp,
            };
            write_block(&mut file, head, &encode(of_block, stamp)).unwrap();
            records += of_block.len() as u64;
        }
        for runs in &process.untouched {
            let head = Head {
                kind: KIND_UNTOUCHED,
                records: runs.len() as u32,
                ..Head::default()
            };
            write_block(&mut file, head, &encode_runs(runs)).unwrap();
        }
        if !process.samples.is_empty() {
            write_samples(&mut file, process.birth, &process.samples).unwrap();
            blocks += 1;
        }
        blocks += 1 + (process.blocks.len() + process.untouched.len()) as u64;
        if process.ended {
            let mut end = vec![0; 8];
            end.extend((process.birth + 1_000_000).to_le_bytes());
            end.extend((process.birth + 500_000).to_le_bytes());
            let head = Head {
                kind: KIND_END,
                ..Head::default()
            };
            write_block(&mut file, head, &end).unwrap();
            blocks += 1;
        }
    }
    write_finish(&mut file, processes.len() as u64, blocks, records).unwrap();
    file
}

/// The recording of these processes.
pub(crate) fn recording_of(processes: &[Sketch]) -> Recording {
    Recording::from_bytes(file_of(processes), Strictness::Whole).unwrap()
}

pub(crate) fn at(stamp: u64, operation: Operation) -> Record {
    Record { stamp, operation }
}

pub(crate) fn malloc(stamp: u64, object: u64, size: u64) -> Record {
    at(stamp, Operation::Malloc { object, size })
}

pub(crate) fn free(stamp: u64, object: u64) -> Record {
    at(stamp, Operation::Free { object })
}

fn one_of_each() -> Vec<Record> {
    vec![
        malloc(5, 0x7000_0010, 24),
        at(
            6,
            Operation::Calloc {
                object: 0x7000_0040,
                size: 4096,
            },
        ),
        at(
            7,
            Operation::Aligned {
                object: 0x7000_2000,
                size: 100,
                align_log2: 12,
            },
        ),
        at(
            8,
            Operation::Aligned {
                object: 0x4000_0000,
                size: 1,
                align_log2: 30,
            },
        ),
        at(
            9,
            Operation::Realloc {
                old: 0x7000_0010,
                new: 0x9000_0018,
                took: 3,
                size: 1 << 33,
            },
        ),
        at(13, Operation::Failed { size: u64::MAX }),
        at(
            14,
            Operation::Touched {
                object: 0x7000_0040,
                bytes: 8192,
            },
        ),
        free(1 << 50, 0x7000_0040),
        free((1 << 50) + 1, 0x7000_2008),
    ]
}

fn small_file() -> Vec<u8> {
    file_of(&[
        Sketch {
            blocks: vec![(0, one_of_each()), (1, vec![malloc(1, 16, 1)])],
            untouched: vec![vec![(0x7_0001, 3), (0x7_0010, 0x100)], vec![(0x8_0000, 1)]],
            ..Sketch::default()
        },
        Sketch {
            pid: 101,
            parent: 100,
            forked: true,
            birth: 50,
            ended: false,
            samples: vec![(60, 4096), (200, 1 << 40)],
            ..Sketch::default()
        },
    ])
}

fn read(bytes: &[u8], strictness: Strictness) -> Result<Recording, ReadError> {
    Recording::from_bytes(bytes.to_vec(), strictness)
}

fn damage_of(bytes: &[u8]) -> super::blocks::Damage {
    match read(bytes, Strictness::Whole) {
        Err(ReadError::Damaged(damage)) => damage,
        Err(ReadError::Io(error)) => panic!("{error}"),
        Ok(_) => panic!("a damaged file was taken"),
    }
}

fn records_of(recording: &Recording, process: usize, thread: usize) -> Vec<Record> {
    let mut all = Vec::new();
    for block in &recording.processes[process].threads[thread].blocks {
        let mut records = recording.records(block);
        while let Some(record) = records.next().unwrap() {
            all.push(record);
        }
    }
    all
}

#[test]
fn what_is_written_is_read() {
    let recording = read(&small_file(), Strictness::Whole).unwrap();
    assert_eq!(recording.processes.len(), 2);
    assert_eq!(recording.operations(), 9);
    assert_eq!(records_of(&recording, 0, 0), one_of_each());
    assert_eq!(records_of(&recording, 0, 1), [malloc(1, 16, 1)]);
    let child = &recording.processes[1];
    assert!(child.forked && child.parent == 100 && child.end.is_none());
    assert_eq!(child.name(), "program");
    assert_eq!(child.samples, [(60, 4096), (200, 1 << 40)]);
    assert_eq!(child.command, ["/usr/bin/program", "argument"]);
    assert_eq!(recording.ns_per_tick(), 0.5);
}

#[test]
fn what_was_in_ram_at_the_end_is_known_of_any_address() {
    let recording = read(&small_file(), Strictness::Whole).unwrap();
    let process = &recording.processes[0];
    let touched = |address, bytes| process.bytes_touched(address, bytes).unwrap();
    assert_eq!(touched(0x7000_0010, 4080), 4096);
    assert_eq!(touched(0x7000_0010, 4081), 4096);
    assert_eq!(touched(0x7000_1000, 3 * 4096), 0);
    assert_eq!(touched(0x7000_3fff, 2), 4096);
    assert_eq!(touched(0x7000_0000, 0x20 * 4096), (0x20 - 3 - 0x10) * 4096);
    assert_eq!(touched(0x7010_0000, 0x10_0000), 0xf0 * 4096);
    assert_eq!(touched(0x8000_0000, 8192), 4096);
    assert_eq!(touched(u64::MAX, u64::MAX), 4096);
    assert_eq!(recording.processes[1].bytes_touched(0, 4096), None);
}

#[test]
fn a_file_cut_anywhere_is_refused_where_it_ends() {
    let file = small_file();
    for length in 0..file.len() {
        let damage = damage_of(&file[..length]);
        assert_eq!(damage.offset, length as u64, "{damage}");
    }
}

#[test]
fn what_came_before_the_cut_is_salvaged() {
    let file = small_file();
    let mut seen = Vec::new();
    for length in 0..file.len() {
        match read(&file[..length], Strictness::Salvage) {
            Ok(recording) => {
                assert!(recording.damage.is_some());
                assert!(recording.good_bytes <= length as u64);
                seen.push(recording.operations());
            }
            Err(ReadError::Damaged(_)) => assert!(seen.is_empty(), "lost again at {length}"),
            Err(ReadError::Io(error)) => panic!("{error}"),
        }
    }
    assert!(seen.is_sorted());
    assert_eq!((seen[0], seen[seen.len() - 1]), (0, 9));
}

#[test]
fn every_changed_byte_is_seen_at_its_block() {
    let file = small_file();
    for at in 0..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 0x10;
        let damage = damage_of(&changed);
        // If a block's header is damaged, the damage is reported at the beginning of the block; a
        // length may point beyond the end of the file.
        assert!(
            damage.offset <= at as u64 || damage.offset == file.len() as u64,
            "{damage}"
        );
    }
}

#[test]
fn what_follows_the_end_is_refused() {
    let mut file = small_file();
    let length = file.len() as u64;
    file.push(0);
    assert_eq!(damage_of(&file).offset, length);
}

#[test]
fn a_block_that_lies_is_refused_though_its_checksum_is_right() {
    let block = |head: Head, payload: &[u8]| {
        let mut file = file_of(&[]);
        file.truncate(HEADER_BYTES);
        let sketch = file_of(&[Sketch {
            ended: false,
            ..Sketch::default()
        }]);
        let process_end = sketch.len() - BLOCK_HEADER_BYTES - FINISH_BYTES;
        file.extend(&sketch[HEADER_BYTES..process_end]);
        let begin = file.len() as u64;
        write_block(&mut file, head, payload).unwrap();
        (damage_of(&file), begin)
    };
    let operations = |records| Head {
        kind: KIND_OPERATIONS,
        records,
        ..Head::default()
    };
    let (damage, begin) = block(operations(2), &encode(&[malloc(0, 16, 1)], 0));
    assert_eq!(damage.offset, begin);
    let (damage, begin) = block(operations(1), &[7, 0, 0, 0]);
    assert_eq!(damage.offset, begin + BLOCK_HEADER_BYTES as u64);
    assert!(damage.what.contains("does not exist"));
    let (damage, _) = block(operations(1), &[0, 0x80]);
    assert!(damage.what.contains("cut off"), "{damage}");
    let (damage, _) = block(operations(1), &[0; 1]);
    assert!(damage.what.contains("cut off"), "{damage}");
    let (damage, _) = block(
        Head {
            kind: 11,
            ..Head::default()
        },
        &[],
    );
    assert!(damage.what.contains("unknown kind 11"), "{damage}");
    let made = |thread, records| Head {
        kind: KIND_MADE,
        thread,
        records,
        ..Head::default()
    };
    let (damage, _) = block(made(0, 2), &[1, b'f', 0]);
    assert!(
        damage.what.contains("a block of 1 names says 2"),
        "{damage}"
    );
    let (damage, _) = block(made(1, 1), &[1, b'f', 0]);
    assert!(damage.what.contains("does not exist"), "{damage}");
    let (damage, _) = block(made(0, 1), &[2, b'f']);
    assert!(damage.what.contains("cut off"), "{damage}");
    let untouched = |records| Head {
        kind: KIND_UNTOUCHED,
        records,
        ..Head::default()
    };
    let (damage, begin) = block(untouched(2), &[5, 1]);
    assert_eq!(damage.offset, begin);
    let memory = Head {
        kind: KIND_MEMORY,
        records: 2,
        ..Head::default()
    };
    let (damage, begin) = block(memory, &[5, 1]);
    assert_eq!(damage.offset, begin);
    let (damage, begin) = block(untouched(2), &[5, 1, 0x80]);
    assert_eq!(damage.offset, begin + BLOCK_HEADER_BYTES as u64 + 2);
    let mut beyond = Vec::new();
    put(&mut beyond, u64::MAX);
    beyond.push(2);
    let (damage, _) = block(untouched(1), &beyond);
    assert!(damage.what.contains("run over"), "{damage}");
    let (damage, begin) = block(
        Head {
            kind: KIND_FINISH,
            ..Head::default()
        },
        &[0; FINISH_BYTES],
    );
    assert_eq!(damage.offset, begin);
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let address = any::<u64>().prop_map(|address| address >> 16);
    let coarse = any::<u64>().prop_map(|address| (address >> 16) & !15);
    let address = prop_oneof![address, coarse];
    let size = prop_oneof![0..100_000u64, any::<u64>()];
    (
        0..7,
        address.clone(),
        address,
        size,
        0..1_000_000u64,
        3..63u8,
    )
        .prop_map(|(kind, object, new, size, took, align_log2)| match kind {
            0 => Operation::Malloc { object, size },
            1 => Operation::Free { object },
            2 => Operation::Realloc {
                old: object,
                new,
                took,
                size,
            },
            3 => Operation::Calloc { object, size },
            4 => Operation::Aligned {
                object,
                size,
                align_log2,
            },
            5 => Operation::Failed { size },
            _ => Operation::Touched {
                object,
                bytes: size,
            },
        })
}

/// Generates records with growing stamps, as a thread has them.
fn any_records() -> impl Strategy<Value = Vec<Record>> {
    proptest::collection::vec((0..1_000_000u64, any_operation()), 1..60).prop_map(|steps| {
        let mut now = 0;
        let record = |(ticks, operation)| {
            now += ticks;
            let record = Record {
                stamp: now,
                operation,
            };
            if let Operation::Realloc { took, .. } = operation {
                now += took;
            }
            record
        };
        steps.into_iter().map(record).collect()
    })
}

proptest! {
    #[test]
    fn any_records_come_back(records in any_records()) {
        let blocks = vec![(3, records.clone())];
        let file = file_of(&[Sketch { blocks, ..Sketch::default() }]);
        let recording = read(&file, Strictness::Whole).unwrap();
        prop_assert_eq!(records_of(&recording, 0, 0), records);
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let damage = damage_of(&bytes);
        prop_assert!(damage.offset <= bytes.len() as u64);
        let _ = read(&bytes, Strictness::Salvage);
    }

    #[test]
    fn random_payloads_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut records = Records::new(&bytes, 0, false);
        while let Ok(Some(_)) = records.next() {}
        let _ = (Records::runs(&bytes), Records::samples(&bytes, 7));
    }

    #[test]
    fn mutated_files_never_panic(
        records in any_records(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = file_of(&[Sketch { blocks: vec![(0, records)], ..Sketch::default() }]);
        for (index, byte) in changes {
            let at = index.index(file.len());
            file[at] = byte;
        }
        file.truncate(cut.index(file.len()) + 1);
        let length = file.len() as u64;
        for strictness in [Strictness::Whole, Strictness::Salvage, Strictness::Part] {
            if let Err(ReadError::Damaged(damage)) = read(&file, strictness) {
                prop_assert!(damage.offset <= length);
            }
        }
    }
}

/// The records of a block count only if the whole block is good.
#[test]
fn records_of_a_block_that_is_not_good_are_not_counted() {
    let touched = Operation::Touched {
        object: 0x1000,
        bytes: 8,
    };
    let records = [malloc(5, 0x1000, 8), at(6, touched), free(7, 0x1000)];
    let whole = file_of(&[Sketch::default()]);
    let process_block = BLOCK_HEADER_BYTES + PROCESS_BYTES + b"/usr/bin/program\0argument\0".len();
    let mut file = whole[..HEADER_BYTES + process_block].to_vec();
    let head = Head {
        kind: KIND_OPERATIONS,
        records: 9,
        ..Head::default()
    };
    write_block(&mut file, head, &encode(&records, 0)).unwrap();
    let recording = Recording::from_bytes(file, Strictness::Salvage).unwrap();
    let damage = recording.damage.as_ref().unwrap();
    assert_eq!(damage.what, "a block of 3 records says 9");
    assert_eq!(recording.operations(), 0);
    assert!(recording.small_sizes.iter().all(|&count| count == 0));
}
