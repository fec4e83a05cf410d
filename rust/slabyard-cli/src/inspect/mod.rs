//! Looks into a process that uses Slabyard, from outside: where its memory is, and what keeps it.
//!
//! The process need not help, and is not stopped. [`live`] opens a process as an [`image`], with the
//! [`files`] that it has mapped, and [`core`] a core file; [`remote`] reads much at once. [`shape`]
//! finds the library in it; [`heap`] and [`magazines`] read what the library has; [`segments`] divides
//! the memory for objects; [`account`] counts each resident page once; [`pins`] says what keeps free
//! memory from going back; [`walk`] lists the objects of a cache; [`samples`] reads profiles, and
//! [`tags`] what is live by tag; [`verify`] looks for what must not be; [`trim`] asks a process to give
//! memory back; [`text`], [`map`], [`metrics`] and [`snapshot`] show and keep it. [`top`] shows it
//! live, and [`watch`] keeps it from time to time; both [`follow`] a process.

mod account;
pub mod commands;
pub mod core;
mod fields;
mod files;
mod follow;
mod heap;
mod image;
mod live;
mod magazines;
mod map;
pub mod metrics;
mod pins;
mod remote;
pub mod samples;
mod segments;
mod shape;
mod snapshot;
mod tags;
#[cfg(test)]
mod tests;
pub mod text;
mod top;
mod trim;
mod verify;
pub mod walk;
mod watch;

use crate::perf_map;
use account::{Account, ThreadRow};
use anyhow::{Context, Result};
use heap::Heap;
use image::Image;
#[cfg(any(test, feature = "fuzz"))]
pub use snapshot::Snapshot;
use std::collections::HashMap;
use std::fs;
use std::io::Read;
#[cfg(any(test, feature = "fuzz"))]
use std::ops::Range;
use std::path::Path;
use std::thread::Builder;

/// How much is asked of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// What is resident.
    Quick,
    /// Also how much of it is the process's own (PSS), and the system's sums to compare with.
    Whole,
}

/// A process, or a core, that was read.
pub struct Look {
    pub pid: u32,
    depth: Depth,
    image: Image,
    pub heaps: Vec<Heap>,
    /// What the core says; `None`: it is a running process.
    core: Option<core::About>,
    /// What the system counts as RSS and as PSS.
    sums: Option<(u64, u64)>,
}

impl Look {
    /// The system takes as long for its sums as for the list of shares, so both are asked for at the
    /// same time.
    pub fn at(pid: u32, depth: Depth) -> Result<Look> {
        let whole = depth == Depth::Whole;
        std::thread::scope(|scope| {
            let ask = move || live::sums(pid);
            let sums = whole.then(|| Builder::new().spawn_scoped(scope, ask));
            let mut look = Self::of_image(pid, live::open(pid, whole)?, depth)?;
            look.sums = match sums {
                Some(Ok(asked)) => asked.join().ok().flatten(),
                Some(Err(_)) => ask(), // no thread could be started
                None => None,
            };
            Ok(look)
        })
    }

    fn of_image(pid: u32, image: Image, depth: Depth) -> Result<Look> {
        let heaps = account::heaps(&image)?;
        Ok(Look {
            pid,
            depth,
            image,
            heaps,
            core: None,
            sums: None,
        })
    }

    /// Reads a core.
    pub fn of_core(file: &Path) -> Result<Look> {
        Self::of(core::open(file)?).with_context(|| format!("cannot use {}", file.display()))
    }

    pub fn of(core: core::Core) -> Result<Look> {
        let heaps = account::heaps(&core.image).map_err(|error| core.about.explained(error))?;
        Ok(Look {
            pid: core.about.pid,
            depth: Depth::Quick,
            image: core.image,
            heaps,
            core: Some(core.about),
            sums: None,
        })
    }

    /// Whether it is a process, which goes on; else it is a core.
    fn is_running(&self) -> bool {
        self.core.is_none()
    }

