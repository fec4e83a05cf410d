//! The lock: 0 free, 1 held, 2 held and somebody may be asleep on it.

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};

/// What the C code does, and what a test may take away from it.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Order of the exchanges that take the lock.
    pub acquire: Ordering,
    /// Order of the exchange that lets go of it.
    pub release: Ordering,
    /// What a thread writes that had to wait: 2, as others may be asleep still.
    pub waited: u32,
}

/// As in `lock.h` and `lock.c`.
pub const RULES: Rules = Rules {
    acquire: Ordering::Acquire,
    release: Ordering::Release,
    waited: 2,
};

/// `sy_os_wait` and `sy_os_wake` on one word: the kernel looks at the word and goes to sleep under
/// a lock that it takes to wake, too.
#[derive(Default)]
struct Futex {
    bucket: Mutex<()>,
    sleepers: Condvar,
}

impl Futex {
    fn wait(&self, word: &AtomicU32, expected: u32) {
        let bucket = self.bucket.lock().unwrap();
        if word.load(Ordering::Relaxed) == expected {
            drop(self.sleepers.wait(bucket).unwrap());
        }
    }

    fn wake_one(&self) {
        let _bucket = self.bucket.lock().unwrap();
        self.sleepers.notify_one();
    }
}

/// `sy_lock`
pub struct Lock {
    rules: Rules,
    word: AtomicU32,
    futex: Futex,
}

impl Lock {
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            word: AtomicU32::new(0),
            futex: Futex::default(),
        }
    }

    /// `sy_lock_acquire`
    pub fn acquire(&self) {
        let taken = self
            .word
            .compare_exchange(0, 1, self.rules.acquire, Ordering::Relaxed);
        if taken.is_err() {
            self.acquire_contended();
        }
    }

    /// `sy_lock_acquire_contended`, with one spin: more are more of the same.
    fn acquire_contended(&self) {
        if self.word.load(Ordering::Relaxed) == 0
            && self
                .word
                .compare_exchange_weak(0, 1, self.rules.acquire, Ordering::Relaxed)
                .is_ok()
        {
            return;
        }
        while self.word.swap(self.rules.waited, self.rules.acquire) != 0 {
            self.futex.wait(&self.word, self.rules.waited);
        }
    }

    /// `sy_lock_release`
    pub fn release(&self) {
        if self.word.swap(0, self.rules.release) == 2 {
            self.futex.wake_one();
        }
    }
}
