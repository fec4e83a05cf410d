//! Tests of plans: records of several threads and processes become the expected operations.

use super::merge::make_folded_plan;
use super::*;
use crate::recording::tests::{at, free, malloc, recording_of, Sketch};
use crate::recording::{Operation, Record};

struct Planned {
    mapped: MappedPlan,
    _folder: tempfile::TempDir,
}

fn plan(processes: &[Sketch]) -> Planned {
    folded_plan(processes, usize::MAX)
}

fn folded_plan(processes: &[Sketch], at_a_time: usize) -> Planned {
    let recording = recording_of(processes);
    let folder = tempfile::tempdir().unwrap();
    make_folded_plan(&recording, folder.path(), at_a_time, &mut |_| ()).unwrap();
    let mapped = MappedPlan::open(folder.path()).unwrap();
    Planned {
        mapped,
        _folder: folder,
    }
}

fn threads(blocks: Vec<(u32, Vec<Record>)>) -> Planned {
    plan(&[Sketch {
        blocks,
        ..Sketch::default()
    }])
}

impl Planned {
    fn kinds(&self, process: usize, thread: usize) -> Vec<OpKind> {
        self.ops(process, thread).iter().map(Op::kind).collect()
    }

    fn ops(&self, process: usize, thread: usize) -> Vec<Op> {
        self.mapped
            .ops(&self.mapped.plan.processes[process].threads[thread])
            .to_vec()
    }

    fn summary(&self) -> &Summary {
        &self.mapped.plan.summary
    }
}

#[test]
fn an_op_keeps_its_parts() {
    let op = Op::new(OpKind::ReallocForeign, SIZE_LIMIT - 1, 31, u16::MAX, 7, 9);
    assert_eq!(op.kind(), OpKind::ReallocForeign);
    assert_eq!(
        (op.size() as u64, op.log2(), op.generation()),
        (SIZE_LIMIT - 1, 31, 0xFFFF)
    );
    assert_eq!((op.slot, op.second), (7, 9));
}

#[test]
fn a_slot_is_used_again_and_addresses_do_not_matter() {
    let plan = threads(vec![(
        0,
        vec![
            malloc(1, 0x1000, 8),
            free(2, 0x1000),
            malloc(3, 0x2000, 9),
            at(
                4,
                Operation::Realloc {
                    old: 0x2000,
                    new: 0x3000,
                    took: 1,
                    size: 50,
                },
            ),
            free(6, 0x3000),
        ],
    )]);
    assert_eq!(plan.mapped.plan.processes[0].slots, 1);
    let kinds = [
        OpKind::Malloc,
        OpKind::Free,
        OpKind::Malloc,
        OpKind::Realloc,
        OpKind::Free,
    ];
    assert_eq!(plan.kinds(0, 0), kinds);
    let ops = plan.ops(0, 0);
    assert_eq!(ops[1].size(), 8);
    assert_eq!((ops[3].size(), ops[3].log2()), (50, 3));
    assert!(!ops[2].touched().is_known() && !ops[3].touched().is_known());
    assert_eq!(plan.summary().peak_payload, 50);
    assert_eq!(plan.summary().operations, 5);
}

/// Only objects of malloc and calloc that are never resized have caches.
#[test]
fn the_hottest_sizes_have_caches() {
    let mut records = Vec::new();
    for (index, size) in [48, 48, 48, 48, 16, 16, 16, 7, 7, 9]
        .into_iter()
        .enumerate()
    {
        records.push(malloc(
            10 + index as u64,
            0x1000 + 0x100 * index as u64,
            size,
        ));
    }
    records.push(at(
        30,
        Operation::Realloc {
            old: 0x1000,
            new: 0x9000,
            took: 1,
            size: 48,
        },
    ));
    records.extend([
        free(40, 0x9000),
        free(41, 0x1100),
        free(42, 0x1400),
        free(43, 0x1900),
    ]);
    let plan = threads(vec![(0, records)]);
    let hot: Vec<_> = plan
        .summary()
        .hot
        .iter()
        .map(|hot| (hot.size, hot.count))
        .collect();
    assert_eq!(hot, [(48, 3), (16, 3), (7, 2)]);
    let ops = plan.ops(0, 0);
    let allocations: Vec<u32> = ops[..10].iter().map(Op::cache).collect();
    assert_eq!(allocations, [0, 1, 1, 1, 2, 2, 2, 3, 3, 0]);
    let frees: Vec<u32> = ops[11..].iter().map(Op::cache).collect();
    assert_eq!(frees, [0, 1, 2, 0]);
}

