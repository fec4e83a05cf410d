//! Pages of files that a running process has mapped, and that are not in its memory now: the system
//! takes such pages away when memory is short, the head of a library first. They are read from the
//! file. A read through the process would give it the page.

use super::image::{read_each, Source};
use super::remote;
use procfs::process::{MMPermissions, MMapPath, MemoryMap, MemoryMaps};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A part of the address space whose bytes only a file has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    range: Range<u64>,
    /// The index of the mapping.
    mapping: usize,
    offset: u64,
}

/// A mapping of a file.
#[derive(Clone)]
struct Mapped {
    range: Range<u64>,
    path: PathBuf,
    inode: u64,
}

/// The memory of a process, and the files that it has mapped.
pub struct Memory {
    pid: u32,
    memory: File,
    mapped: Vec<Mapped>,
    /// In order of address.
    parts: Vec<Part>,
    /// By the inode. `None`: it cannot be opened.
    open: RefCell<HashMap<u64, Option<File>>>,
}

impl Memory {
    /// `within`: only files' pages there matter. `resident` and `swapped`: in order of address.
    pub fn new(
        pid: u32,
        memory: File,
        maps: &MemoryMaps,
        within: &dyn Fn(&Range<u64>) -> Range<u64>,
        resident: &[Range<u64>],
        swapped: &[Range<u64>],
    ) -> Self {
        let (mut mapped, mut parts) = (Vec::new(), Vec::new());
        for one in &maps.0 {
            let Some(file) = mapped_file(one) else {
                continue;
            };
            let start = file.range.start;
            let absent = without(within(&file.range), resident);
            let absent = absent.into_iter().flat_map(|range| without(range, swapped));
            parts.extend(absent.map(|range| Part {
                offset: one.offset + (range.start - start),
                mapping: mapped.len(),
                range,
            }));
            mapped.push(file);
        }
        Memory {
            pid,
            memory,
            mapped,
            parts,
            open: RefCell::default(),
        }
    }

    /// The ranges that files have, in order of address.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.parts.iter().map(|part| part.range.clone())
    }

    /// Whether a file has some of it.
    fn is_of_file(&self, range: &Range<u64>) -> bool {
        let at = self
            .parts
            .partition_point(|part| part.range.end <= range.start);
        let next = self.parts.get(at);
        next.is_some_and(|part| part.range.start < range.end)
    }

    fn read_file(&self, mapped: &Mapped, offset: u64, into: &mut [u8]) -> bool {
        let mut open = self.open.borrow_mut();
        let file = open
            .entry(mapped.inode)
            .or_insert_with(|| self.open(mapped));
        let Some(file) = file else {
            return false;
        };
        // Behind the end of the file, the last page is zero.
        let length = file.metadata().map_or(0, |about| about.len());
        let there = (into.len() as u64).min(length.saturating_sub(offset)) as usize;
        into[there..].fill(0);
        file.read_exact_at(&mut into[..there], offset).is_ok()
    }

    /// The file of a mapping: as root by the mapping itself, also if it was removed; else by its path.
    fn open(&self, mapped: &Mapped) -> Option<File> {
        let folder = Path::new("/proc").join(self.pid.to_string());
        let Range { start, end } = mapped.range;
        let link = folder.join(format!("map_files/{start:x}-{end:x}"));
        let path = folder
            .join("root")
            .join(mapped.path.strip_prefix("/").ok()?);
        let is_same = |file: &File| {
            let about = file.metadata();
            about.is_ok_and(|about| about.is_file() && about.ino() == mapped.inode)
        };
        File::open(link)
            .ok()
            .or_else(|| File::open(path).ok())
            .filter(is_same)
    }
}

impl Source for Memory {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let at = self.parts.partition_point(|part| part.range.end <= address);
        match self
            .parts
            .get(at)
            .filter(|part| part.range.start <= address)
        {
            Some(part) => {
                let offset = part.offset + (address - part.range.start);
                self.read_file(&self.mapped[part.mapping], offset, into)
            }
            None => self.memory.read_exact_at(into, address).is_ok(),
        }
    }

    fn again(&self) -> Option<Box<dyn Source + Send>> {
        Some(Box::new(Memory {
            pid: self.pid,
            memory: self.memory.try_clone().ok()?,
            mapped: self.mapped.clone(),
            parts: self.parts.clone(),
            open: RefCell::default(),
        }))
    }

    fn read_all(&self, parts: &[Range<u64>], into: &mut [u8]) {
        let of_files = parts.iter().any(|part| self.is_of_file(part));
        if of_files || !remote::read_all(self.pid, parts, into) {
            read_each(self, parts, into);
        }
    }
}

