//! Tests that the crew keeps its threads in order, and that faulty allocators are found.

use super::caches::Caches;
use super::clock;
use super::crew::{Crew, Progress};
use super::memory::Shared;
use super::mode::Verify;
use super::turns::Baton;
use crate::allocators;
use crate::plan::{merge::make_folded_plan, MappedPlan};
use crate::recording::tests::{at, free, malloc, recording_of, Sketch};
use crate::recording::{Operation, Record};
use core::ffi::c_void;
use slabyard_peers::Allocator;
use std::sync::atomic::{AtomicU64, Ordering};

fn planned(blocks: Vec<(u32, Vec<Record>)>) -> (MappedPlan, tempfile::TempDir) {
    folded(blocks, usize::MAX)
}

fn folded(blocks: Vec<(u32, Vec<Record>)>, at_a_time: usize) -> (MappedPlan, tempfile::TempDir) {
    let recording = recording_of(&[Sketch {
        blocks,
        ..Sketch::default()
    }]);
    let folder = tempfile::tempdir().unwrap();
    make_folded_plan(&recording, folder.path(), at_a_time, &mut |_| ()).unwrap();
    (MappedPlan::open(folder.path()).unwrap(), folder)
}

/// The numbers of checked, wrong and refused objects, and the CPU time.
struct Verified {
    checked: u64,
    wrong: u64,
    refused: u64,
    cpu_ns: i64,
}

fn verify(plan: &MappedPlan, allocator: &Allocator) -> Verified {
    verify_at(plan, allocator, false)
}

/// `turns`: one thread at a time, in the recorded order.
fn verify_at(plan: &MappedPlan, allocator: &Allocator, turns: bool) -> Verified {
    let process = &plan.plan.processes[0];
    let slots = Shared::<AtomicU64>::new(process.slots as usize).unwrap();
    let sizes = Shared::<AtomicU64>::new(process.slots as usize).unwrap();
    let crew = Crew {
        plan,
        process,
        allocator,
        caches: Caches::of(allocator, &plan.plan.summary.hot).unwrap(),
        slots: &slots,
        progress: Progress::new(&process.threads),
        baton: turns.then(|| Baton::new(plan.turns(process), process.threads.len())),
        sampling: false,
    };
    let (done, cpu_ns) = crew.run(&|_| Ok(Verify::new(sizes.as_slice()))).unwrap();
    let sum = |value: fn(&super::crew::Done<Verify>) -> u64| done.iter().map(value).sum();
    Verified {
        checked: sum(|done| done.mode.checked),
        wrong: sum(|done| done.mode.wrong),
        refused: sum(|done| done.refused),
        cpu_ns,
    }
}

/// Threads pass objects around in a ring: each frees or resizes the objects of the previous thread.
fn ring(threads: u64, rounds: u64) -> Vec<(u32, Vec<Record>)> {
    let mut blocks: Vec<(u32, Vec<Record>)> = (0..threads).map(|n| (n as u32, vec![])).collect();
    for step in 0..threads * rounds {
        let (address, before) = (
            0x10_0000 + 64 * step,
            0x10_0000 + 64 * step.saturating_sub(1),
        );
        let records = &mut blocks[(step % threads) as usize].1;
        let (stamp, size) = (10 * step, step % 700);
        records.push(match step % 5 {
            0 => at(
                stamp + 1,
                Operation::Calloc {
                    object: address,
                    size,
                },
            ),
            1 => at(
                stamp + 1,
                Operation::Aligned {
                    object: address,
                    size,
                    align_log2: 7,
                },
            ),
            _ => malloc(stamp + 1, address, size),
        });
        if step % 7 == 3 {
            let new = address + 32;
            let (took, size) = (1, size * 2);
            records.push(at(
                stamp + 2,
                Operation::Realloc {
                    old: before,
                    new,
                    took,
                    size,
                },
            ));
            records.push(free(stamp + 5, new));
        } else if step > 0 {
            records.push(free(stamp + 2, before));
        }
    }
    blocks
}