#[test]
fn what_is_resized_late_leaves_its_cache_in_the_file_too() {
    let mut records = vec![malloc(1, 0x1000, 48)];
    for round in 0..5000 {
        records.extend([
            malloc(10 + 2 * round, 0x2000, 48),
            free(11 + 2 * round, 0x2000),
        ]);
    }
    let (old, new, took, size) = (0x1000, 0x3000, 1, 50);
    records.push(at(
        90_000,
        Operation::Realloc {
            old,
            new,
            took,
            size,
        },
    ));
    let ops = threads(vec![(0, records)]).ops(0, 0);
    assert_eq!((ops[0].kind(), ops[0].cache()), (OpKind::Malloc, 0));
    assert!(ops[1..10_001].iter().all(|op| op.cache() == 1));
}

#[test]
fn an_object_freed_by_another_thread_is_foreign() {
    let plan = threads(vec![
        (0, vec![malloc(1, 0x1000, 8), malloc(2, 0x2000, 8)]),
        (
            1,
            vec![
                free(3, 0x1000),
                at(
                    4,
                    Operation::Realloc {
                        old: 0x2000,
                        new: 0x1000,
                        took: 1,
                        size: 16,
                    },
                ),
            ],
        ),
    ]);
    assert_eq!(
        plan.kinds(0, 1),
        [OpKind::FreeForeign, OpKind::ReallocForeign]
    );
    assert_eq!(plan.ops(0, 1)[0].generation(), 1);
    assert_eq!(plan.summary().foreign_frees, 1);
    assert_eq!(plan.summary().unknown_frees, 0);
}

/// While one thread is inside its realloc, another thread allocates and frees an object at the new
/// address, and allocates one at the old address.
#[test]
fn a_realloc_gives_up_at_its_beginning_and_receives_at_its_end() {
    let realloc = Operation::Realloc {
        old: 0x1000,
        new: 0x2000,
        took: 100,
        size: 9,
    };
    let plan = threads(vec![
        (
            0,
            vec![malloc(1, 0x1000, 8), at(10, realloc), free(200, 0x2000)],
        ),
        (
            1,
            vec![
                malloc(20, 0x2000, 8),
                free(30, 0x2000),
                malloc(50, 0x1000, 8),
            ],
        ),
    ]);
    assert_eq!(
        plan.summary().unknown_frees + plan.summary().unseen_frees,
        0
    );
    assert_eq!(
        plan.kinds(0, 0),
        [OpKind::Malloc, OpKind::Realloc, OpKind::Free]
    );
    assert_eq!(
        plan.kinds(0, 1),
        [OpKind::Malloc, OpKind::Free, OpKind::Malloc]
    );
}

#[test]
fn clocks_that_differ_a_little_are_put_right() {
    let plan = threads(vec![
        (0, vec![malloc(100, 0x1000, 8)]),
        (1, vec![free(95, 0x1000), malloc(96, 0x2000, 8)]),
    ]);
    assert_eq!(plan.kinds(0, 1), [OpKind::FreeForeign, OpKind::Malloc]);
    assert_eq!(plan.summary().unknown_frees, 0);
}

#[test]
fn what_cannot_be_true_is_left_out_and_counted() {
    let plan = threads(vec![
        (
            0,
            vec![malloc(1, 0x1000, 8), malloc(2, 0x1000, 8), free(3, 0x5000)],
        ),
        (1, vec![free(4, 0x6000), malloc(5, 0x7000, 1)]),
    ]);
    assert_eq!(plan.summary().unknown_frees, 2);
    assert_eq!(plan.summary().unseen_frees, 1);
    assert_eq!(plan.kinds(0, 0), [OpKind::Malloc, OpKind::Malloc]);
    assert_eq!(plan.kinds(0, 1), [OpKind::Malloc]);
}