/// What a mapping shows of a file, if the process has not written it: its code and constants.
fn mapped_file(map: &MemoryMap) -> Option<Mapped> {
    let MMapPath::Path(path) = &map.pathname else {
        return None;
    };
    let is_constant = !map.perms.contains(MMPermissions::WRITE) && map.inode != 0;
    let can_be_read = map.perms.contains(MMPermissions::READ);
    (is_constant && can_be_read && path.is_absolute()).then(|| Mapped {
        range: map.address.0..map.address.1,
        path: path.clone(),
        inode: map.inode,
    })
}

/// The parts of a range that are in none of the others, which are in order of address.
fn without(range: Range<u64>, others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut rest = Vec::new();
    let mut at = range.start;
    let first = others.partition_point(|one| one.end <= range.start);
    for other in others[first..]
        .iter()
        .take_while(|one| one.start < range.end)
    {
        if at < other.start {
            rest.push(at..other.start);
        }
        at = at.max(other.end);
    }
    if at < range.end {
        rest.push(at..range.end);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::super::tests::{tell_ready, Stage};
    use super::super::{page_bytes, Depth, Look};
    use super::*;
    use slabyard_sys::*;

    #[test]
    fn parts_without_others_are_left() {
        let rest = |range: Range<u64>, others: &[(u64, u64)]| -> Vec<(u64, u64)> {
            let others: Vec<_> = others.iter().map(|&(start, end)| start..end).collect();
            let rest = without(range, &others).into_iter();
            rest.map(|range| (range.start, range.end)).collect()
        };
        assert_eq!(rest(0..10, &[]), [(0, 10)]);
        assert_eq!(rest(0..10, &[(2, 3), (5, 12)]), [(0, 2), (3, 5)]);
        assert_eq!(rest(4..10, &[(0, 4), (4, 6), (9, 10)]), [(6, 9)]);
        assert_eq!(rest(4..10, &[(0, 20)]), []);
    }

    /// Runs in a process of its own: gives the pages of its program back that hold no code.
    #[test]
    #[ignore = "a part of another test, which starts it"]
    fn stage() {
        // SAFETY: the pages are constant, and come back from the file when they are read.
        unsafe {
            assert!(!sy_malloc(100).is_null());
            let program = std::env::current_exe().unwrap();
            let maps = procfs::process::Process::myself().unwrap().maps().unwrap();
            let first = maps.0.iter().find(|one| {
                one.offset == 0 && matches!(&one.pathname, MMapPath::Path(path) if *path == program)
            });
            let (start, end) = first.unwrap().address;
            println!("head {start:#x}");
            tell_ready_without(start as usize, (end - start) as usize);
        }
    }

    /// The last thing before the wait, so that nothing brings the pages back.
    unsafe fn tell_ready_without(start: usize, bytes: usize) {
        let thread = std::thread::spawn(move || loop {
            unsafe { libc::madvise(start as *mut _, bytes, libc::MADV_DONTNEED) };
            std::thread::sleep(std::time::Duration::from_millis(1));
        });
        tell_ready();
        drop(thread);
    }

    #[test]
    fn a_library_is_found_whose_head_is_in_no_memory() {
        let stage = Stage::of("inspect::files::tests::stage");
        let head = &stage.lines("head").next().unwrap()[0];
        let head = u64::from_str_radix(head.trim_start_matches("0x"), 16).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let look = Look::at(stage.pid(), Depth::Quick).unwrap();
        let page = head..head + page_bytes();
        assert_eq!(look.image.resident.between(page.clone()).bytes, 0);
        assert!(!look.account().caches.is_empty());
        // The look has not given the page to the process.
        let again = Look::at(stage.pid(), Depth::Quick).unwrap();
        assert_eq!(again.image.resident.between(page).bytes, 0);
    }
}
