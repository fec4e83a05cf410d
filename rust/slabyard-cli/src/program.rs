//! Runs a program of the user: passes the signals that the tool receives on to it, and returns how
//! the program ended and what it used.
//!
//! A program may leave processes behind: a daemon, or a job of a script in the background. The tool
//! can make them its own children (PR_SET_CHILD_SUBREAPER), wait for them, and add what they used.

use crate::signals::{end_with_parent, is_ignored, restore_the_size_limit};
use crate::ui;
use anyhow::{bail, Context, Result};
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Signals that users send to a program to end it or to control it.
const PASSED_ON: [i32; 6] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGTERM,
];

/// The interval for callers that observe the program while it runs.
pub const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The resources that a process, those of its children that it waited for, and processes that it
/// left behind have used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub wall: Duration,
    pub user: Duration,
    pub system: Duration,
    /// Resident memory of the largest of these processes at its peak, with code and libraries.
    pub peak_bytes: u64,
    /// All page faults, and those that read from a disk.
    pub faults: u64,
    pub disk_faults: u64,
}

/// What watches a program while it runs. A closure is called with the program's id.
pub trait Watch {
    /// Called about every `pause` of [`run`].
    fn look(&mut self, pid: u32) -> Result<()>;

    /// Whether a child that has ended was started by the watcher, and not left behind by the program.
    fn takes(&mut self, _pid: u32, _status: ExitStatus) -> bool {
        false
    }

    /// Whether processes that the program leaves behind are expected: they need not be named, and a
    /// signal that ends the tool's wait ends them too.
    fn expects_others(&self) -> bool {
        false
    }
}

impl<F: FnMut(u32)> Watch for F {
    fn look(&mut self, pid: u32) -> Result<()> {
        self(pid);
        Ok(())
    }
}

/// How the program ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub pid: u32,
    pub status: ExitStatus,
    /// The last signal that the tool received and passed on.
    pub passed_on: Option<i32>,
    /// The last signal that the tool received, including those from the terminal.
    pub signalled: Option<i32>,
    /// Whether processes that it left behind still run, since a signal has ended the wait for them.
    pub leaves_others: bool,
    pub usage: Usage,
}

impl Ended {
    /// The exit status that a shell would report.
    pub fn code(&self) -> u8 {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => code as u8,
            (None, Some(signal)) => (128 + signal) as u8,
            (None, None) => 125,
        }
    }
}

/// While this exists, signals wait for [`run`] instead of ending the tool. When it is dropped,
/// signals that still wait take their usual effect.
pub struct Signals {
    waited_for: libc::sigset_t,
    before: Before,
}

/// The state when the tool was started.
#[derive(Clone, Copy)]
struct Before {
    mask: libc::sigset_t,
    child: libc::sigaction,
}

impl Before {
    /// Restores this state in the tool, or in a child between fork and exec.
    fn restore(&self) {
        // SAFETY: both may be called between fork and exec.
        unsafe {
            libc::sigaction(libc::SIGCHLD, &self.child, std::ptr::null_mut());
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.mask, std::ptr::null_mut());
        }
    }
}

