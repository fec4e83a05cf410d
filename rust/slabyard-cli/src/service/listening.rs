//! Whether a process waits for connections: it has a socket open that is listening, by the lists of
//! sockets in /proc/PID/net.

use std::collections::HashSet;
use std::fs;

/// The state of a listening TCP socket, and the flag of a listening local one.
const TCP_LISTEN: &str = "0A";
const ACCEPTS: u64 = 1 << 16;

pub fn listens(pid: u32) -> bool {
    let list = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}"));
    let mut listening = HashSet::new();
    for name in ["tcp", "tcp6"] {
        let text = list(name).unwrap_or_default();
        listening.extend(text.lines().skip(1).filter_map(tcp_listening));
    }
    let text = list("unix").unwrap_or_default();
    listening.extend(text.lines().skip(1).filter_map(local_listening));
    let files = fs::read_dir(format!("/proc/{pid}/fd"));
    let mut files = files.into_iter().flatten().flatten();
    files.any(|file| {
        let target = fs::read_link(file.path()).unwrap_or_default();
        let socket = target
            .to_str()
            .and_then(|name| name.strip_prefix("socket:["));
        let inode = socket.and_then(|rest| rest.strip_suffix(']')?.parse().ok());
        inode.is_some_and(|inode| listening.contains(&inode))
    })
}

/// The inode of a listening socket in a line of net/tcp: its words are number, address, remote address,
/// state, queues, timer, retransmissions, user, timeout, inode.
fn tcp_listening(line: &str) -> Option<u64> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let state = words.get(3)?;
    (*state == TCP_LISTEN).then(|| words.get(9)?.parse().ok())?
}

/// The inode of a listening socket in a line of net/unix: its words are number, references, protocol,
/// flags, type, state, inode.
fn local_listening(line: &str) -> Option<u64> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let flags = u64::from_str_radix(words.get(3)?, 16).ok()?;
    (flags & ACCEPTS != 0).then(|| words.get(6)?.parse().ok())?
}

/// Parses any text as lines of both lists and discards it, for the fuzzers.
#[cfg(any(test, feature = "fuzz"))]
pub fn try_text(text: &str) {
    for line in text.lines() {
        let _ = (tcp_listening(line), local_listening(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    #[test]
    fn lines_of_the_system_are_read() {
        let line = "   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 4711 1";
        assert_eq!(tcp_listening(line), Some(4711));
        assert_eq!(tcp_listening(&line.replace(" 0A ", " 01 ")), None);
        let line = "ffff: 00000002 00000000 00010000 0001 01 815 /run/x";
        assert_eq!(local_listening(line), Some(815));
        assert_eq!(local_listening(&line.replace("00010000", "00000000")), None);
        try_text("a\n\n1 2 3 0A 5 6 7 8 9 x\n1 2 3 zz 5 6");
    }

    /// The sockets are opened one after the other, because other tests of this process have none.
    #[test]
    fn a_process_that_waits_for_connections_is_recognised() {
        let own = std::process::id();
        assert!(!listens(own));
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(listens(own));
        drop(tcp);
        assert!(!listens(own));
        let folder = tempfile::tempdir().unwrap();
        let local = UnixListener::bind(folder.path().join("socket")).unwrap();
        assert!(listens(own));
        drop(local);
        assert!(!listens(std::process::id()) && !listens(0));
    }
}
