//! A small core for tests and fuzzers: of a child of this process, with caches in several states.
//! It has the pages that the tool reads, and the pages of objects.

use super::notes::{
    INFO_NAME, INFO_PROCESS, PAGE_BYTES, RANDOM, STACK_POINTER, STATUS_REGISTERS, STATUS_SIGNAL,
};
use crate::inspect::image::{Mapping, Source};
use crate::inspect::{live, Depth, Look};
use object::elf;
use slabyard_sys as sys;
use std::cell::RefCell;
use std::ffi::CStr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::OnceLock;

pub struct Sample {
    /// The file.
    pub core: Vec<u8>,
    /// Offsets of words in the file that are no part of objects.
    pub words: Vec<usize>,
}

/// The first cache, and how many of its objects are live.
pub const CACHE: &CStr = c"sample objects";
pub const LIVE: usize = 2250;
pub const PROGRAM: &str = "sample";
pub const PROCESS: u32 = 4711;

/// Makes caches whose objects are live, in magazines, and free in slabs.
fn fill() {
    const COUNT: usize = 3000;
    for (name, flags) in [(CACHE, 0), (c"sample handles", sys::SY_HANDLES)] {
        let config = sys::sy_cache_config {
            name: name.as_ptr(),
            size: 40,
            flags,
            ..Default::default()
        };
        // SAFETY: the settings are valid; each object has a byte, and is freed once, to its cache.
        unsafe {
            let cache = sys::sy_cache_create(&config);
            let objects: Vec<_> = (0..COUNT).map(|_| sys::sy_cache_alloc(cache)).collect();
            for object in &objects {
                object.cast::<u8>().write(1);
            }
            for object in objects.iter().step_by(3).take(COUNT - LIVE) {
                sys::sy_cache_free(cache, *object);
            }
        }
    }
    for size in [1, 24, 100, 5000, 300_000, 5 << 20] {
        // SAFETY: each object has a byte, and is freed once.
        unsafe {
            let objects: Vec<_> = (0..20).map(|_| sys::sy_malloc(size)).collect();
            for object in &objects {
                object.cast::<u8>().write(1);
            }
            for object in objects.iter().skip(1) {
                sys::sy_free(*object);
            }
        }
    }
}

/// The core of a child of this process, which is made once: another one would have the caches of both.
pub fn the() -> &'static Sample {
    static SAMPLE: OnceLock<Sample> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        fill();
        let child = Child::of(&this_program());
        of(child.0 as u32)
    })
}

/// Where the file of this program is mapped.
fn this_program() -> Vec<Range<u64>> {
    let image = live::open(std::process::id(), false).expect("this process can be read");
    let file = std::env::current_exe().expect("it has a file");
    let name = file.display().to_string();
    let of_file = |one: &Mapping| (one.name == name).then(|| one.range.clone());
    image.mappings.iter().filter_map(of_file).collect()
}

/// A copy of this process that waits until this is dropped.
struct Child(libc::pid_t);

