//! Opens a core file: the memory of a process at the moment when the system or a debugger wrote it.
//!
//! [`unpack`] opens the file; [`notes`] says which process it was, and which files it had mapped;
//! [`memory`] finds what the core has of its memory; [`files`] has what a core leaves out of the
//! files. A core may be cut off, or damaged in any way.

mod files;
mod memory;
mod notes;
#[cfg(any(test, feature = "fuzz"))]
pub mod sample;
#[cfg(test)]
mod tests;
mod unpack;

use super::image::{Image, Mapping};
use crate::{signals, ui};
use anyhow::{bail, Context, Result};
use memory::{Load, Memory};
use notes::Notes;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{LittleEndian, ReadCache};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub struct Core {
    pub image: Image,
    pub about: About,
}

/// What a core says about its process.
#[derive(Debug, Default)]
pub struct About {
    pub pid: u32,
    pub program: String,
    /// Where the stacks of the threads are.
    pub stacks: Vec<u64>,
    /// Sentences for the account: what this core does not tell.
    pub remarks: Vec<String>,
    /// Bytes of memory behind the end of the file.
    lost: u64,
    /// Mapped files whose code and constants could not be read.
    missing: Vec<String>,
}

impl About {
    /// Adds to an error what was missing.
    pub fn explained(&self, error: anyhow::Error) -> anyhow::Error {
        if self.lost > 0 {
            return error.context(format!(
                "the core is cut off, and {} of memory are missing",
                ui::bytes(self.lost)
            ));
        }
        if self.missing.is_empty() {
            return error;
        }
        error.context(format!(
            "the core leaves out parts of these files, and this machine does not have the same files \
             (they can also lie beside the core): {}",
            self.missing.join(", ")
        ))
    }
}

/// Opens a core.
pub fn open(path: &Path) -> Result<Core> {
    let (file, is_packed) = unpack::open(path)?;
    read(&file, path, is_packed).with_context(|| format!("cannot use {}", path.display()))
}

/// Reads a core that is not compressed, or not any more.
pub fn read(file: &File, path: &Path, was_packed: bool) -> Result<Core> {
    let length = file.metadata()?.len();
    let (mut loads, notes) = headers(file, length)?;
    memory::put_in_order(&mut loads, length)?;
    let mappings = mappings(&loads, &notes);
    let pages = memory::pages(file, &loads, notes.page, was_packed)?;
    let files = files::find(file, path, &loads, &mappings);
    let about = about(notes, &loads, &pages, &files);
    let elsewhere = files.parts.iter().map(|part| part.range.clone()).collect();
    let memory = Memory::new(file.try_clone()?, &loads, files);
    let image = Image::new(Box::new(memory), mappings, &pages.resident).with(elsewhere);
    Ok(Core { image, about })
}

#[cfg(target_arch = "x86_64")]
const MACHINE: elf::Machine = elf::EM_X86_64;
#[cfg(target_arch = "aarch64")]
const MACHINE: elf::Machine = elf::EM_AARCH64;

/// The most bytes of notes that are read: 64 KiB for each of a thousand threads.
const NOTES_MAX: u64 = 64 << 20;

/// Reads the list of the memory, and the notes.
fn headers(file: &File, length: u64) -> Result<(Vec<Load>, Notes)> {
    check_magic(file)?;
    let cut = "it is cut off before its list of the memory, or that is damaged";
    let cache = ReadCache::new(file);
    let header = FileHeader64::<LittleEndian>::parse(&cache).context("it is no 64-bit ELF file")?;
    let endian = LittleEndian;
    if header.is_big_endian() || header.e_machine(endian) != MACHINE {
        bail!("it is of another processor architecture than this machine's");
    }
    match header.e_type(endian) {
        elf::ET_CORE => {}
        elf::ET_EXEC | elf::ET_DYN => bail!("it is a program or a library, not a core"),
        _ => bail!("it is not a core"),
    }
    let headers = header.program_headers(endian, &cache).context(cut)?;
    let mut loads = Vec::new();
    let mut notes = None;
    for header in headers {
        let (offset, bytes) = header.file_range(endian);
        match header.p_type(endian) {
            elf::PT_LOAD => loads.extend(Load::of(header)),
            elf::PT_NOTE if notes.is_none() => {
                let bytes = bytes.min(length.saturating_sub(offset)).min(NOTES_MAX);
                let mut text = vec![0; bytes as usize];
                file.read_exact_at(&mut text, offset)?;
                notes = Some(Notes::read(&text, header.p_align(endian)));
            }
            _ => {}
        }
    }
    if loads.is_empty() {
        bail!("it has no memory");
    }
    Ok((loads, notes.unwrap_or_default()))
}

fn check_magic(file: &File) -> Result<()> {
    let mut magic = [0; 4];
    match file.read_exact_at(&mut magic, 0) {
        Ok(()) if magic == elf::ELFMAG => Ok(()),
        _ => bail!("it is not an ELF file, so it is not a core"),
    }
}

/// The mappings of the process. A core names those of files in a note, and others by what they hold.
fn mappings(loads: &[Load], notes: &Notes) -> Vec<Mapping> {
    let files = notes.files.iter().map(|file| &file.range);
    let ranges = loads.iter().map(|load| &load.range).chain(files);
    let mut cuts: Vec<u64> = ranges.flat_map(|range| [range.start, range.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mapping = |cut: &[u64]| {
        let range = cut[0]..cut[1];
        let load = memory::load_at(loads, range.start);
        let file = notes.file_at(range.start);
        if load.is_none() && file.is_none() {
            return None;
        }
        let (name, offset) = match file {
            Some(file) => (
                file.name.to_string(),
                file.offset + (range.start - file.range.start),
            ),
            None if range.contains(&notes.stack) => ("[stack]".into(), 0),
            None if range.contains(&notes.vdso) => ("[vdso]".into(), 0),
            None => (String::new(), 0),
        };
        Some(Mapping {
            range,
            name,
            offset,
            // A debugger leaves out what the process cannot write: code, and constants.
            writable: load.is_some_and(|load| load.writable),
            share: 1.0,
        })
    };
    cuts.windows(2).filter_map(mapping).collect()
}

fn about(notes: Notes, loads: &[Load], pages: &memory::Pages, files: &files::Files) -> About {
    let mut remarks = Vec::new();
    let at = match notes.signal {
        0 => String::new(),
        signal => format!(" when it got {}", signals::described(signal)),
    };
    remarks.push(format!(
        "This is a core, a copy of the process{at}. It does not tell which pages of files were \
         resident, and which memory other processes share: its sum is less than the RSS was."
    ));
    if pages.zeros > 0 {
        remarks.push(format!(
            "{} of zeros in it count as not resident: the core does not tell which of them had \
             memory.",
            ui::bytes(pages.zeros)
        ));
    }
    let lost: u64 = loads.iter().map(|load| load.lost).sum();
    if lost > 0 {
        remarks.push(format!(
            "The core is cut off: {} of memory are missing, and count as not resident.",
            ui::bytes(lost)
        ));
    }
    if !files.unproved.is_empty() {
        remarks.push(format!(
            "These files are older than the core, and are taken for those that the process had: {}.",
            files.unproved.join(", ")
        ));
    }
    About {
        pid: notes.pid,
        program: notes.program,
        stacks: notes.stacks,
        remarks,
        lost,
        missing: files.missing.clone(),
    }
}