#[test]
fn objects_that_wander_between_threads_keep_their_contents_on_every_allocator() {
    let (plan, _folder) = planned(ring(4, 6_000));
    assert_eq!(plan.plan.summary.unknown_frees, 0);
    assert!(plan.plan.summary.foreign_frees > 10_000);
    // A slot passes to another thread only after some operations, so there are more slots than live
    // objects.
    assert!(plan.plan.processes[0].slots < 15_000);
    for allocator in allocators::all() {
        let seen = verify(&plan, allocator);
        let (checked, name) = (seen.checked, allocator.name);
        assert!(checked >= 24_000 - 1, "{name}: {checked}");
        assert_eq!((seen.wrong, seen.refused), (0, 0), "{name}");
    }
}

#[test]
fn folded_threads_and_threads_in_turns_keep_all_contents_too() {
    let glibc = slabyard_peers::find("glibc").unwrap();
    for (at_a_time, turns) in [(3, false), (3, true), (usize::MAX, true)] {
        let (plan, _folder) = folded(ring(40, 300), at_a_time);
        assert_eq!(plan.plan.processes[0].threads.len(), at_a_time.min(39) + 1);
        let seen = verify_at(&plan, glibc, turns);
        assert!(seen.checked >= 12_000 - 1, "{at_a_time}: {}", seen.checked);
        assert_eq!((seen.wrong, seen.refused), (0, 0), "{at_a_time}, {turns}");
    }
}

#[test]
fn threads_that_begin_late_or_do_little_do_not_stop_the_others() {
    let mut blocks = ring(2, 5_000);
    blocks.push((2, vec![malloc(3, 0x10, 8), free(99_000, 0x10)]));
    for late in 0..12 {
        let stamp = 7_000 * late + 6;
        let address = 0x20 + 16 * late;
        blocks.push((
            3 + late as u32,
            vec![malloc(stamp, address, 8), free(stamp + 1, address)],
        ));
    }
    let (plan, _folder) = planned(blocks);
    for turns in [false, true] {
        let seen = verify_at(&plan, slabyard_peers::find("glibc").unwrap(), turns);
        assert!(seen.checked >= 10_000);
        assert_eq!(seen.wrong, 0);
    }
}

static LIVING: AtomicU64 = AtomicU64::new(0);
static MOST_LIVING: AtomicU64 = AtomicU64::new(0);
/// The CPU time that a thread spends in the allocator when it begins, and again when it ends.
const BUSY_NS: u64 = 1_000_000;

fn be_busy() {
    let start = clock::thread_ns();
    while clock::thread_ns() - start < BUSY_NS {}
}

unsafe extern "C" fn thread_begins() {
    let living = LIVING.fetch_add(1, Ordering::Relaxed) + 1;
    MOST_LIVING.fetch_max(living, Ordering::Relaxed);
    be_busy();
}

unsafe extern "C" fn thread_ends() {
    be_busy();
    LIVING.fetch_sub(1, Ordering::Relaxed);
}

#[test]
fn threads_that_came_one_after_the_other_do_so_again_and_their_ends_count() {
    const THREADS: u64 = 30;
    // The main thread gives an object to the first of the others, and frees one of the last: so it
    // lives as long as they.
    const FIRST: u64 = 0x10;
    const LAST: u64 = 0x20;
    let mut blocks = vec![(0, vec![malloc(1, FIRST, 8), free(99_000, LAST)])];
    for thread in 1..=THREADS {
        let (stamp, address) = (100 * thread, 0x1000 + 64 * thread);
        let records = (0..5).flat_map(|n| {
            let stamp = stamp + 2 * n;
            [malloc(stamp, address, 8), free(stamp + 1, address)]
        });
        blocks.push((thread as u32, records.collect()));
    }
    blocks[1].1.push(free(190, FIRST));
    blocks[THREADS as usize]
        .1
        .push(malloc(100 * THREADS + 90, LAST, 8));
    let (plan, _folder) = planned(blocks);
    let counting = Allocator {
        thread_init: Some(thread_begins),
        thread_exit: Some(thread_ends),
        ..*slabyard_peers::find("glibc").unwrap()
    };
    let seen = verify(&plan, &counting);
    assert_eq!((seen.checked, seen.wrong), (5 * THREADS + 2, 0));
    // The main thread, and one other thread at a time.
    assert_eq!(MOST_LIVING.load(Ordering::Relaxed), 2);
    let least = 2 * BUSY_NS as i64 * (THREADS as i64 + 1);
    assert!(seen.cpu_ns >= least, "{} of {least}", seen.cpu_ns);
}

