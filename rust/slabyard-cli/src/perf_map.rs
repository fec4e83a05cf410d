//! Names of functions that a process makes at run time: those of its map for perf.
//!
//! CPython (with PYTHONPERFSUPPORT=1), node (with --perf-basic-prof), Java agents and others write
//! /tmp/perf-PID.map, a line for each function: "START SIZE NAME", both numbers in hexadecimal. In a
//! container it is in the container's /tmp, under the number that the process has there.
//!
//! Every user may write to /tmp. So a map counts only if it is a plain file of the process's user or of
//! root, and no link; what is not such a line is skipped.
//!
//! Above: `record`, which keeps the names in the recording, and `profile`, for running processes.

use crate::recording::{Made, Module, Process};
use crate::ui;
use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// A larger map is not read. Those of large programs have some ten MiB.
const BYTES_MOST: u64 = 256 << 20;
/// A longer name is cut.
const NAME_BYTES_MOST: usize = 512;
/// The system counts the time of a file in steps.
const CLOCK_STEP: Duration = Duration::from_secs(1);

/// Which maps to use.
#[derive(Clone, Copy)]
struct Wanted {
    pid: u32,
    /// The user of the process.
    owner: u32,
    /// A map that was last written before is of another process, which had the same number.
    since: Option<SystemTime>,
}

/// Finds a file in a folder, no link. It is not opened: a process that waits for a reader of a pipe goes on
/// waiting, and a device does nothing.
fn find_in(folder: &impl AsRawFd, name: &str, flags: i32) -> io::Result<File> {
    let name = CString::new(name).map_err(io::Error::other)?;
    let flags = flags | libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the name is a C string.
    let file = unsafe { libc::openat(folder.as_raw_fd(), name.as_ptr(), flags) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new.
    Ok(unsafe { File::from_raw_fd(file) })
}

/// Opens the file that was found.
fn open(found: &File) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))
}

/// Reads a map in the folder `temporary`. `None`: there is none that counts. A warning says why, unless
/// there is no such file.
fn read(temporary: &impl AsRawFd, wanted: Wanted) -> Option<Vec<u8>> {
    let name = format!("perf-{}.map", wanted.pid);
    let found = match find_in(temporary, &name, 0) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => return refuse(&name, &error.to_string()),
    };
    let about = match found.metadata() {
        Ok(about) => about,
        Err(error) => return refuse(&name, &error.to_string()),
    };
    if about.is_symlink() {
        return refuse(&name, "it is a link");
    }
    if !about.is_file() {
        return refuse(&name, "it is no plain file");
    }
    if about.uid() != wanted.owner && about.uid() != 0 {
        return refuse(&name, "it belongs to another user");
    }
    let written = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let earliest = wanted.since.and_then(|since| since.checked_sub(CLOCK_STEP));
    if earliest.is_some_and(|earliest| written < earliest) {
        return None;
    }
    let file = match open(&found) {
        Ok(file) => file,
        Err(error) => return refuse(&name, &error.to_string()),
    };
    let mut text = Vec::new();
    match file.take(BYTES_MOST + 1).read_to_end(&mut text) {
        Err(error) => refuse(&name, &error.to_string()),
        Ok(_) if text.len() as u64 > BYTES_MOST => refuse(&name, "it is larger than 256 MiB"),
        Ok(_) => Some(text),
    }
}

fn refuse(name: &str, why: &str) -> Option<Vec<u8>> {
    ui::warn(&format!(
        "the names in {name} are not used: {why}. Functions made at run time have no names"
    ));
    None
}

/// The function of a line, and the addresses of its code.
fn function(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut words = line.splitn(3, |&byte| byte == b' ');
    let mut number = || {
        let word = std::str::from_utf8(words.next()?).ok()?;
        let digits = word.strip_prefix("0x").unwrap_or(word);
        u64::from_str_radix(digits, 16).ok()
    };
    let (start, bytes) = (number()?, number()?);
    let name = words.next()?.trim_ascii();
    let end = start.saturating_add(bytes);
    (end > start && !name.is_empty()).then_some((start, end, name))
}

/// A name for people: what would move a terminal's cursor is replaced.
fn printable(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES_MOST)]);
    let shown = |letter: char| if letter.is_control() { '?' } else { letter };
    name.chars().map(shown).collect()
}

/// Addresses that have no name yet: the next one from any on, each skipped once.
struct Nameless(Vec<u32>);

impl Nameless {
    fn new(count: usize) -> Self {
        Nameless((0..=count as u32).collect())
    }

    fn from(&mut self, at: usize) -> usize {
        let mut root = at;
        while self.0[root] as usize != root {
            root = self.0[root] as usize;
        }
        let mut passed = at;
        while passed != root {
            passed = std::mem::replace(&mut self.0[passed], root as u32) as usize;
        }
        root
    }

    fn take(&mut self, at: usize) {
        self.0[at] = at as u32 + 1;
    }
}

/// Adds the names of addresses, which ascend. If several lines have an address, the last one counts:
/// the program has made another function there.
fn add_names(text: &[u8], addresses: &[u64], made: &mut Made) {
    let mut nameless = Nameless::new(addresses.len());
    for line in text.rsplit(|&byte| byte == b'\n') {
        let Some((start, end, name)) = function(line) else {
            continue;
        };
        let mut found = Vec::new();
        let mut at = nameless.from(addresses.partition_point(|&address| address < start));
        while addresses.get(at).is_some_and(|&address| address < end) {
            found.push(addresses[at]);
            nameless.take(at);
            at = nameless.from(at);
        }
        if !found.is_empty() {
            made.add(printable(name), found);
        }
    }
}

