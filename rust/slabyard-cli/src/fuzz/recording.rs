//! Fuzzes a recording as it lies in a file, with damage anywhere.

use crate::lifetimes;
use crate::profile::{names::Names, weigh::Weights};
use crate::record::rest_in;
use crate::recording::{Recording, Strictness};

pub fn run(input: &[u8]) {
    let open = |strictness| Recording::from_bytes(input.to_vec(), strictness);
    let salvaged = open(Strictness::Salvage);
    if let Ok(whole) = open(Strictness::Whole) {
        let salvaged = salvaged.as_ref().expect("what is whole can be salvaged");
        assert!(whole.damage.is_none() && salvaged.damage.is_none());
        assert_eq!(whole.records_of_all(), salvaged.records_of_all());
    }
    for recording in [salvaged, open(Strictness::Part)].into_iter().flatten() {
        assert!(recording.good_bytes <= recording.file_bytes());
        assert!(recording.operations() <= recording.records_of_all());
        walk(&recording);
    }
    for rest in rest_in(input) {
        assert!(rest.records > 0 && rest.payload.len() < input.len());
    }
}

/// Reads each record, and uses the clock, the lifetimes and the stacks.
pub fn walk(recording: &Recording) {
    assert!(recording.ns_per_tick() >= 0.0);
    assert!(lifetimes::render(recording).ends_with(".\n"));
    for thread in recording.processes.iter().flat_map(|one| &one.threads) {
        let mut count = 0;
        for block in &thread.blocks {
            let mut records = recording.records(block);
            while records.next().expect("opening has read it").is_some() {
                count += 1;
            }
        }
        assert_eq!(count, thread.records);
    }
    for process in &recording.processes {
        let weights = Weights::of(recording, process);
        let mut names = Names::of_recording(process);
        for (&stack, figures) in &weights.stacks {
            assert!(!names.of(stack).is_empty() && figures.peak <= figures.allocations);
        }
        for (address, bytes) in [(0, 1), (4096, 4096), (u64::MAX - 5, 100), (0, u64::MAX)] {
            process.bytes_touched(address, bytes);
        }
    }
}
