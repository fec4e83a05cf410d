//! The memory in a core: its segments, and which of their pages had memory.

use super::files::{Files, Part};
use crate::inspect::image::Source;
use anyhow::{bail, Result};
use object::elf::{self, ProgramHeader64};
use object::read::elf::ProgramHeader;
use object::LittleEndian;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// A segment: a part of the address space, whose first bytes may be in the file.
#[derive(Debug)]
pub struct Load {
    pub range: Range<u64>,
    offset: u64,
    /// Bytes in the file.
    pub present: u64,
    /// Bytes that should be in the file, and lie behind its end.
    pub lost: u64,
    pub writable: bool,
}

impl Load {
    /// `None`: it is empty, or makes no sense.
    pub fn of(header: &ProgramHeader64<LittleEndian>) -> Option<Self> {
        let endian = LittleEndian;
        let (start, bytes) = (header.p_vaddr(endian), header.p_memsz(endian));
        let (offset, in_file) = header.file_range(endian);
        offset.checked_add(in_file)?;
        (bytes > 0).then_some(Load {
            range: start..start.checked_add(bytes)?,
            offset,
            present: in_file.min(bytes),
            lost: 0,
            writable: header.p_flags(endian).contains(elf::PF_W),
        })
    }

    /// The address of a byte in the file.
    fn address(&self, offset: u64) -> u64 {
        self.range.start + (offset - self.offset)
    }

    fn file_range(&self) -> Range<u64> {
        self.offset..self.offset + self.present
    }

    /// Where in the file some bytes are; `None`: they are not there.
    pub fn offset_of(&self, address: u64, bytes: u64) -> Option<u64> {
        let before = address.checked_sub(self.range.start)?;
        (before.checked_add(bytes)? <= self.present).then_some(self.offset + before)
    }

    pub fn present_range(&self) -> Range<u64> {
        self.range.start..self.range.start + self.present
    }
}

/// Sorts the segments, and notes what lies behind the end of the file.
pub fn put_in_order(loads: &mut Vec<Load>, length: u64) -> Result<()> {
    loads.sort_by_key(|load| load.range.start);
    let count = loads.len();
    let mut end = 0;
    loads.retain(|load| {
        let is_behind = load.range.start >= end;
        end = end.max(load.range.end);
        is_behind
    });
    let mut sum: u64 = 0;
    for load in loads.iter_mut() {
        let present = load.present.min(length.saturating_sub(load.offset));
        load.lost = load.present - present;
        load.present = present;
        sum = sum.saturating_add(present);
    }
    // So the work is in proportion to the file.
    if count > loads.len() || sum > length {
        bail!("it is damaged: segments of its memory overlap");
    }
    Ok(())
}

pub fn load_at(loads: &[Load], address: u64) -> Option<&Load> {
    let at = loads.partition_point(|load| load.range.end <= address);
    loads.get(at).filter(|load| load.range.contains(&address))
}

/// The pages of which the core has bytes.
#[derive(Debug, Default)]
pub struct Pages {
    pub resident: Vec<Range<u64>>,
    /// Bytes of pages with zeros, of which it is not known whether they had memory.
    pub zeros: u64,
}

impl Pages {
    fn add(&mut self, range: Range<u64>) {
        match self.resident.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ if range.start < range.end => self.resident.push(range),
            _ => {}
        }
    }
}