    pub fn account(&self) -> Account {
        if let Some(core) = &self.core {
            return self.account_of_core(core);
        }
        let whole = self.depth == Depth::Whole;
        let stacks = whole.then(|| stack_pointers(self.pid)).flatten();
        let threads = self.heaps.iter().flat_map(|heap| &heap.threads);
        let threads: Vec<u32> = threads.map(|thread| thread.number).collect();
        let pid = self.pid;
        // Thousands of threads take as long as the sums.
        let (mut account, named) = std::thread::scope(|scope| {
            let name = || named_threads(pid, &threads);
            let named = Builder::new().spawn_scoped(scope, name);
            let account = Account::take(pid, &self.image, &self.heaps, stacks.as_deref());
            let named = named.map(|named| named.join().unwrap_or_default());
            (account, named.unwrap_or_else(|_| name()))
        });
        account.program = self.program();
        for thread in &mut account.threads {
            if let Some(named) = named.get(&thread.number) {
                thread.number = named.number;
                thread.name.clone_from(&named.name);
                thread.state = named.state;
            }
        }
        if whole {
            account.system_rss_bytes = self.sums.map(|(rss, _)| rss);
            account.system_pss_bytes = self.sums.map(|(_, pss)| pss);
        } else {
            account.pss_bytes = None;
        }
        account
    }

    fn account_of_core(&self, core: &core::About) -> Account {
        let mut account = Account::take(self.pid, &self.image, &self.heaps, Some(&core.stacks));
        account.program = self.program();
        account.remarks = core.remarks.clone();
        // A core has no names of threads, but the first thread has the program's.
        let first = account
            .threads
            .iter_mut()
            .find(|one| one.number == core.pid);
        if let Some(thread) = first {
            thread.name = core.program.clone();
        }
        account
    }

    /// The program's name.
    fn program(&self) -> String {
        if let Some(core) = &self.core {
            return core.program.clone();
        }
        let name = fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default();
        name.trim_end().replace(char::is_control, "?")
    }

    /// The address space for objects.
    #[cfg(any(test, feature = "fuzz"))]
    fn areas(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let areas = self.heaps.iter().flat_map(|heap| &heap.areas);
        areas.map(|area| area.range.clone())
    }

    pub fn pins(&self, shown: usize) -> Vec<pins::Pins> {
        let find = |heap| pins::find(&self.image, heap, page_bytes(), shown);
        self.heaps.iter().map(find).collect()
    }

    /// The objects of the caches with a name, or of the one at an address: a line for each, at most
    /// `most`, and how many there are.
    pub fn walk(&self, cache: &str, free: bool, most: usize) -> Result<(String, u64)> {
        let (mut lines, mut count, mut is_known) = (String::new(), 0, false);
        let mut room = most;
        for heap in &self.heaps {
            let caches = walk::caches(heap, cache);
            is_known |= !caches.is_empty();
            let objects = walk::objects(&self.image, heap, &caches, free, room);
            lines.extend(objects.shown.iter().map(|one| one.line(heap)));
            room -= objects.shown.len();
            count += objects.count;
        }
        if !is_known {
            anyhow::bail!("there is no cache {cache:?}; `slabyard caches --all` lists all caches");
        }
        Ok((lines, count))
    }

    /// The samples that a process has taken of its allocations, and its program's name.
    pub fn samples(&self) -> Result<(samples::Samples, String)> {
        let mut samples = samples::read(&self.image)?;
        // The map of a core's process is on another machine, or of another process by now.
        if self.is_running() {
            let addresses = samples.sites.iter().flat_map(|site| &site.stack);
            samples.made = perf_map::of_running(self.pid, addresses.copied(), &samples.modules);
        }
        Ok((samples, self.program()))
    }

    /// The size class of malloc that has objects of this size; `None`: they are large.
    pub fn class_of(&self, size: u64) -> Option<&str> {
        let caches = self.heaps.iter().flat_map(|heap| &heap.caches);
        let classes = caches.filter(|one| one.kind == heap::Kind::Size && one.slot >= size);
        let least = classes.min_by_key(|one| one.slot);
        least.map(|one| one.name.as_str())
    }

    /// The time now by the clock of the samples; `None`: it is a core.
    pub fn now(&self) -> Option<u64> {
        self.is_running().then(|| {
            let mut now = libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            // SAFETY: the time is written to `now`.
            unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
            now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
        })
    }

    /// What is wrong in the library's structures.
    pub fn verify(&self) -> verify::Report {
        let mut report = verify::Report::default();
        self.heaps
            .iter()
            .for_each(|heap| verify::check(heap, &mut report));
        report
    }

