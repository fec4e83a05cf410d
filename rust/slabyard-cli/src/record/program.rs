//! Runs the program that is recorded: signals to the tool are passed on to it, and how it ended
//! is said.

use crate::signals::{end_with_parent, is_ignored, restore_the_size_limit};
use anyhow::{bail, Context, Result};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

/// What a user sends to a program to end it, or to have it do something.
const PASSED_ON: [i32; 6] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGTERM,
];

const LOOK_AGAIN: libc::timespec = libc::timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};

/// How the program ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub pid: u32,
    pub status: ExitStatus,
    /// The last signal that came to the tool and was passed on.
    pub passed_on: Option<i32>,
}

impl Ended {
    /// What a shell would say of it.
    pub fn code(&self) -> u8 {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => code as u8,
            (None, Some(signal)) => (128 + signal) as u8,
            (None, None) => 125,
        }
    }
}

/// While it lives, signals wait for [`run`] instead of ending the tool; what is still waiting when
/// it is dropped does what it would have done.
pub struct Signals {
    waited_for: libc::sigset_t,
    before: Before,
}

/// What was when the tool was started.
#[derive(Clone, Copy)]
struct Before {
    mask: libc::sigset_t,
    child: libc::sigaction,
}

impl Before {
    /// Also for a child, between fork and exec.
    fn restore(&self) {
        // SAFETY: both may be called between fork and exec.
        unsafe {
            libc::sigaction(libc::SIGCHLD, &self.child, std::ptr::null_mut());
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.mask, std::ptr::null_mut());
        }
    }
}

impl Signals {
    /// A signal that the tool was started with as ignored (by nohup) stays so.
    pub fn hold() -> Self {
        // SAFETY: the sets and actions are our own, and all zero is a value of theirs.
        unsafe {
            let mut waited_for: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut waited_for);
            for signal in PASSED_ON.into_iter().filter(|&signal| !is_ignored(signal)) {
                libc::sigaddset(&mut waited_for, signal);
            }
            libc::sigaddset(&mut waited_for, libc::SIGCHLD);
            let mut before: Before = std::mem::zeroed();
            let default: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGCHLD, &default, &mut before.child);
            libc::pthread_sigmask(libc::SIG_BLOCK, &waited_for, &mut before.mask);
            Signals { waited_for, before }
        }
    }

    /// The next signal that is to be passed on, and whether the terminal sent it. `None` when it is time
    /// to look at the program: after SIGCHLD, and now and then, for in a process with other threads one
    /// of these may have taken SIGCHLD.
    fn next(&self) -> Option<(i32, bool)> {
        // SAFETY: all zero is a siginfo_t, which sigtimedwait fills.
        let (signal, info) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            (
                libc::sigtimedwait(&self.waited_for, &mut info, &LOOK_AGAIN),
                info,
            )
        };
        let passed_on = signal > 0 && signal != libc::SIGCHLD;
        passed_on.then_some((signal, info.si_code == libc::SI_KERNEL))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.before.restore();
    }
}

/// Runs `command` to its end, and calls `meanwhile` now and then. It is killed when the tool is killed, so
/// that it does not go on writing to files that nobody joins.
pub fn run(mut command: Command, signals: &Signals, meanwhile: &mut dyn FnMut()) -> Result<Ended> {
    let program = command.get_program().to_string_lossy().into_owned();
    let tool = std::process::id();
    let before = signals.before;
    // SAFETY: only functions that may be called between fork and exec.
    unsafe {
        command.pre_exec(move || {
            before.restore();
            restore_the_size_limit();
            end_with_parent(tool);
            Ok(())
        });
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => bail!("cannot run {program}: {error}"),
    };
    let mut passed_on = None;
    loop {
        match signals.next() {
            // What a terminal sends goes to the program too. SAFETY: a child not waited for yet.
            Some((signal, false)) => {
                unsafe { libc::kill(child.id() as libc::pid_t, signal) };
                passed_on = Some(signal);
            }
            Some(_) => (),
            None => {
                meanwhile();
                let status = child.try_wait().context("cannot wait for the program")?;
                if let Some(status) = status {
                    return Ok(Ended {
                        pid: child.id(),
                        status,
                        passed_on,
                    });
                }
            }
        }
    }
}
