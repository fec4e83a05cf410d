//! What the lock promises: one holder at a time, who sees what the one before wrote, and nobody who
//! sleeps while it is free (which loom reports as a deadlock).

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::atomic::Ordering;
use loom::thread;
use slabyard_models::lock::{Lock, Rules, RULES};
use std::sync::Arc;

struct Guarded {
    lock: Lock,
    value: UnsafeCell<u32>,
}

// SAFETY: `value` is reached under `lock` alone; loom sees it if that is not enough.
unsafe impl Sync for Guarded {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Guarded {}

fn add_one(guarded: &Guarded) {
    guarded.lock.acquire();
    guarded.value.with_mut(|value| {
        // SAFETY: the lock is held.
        unsafe { *value += 1 }
    });
    guarded.lock.release();
}

fn threads_add(rules: Rules, threads: u32, times: u32, preemptions: Option<usize>) {
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || {
        let guarded = Arc::new(Guarded {
            lock: Lock::new(rules),
            value: UnsafeCell::new(0),
        });
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let guarded = guarded.clone();
                thread::spawn(move || (0..times).for_each(|_| add_one(&guarded)))
            })
            .collect();
        (0..times).for_each(|_| add_one(&guarded));
        others.into_iter().for_each(|other| other.join().unwrap());
        add_one(&guarded);
        guarded.value.with(|value| {
            // SAFETY: the other threads have ended.
            assert_eq!(unsafe { *value }, threads * times + 1);
        });
    });
}

#[test]
fn two_threads_exclude_each_other() {
    threads_add(RULES, 2, 2, None);
}

#[test]
fn three_threads_exclude_each_other_and_none_is_forgotten() {
    threads_add(RULES, 3, 1, Some(3));
}

#[test]
#[should_panic(expected = "deadlock")]
fn whoever_waited_must_say_that_others_may_wait() {
    threads_add(Rules { waited: 1, ..RULES }, 3, 1, Some(3));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_release_a_holder_is_not_seen() {
    threads_add(
        Rules {
            release: Ordering::Relaxed,
            ..RULES
        },
        2,
        1,
        None,
    );
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_acquire_a_holder_is_not_seen() {
    threads_add(
        Rules {
            acquire: Ordering::Relaxed,
            ..RULES
        },
        2,
        1,
        None,
    );
}