    /// What lies at an address, in words.
    pub fn what_is(&self, address: u64) -> String {
        let of_heap = self
            .heaps
            .iter()
            .find_map(|heap| pins::what_is(heap, address));
        let resident = self
            .image
            .resident
            .between(address..address.saturating_add(1));
        let memory = match resident.bytes {
            0 => "; its page holds no memory",
            _ => "",
        };
        let what = of_heap.unwrap_or_else(|| match self.image.mapping_at(address) {
            Some(one) if one.name.is_empty() => "anonymous memory that is not Slabyard's".into(),
            Some(one) => format!("in {}", one.name),
            None => "nothing is mapped there".into(),
        });
        if self.image.mapping_at(address).is_none() {
            return what;
        }
        format!("{what}{memory}")
    }
}

/// The bytes of a page of the system.
fn page_bytes() -> u64 {
    // SAFETY: sysconf has no preconditions.
    (unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) as u64
}

/// The process with this number, or the only one with this name.
pub fn process(name: &str) -> Result<u32> {
    if let Ok(pid) = name.parse() {
        return Ok(pid);
    }
    let processes = procfs::process::all_processes().context("cannot list the processes")?;
    let named: Vec<u32> = processes
        .filter_map(Result::ok)
        .filter(|one| {
            // One that has ended, and is not waited for yet, keeps its name.
            // The system keeps the first 15 bytes of a name.
            let is_name = |stat: procfs::process::Stat| {
                let cut = stat.comm.len() == 15 && name.starts_with(&stat.comm);
                (stat.comm == name || cut) && stat.state != 'Z'
            };
            one.stat().is_ok_and(is_name)
        })
        .map(|one| one.pid as u32)
        .collect();
    match named[..] {
        [] => anyhow::bail!("there is no process {name:?}"),
        [pid] => Ok(pid),
        _ => anyhow::bail!("several processes are named {name:?}: {named:?}; say which one"),
    }
}

/// The numbers that the threads of a container have here, by the numbers that they have there. Empty:
/// the process is in no container.
fn outer_numbers(pid: u32) -> HashMap<u32, u32> {
    let number_inside = |file: std::path::PathBuf| {
        let text = fs::read_to_string(file).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        let numbers = line.split_whitespace().skip(1);
        numbers.last()?.parse::<u32>().ok()
    };
    let folder = Path::new("/proc").join(pid.to_string());
    if number_inside(folder.join("status")).is_none() {
        return HashMap::new();
    }
    let tasks = fs::read_dir(folder.join("task")).into_iter().flatten();
    let both = |task: fs::DirEntry| {
        let number = task.file_name().to_str()?.parse().ok()?;
        Some((number_inside(task.path().join("status"))?, number))
    };
    tasks.filter_map(Result::ok).filter_map(both).collect()
}

/// The names, states and outer numbers of threads, by the numbers that they have for themselves.
fn named_threads(pid: u32, threads: &[u32]) -> HashMap<u32, ThreadRow> {
    let outer = outer_numbers(pid);
    let named = |&number: &u32| {
        let mut row = ThreadRow {
            number: *outer.get(&number).unwrap_or(&number),
            state: '?',
            ..ThreadRow::default()
        };
        name_thread(pid, &mut row);
        (number, row)
    };
    threads.iter().map(named).collect()
}

fn name_thread(pid: u32, thread: &mut ThreadRow) {
    let path = format!("/proc/{pid}/task/{}/stat", thread.number);
    // One read, which these fields fit into: programs have thousands of threads.
    let mut bytes = [0; 256];
    let read = fs::File::open(path).and_then(|mut file| file.read(&mut bytes));
    let stat = String::from_utf8_lossy(&bytes[..read.unwrap_or(0)]);
    // NUMBER (NAME) STATE ...; the name may contain anything.
    let Some((before, after)) = stat.rsplit_once(") ") else {
        return;
    };
    let name = before.split_once('(').map_or("", |(_, name)| name);
    thread.name = name.replace(char::is_control, "?");
    thread.state = after.chars().next().unwrap_or('?');
}

/// An address in the stack of each thread. `None`: the system does not tell them all, because it tells
/// them only of threads that wait.
fn stack_pointers(pid: u32) -> Option<Vec<u64>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let pointer = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("syscall")).ok()?;
        let word = text.split_whitespace().rev().nth(1)?;
        u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
    };
    tasks.filter_map(Result::ok).map(pointer).collect()
}
