//! The notes of a core: which process it was, its threads, and the files that it had mapped.

use crate::inspect::image::text_of;
use object::elf::{self, FileHeader64};
use object::read::elf::NoteIterator;
use object::LittleEndian;
use std::ops::Range;
use std::rc::Rc;

#[derive(Debug)]
pub struct Notes {
    pub pid: u32,
    pub program: String,
    /// The signal that the process got; 0: none.
    pub signal: i32,
    /// The stack pointers of the threads.
    pub stacks: Vec<u64>,
    /// In order of address, without overlaps.
    pub files: Vec<Mapped>,
    pub page: u64,
    /// Addresses in the code that the system lends, and in the stack of the first thread.
    pub vdso: u64,
    pub stack: u64,
}

/// A part of a file that was mapped.
#[derive(Debug)]
pub struct Mapped {
    pub range: Range<u64>,
    pub offset: u64,
    pub name: Rc<str>,
}

impl Default for Notes {
    fn default() -> Self {
        Notes {
            pid: 0,
            program: "an unknown program".into(),
            signal: 0,
            stacks: Vec::new(),
            files: Vec::new(),
            page: 4096,
            vdso: 0,
            stack: 0,
        }
    }
}

// `struct elf_prstatus` and `struct elf_prpsinfo` of linux/elfcore.h, on all 64-bit machines.
pub const STATUS_SIGNAL: usize = 12;
pub const STATUS_REGISTERS: usize = 112;
pub const INFO_PROCESS: usize = 24;
pub const INFO_NAME: Range<usize> = 40..56;

/// The number of the stack pointer among the registers.
pub const STACK_POINTER: usize = if cfg!(target_arch = "x86_64") { 19 } else { 31 };

// Of the auxiliary vector, linux/auxvec.h.
pub const PAGE_BYTES: u64 = 6;
pub const RANDOM: u64 = 25;
const VDSO: u64 = 33;

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

impl Notes {
    /// Reads as many notes as make sense.
    pub fn read(text: &[u8], align: u64) -> Self {
        let mut notes = Notes::default();
        let all = NoteIterator::<FileHeader64<LittleEndian>>::new(LittleEndian, align, text);
        for note in all.into_iter().flatten().map_while(Result::ok) {
            if note.name() != b"CORE" {
                continue;
            }
            match note.n_type(LittleEndian) {
                elf::NT_PRPSINFO => notes.add_process(note.desc()),
                elf::NT_PRSTATUS => notes.add_thread(note.desc()),
                elf::NT_AUXV => notes.add_vector(note.desc()),
                elf::NT_FILE if notes.files.is_empty() => {
                    notes.files = mapped(note.desc()).unwrap_or_default();
                }
                _ => {}
            }
        }
        notes
    }

    fn add_process(&mut self, info: &[u8]) {
        self.pid = half(info, INFO_PROCESS).unwrap_or(0);
        let name = info.get(INFO_NAME).map(text_of);
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            self.program = name;
        }
    }

    /// The first thread is the one that got the signal.
    fn add_thread(&mut self, status: &[u8]) {
        if self.stacks.is_empty() {
            let signal = half(status, STATUS_SIGNAL).unwrap_or(0);
            self.signal = (signal & 0xffff) as i32;
        }
        let stack = word(status, STATUS_REGISTERS + 8 * STACK_POINTER);
        self.stacks.extend(stack);
    }

    fn add_vector(&mut self, vector: &[u8]) {
        for pair in vector.chunks_exact(16) {
            let (Some(key), Some(value)) = (word(pair, 0), word(pair, 8)) else {
                return;
            };
            match key {
                PAGE_BYTES if value.is_power_of_two() && (4096..=65536).contains(&value) => {
                    self.page = value;
                }
                RANDOM => self.stack = value,
                VDSO => self.vdso = value,
                _ => {}
            }
        }
    }

    pub fn file_at(&self, address: u64) -> Option<&Mapped> {
        let at = self.files.partition_point(|one| one.range.end <= address);
        self.files
            .get(at)
            .filter(|one| one.range.contains(&address))
    }
}

/// The note of mapped files: their number, the unit of offsets, a row of start, end and offset for
/// each, and their names.
fn mapped(note: &[u8]) -> Option<Vec<Mapped>> {
    let count = usize::try_from(word(note, 0)?).ok()?;
    let unit = word(note, 8)?;
    let rows = note.get(16..)?.chunks_exact(24);
    let names = note.get(count.checked_mul(24)?.checked_add(16)?..)?;
    let mut last: Rc<str> = Rc::from("");
    let mut files = Vec::new();
    for (row, name) in rows.take(count).zip(names.split(|&byte| byte == 0)) {
        let name = text_of(name);
        if *last != *name {
            last = Rc::from(name);
        }
        let range = word(row, 0)?..word(row, 8)?;
        let offset = word(row, 16)?.checked_mul(unit)?;
        if range.start < range.end && offset.checked_add(range.end - range.start).is_some() {
            files.push(Mapped {
                range,
                offset,
                name: last.clone(),
            });
        }
    }
    files.sort_by_key(|file| file.range.start);
    let mut end = 0;
    files.retain(|file| {
        let is_behind = file.range.start >= end;
        end = end.max(file.range.end);
        is_behind
    });
    Some(files)
}
