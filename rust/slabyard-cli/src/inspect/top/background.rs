//! Work in another thread, so that the screen answers to keys while a large process is read.

use super::super::follow::is_ready;
use crate::replay::clock::process_ns;
use anyhow::{Context, Result};
use std::io::{pipe, PipeReader};
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub struct Work<T> {
    thread: JoinHandle<Done<T>>,
    /// Closes when the thread ends, in whichever way.
    end: PipeReader,
}

pub struct Done<T> {
    pub result: T,
    /// When the work began.
    pub at: Instant,
    /// The processor time that it took, in all threads.
    pub cost: Duration,
}

impl<T: Send + 'static> Work<T> {
    pub fn start(work: impl FnOnce() -> T + Send + 'static) -> Result<Self> {
        let (end, writer) = pipe().context("cannot make a pipe")?;
        let thread = thread::spawn(move || {
            let _writer = writer;
            timed(work)
        });
        Ok(Work { thread, end })
    }

    pub fn is_done(&self) -> bool {
        is_ready(self.end.as_fd())
    }

    /// Waits until the work is done.
    pub fn finish(self) -> Done<T> {
        match self.thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl<T> AsFd for Work<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

/// Does the work at once.
pub fn timed<T>(work: impl FnOnce() -> T) -> Done<T> {
    let (at, before) = (Instant::now(), process_ns());
    let result = work();
    Done {
        result,
        at,
        cost: Duration::from_nanos(process_ns() - before),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::follow::wait;
    use super::*;

    #[test]
    fn work_is_done_elsewhere() {
        let work = Work::start(|| thread::current().id()).unwrap();
        wait(&[work.as_fd()], None).unwrap();
        assert!(work.is_done());
        assert_ne!(work.finish().result, thread::current().id());
    }

    #[test]
    #[should_panic(expected = "it broke")]
    fn a_panic_is_passed_on() {
        let work = Work::start(|| -> () { panic!("it broke") }).unwrap();
        wait(&[work.as_fd()], None).unwrap();
        work.finish();
    }
}