impl Child {
    /// `program`: of which the child has no pages at first.
    fn of(program: &[Range<u64>]) -> Self {
        let (mut done, touched) = std::io::pipe().expect("a pipe");
        // SAFETY: the child only reads its memory and waits.
        let child = unsafe { libc::fork() };
        if child != 0 {
            drop(touched);
            let mut end = [0];
            std::io::Read::read_exact(&mut done, &mut end).expect("the child writes it");
            return Child(child);
        }
        for page in program.iter().flat_map(|range| range.clone().step_by(4096)) {
            // SAFETY: all parts of a program's file can be read.
            unsafe { std::ptr::read_volatile(page as *const u8) };
        }
        let _ = std::io::Write::write(&mut &touched, &[0]);
        loop {
            // SAFETY: it has no preconditions.
            unsafe { libc::pause() };
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: the child is this process's, and is not waited for elsewhere.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

/// A part of a mapping, and its bytes, if the core has them.
struct Part {
    range: Range<u64>,
    writable: bool,
    bytes: Vec<u8>,
}

/// Notes what is read.
struct Noted {
    source: Box<dyn Source>,
    ranges: Rc<RefCell<Vec<Range<u64>>>>,
}

impl Source for Noted {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let range = address..address + into.len() as u64;
        self.ranges.borrow_mut().push(range);
        self.source.read(address, into)
    }
}

fn of(pid: u32) -> Sample {
    let ranges = Rc::new(RefCell::new(Vec::new()));
    let noted = |source| -> Box<dyn Source> {
        let ranges = ranges.clone();
        Box::new(Noted { source, ranges })
    };
    let image = live::open(pid, false).expect("a child can be read");
    let look = Look::of_image(pid, image.through(noted), Depth::Quick);
    let look = look.expect("this process has the library");
    let mut kept = ranges.borrow().clone();
    let objects: Vec<_> = look.areas().collect();
    kept.extend(objects.iter().cloned());
    kept.sort_by_key(|range| range.start);
    let mut parts = Vec::new();
    let mut files = Vec::new();
    for mapping in look.image.mappings.iter() {
        let pages = pages_of(&look, mapping, &kept);
        if pages.is_empty() {
            continue;
        }
        if mapping.name.starts_with('/') {
            files.push(mapping);
        }
        let mut at = mapping.range.start;
        let mut add = |range: Range<u64>, bytes| {
            if range.start < range.end {
                parts.push(Part {
                    range,
                    writable: mapping.writable,
                    bytes,
                });
            }
        };
        for page in pages {
            add(at..page.start, Vec::new());
            let bytes = look.image.bytes(page.start, page.end - page.start);
            add(page.clone(), bytes.expect("it was just read"));
            at = page.end;
        }
        add(at..mapping.range.end, Vec::new());
    }
    let stack = parts.last().map_or(0, |part| part.range.start);
    let core = file_of(&parts, &notes(&files, stack));
    let words = words_in(&core, &parts, &objects);
    Sample { core, words }
}

/// The resident pages of a mapping that are kept.
fn pages_of(look: &Look, mapping: &Mapping, kept: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut pages: Vec<Range<u64>> = Vec::new();
    for one in kept {
        let range = one.start.max(mapping.range.start)..one.end.min(mapping.range.end);
        if range.start >= range.end {
            continue;
        }
        for page in look.image.resident.within(range) {
            match pages.last_mut() {
                Some(last) if last.end >= page.start => last.end = last.end.max(page.end),
                _ => pages.push(page),
            }
        }
    }
    pages
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

fn halves(numbers: &[u32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

fn notes(files: &[&Mapping], stack: u64) -> Vec<u8> {
    let mut process = vec![0; 136];
    process[INFO_PROCESS..][..4].copy_from_slice(&PROCESS.to_le_bytes());
    process[INFO_NAME][..PROGRAM.len()].copy_from_slice(PROGRAM.as_bytes());
    let mut status = vec![0; 400];
    status[STATUS_SIGNAL] = libc::SIGABRT as u8;
    status[STATUS_REGISTERS + 8 * STACK_POINTER..][..8].copy_from_slice(&stack.to_le_bytes());
    let vector = words(&[PAGE_BYTES, 4096, RANDOM, stack, 0, 0]);
    let mut mapped = words(&[files.len() as u64, 1]);
    for file in files {
        mapped.extend(words(&[file.range.start, file.range.end, file.offset]));
    }
    for file in files {
        mapped.extend([file.name.as_bytes(), b"\0"].concat());
    }
    let mut all = Vec::new();
    for (kind, content) in [
        (elf::NT_PRPSINFO, process),
        (elf::NT_PRSTATUS, status),
        (elf::NT_AUXV, vector),
        (elf::NT_FILE, mapped),
    ] {
        all.extend(halves(&[5, content.len() as u32, kind.0]));
        all.extend(b"CORE\0\0\0\0");
        all.extend(content);
        all.resize(all.len().next_multiple_of(4), 0);
    }
    all
}

const HEADER: usize = 64;
const ROW: usize = 56;
const PAGE: usize = 4096;

fn file_of(parts: &[Part], notes: &[u8]) -> Vec<u8> {
    let mut core = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let machine = u32::from(super::MACHINE.0) << 16;
    core.extend(halves(&[u32::from(elf::ET_CORE.0) | machine, 1]));
    core.extend(words(&[0, HEADER as u64, 0]));
    let rows = parts.len() + 1;
    core.extend(halves(&[0, (HEADER | ROW << 16) as u32, rows as u32, 0]));
    let notes_at = HEADER + rows * ROW;
    let mut at = (notes_at + notes.len()).next_multiple_of(PAGE);
    let mut row = |kind: u32, flags, offset: usize, start, in_file: usize, bytes: u64| {
        core.extend(halves(&[kind, flags]));
        core.extend(words(&[offset as u64, start, 0, in_file as u64, bytes, 4]));
    };
    row(elf::PT_NOTE.0, 0, notes_at, 0, notes.len(), 0);
    for part in parts {
        let flags = 4 | u32::from(part.writable) << 1;
        let bytes = part.range.end - part.range.start;
        row(
            elf::PT_LOAD.0,
            flags,
            at,
            part.range.start,
            part.bytes.len(),
            bytes,
        );
        at += part.bytes.len();
    }
    core.extend(notes);
    core.resize(core.len().next_multiple_of(PAGE), 0);
    for part in parts {
        core.extend(&part.bytes);
    }
    core
}

/// Offsets of words that are not zero, or near such a word, and not in objects.
fn words_in(core: &[u8], parts: &[Part], objects: &[Range<u64>]) -> Vec<usize> {
    const NEAR: usize = 64;
    let bytes: usize = parts.iter().map(|part| part.bytes.len()).sum();
    let mut at = core.len() - bytes;
    let mut found: Vec<usize> = (0..at - at % 8).step_by(8).collect();
    for part in parts {
        for offset in (0..part.bytes.len()).step_by(8) {
            let address = part.range.start + offset as u64;
            let near = offset.saturating_sub(NEAR)..(offset + NEAR).min(part.bytes.len());
            let is_zero = part.bytes[near].iter().all(|&byte| byte == 0);
            if !is_zero && !objects.iter().any(|range| range.contains(&address)) {
                found.push(at + offset);
            }
        }
        at += part.bytes.len();
    }
    found
}
