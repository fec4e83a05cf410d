//! Folds recorded threads into replay threads, so that a replay never has many more threads at a
//! time than the machine has processors.
//!
//! Hundreds of threads that wait for each other would keep the machine busy with switches from
//! thread to thread. A program with so few threads at a time that all have a place is not changed:
//! each recorded thread is a replay thread, and begins and ends as in the program. Beyond that, a
//! recorded thread joins a replay thread that is at work, and its operations are merged into that
//! one's by their stamps.

use crate::recording::{Operation, Recording, Thread};

/// The replay threads at a time, beside the main thread, for each processor; and the least number.
/// A replay with 32 threads on two processors takes as long as one with eight; with 64 threads it
/// takes nearly twice as long, and with 500 ten times.
const FOR_A_PROCESSOR: usize = 16;
const AT_LEAST: usize = 32;

/// The number of replay threads at a time that this machine can have, without the main thread.
pub fn most_at_a_time() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (FOR_A_PROCESSOR * processors).max(AT_LEAST)
}

/// The time between a recorded thread's first and last operation, and the number of its records.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    pub begins: u64,
    pub ends: u64,
    pub records: u64,
}

impl Life {
    pub fn of(recording: &Recording, thread: &Thread) -> Self {
        let begins = thread.blocks.first().map_or(0, |block| block.stamp);
        let mut ends = begins;
        if let Some(block) = thread.blocks.last() {
            let mut records = recording.records(block);
            // Opening the recording has checked every record.
            while let Ok(Some(record)) = records.next() {
                let took = match record.operation {
                    Operation::Realloc { took, .. } => took,
                    _ => 0,
                };
                ends = ends.max(record.stamp.saturating_add(took));
            }
        }
        Life {
            begins,
            ends,
            records: thread.records,
        }
    }
}

/// A replay thread that is at work.
struct Busy {
    replay: usize,
    ends: u64,
    records: u64,
}

/// The replay thread of each recorded thread. The first recorded thread, the main thread, has one
/// for itself. Replay threads are numbered by their first recorded thread.
pub fn fold(lives: &[Life], most: usize) -> Vec<usize> {
    let mut by_begin: Vec<usize> = (1..lives.len()).collect();
    by_begin.sort_by_key(|&thread| lives[thread].begins);
    let mut first_of: Vec<usize> = vec![0];
    let mut replay_of = vec![0; lives.len()];
    let mut busy: Vec<Busy> = Vec::new();
    for thread in by_begin {
        let Life {
            begins,
            ends,
            records,
        } = lives[thread];
        busy.retain(|one| one.ends >= begins);
        if busy.len() < most.max(1) {
            replay_of[thread] = first_of.len();
            busy.push(Busy {
                replay: first_of.len(),
                ends,
                records,
            });
            first_of.push(thread);
            continue;
        }
        let least = busy.iter_mut().min_by_key(|one| one.records);
        let one = least.expect("at least one replay thread is at work");
        one.ends = one.ends.max(ends);
        one.records += records;
        replay_of[thread] = one.replay;
        first_of[one.replay] = first_of[one.replay].min(thread);
    }
    renumbered(&replay_of, &first_of)
}

fn renumbered(replay_of: &[usize], first_of: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..first_of.len()).collect();
    order.sort_by_key(|&replay| first_of[replay]);
    let mut number = vec![0; order.len()];
    for (new, &old) in order.iter().enumerate() {
        number[old] = new;
    }
    replay_of.iter().map(|&replay| number[replay]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lives(all: &[(u64, u64)]) -> Vec<Life> {
        let life = |&(begins, ends): &(u64, u64)| Life {
            begins,
            ends,
            records: 10,
        };
        all.iter().map(life).collect()
    }

    #[test]
    fn few_threads_at_a_time_are_not_folded_however_many_there_are() {
        let mut all = vec![(0, 10_000)];
        // Two threads at a time; the second of each pair was numbered first.
        all.extend((0..1000).map(|n| (10 * n + 5, 10 * n + 9)));
        all.extend((0..1000).map(|n| (10 * n + 4, 10 * n + 8)));
        let folded = fold(&lives(&all), 2);
        assert_eq!(folded, (0..all.len()).collect::<Vec<_>>());
    }

    #[test]
    fn never_more_at_a_time_than_there_may_be_and_the_load_is_shared() {
        let mut all = vec![(0, 10_000)];
        all.extend((0..500).map(|n| (n, 9_000 + n)));
        let folded = fold(&lives(&all), 16);
        assert_eq!(folded[0], 0);
        assert!(folded[1..].iter().all(|replay| (1..=16).contains(replay)));
        for replay in 1..=16 {
            let count = folded.iter().filter(|&&one| one == replay).count();
            assert!((31..=32).contains(&count), "{replay}: {count}");
        }
    }

    #[test]
    fn a_replay_thread_is_busy_until_the_last_of_its_recorded_threads_ends() {
        let all = [(0, 100), (1, 10), (2, 50), (20, 30), (60, 70)];
        // The third thread joins the second, which then lasts until 50.
        assert_eq!(fold(&lives(&all), 1), [0, 1, 1, 1, 2]);
        assert_eq!(fold(&lives(&all), 2), [0, 1, 2, 3, 4]);
        assert_eq!(fold(&[], 3), [0usize; 0]);
    }
}
