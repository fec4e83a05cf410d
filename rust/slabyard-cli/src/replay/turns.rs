//! Lets the threads of a process run one at a time, in the plan's turns ([`crate::plan::Turn`]).

use crate::plan::Turn;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;
use std::thread::Thread;

/// The number of looks before a thread sleeps until its turn.
const LOOKS: u32 = 200;

/// Which thread may run.
pub struct Baton<'a> {
    turns: &'a [Turn],
    /// The number of the present turn, and of the operations before it.
    now: AtomicUsize,
    before: AtomicU64,
    /// The threads that have begun.
    threads: Vec<OnceLock<Thread>>,
}

impl<'a> Baton<'a> {
    pub fn new(turns: &'a [Turn], threads: usize) -> Self {
        Baton {
            turns,
            now: AtomicUsize::new(0),
            before: AtomicU64::new(0),
            threads: (0..threads).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Waits until it is this thread's turn, and returns the number of its operations; `None` if
    /// no turn is left.
    pub fn wait(&self, thread: usize) -> Option<u64> {
        self.threads[thread].get_or_init(std::thread::current);
        let mut looks = 0;
        loop {
            // The thread is noted before this load, and the one that passes the turn looks for the
            // thread after its store. So either the turn is seen here, or the thread is woken.
            let turn = self.turns.get(self.now.load(Ordering::SeqCst))?;
            if turn.thread as usize == thread {
                return Some(u64::from(turn.count));
            }
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
            } else {
                std::thread::park();
            }
        }
    }

    /// Ends the present turn, which is the calling thread's. Returns the number of operations that
    /// are done.
    pub fn pass(&self) -> u64 {
        let now = self.now.load(Ordering::Relaxed);
        let count = u64::from(self.turns[now].count);
        let done = self.before.fetch_add(count, Ordering::Relaxed) + count;
        self.now.store(now + 1, Ordering::SeqCst);
        let next = self.turns.get(now + 1);
        let thread = next.and_then(|turn| self.threads[turn.thread as usize].get());
        thread.into_iter().for_each(Thread::unpark);
        done
    }
}