/// Finds the pages that had memory. The system leaves holes in the file for the others. Debuggers
/// and pipes do not, or they leave holes for all zeros: pages of zeros are not counted then.
pub fn pages(file: &File, loads: &[Load], page: u64, was_packed: bool) -> Result<Pages> {
    let aligned = |load: &Load| (load.offset | load.range.start).is_multiple_of(page);
    let has_hole = |load: &Load| extents(file, load) != [load.file_range()];
    let present = || loads.iter().filter(|load| load.present > 0);
    let holes_tell = !was_packed && present().all(aligned) && present().any(has_hole);
    let mut pages = Pages::default();
    for load in present() {
        for extent in extents(file, load) {
            if holes_tell {
                let (start, end) = (load.address(extent.start), load.address(extent.end));
                let end = end.checked_next_multiple_of(page).unwrap_or(end);
                pages.add(start - start % page..end.min(load.present_range().end));
            } else {
                add_nonzero(&mut pages, file, load, extent, page)?;
            }
        }
    }
    if !holes_tell {
        let present: u64 = present().map(|load| load.present).sum();
        let resident = pages.resident.iter().map(|one| one.end - one.start);
        pages.zeros = present - resident.sum::<u64>().min(present);
    }
    Ok(pages)
}

/// The parts of a segment in the file that are no holes.
fn extents(file: &File, load: &Load) -> Vec<Range<u64>> {
    let Range { start, end } = load.file_range();
    let seek = |at: u64, whence| {
        // SAFETY: the descriptor is open, and nothing else uses its position.
        let found = unsafe { libc::lseek(file.as_raw_fd(), at as libc::off_t, whence) };
        u64::try_from(found).unwrap_or(end).min(end)
    };
    let mut extents = Vec::new();
    let mut at = start;
    while at < end {
        let data = seek(at, libc::SEEK_DATA).max(at);
        let hole = seek(data, libc::SEEK_HOLE);
        if data >= hole {
            break;
        }
        extents.push(data..hole);
        at = hole;
    }
    extents
}

/// Adds the pages within a part of the file that are not all zeros.
fn add_nonzero(
    pages: &mut Pages,
    file: &File,
    load: &Load,
    extent: Range<u64>,
    page: u64,
) -> Result<()> {
    const PIECE: u64 = 1 << 20;
    let mut buffer = vec![0; PIECE.min(extent.end - extent.start) as usize];
    let mut at = extent.start;
    while at < extent.end {
        let piece = &mut buffer[..(extent.end - at).min(PIECE) as usize];
        file.read_exact_at(piece, at)?;
        let mut done = 0;
        while done < piece.len() {
            let address = load.address(at + done as u64);
            let count = (page - address % page).min((piece.len() - done) as u64);
            let bytes = &piece[done..done + count as usize];
            if bytes.iter().any(|&byte| byte != 0) {
                pages.add(address - address % page..address + count);
            }
            done += count as usize;
        }
        at += piece.len() as u64;
    }
    Ok(())
}

/// Reads from a core, and from the files that have the rest.
pub struct Memory {
    core: File,
    files: Vec<File>,
    /// In order of address. The first files are those of `files`; `None`: the core.
    parts: Vec<(Range<u64>, Option<usize>, u64)>,
}

impl Memory {
    pub fn new(core: File, loads: &[Load], files: Files) -> Self {
        let of_core = loads.iter().filter(|load| load.present > 0);
        let of_core = of_core.map(|load| (load.present_range(), None, load.offset));
        let of_files = |part: Part| (part.range, Some(part.file), part.offset);
        let of_files = files.parts.into_iter().map(of_files);
        let mut parts: Vec<_> = of_core.chain(of_files).collect();
        parts.sort_by_key(|(range, ..)| range.start);
        Memory {
            core,
            files: files.open,
            parts,
        }
    }
}

impl Source for Memory {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let mut done = 0;
        while done < into.len() {
            let at = address + done as u64;
            let part = self.parts.partition_point(|(range, ..)| range.end <= at);
            let part = self.parts.get(part).filter(|one| one.0.contains(&at));
            let Some((range, file, offset)) = part else {
                return false;
            };
            let file = file.map_or(&self.core, |number| &self.files[number]);
            let count = (into.len() - done).min((range.end - at) as usize);
            let offset = offset + (at - range.start);
            if file
                .read_exact_at(&mut into[done..done + count], offset)
                .is_err()
            {
                return false;
            }
            done += count;
        }
        true
    }
}
