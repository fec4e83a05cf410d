//! What the commands need that look at a process again and again: a handle that belongs to this
//! process alone, signals that are taken in order, and the wait for the next of all that may happen.

use anyhow::{bail, Context, Result};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// A process that is followed. The system gives its number to another process when it has ended;
/// the handle never means another one.
pub struct Target {
    pub pid: u32,
    handle: OwnedFd,
}

impl Target {
    pub fn of(pid: u32) -> Result<Self> {
        // SAFETY: the call takes two numbers.
        let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
        if handle < 0 {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::ESRCH | libc::EINVAL) => bail!("there is no process {pid}"),
                _ => return Err(error).with_context(|| format!("cannot follow process {pid}")),
            }
        }
        // SAFETY: the call has just opened it, and no other code has it.
        let handle = unsafe { OwnedFd::from_raw_fd(handle as RawFd) };
        Ok(Target { pid, handle })
    }

    pub fn has_ended(&self) -> bool {
        is_ready(self.handle.as_fd())
    }
}

impl AsFd for Target {
    /// Can be read from when the process has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// Signals that wait until they are taken. They stay held when this value is gone.
pub struct Held(OwnedFd);

impl Held {
    /// Signals that are ignored already, as by nohup, stay ignored.
    pub fn hold(signals: &[i32]) -> Result<Self> {
        // SAFETY: the set is a local value, for which all zero is valid.
        let descriptor = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for &signal in signals {
                if !crate::signals::is_ignored(signal) {
                    libc::sigaddset(&mut set, signal);
                }
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC)
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error()).context("cannot wait for signals");
        }
        // SAFETY: the call has just opened it, and no other code has it.
        Ok(Held(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// The next signal that has arrived.
    pub fn take(&self) -> Option<i32> {
        // SAFETY: the structure is a local value, for which all zero is valid.
        unsafe {
            let mut one: libc::signalfd_siginfo = std::mem::zeroed();
            let bytes = size_of_val(&one);
            let read = libc::read(self.0.as_raw_fd(), (&raw mut one).cast(), bytes);
            (read == bytes as isize).then_some(one.ssi_signo as i32)
        }
    }
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until something can be read from one of these, or has closed, or until a time (`None`: for
/// ever), or a signal.
pub fn wait(on: &[BorrowedFd], until: Option<Instant>) -> Result<()> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    match poll(on, libc::POLLIN, left) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => {
            Err(error).context("cannot wait")
        }
        _ => Ok(()),
    }
}

/// Whether something can be read from it now, or it has closed.
pub fn is_ready(one: BorrowedFd) -> bool {
    poll(&[one], libc::POLLIN, Some(Duration::ZERO)).is_ok_and(|count| count > 0)
}

/// Whether its other end is gone: of a terminal, its window.
pub fn has_closed(one: BorrowedFd) -> bool {
    poll(&[one], 0, Some(Duration::ZERO)).is_ok_and(|count| count > 0)
}

fn poll(on: &[BorrowedFd], events: i16, time: Option<Duration>) -> io::Result<i32> {
    let of = |one: &BorrowedFd| libc::pollfd {
        fd: one.as_raw_fd(),
        events,
        revents: 0,
    };
    let mut all: Vec<_> = on.iter().map(of).collect();
    // Rounded up: a wait that ends too early would be tried again at once.
    let milliseconds = time.map_or(-1, |time| {
        i32::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
    });
    // SAFETY: the pointer and the length are those of the vector.
    let count = unsafe { libc::poll(all.as_mut_ptr(), all.len() as _, milliseconds) };
    match count {
        0.. => Ok(count),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_end_of_a_process_is_seen() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let target = Target::of(child.id()).unwrap();
        assert!(!target.has_ended());
        let soon = Instant::now() + Duration::from_millis(5);
        wait(&[target.as_fd()], Some(soon)).unwrap();
        assert!(Instant::now() >= soon);
        child.kill().unwrap();
        wait(&[target.as_fd()], None).unwrap();
        assert!(target.has_ended());
        child.wait().unwrap();
        assert!(target.has_ended());
        let error = Target::of(child.id()).err().unwrap().to_string();
        assert_eq!(error, format!("there is no process {}", child.id()));
    }
}