#[test]
fn sizes_that_nobody_has_are_not_replayed() {
    let plan = threads(vec![(
        0,
        vec![malloc(1, 0x1000, SIZE_LIMIT), malloc(2, 0x2000, 3)],
    )]);
    assert_eq!(plan.kinds(0, 0), [OpKind::Malloc]);
    assert_eq!(plan.summary().failed, 1);
}

/// A grandchild frees what its grandparent allocated before either was forked.
#[test]
fn a_forked_process_inherits_what_it_will_use() {
    let family = [
        Sketch {
            blocks: vec![(
                0,
                vec![
                    malloc(1, 0x1000, 11),
                    malloc(2, 0x2000, 22),
                    malloc(3, 0x3000, 33),
                    free(50, 0x1000),
                    free(51, 0x2000),
                ],
            )],
            ..Sketch::default()
        },
        Sketch {
            pid: 200,
            parent: 100,
            forked: true,
            birth: 10,
            blocks: vec![(0, vec![malloc(12, 0x9000, 1), free(13, 0x1000)])],
            ..Sketch::default()
        },
        Sketch {
            pid: 300,
            parent: 200,
            forked: true,
            birth: 20,
            blocks: vec![(0, vec![free(60, 0x2000), free(61, 0x9000)])],
            ..Sketch::default()
        },
    ];
    let plan = plan(&family);
    let sizes = |process: usize| -> Vec<u64> {
        let inherited = &plan.mapped.plan.processes[process].inherited;
        inherited.iter().map(|object| object.size).collect()
    };
    assert_eq!(sizes(0), [0u64; 0]);
    assert_eq!(sizes(1), [11, 22]);
    assert_eq!(sizes(2), [22, 1]);
    assert_eq!(plan.kinds(2, 0), [OpKind::Free, OpKind::Free]);
    assert_eq!(plan.summary().unknown_frees, 0);
}

#[test]
fn checkpoints_are_near_each_other_in_both_orders() {
    let busy = |n: u64| [malloc(4 * n + 1, 0x1000, 8), free(4 * n + 2, 0x1000)];
    let rare = |n: u64| malloc(40_000 * n + 3, 0x10_0000 + 16 * n, 8);
    let plan = threads(vec![
        (0, (0..20_000).flat_map(busy).collect()),
        (1, (0..2).map(rare).collect()),
    ]);
    let process = &plan.mapped.plan.processes[0];
    for thread in &process.threads {
        let checkpoints = plan.mapped.checkpoints(thread);
        assert_eq!(checkpoints[0].at, 0);
        for pair in checkpoints.windows(2) {
            assert!(pair[1].at - pair[0].at <= CHECKPOINT_OPS);
        }
    }
    let rare = plan.mapped.checkpoints(&process.threads[1]);
    assert_eq!(rare.len(), 2);
    assert!(rare[1].order - rare[0].order > CHECKPOINT_SPAN);
}

#[test]
fn samples_cover_the_run_and_its_peak() {
    let mut records: Vec<_> = (0..10_000).map(|n| malloc(n, 0x1000 + 16 * n, 8)).collect();
    records.push(malloc(10_000, 0x10, 1 << 20));
    records.push(free(10_001, 0x10));
    records.extend((0..10_000).map(|n| free(20_000 + n, 0x1000 + 16 * n)));
    let plan = threads(vec![(0, records)]);
    let samples = &plan.mapped.plan.processes[0].threads[0].samples;
    assert!(samples.len() as u64 > SAMPLES && samples.len() as u64 <= SAMPLES + 3);
    assert!(samples
        .iter()
        .any(|sample| sample.payload == 80_000 + (1 << 20)));
    assert!(samples.is_sorted_by_key(|sample| sample.at));
}

fn touched(stamp: u64, object: u64, bytes: u64) -> Record {
    at(stamp, Operation::Touched { object, bytes })
}

/// Half of an object is touched. It grows by the same size again, of which nothing is touched.
/// Another object is a quarter touched when the process ends.
fn half_touched(untouched: Vec<Vec<(u64, u64)>>) -> Planned {
    let (size, old, new) = (1 << 20, 0x100_0010, 0x900_0000);
    let realloc = Operation::Realloc {
        old,
        new,
        took: 1,
        size: 2 * size,
    };
    let records = vec![
        malloc(1, old, size),
        malloc(2, 0x4000_0000, size),
        touched(3, old, size / 2),
        at(4, realloc),
        touched(6, new, size / 2),
        free(7, new),
        malloc(8, 16, 8),
    ];
    plan(&[Sketch {
        blocks: vec![(0, records)],
        untouched,
        ..Sketch::default()
    }])
}

