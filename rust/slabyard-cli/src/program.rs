//! Runs a program of the user's: signals to the tool are passed on to it, and how it ended and what
//! it used are said.

use crate::signals::{end_with_parent, is_ignored, restore_the_size_limit};
use anyhow::{bail, Result};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// What a user sends to a program to end it, or to have it do something.
const PASSED_ON: [i32; 6] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGTERM,
];

/// For those who look at the program while it runs.
pub const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What a process and those of its children that it waited for have used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub wall: Duration,
    pub user: Duration,
    pub system: Duration,
    /// Resident memory of the largest of these processes at its peak, with code and libraries.
    pub peak_bytes: u64,
    /// Page faults, and those of them that read from a disk.
    pub faults: u64,
    pub disk_faults: u64,
}

/// How the program ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub pid: u32,
    pub status: ExitStatus,
    /// The last signal that came to the tool and was passed on.
    pub passed_on: Option<i32>,
    /// The last signal that came to the tool, from the terminal too.
    pub signalled: Option<i32>,
    pub usage: Usage,
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

    /// A signal that came while no program ran.
    pub fn waiting(&self) -> Option<i32> {
        self.next(Duration::ZERO).map(|(signal, _)| signal)
    }

    /// The next signal that is to be passed on, and whether the terminal sent it. `None` when it is time
    /// to look at the program: after SIGCHLD, and now and then, for in a process with other threads one
    /// of these may have taken SIGCHLD.
    fn next(&self, patience: Duration) -> Option<(i32, bool)> {
        let patience = libc::timespec {
            tv_sec: patience.as_secs() as libc::time_t,
            tv_nsec: patience.subsec_nanos().into(),
        };
        // SAFETY: all zero is a siginfo_t, which sigtimedwait fills.
        let (signal, info) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            (
                libc::sigtimedwait(&self.waited_for, &mut info, &patience),
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

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
}

/// How the child ended and what it used, without the time on the wall; `None` while it runs.
fn waited(pid: u32) -> io::Result<Option<(ExitStatus, Usage)>> {
    // SAFETY: all zero is an rusage; both places are our own.
    let (found, status, used) = unsafe {
        let (mut status, mut used): (libc::c_int, libc::rusage) = (0, std::mem::zeroed());
        let pid = pid as libc::pid_t;
        let found = libc::wait4(pid, &mut status, libc::WNOHANG, &mut used);
        (found, status, used)
    };
    match found {
        0 => Ok(None),
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(Some((
            ExitStatus::from_raw(status),
            Usage {
                wall: Duration::ZERO,
                user: duration(used.ru_utime),
                system: duration(used.ru_stime),
                peak_bytes: used.ru_maxrss as u64 * 1024,
                faults: (used.ru_minflt + used.ru_majflt) as u64,
                disk_faults: used.ru_majflt as u64,
            },
        ))),
    }
}

/// Runs `command` to its end, and calls `meanwhile` with its process about every `pause`. It is killed when
/// the tool is killed, so that it does not go on and write files that are not read.
pub fn run(
    mut command: Command,
    signals: &Signals,
    pause: Duration,
    meanwhile: &mut dyn FnMut(u32),
) -> Result<Ended> {
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
    let begin = Instant::now();
    let child = match command.spawn() {
        Ok(child) => child.id(),
        Err(error) => bail!("cannot run {program}: {error}"),
    };
    let (mut passed_on, mut signalled) = (None, None);
    loop {
        match signals.next(pause) {
            Some((signal, by_terminal)) => {
                signalled = Some(signal);
                // What a terminal sends goes to the program too.
                if !by_terminal {
                    // SAFETY: it touches no memory; the child was not waited for yet.
                    unsafe { libc::kill(child as libc::pid_t, signal) };
                    passed_on = Some(signal);
                }
            }
            None => {
                let ended = match waited(child) {
                    Ok(ended) => ended,
                    Err(error) => bail!("cannot wait for {program}: {error}"),
                };
                let Some((status, usage)) = ended else {
                    meanwhile(child);
                    continue;
                };
                let wall = begin.elapsed();
                return Ok(Ended {
                    pid: child,
                    status,
                    passed_on,
                    signalled,
                    usage: Usage { wall, ..usage },
                });
            }
        }
    }
}