impl Signals {
    /// Holds all signals to be passed on. A signal that was ignored when the tool was started (as
    /// by nohup) stays ignored.
    pub fn hold() -> Self {
        // SAFETY: the sets and actions are local values, for which all zero is valid.
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

    /// Lets `command` begin with the signals as they were when the tool was started, and be killed when
    /// the tool is killed.
    pub fn prepare(&self, command: &mut Command) {
        let (tool, before) = (std::process::id(), self.before);
        let early = EARLY.get().map_or(&[][..], |all| all);
        // SAFETY: the closure calls only functions that may be called between fork and exec.
        unsafe {
            command.pre_exec(move || {
                before.restore();
                restore_the_size_limit();
                end_with_parent(tool);
                forget_early_memory(early);
                Ok(())
            });
        }
    }

    /// A signal that arrived while no program ran.
    pub fn waiting(&self) -> Option<i32> {
        self.next(Duration::ZERO).map(|(signal, _)| signal)
    }

    /// The next signal to pass on, and whether the terminal sent it. `None`: it is time to look at
    /// the program, after SIGCHLD or when `patience` has passed. The time limit is needed because
    /// another thread of the process may take the SIGCHLD.
    fn next(&self, patience: Duration) -> Option<(i32, bool)> {
        let patience = libc::timespec {
            tv_sec: patience.as_secs() as _,
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

/// A child of the tool that has ended, and what it used, except wall-clock time. `Ok(None)`: all
/// that there are still run.
fn ended_child(which: libc::pid_t) -> io::Result<Option<(u32, ExitStatus, Usage)>> {
    // SAFETY: an rusage may be all zero, and both addresses are of local values.
    let (found, status, used) = unsafe {
        let (mut status, mut used): (libc::c_int, libc::rusage) = (0, std::mem::zeroed());
        let found = libc::wait4(which, &mut status, libc::WNOHANG, &mut used);
        (found, status, used)
    };
    match found {
        0 => Ok(None),
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Some((
            pid as u32,
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

impl Usage {
    /// Adds what a process used that no other process has waited for.
    fn add(&mut self, other: Usage) {
        self.user += other.user;
        self.system += other.system;
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
        self.faults += other.faults;
        self.disk_faults += other.disk_faults;
    }
}

/// Which processes [`run`] waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The program's first process.
    First,
    /// Also the processes that it leaves behind, however they were started, while no signal comes.
    All,
}

/// Makes processes whose parents end children of the tool.
fn adopt_orphans() {
    // SAFETY: prctl has no preconditions here.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// Regions of anonymous memory of this length or more, which the tool has before `main`: they
/// belong to the allocators that it is built with.
const EARLY_LEAST: usize = 1 << 20;

static EARLY: OnceLock<Vec<Region>> = OnceLock::new();

/// An address and a length.
type Region = (usize, usize);

/// Notes the memory that the tool has before it does anything. To be called first in `main`. With a
/// preloaded malloc, nothing is noted: the memory may be that of the tool's own objects.
pub fn note_early_memory() {
    if std::env::var_os("LD_PRELOAD").is_some() {
        return;
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    // SAFETY: the address of the thread's own errno always exists.
    let own = unsafe { libc::__errno_location() } as usize;
    EARLY.get_or_init(|| maps.lines().filter_map(|line| early(line, own)).collect());
}

/// The region of a line of /proc/self/maps if it is large, writable, and neither of a file nor
/// named, nor contains `own`.
fn early(line: &str, own: usize) -> Option<Region> {
    let mut words = line.split_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    let (from, to) = (number(from)?, number(to)?);
    let is_anonymous = words.next()? == "rw-p" && words.nth(2)? == "0" && words.next().is_none();
    let is_early = is_anonymous && to - from >= EARLY_LEAST && !(from..to).contains(&own);
    is_early.then_some((from, to - from))
}

/// Gives the early memory back, and makes the system forget the peak. For a child, between fork and
/// exec: the system counts the child's memory of this moment in the program's peak, and the
/// allocators' memory is several MiB where the system has huge pages.
fn forget_early_memory(early: &[Region]) {
    // SAFETY: all these may be called between fork and exec, and the child does not use the memory.
    unsafe {
        for &(address, length) in early {
            libc::madvise(address as *mut libc::c_void, length, libc::MADV_DONTNEED);
        }
        let peak = libc::open(
            c"/proc/self/clear_refs".as_ptr(),
            libc::O_WRONLY | libc::O_CLOEXEC,
        );
        if peak >= 0 {
            libc::write(peak, c"5".as_ptr().cast(), 1);
            libc::close(peak);
        }
    }
}

/// The time after which the tool says what it waits for.
const QUIET_WAIT: Duration = Duration::from_secs(1);

/// Runs `command` to its end; `watch` looks at it about every `pause`. The program is killed when the
/// tool is killed, so that it does not go on to write files that no process will read.
pub fn run(
    mut command: Command,
    signals: &Signals,
    pause: Duration,
    reach: Reach,
    watch: &mut dyn Watch,
) -> Result<Ended> {
    let program = command.get_program().to_string_lossy().into_owned();
    signals.prepare(&mut command);
    if reach == Reach::All {
        adopt_orphans();
    }
    let begin = Instant::now();
    let child = match command.spawn() {
        Ok(child) => child.id(),
        Err(error) => bail!("cannot run {program}: {error}"),
    };
    let mut run = Run {
        child,
        reach,
        begin,
        ended: None,
        others: Usage::default(),
    };
    let (mut passed_on, mut signalled, mut has_said) = (None, None, false);
    loop {
        match signals.next(pause) {
            Some((signal, by_terminal)) => {
                signalled = Some(signal);
                if run.ended.is_some() {
                    let others_stay = !watch.expects_others();
                    if !others_stay {
                        kill_children();
                    }
                    return Ok(run.result(passed_on, signalled, others_stay));
                }
                // The program receives signals from the terminal itself.
                if !by_terminal {
                    // SAFETY: kill touches no memory; the child's id is still its own, as it is not
                    // waited for.
                    unsafe { libc::kill(child as libc::pid_t, signal) };
                    passed_on = Some(signal);
                }
            }
            None => {
                let is_over = match run.take_ended(watch) {
                    Ok(is_over) => is_over,
                    Err(error) => bail!("cannot wait for {program}: {error}"),
                };
                if is_over {
                    return Ok(run.result(passed_on, signalled, false));
                }
                if !has_said && !watch.expects_others() && run.waits_long() {
                    has_said = true;
                    say_what_is_waited_for(&program);
                }
                if let Err(error) = watch.look(child) {
                    kill_children();
                    return Err(error);
                }
            }
        }
    }
}

/// Runs the user's command that prepares a run.
pub fn prepare_input(before: &OsStr, signals: &Signals) -> Result<()> {
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(before)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    signals.prepare(&mut command);
    let status = command
        .status()
        .context("cannot run the command of --before")?;
    if !status.success() {
        bail!("the command of --before failed ({status})");
    }
    Ok(())
}

/// A run as far as it is over.
struct Run {
    child: u32,
    reach: Reach,
    begin: Instant,
    /// How and when the first process ended, and what it used.
    ended: Option<(ExitStatus, Usage)>,
    /// What processes used that the program left behind and that have ended.
    others: Usage,
}

impl Run {
    /// Takes note of all processes that have ended; whether no other is waited for.
    fn take_ended(&mut self, watch: &mut dyn Watch) -> io::Result<bool> {
        let which = match self.reach {
            Reach::First => self.child as libc::pid_t,
            Reach::All => -1,
        };
        loop {
            match ended_child(which) {
                Ok(Some((pid, status, usage))) if pid == self.child => {
                    let wall = self.begin.elapsed();
                    self.ended = Some((status, Usage { wall, ..usage }));
                    if self.reach == Reach::First {
                        return Ok(true);
                    }
                }
                Ok(Some((pid, status, _))) if watch.takes(pid, status) => (),
                Ok(Some((_, _, usage))) => self.others.add(usage),
                Ok(None) => return Ok(false),
                Err(error)
                    if error.raw_os_error() == Some(libc::ECHILD) && self.ended.is_some() =>
                {
                    return Ok(true)
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn waits_long(&self) -> bool {
        let ended = self.ended.as_ref();
        ended.is_some_and(|(_, usage)| self.begin.elapsed() > usage.wall + QUIET_WAIT)
    }

    fn result(self, passed_on: Option<i32>, signalled: Option<i32>, leaves_others: bool) -> Ended {
        let (status, mut usage) = self.ended.expect("the first process has ended");
        usage.add(self.others);
        Ended {
            pid: self.child,
            status,
            passed_on,
            signalled,
            leaves_others,
            usage,
        }
    }
}

/// Kills all children of the tool, and those that become its children by this, and waits for them.
fn kill_children() {
    loop {
        for pid in children(std::process::id()) {
            // SAFETY: kill touches no memory; a child's id is its own until it is waited for.
            unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
        }
        // SAFETY: waitpid may be given no place for the status.
        if unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } < 0 {
            return;
        }
    }
}

fn say_what_is_waited_for(program: &str) {
    let named = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("{pid} ({})", name.trim_end().replace(char::is_control, "?"))
    };
    let left: Vec<_> = children(std::process::id()).iter().map(named).collect();
    ui::warn(&format!(
        "{program} has ended and left processes behind: {}. Waiting for them; Ctrl-C stops the wait",
        left.join(", ")
    ));
}

/// The children of a process, by the lists of its threads. None where the system has no such lists
/// (CONFIG_PROC_CHILDREN).
pub fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let lists = threads.into_iter().flatten().flatten();
    let lists = lists.filter_map(|thread| {
        let list = std::fs::read_to_string(thread.path().join("children")).ok()?;
        let pids = list.split_ascii_whitespace();
        Some(
            pids.filter_map(|word| word.parse().ok())
                .collect::<Vec<_>>(),
        )
    });
    lists.flatten().collect()
}

/// The process and those that descend from it, without `apart` and those that descend from that one. The
/// orphans among these are children of the tool.
pub fn descendants(first: u32, apart: Option<u32>) -> Vec<u32> {
    let mut all = vec![first];
    all.extend(children(std::process::id()));
    all.retain(|&pid| Some(pid) != apart);
    all.sort_unstable();
    all.dedup();
    let mut looked = 0;
    while looked < all.len() {
        let more = children(all[looked]);
        all.extend(more);
        looked += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_memory_is_large_anonymous_and_not_the_thread_s_own() {
        let region = |line: &str| early(line, 0x7f10_0000_0040);
        assert_eq!(
            region("559c5f600000-559c5f800000 rw-p 00000000 00:00 0 "),
            Some((0x559c_5f60_0000, 2 << 20))
        );
        for line in [
            "559c5f600000-559c5f601000 rw-p 00000000 00:00 0 ",
            "559c5f600000-559c5f800000 rw-p 00000000 00:00 0                  [heap]",
            "559c5f600000-559c5f800000 rw-p 00009000 fe:00 326789        /usr/lib/libc.so.6",
            "559c5f600000-559c5f800000 ---p 00000000 00:00 0 ",
            "7f1000000000-7f1000800000 rw-p 00000000 00:00 0 ",
            "",
        ] {
            assert_eq!(region(line), None, "{line}");
        }
    }
}
