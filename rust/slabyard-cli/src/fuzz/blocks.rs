//! Fuzzes recordings whose checksums and record counts are right and whose blocks hold any bytes.
//!
//! An input is a list of blocks: kind, thread, stamp (two bytes), length (two bytes), payload. So
//! libFuzzer changes the encoded records themselves, and no input is rejected for its checksum.

use super::recording::walk;
use crate::plan::merge::make_plan;
use crate::plan::{MappedPlan, Op, OpKind, ProcessPlan, ThreadPlan};
use crate::recording::writer::{header, write_block, write_finish, Head};
use crate::recording::{
    stacks, Made, Recording, Records, Strictness, KIND_FINISH, KIND_MADE, KIND_MEMORY, KIND_MODULE,
    KIND_OPERATIONS, KIND_PROCESS, KIND_STACKED, KIND_STACKS, KIND_UNTOUCHED,
};
use crate::report::info;

/// The longest payload of a block. Longer ones reach no other code.
const PAYLOAD_MAX: usize = 2048;

pub fn run(input: &[u8]) {
    let file = file_of(input);
    let Ok(recording) = Recording::from_bytes(file, Strictness::Salvage) else {
        return;
    };
    walk(&recording);
    let folder = tempfile::tempdir().expect("a folder for the plan");
    make_plan(&recording, folder.path(), &mut |_| ()).expect("a good recording has a plan");
    let mapped = MappedPlan::open(folder.path()).expect("a plan that was written can be read");
    let shown = info::render(&recording, &mapped.plan.summary);
    assert!(shown.contains("operations"));
    for process in &mapped.plan.processes {
        check_process(&mapped, process);
    }
}

/// Makes a file of an input: a header, the input's blocks, and a closing block that counts them.
fn file_of(mut input: &[u8]) -> Vec<u8> {
    let mut file = header().to_vec();
    let (mut processes, mut blocks, mut records) = (0, 0, 0);
    let mut nodes = 0;
    while let [kind, thread, low, high, short, long, rest @ ..] = input {
        let length = usize::from(u16::from_le_bytes([*short, *long])) % PAYLOAD_MAX;
        let (payload, rest) = rest.split_at(length.min(rest.len()));
        input = rest;
        let (kind, stamp) = (
            // So the inputs from before there were names keep their kinds.
            if *kind == 0xff {
                KIND_MADE
            } else {
                kind % (KIND_MODULE + 1)
            },
            u64::from(u16::from_le_bytes([*low, *high])),
        );
        if kind == KIND_FINISH {
            continue;
        }
        // Numbers of nodes that do not ascend by one are refused like a wrong checksum.
        let stamp = if kind == KIND_STACKS {
            nodes + 1
        } else {
            stamp
        };
        let (count, length) = measure(kind, payload, stamp);
        nodes = match kind {
            KIND_PROCESS => 0,
            KIND_STACKS => nodes + u64::from(count),
            _ => nodes,
        };
        let head = Head {
            kind,
            thread: u32::from(thread % 4),
            records: count,
            stamp,
        };
        write_block(&mut file, head, &payload[..length]).expect("memory takes it");
        processes += u64::from(kind == KIND_PROCESS);
        records += if [KIND_OPERATIONS, KIND_STACKED].contains(&kind) {
            u64::from(count)
        } else {
            0
        };
        blocks += 1;
    }
    write_finish(&mut file, processes, blocks, records).expect("memory takes it");
    file
}

/// The number of records in a payload before the first malformed one, and the offset of that one.
fn measure(kind: u8, payload: &[u8], stamp: u64) -> (u32, usize) {
    let mut end = payload.len();
    if [KIND_OPERATIONS, KIND_STACKED].contains(&kind) {
        let (mut records, mut count) = (Records::new(payload, stamp, kind == KIND_STACKED), 0);
        loop {
            match records.next() {
                Ok(Some(_)) => count += 1,
                Ok(None) => return (count, end),
                Err(malformed) => return (count, malformed.at),
            }
        }
    }
    if kind == KIND_STACKS {
        loop {
            match stacks::nodes(&payload[..end], stamp) {
                Ok(nodes) => return (nodes.len() as u32, end),
                Err(malformed) => end = malformed.at,
            }
        }
    }
    if kind == KIND_MADE {
        loop {
            match Made::decode(&payload[..end]) {
                Ok(made) => return (made.len() as u32, end),
                Err(malformed) => end = malformed.at,
            }
        }
    }
    if kind == KIND_UNTOUCHED || kind == KIND_MEMORY {
        loop {
            match Records::runs(&payload[..end]) {
                Ok(runs) => return (runs.len() as u32, end),
                Err(malformed) => end = malformed.at,
            }
        }
    }
    (0, end)
}

fn check_process(mapped: &MappedPlan, process: &ProcessPlan) {
    for thread in &process.threads {
        check_thread(mapped, process, thread);
    }
    if process.threads.len() > 1 {
        let mut turns = vec![0; process.threads.len()];
        for turn in mapped.turns(process) {
            turns[turn.thread as usize] += u64::from(turn.count);
        }
        let ops = process.threads.iter().map(|thread| thread.ops.count);
        assert!(turns.into_iter().eq(ops), "turns are for all operations");
    }
    if let [thread] = &process.threads[..] {
        if process.inherited.is_empty() {
            replay(mapped.ops(thread), process.slots);
        }
    }
}

fn check_thread(mapped: &MappedPlan, process: &ProcessPlan, thread: &ThreadPlan) {
    let ops = mapped.ops(thread);
    for op in ops {
        assert!(op.slot < process.slots, "{op:?} of {} slots", process.slots);
        if matches!(op.kind(), OpKind::Realloc | OpKind::ReallocForeign) {
            assert!(op.second < process.slots, "{op:?}");
        }
    }
    let checkpoints = mapped.checkpoints(thread);
    for two in checkpoints.windows(2) {
        assert!(
            two[0].at < two[1].at && two[0].order < two[1].order,
            "{two:?}"
        );
    }
    let last = checkpoints.last().map_or(0, |checkpoint| checkpoint.at);
    assert!(last <= ops.len() as u64);
    for two in thread.samples.windows(2) {
        assert!(two[0].at <= two[1].at && two[0].x <= two[1].x, "{two:?}");
    }
}

/// Checks a plan of one thread: it takes only from full slots, and puts only into empty ones.
fn replay(ops: &[Op], slots: u32) {
    let mut full = vec![false; slots as usize];
    for (at, op) in ops.iter().enumerate() {
        match op.kind() {
            OpKind::Malloc | OpKind::Calloc | OpKind::Aligned => put(&mut full, op.slot, at),
            OpKind::Free => take(&mut full, op.slot, at),
            OpKind::Realloc => {
                take(&mut full, op.slot, at);
                put(&mut full, op.second, at);
            }
            OpKind::FreeForeign | OpKind::ReallocForeign => {
                panic!("there is no other thread: {op:?}");
            }
        }
    }
}

fn put(full: &mut [bool], slot: u32, at: usize) {
    let before = std::mem::replace(&mut full[slot as usize], true);
    assert!(!before, "operation {at} puts an object over another one");
}

fn take(full: &mut [bool], slot: u32, at: usize) {
    let before = std::mem::replace(&mut full[slot as usize], false);
    assert!(before, "operation {at} takes an object that is not there");
}