#[test]
fn what_the_program_touched_of_large_objects_is_replayed() {
    use super::touch::{pages_of, Touched};
    let pages = pages_of(1 << 20);
    let plan = half_touched(vec![vec![(0x4_0040, 3 * pages / 4)]]);
    let ops = plan.ops(0, 0);
    let shares: Vec<_> = ops.iter().map(Op::touched).collect();
    let share = |touched| Touched::share(touched, pages);
    assert_eq!(shares[..3], [share(pages / 2), share(pages / 4), share(0)]);
    assert_eq!(plan.summary().operations, 5);
    // The lower bound is the touched memory, at the peak too, less the pages at both ends of
    // objects and the rounding of shares.
    let sure = plan.mapped.plan.processes[0].sure_peak();
    let live = (pages / 2 + pages / 4) * 4096;
    assert!((live - 5 * 4096..=live).contains(&sure), "{sure} of {live}");
}

#[test]
fn what_nobody_says_of_an_objects_pages_is_not_known() {
    let plan = half_touched(Vec::new());
    assert!(!plan.ops(0, 0)[1].touched().is_known());
    assert!(plan.ops(0, 0)[0].touched().is_known());
}

#[test]
fn what_the_processes_had_in_ram_is_told_by_the_operation() {
    // A tick is half a nanosecond, see `file_of`.
    let first = Sketch {
        blocks: vec![(
            0,
            (0..480).map(|n| malloc(100 * n, 16 * n + 16, 8)).collect(),
        )],
        samples: vec![(50, 1000), (500, 5000), (510, 4000), (20_000, 7000)],
        ..Sketch::default()
    };
    let second = Sketch {
        pid: 101,
        birth: 2000,
        blocks: vec![(0, vec![malloc(2000, 16, 8), malloc(3000, 32, 8)])],
        samples: vec![(2100, 300)],
        ..Sketch::default()
    };
    let plan = plan(&[first, second]);
    let resident = &plan.summary().resident;
    let bytes: Vec<_> = resident.iter().map(|sample| sample.1).collect();
    assert_eq!(bytes, [1000, 5000, 4300, 7300, 7000], "{resident:?}");
    let at: Vec<_> = resident.iter().map(|sample| sample.0).collect();
    assert_eq!(at, [1, 10, 23, 402, 482]);
}

/// The file of operations is shorter than its reserved space: a failed call has room in it, but is
/// not replayed.
#[test]
fn a_last_thread_may_have_nothing_to_replay() {
    let failed = at(5, Operation::Failed { size: 8 });
    let plan = threads(vec![
        (0, vec![malloc(1, 0x1000, 8), free(2, 0x1000), failed]),
        (1, vec![failed]),
    ]);
    assert_eq!(plan.ops(0, 0).len(), 2);
    assert!(plan.ops(0, 1).is_empty());
}

/// Threads that live at the same time. In each round every thread allocates an object, and frees
/// or resizes the one that the thread before it allocated.
fn neighbours(threads: u64, rounds: u64) -> Vec<(u32, Vec<Record>)> {
    let mut blocks: Vec<(u32, Vec<Record>)> = (0..threads).map(|n| (n as u32, vec![])).collect();
    for step in 0..threads * rounds {
        let records = &mut blocks[(step % threads) as usize].1;
        let address = |step: u64| 0x10_0000 + 64 * step;
        records.push(malloc(10 * step + 1, address(step), 8 + step % 500));
        let Some(before) = step.checked_sub(1).map(address) else {
            continue;
        };
        records.push(match step % 10 {
            3 => at(
                10 * step + 2,
                Operation::Realloc {
                    old: before,
                    new: before + 32,
                    took: 15,
                    size: 40,
                },
            ),
            _ => free(10 * step + 2, before),
        });
    }
    blocks
}

fn sketch(blocks: Vec<(u32, Vec<Record>)>) -> [Sketch; 1] {
    [Sketch {
        blocks,
        ..Sketch::default()
    }]
}

