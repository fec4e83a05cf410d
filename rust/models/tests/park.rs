//! What parking promises: the slots of a thread are either the thread's or a claimer's, who sees
//! what the other wrote.

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::atomic::Ordering;
use loom::thread;
use slabyard_models::park::{Record, Rules, RULES};
use std::sync::Arc;

struct Thread {
    record: Record,
    slots: UnsafeCell<u32>,
}

// SAFETY: `slots` is reached by whoever has the record; loom sees it if that is not enough.
unsafe impl Sync for Thread {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Thread {}

impl Thread {
    fn touch_slots(&self) {
        self.slots.with_mut(|slots| {
            // SAFETY: the caller has the record.
            unsafe { *slots += 1 }
        });
    }
}

/// A thread goes idle and comes back, `times` times, while others drain it.
fn park_and_drain(rules: Rules, drainers: u32, times: u32, preemptions: Option<usize>) {
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || {
        let owner = Arc::new(Thread {
            record: Record::new(rules),
            slots: UnsafeCell::new(0),
        });
        let others: Vec<_> = (0..drainers)
            .map(|_| {
                let owner = owner.clone();
                thread::spawn(move || owner.record.drain(|| owner.touch_slots()))
            })
            .collect();
        for _ in 0..times {
            owner.touch_slots();
            owner.record.idle();
            owner.record.resume();
        }
        owner.touch_slots();
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn one_drainer_and_the_thread_exclude_each_other() {
    park_and_drain(RULES, 1, 2, None);
}

#[test]
fn two_drainers_and_the_thread_exclude_each_other() {
    park_and_drain(RULES, 2, 1, Some(3));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_release_the_slots_are_not_seen() {
    park_and_drain(
        Rules {
            park: Ordering::Relaxed,
            ..RULES
        },
        1,
        1,
        None,
    );
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_acquire_the_slots_are_not_seen() {
    park_and_drain(
        Rules {
            take: Ordering::Relaxed,
            ..RULES
        },
        1,
        1,
        None,
    );
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_thread_that_does_not_wait_meets_the_claimer() {
    park_and_drain(
        Rules {
            waits: false,
            ..RULES
        },
        1,
        1,
        None,
    );
}