/// Large objects of which a part is touched, made by each kind of call.
fn partly_touched() -> Vec<(u32, Vec<Record>)> {
    let size = 1 << 20;
    let records = (1..=60u64).flat_map(|n| {
        let (stamp, object) = (10 * n, n << 32);
        let bytes = n * size / 60;
        let make = match n % 3 {
            0 => Operation::Calloc { object, size },
            1 => Operation::Malloc { object, size },
            _ => Operation::Aligned {
                object,
                size,
                align_log2: 14,
            },
        };
        let (old, new) = (object, object + 16);
        let resize = Operation::Realloc {
            old,
            new,
            took: 1,
            size: if n % 2 == 0 { 3 * size } else { size / 2 },
        };
        let touched = |object, bytes| Operation::Touched { object, bytes };
        [
            at(stamp, make),
            at(stamp + 1, touched(object, bytes)),
            at(stamp + 2, resize),
            at(stamp + 4, touched(new, bytes + 4096)),
            free(stamp + 5, new),
        ]
    });
    vec![(0, records.collect())]
}

#[test]
fn what_was_touched_of_large_objects_keeps_its_contents() {
    let (plan, _folder) = planned(partly_touched());
    for allocator in allocators::all() {
        let seen = verify(&plan, allocator);
        let result = (seen.checked, seen.wrong, seen.refused);
        assert_eq!(result, (3 * 60, 0, 0), "{}", allocator.name);
    }
}

/// An allocator that lets two live objects share memory.
#[test]
fn an_allocator_that_gives_memory_twice_is_found_out() {
    allocators::prepare_nothing(1 << 20).unwrap();
    let records = (0..200).map(|n| malloc(n, 0x1000 + 64 * n, 40));
    let frees = (0..200).map(|n| free(1000 + n, 0x1000 + 64 * n));
    let (plan, _folder) = planned(vec![(0, records.chain(frees).collect())]);
    let nothing = allocators::find(allocators::NOTHING).unwrap();
    let seen = verify(&plan, nothing);
    assert_eq!(seen.checked, 200);
    assert!(seen.wrong > 100, "{}", seen.wrong);
}

extern "C" fn refuses(_: usize) -> *mut c_void {
    core::ptr::null_mut()
}

extern "C" fn dirty_calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: the object is glibc's, and is written within its size.
    unsafe {
        let object = slabyard_peers::libc_malloc::malloc(count * size);
        object.cast::<u8>().write_bytes(1, count * size);
        object
    }
}

#[test]
fn refusals_and_dirty_memory_are_counted() {
    let broken = Allocator {
        malloc: refuses,
        calloc: dirty_calloc,
        ..*slabyard_peers::find("glibc").unwrap()
    };
    let (plan, _folder) = planned(vec![(
        0,
        vec![
            malloc(1, 0x1000, 8),
            free(2, 0x1000),
            at(
                3,
                Operation::Calloc {
                    object: 0x2000,
                    size: 100,
                },
            ),
            free(4, 0x2000),
        ],
    )]);
    let seen = verify(&plan, &broken);
    assert_eq!((seen.checked, seen.wrong, seen.refused), (1, 1, 1));
}
