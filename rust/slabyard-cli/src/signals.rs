//! Signals: their names, and settings of them that started programs must not inherit from the tool.

use std::path::PathBuf;
use std::sync::OnceLock;

const NAMES: [(i32, &str); 15] = [
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGINT, "SIGINT"),
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGTRAP, "SIGTRAP"),
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGKILL, "SIGKILL"),
    (libc::SIGUSR1, "SIGUSR1"),
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGUSR2, "SIGUSR2"),
    (libc::SIGPIPE, "SIGPIPE"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGXFSZ, "SIGXFSZ"),
];

/// The name, `SIGSEGV`, or `signal 40` for a rare signal.
pub fn name(number: i32) -> String {
    let known = NAMES.iter().find(|(known, _)| *known == number);
    known.map_or_else(
        || format!("signal {number}"),
        |(_, name)| (*name).to_string(),
    )
}

/// `signal 11 (SIGSEGV)`
pub fn described(number: i32) -> String {
    let known = NAMES.iter().any(|(known, _)| *known == number);
    if known {
        format!("signal {number} ({})", name(number))
    } else {
        name(number)
    }
}

static SIZE_SIGNAL: OnceLock<libc::sighandler_t> = OnceLock::new();

/// From now on a write beyond the file size limit (`ulimit -f`) fails with an error that is
/// reported. By default, a signal would end the tool.
pub fn make_the_size_limit_an_error() {
    // SAFETY: ignoring a signal touches no memory.
    SIZE_SIGNAL.get_or_init(|| unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) });
}

/// Gives the signal its state at the tool's start again. For a child, between fork and exec.
pub fn restore_the_size_limit() {
    if let Some(&before) = SIZE_SIGNAL.get() {
        // SAFETY: signal() may be called between fork and exec.
        unsafe { libc::signal(libc::SIGXFSZ, before) };
    }
}

/// Removes this folder when a signal is to end the tool; then the tool ends by that signal.
pub fn remove_when_ended(folder: PathBuf) {
    before_end(&[libc::SIGHUP, libc::SIGINT, libc::SIGTERM], move || {
        let _ = std::fs::remove_dir_all(&folder);
    });
}

/// Does something when one of these signals is to end the tool, whatever its other threads are busy
/// with; then the tool ends by that signal. Threads that run already must hold the signals.
pub fn before_end(signals: &[i32], last: impl FnOnce() + Send + 'static) {
    // SAFETY: the set is a local value, for which all zero is valid.
    let ends = unsafe {
        let mut ends: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut ends);
        for &signal in signals {
            if !is_ignored(signal) {
                libc::sigaddset(&mut ends, signal);
            }
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &ends, std::ptr::null_mut());
        ends
    };
    std::thread::spawn(move || {
        let mut signal = 0;
        // SAFETY: as above.
        unsafe { libc::sigwait(&ends, &mut signal) };
        last();
        // SAFETY: after the signal is unblocked, its default action ends the tool.
        unsafe {
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &ends, std::ptr::null_mut());
            libc::raise(signal);
        }
    });
}

pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: the action is a local value, and the call changes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action);
        action.sa_sigaction == libc::SIG_IGN
    }
}

/// Ends this process by the signal that ended its program, so that the parent sees the same end.
/// There is no second core dump.
pub fn end_by(signal: i32) {
    // SAFETY: the limit and the set are local values.
    unsafe {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::signal(signal, libc::SIG_DFL);
        let mut only: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut only);
        libc::sigaddset(&mut only, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &only, std::ptr::null_mut());
        libc::raise(signal);
    }
}

/// Has the process killed when its parent ends. For a child, between fork and exec.
pub fn end_with_parent(parent: u32) {
    // SAFETY: all three may be called between fork and exec.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent as libc::pid_t {
            libc::raise(libc::SIGKILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names() {
        assert_eq!(name(libc::SIGSEGV), "SIGSEGV");
        assert_eq!(described(11), "signal 11 (SIGSEGV)");
        assert_eq!(described(64), "signal 64");
    }
}