/// The operations of a process in the order of its turns, each with its thread.
fn in_turns(mapped: &MappedPlan, process: &ProcessPlan) -> Vec<(usize, Op)> {
    let mut at = vec![0; process.threads.len()];
    let mut all = Vec::new();
    for turn in mapped.turns(process) {
        let thread = turn.thread as usize;
        let ops = &mapped.ops(&process.threads[thread])[at[thread]..][..turn.count as usize];
        all.extend(ops.iter().map(|&op| (thread, op)));
        at[thread] += ops.len();
    }
    let counts: Vec<_> = process.threads.iter().map(|one| one.ops.count).collect();
    assert_eq!(at.iter().map(|&at| at as u64).collect::<Vec<_>>(), counts);
    all
}

/// Executes a plan in its turns: each operation takes from a full slot of the right generation. The
/// bytes that are live after each operation.
fn payloads(mapped: &MappedPlan, process: &ProcessPlan) -> Vec<u64> {
    let mut slots = vec![(0u16, None); process.slots as usize];
    let (mut live, mut payloads) = (0, Vec::new());
    for (thread, op) in in_turns(mapped, process) {
        let mut take = || {
            let (generation, object) = &mut slots[op.slot as usize];
            let (size, owner) = object.take().expect("an object that is there");
            let foreign = matches!(op.kind(), OpKind::FreeForeign | OpKind::ReallocForeign);
            assert_eq!(foreign, owner != thread);
            assert!(!foreign || op.generation() == u64::from(*generation));
            size
        };
        let (freed, made) = match op.kind() {
            OpKind::Free | OpKind::FreeForeign => (take(), None),
            OpKind::Realloc | OpKind::ReallocForeign => (take(), Some(op.second)),
            _ => (0, Some(op.slot)),
        };
        live -= freed;
        if let Some(slot) = made {
            let (generation, object) = &mut slots[slot as usize];
            *generation = generation.wrapping_add(1);
            assert!(object.is_none());
            *object = Some((op.size() as u64, thread));
            live += op.size() as u64;
        }
        payloads.push(live);
    }
    payloads
}

#[test]
fn threads_beyond_the_processors_are_folded_and_all_is_counted_as_before() {
    let whole = plan(&sketch(neighbours(60, 40)));
    let folded = folded_plan(&sketch(neighbours(60, 40)), 4);
    let (all, few) = (whole.summary(), folded.summary());
    assert_eq!((all.threads, all.replay_threads), (60, 60));
    assert_eq!((few.threads, few.replay_threads), (60, 5));
    let counts = |summary: &Summary| {
        let Summary {
            operations,
            frees,
            foreign_frees,
            reallocs,
            unknown_frees,
            unseen_frees,
            peak_payload,
            peak_objects,
            ..
        } = *summary;
        let calls = [operations, frees, foreign_frees, reallocs];
        (
            calls,
            [unknown_frees, unseen_frees, peak_payload, peak_objects],
        )
    };
    assert_eq!(counts(all), counts(few));
    assert!(all.foreign_frees > 2000 && all.reallocs > 200);
    let process = &folded.mapped.plan.processes[0];
    assert_eq!(
        process.operations,
        whole.mapped.plan.processes[0].operations
    );
    payloads(&folded.mapped, process);
    payloads(&whole.mapped, &whole.mapped.plan.processes[0]);
}

/// Two threads work on their own objects, and a third one has large ones.
fn alternating() -> Vec<(u32, Vec<Record>)> {
    let mut blocks = vec![(0, vec![]), (1, vec![]), (2, vec![])];
    for n in 0..3000u64 {
        let (small, large) = (0x1000 + 64 * (n % 64), 0x4000_0000 + (n << 24));
        for thread in [0, 1] {
            let address = small + ((thread as u64) << 20);
            let stamp = 100 * n + 10 * thread as u64;
            let records: &mut Vec<Record> = &mut blocks[thread].1;
            if n >= 64 {
                records.push(free(stamp + 1, address));
            }
            records.push(malloc(stamp + 2, address, 100 + n % 7));
        }
        if n % 50 == 0 {
            let records = &mut blocks[2].1;
            records.push(malloc(100 * n + 20, large, 1 << 20));
            records.push(free(100 * n + 60, large));
        }
    }
    blocks
}