/// For the fuzzers: each name is of an address that was asked for, in a line that has it.
#[cfg(any(test, feature = "fuzz"))]
pub fn try_text(text: &[u8]) {
    let addresses: Vec<u64> = (0..64).chain((0..64).map(|bit| 1 << bit)).collect();
    let mut addresses = [addresses, vec![u64::MAX - 1, u64::MAX]].concat();
    addresses.sort_unstable();
    addresses.dedup();
    let mut made = Made::default();
    add_names(text, &addresses, &mut made);
    for address in addresses {
        let has = |line: &[u8]| {
            let found = function(line).filter(|&(start, end, _)| (start..end).contains(&address));
            found.map(|(_, _, name)| printable(name))
        };
        let last = text.rsplit(|&byte| byte == b'\n').find_map(has);
        assert_eq!(made.name(address).map(str::to_string), last, "{address:#x}");
    }
    assert_eq!(Made::decode(&made.encode()).ok().as_ref(), Some(&made));
}

/// The addresses of calls in code of no file, ascending.
/// `addresses`: those behind the calls.
fn calls(addresses: impl Iterator<Item = u64>, modules: &[Module]) -> Vec<u64> {
    let calls = addresses.filter_map(|address| address.checked_sub(1));
    let mut calls: Vec<u64> = calls.collect();
    calls.sort_unstable();
    calls.dedup();
    let has = |one: &Module, call: u64| (one.start..one.end).contains(&call);
    let (made, files): (Vec<_>, Vec<_>) = modules.iter().partition(|one| one.is_made());
    calls.retain(|&call| {
        made.iter().any(|one| has(one, call)) || !files.iter().any(|one| has(one, call))
    });
    calls
}

/// Finds the names in recordings, after the processes have ended.
pub struct Recorded {
    begun: SystemTime,
    /// The folder of maps.
    temporary: PathBuf,
    /// The users of the processes.
    pub owners: HashMap<u32, u32>,
}

impl Recorded {
    /// To be made before the program begins.
    pub fn new() -> Self {
        Recorded {
            begun: SystemTime::now(),
            temporary: PathBuf::from("/tmp"),
            owners: HashMap::new(),
        }
    }

    /// The names for each process of a recording. A forked child has functions of its parent's map, too.
    /// Each map is read once, for all processes that use it.
    pub fn names(&self, processes: &[Process]) -> Vec<Made> {
        let calls = |process: &Process| {
            let addresses = process.stacks.iter().map(|node| node.address);
            calls(addresses, &process.modules)
        };
        let calls: Vec<_> = processes.iter().map(calls).collect();
        let mut wanted: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for (process, calls) in processes.iter().zip(&calls) {
            for pid in pids_of_maps(process).filter(|_| !calls.is_empty()) {
                wanted.entry(pid).or_default().extend(calls);
            }
        }
        let maps = wanted.into_iter();
        let maps: HashMap<_, _> = maps
            .map(|(pid, calls)| (pid, self.map(pid, calls)))
            .collect();
        let names = processes.iter().zip(&calls).map(|(process, calls)| {
            let mut made = Made::default();
            for map in pids_of_maps(process).filter_map(|pid| maps.get(&pid)) {
                made.add_from(map, calls);
            }
            made
        });
        names.collect()
    }

    /// The names that the map of a process has for calls.
    fn map(&self, pid: u32, mut calls: Vec<u64>) -> Made {
        calls.sort_unstable();
        calls.dedup();
        let mut made = Made::default();
        let wanted = self.owners.get(&pid).map(|&owner| Wanted {
            pid,
            owner,
            since: Some(self.begun),
        });
        let temporary = File::open(&self.temporary).ok();
        let text = temporary
            .zip(wanted)
            .and_then(|(temporary, wanted)| read(&temporary, wanted));
        if let Some(text) = text {
            add_names(&text, &calls, &mut made);
        }
        made
    }
}

/// The processes whose maps have names for this one, itself first.
fn pids_of_maps(process: &Process) -> impl Iterator<Item = u32> {
    let parent = Some(process.parent).filter(|_| process.forked);
    [Some(process.pid), parent].into_iter().flatten()
}

/// The names of a running process. `addresses`: those behind calls.
pub fn of_running(pid: u32, addresses: impl Iterator<Item = u64>, modules: &[Module]) -> Made {
    let calls = calls(addresses, modules);
    let mut made = Made::default();
    if calls.is_empty() {
        return made;
    }
    if let Some(text) = map_of_running(pid) {
        add_names(&text, &calls, &mut made);
    }
    made
}

/// The map in the process's own /tmp, under the number that the process has for itself.
fn map_of_running(pid: u32) -> Option<Vec<u8>> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let last_word = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().last()
    };
    let root = File::open(format!("/proc/{pid}/root")).ok()?;
    let temporary = find_in(&root, "tmp", libc::O_DIRECTORY).ok()?;
    let wanted = Wanted {
        pid: last_word("NSpid:")?.parse().ok()?,
        owner: fs::metadata(format!("/proc/{pid}")).ok()?.uid(),
        since: None,
    };
    read(&temporary, wanted)
}

#[cfg(test)]
mod tests;
