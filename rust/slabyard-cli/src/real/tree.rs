//! Samples the memory of a program's processes while it runs: the first one and all that descend from
//! it.
//!
//! Of a single process the system counts the resident memory exactly. Several processes may share
//! pages after a fork, so there the shares are added up that the system calculates (Pss), which takes
//! longer. So the looks are as far apart as their length demands.

use crate::program::{descendants, LOOK_AGAIN};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// With fewer looks at its memory, a run gets no mean, and several processes no peak of all together.
const LOOKS_MIN: u32 = 5;

/// Looks for new processes are this far apart, or more.
const LOOK_FOR_NEW: Duration = Duration::from_millis(50);

/// At most one part in so many of the time is spent on looks, which can hold up the program.
const LOOKS_PART: u32 = 20;

/// Samples of the resident memory, with code and libraries, of all processes together.
#[derive(Default)]
pub struct Tree {
    processes: Vec<u32>,
    next: Option<Instant>,
    next_new: Option<Instant>,
    count: u32,
    sum: f64,
    most: u64,
    last: u64,
    /// The executables of all processes but the first one.
    pub programs: BTreeSet<PathBuf>,
    /// The looks that saw several processes.
    several: u32,
}

impl Tree {
    /// Samples the process and its descendants, without the process `apart`, if it is time to. Returns
    /// the last sample in bytes.
    pub fn take(&mut self, first: u32, apart: Option<u32>) -> u64 {
        let begin = Instant::now();
        // A signal may wake the tool early; do not sample then.
        if self.next.is_some_and(|next| begin < next) {
            return self.last;
        }
        if self.next_new.is_none_or(|next| begin >= next) {
            self.processes = descendants(first, apart);
            let others = self.processes.iter().filter(|&&pid| pid != first);
            self.programs
                .extend(others.filter_map(|&pid| executable(pid)));
            self.next_new = Some(begin + LOOK_FOR_NEW.max(begin.elapsed() * LOOKS_PART));
        }
        let several = self.processes.len() > 1;
        self.several += u32::from(several);
        let bytes = match several {
            true => self.processes.iter().filter_map(|&pid| share(pid)).sum(),
            false => self
                .processes
                .first()
                .and_then(|&pid| resident(pid))
                .unwrap_or(0),
        };
        if bytes > 0 {
            self.count += 1;
            self.sum += bytes as f64;
            self.most = self.most.max(bytes);
        }
        let pause = (LOOK_AGAIN / 2).max(begin.elapsed() * LOOKS_PART);
        self.next = Some(begin + pause);
        self.last = bytes;
        bytes
    }

    /// Lets the next [`take`](Self::take) take a sample, however short ago the last one was.
    pub fn look_now(&mut self) {
        self.next = None;
    }

    pub fn mean(&self) -> Option<f64> {
        (self.count >= LOOKS_MIN).then(|| self.sum / f64::from(self.count))
    }

    /// The largest sample of several processes together; 0 if there was only one, `None` if they were
    /// too short-lived.
    pub fn peak_of_several(&self) -> Option<u64> {
        match self.several {
            0 => Some(0),
            looks => (looks >= LOOKS_MIN).then_some(self.most),
        }
    }
}

/// The file that a process runs. Between fork and exec that is still the tool's.
fn executable(pid: u32) -> Option<PathBuf> {
    let file = |of: &str| fs::read_link(format!("/proc/{of}/exe")).ok();
    file(&pid.to_string()).filter(|found| file("self").as_ref() != Some(found))
}

/// The resident memory of a process with code and libraries, as its peak has them.
fn resident(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    // SAFETY: sysconf has no preconditions.
    (pages > 0).then(|| pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64)
}

/// Its part of the resident memory: of a page that n processes share, each has an n-th.
fn share(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::children;
    use std::process::{Child, Command, Stdio};

    fn shell(script: &str) -> Child {
        Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap()
    }

    #[test]
    fn descendants_are_found_and_their_memory_is_added_up() {
        // A shell that waits, with a child, a grandchild, and a process of that one.
        let mut parent = shell("sh -c 'sh -c \"sleep 9; :\"; :' & read -r _");
        let begin = Instant::now();
        let mut tree = Tree::default();
        while begin.elapsed() < Duration::from_secs(20)
            && !(tree.processes.len() >= 3 && tree.several >= LOOKS_MIN)
        {
            tree.take(parent.id(), None);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(tree.processes.len() >= 3, "{:?}", tree.processes);
        assert_eq!(
            tree.processes[..]
                .iter()
                .filter(|&&pid| pid == parent.id())
                .count(),
            1
        );
        let mean = tree.mean().unwrap();
        assert!(tree.peak_of_several().unwrap() as f64 >= mean && mean > 65536.0);
        tree.several = LOOKS_MIN - 1;
        assert_eq!(tree.peak_of_several(), None);
        drop(parent.stdin.take());
        parent.wait().unwrap();
    }

    #[test]
    fn a_single_process_has_no_sum_and_few_looks_have_no_mean() {
        let mut alone = shell("read -r _");
        let mut tree = Tree::default();
        for _ in 0..3 {
            tree.next = None;
            tree.processes = vec![alone.id()];
            tree.next_new = Some(Instant::now() + Duration::from_secs(60));
            tree.take(alone.id(), None);
        }
        assert_eq!(
            (tree.count, tree.mean(), tree.peak_of_several()),
            (3, None, Some(0))
        );
        drop(alone.stdin.take());
        alone.wait().unwrap();
    }

    /// Children of other tests of this process may be among the descendants.
    #[test]
    fn a_process_apart_and_its_children_do_not_count() {
        let mut server = shell("read -r _");
        let mut load = shell("sh -c \"read -r _; :\"; :");
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(20) && children(load.id()).is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let of_load = children(load.id());
        let all = descendants(server.id(), None);
        assert!(!of_load.is_empty() && of_load.iter().all(|pid| all.contains(pid)));
        let without = descendants(server.id(), Some(load.id()));
        assert!(without.contains(&server.id()) && !without.contains(&load.id()));
        assert!(of_load.iter().all(|pid| !without.contains(pid)));
        for one in [&mut server, &mut load] {
            drop(one.stdin.take());
            one.wait().unwrap();
        }
    }
}