#[test]
fn in_turns_as_much_is_live_as_in_the_recording() {
    let plan = threads(alternating());
    let process = &plan.mapped.plan.processes[0];
    let payloads = payloads(&plan.mapped, process);
    let peak = *payloads.iter().max().unwrap();
    let recorded = plan.summary().peak_payload;
    assert!(peak.abs_diff(recorded) <= ROUND_BYTES, "{peak}, {recorded}");
    // Each sample is taken when about as much is live as in the recording.
    let samples = process.threads.iter().flat_map(|thread| &thread.samples);
    let mut count = 0;
    for sample in samples.filter(|sample| sample.x > 0) {
        let x = sample.x as usize;
        let near = x.saturating_sub(65)..x + 65;
        let near = near.filter_map(|x| payloads.get(x));
        let least = near.map(|live| live.abs_diff(sample.payload)).min();
        assert!(least.unwrap() <= 128 * 107, "{sample:?}: {least:?}");
        count += 1;
    }
    assert!(count > 200);
    // There are far fewer turns than operations, although the threads alternate.
    let turns = plan.mapped.turns(process).len();
    assert!(turns < payloads.len() / 16, "{turns} of {}", payloads.len());
}

#[test]
fn an_object_is_made_in_a_turn_before_the_one_that_takes_it() {
    // No part of the recording ends among its last operations.
    let before = (0..1000).flat_map(|n| [malloc(2 * n, 16, 8), free(2 * n + 1, 16)]);
    let mut own: Vec<_> = before.collect();
    own.extend([
        malloc(2001, 0x1000, 8),
        malloc(2004, 0x2000, 8),
        free(2009, 0x3000),
    ]);
    let other = vec![
        free(2002, 0x1000),
        malloc(2003, 0x3000, 8),
        free(2005, 0x2000),
    ];
    let plan = threads(vec![(0, own), (1, other)]);
    let process = &plan.mapped.plan.processes[0];
    let turns = plan.mapped.turns(process).iter();
    let turns: Vec<_> = turns.map(|turn| (turn.thread, turn.count)).collect();
    // Only the object at 0x3000 needs a change from the other thread back to the first.
    let last: Vec<_> = turns[turns.len() - 3..].to_vec();
    assert_eq!((last[0].0, &last[1..]), (0, &[(1, 3), (0, 1)][..]));
    payloads(&plan.mapped, process);
}

#[test]
fn each_part_of_a_recording_is_a_plan() {
    let family = [
        Sketch {
            blocks: neighbours(6, 300),
            ..Sketch::default()
        },
        Sketch {
            pid: 200,
            parent: 100,
            forked: true,
            birth: 9_000,
            blocks: vec![(
                0,
                (0..900)
                    .map(|n| malloc(9_001 + n, 16 + 16 * n, 8))
                    .collect(),
            )],
            ..Sketch::default()
        },
    ];
    let planned = plan(&family);
    let (whole, folder) = (&planned.mapped.plan, planned._folder.path());
    assert_eq!(whole.replayed, whole.summary.operations);
    assert_eq!(whole.part_of(whole.replayed), None);
    assert!(whole.parts.len() > 20 && whole.parts.is_sorted());
    for part in 0..whole.parts.len() {
        let cut = planned.mapped.part(part);
        assert_eq!(whole.part_of(cut.replayed), Some(part));
        assert_eq!(cut.part_of(cut.replayed), None);
        cut.write(folder).unwrap();
        let cut = MappedPlan::open(folder).unwrap();
        let counts = |process: &ProcessPlan| {
            let ops = process.threads.iter().map(|thread| thread.ops.count);
            (ops.sum::<u64>(), process.operations)
        };
        let mut sum = 0;
        for process in &cut.plan.processes {
            let (ops, operations) = counts(process);
            assert_eq!(ops, operations);
            sum += ops;
            if process.threads.len() > 1 {
                assert_eq!(payloads(&cut, process).len() as u64, ops);
            }
            for thread in &process.threads {
                assert!(cut
                    .checkpoints(thread)
                    .iter()
                    .all(|one| one.at < thread.ops.count));
                assert!(thread.samples.iter().all(|one| one.at <= thread.ops.count));
            }
        }
        assert_eq!(sum, cut.plan.replayed, "part {part}");
    }
}
