//! The state of a thread's record: the thread parks it and takes it back without a lock, others
//! claim it while they hold the lock of the list.

use crate::lock::{Lock, RULES as LOCK_RULES};
use loom::sync::atomic::{AtomicU32, Ordering};

const RUNNING: u32 = 1;
const PARKED: u32 = 2;
const CLAIMED: u32 = 3;

/// What the C code does, and what a test may take away from it.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Order of the stores that park the record: the thread's and the claimer's.
    pub park: Ordering,
    /// Order of the exchanges that take a parked record.
    pub take: Ordering,
    /// Whether a thread that finds its record claimed waits for the lock.
    pub waits: bool,
}

/// As in `thread.c`.
pub const RULES: Rules = Rules {
    park: Ordering::Release,
    take: Ordering::Acquire,
    waits: true,
};

/// `sy_thread`, with the lock of the list.
pub struct Record {
    rules: Rules,
    state: AtomicU32,
    lock: Lock,
}

impl Record {
    /// Of a thread that is running.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            state: AtomicU32::new(RUNNING),
            lock: Lock::new(LOCK_RULES),
        }
    }

    fn change(&self, from: u32, to: u32) -> bool {
        self.state
            .compare_exchange(from, to, self.rules.take, Ordering::Relaxed)
            .is_ok()
    }

    /// `sy_thread_idle`
    pub fn idle(&self) {
        self.state.store(PARKED, self.rules.park);
    }

    /// `resume`
    pub fn resume(&self) {
        if self.change(PARKED, RUNNING) {
            return;
        }
        if self.rules.waits {
            self.lock.acquire();
        }
        self.state.store(RUNNING, Ordering::Relaxed);
        if self.rules.waits {
            self.lock.release();
        }
    }

    /// `take_parked`, of this record: `drain` runs if it was parked.
    pub fn drain(&self, drain: impl FnOnce()) {
        self.lock.acquire();
        if self.change(PARKED, CLAIMED) {
            drain();
            self.state.store(PARKED, self.rules.park);
        }
        self.lock.release();
    }
}
