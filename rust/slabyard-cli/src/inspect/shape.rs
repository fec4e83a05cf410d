//! Finds the library in a process, and where the fields of its structures are.
//!
//! Each executable or shared library with a copy of the library has a note that leads to a
//! description of the structures (src/base/shape.h). It names fields, constants and variables, so
//! this tool reads processes with older and newer versions too.

use super::image::{text_of, Image, Mapping};
use crate::recording::Module;
use anyhow::{bail, Context, Result};
use std::collections::HashMap;
use std::ops::Range;

const NAME: &[u8] = b"Slabyard\0";
const MAGIC: &[u8; 16] = b"slabyard shapes\0";
const VERSION: u64 = 1;
const PARTS_MAX: u64 = 256;
const ROWS_MAX: u64 = 4096;

const DAMAGED: &str = "its description of the structures is damaged";

fn missing(name: &str) -> String {
    format!("it has no {name}, which this tool looks for: use the tool of the library's version")
}

/// A copy of the library in a process.
#[derive(Debug)]
pub struct Found {
    /// The file that it is part of.
    pub file: String,
    /// All of the file in memory, code and variables.
    pub range: Range<u64>,
    /// The address of its description.
    pub shapes: u64,
}

/// All copies of the library, in order of address.
pub fn find(image: &Image) -> Vec<Found> {
    // A file that is mapped as data has a note too, which leads nowhere.
    let is_description = |one: &Found| {
        let magic = image.bytes(one.shapes, MAGIC.len() as u64);
        magic.is_ok_and(|bytes| bytes == MAGIC)
    };
    let mut all: Vec<Found> = starts(&image.mappings)
        .filter_map(|mapping| find_in(image, mapping))
        .filter(is_description)
        .collect();
    all.dedup_by_key(|one| one.shapes);
    all
}

/// Whether the program is for processors that this tool does not know: with 32 bits, or big-endian.
pub fn is_foreign(image: &Image) -> bool {
    let ident = |mapping: &Mapping| image.bytes(mapping.range.start, 6).ok();
    let programs = starts(&image.mappings).filter_map(ident);
    let is_other = |ident: Vec<u8>| ident.starts_with(b"\x7fELF") && ident[4..] != [2, 1];
    programs.into_iter().any(is_other)
}

/// The mappings that an executable file or a shared library may begin with.
pub fn starts(mappings: &[Mapping]) -> impl Iterator<Item = &Mapping> {
    let starts = mappings.iter().enumerate().filter(|(at, one)| {
        let begins = one.offset == 0 && !one.name.starts_with('[');
        // A program that was linked at a fixed address, or whose file was removed, has an anonymous
        // name; so the content decides.
        begins && !(*at > 0 && one.name.is_empty())
    });
    starts.map(|(_, mapping)| mapping)
}

/// The parts of a program header that matter.
struct Segment {
    kind: u32,
    address: u64,
    bytes: u64,
}

const LOAD: u32 = 1;
const NOTE: u32 = 4;

/// A program or shared library in memory.
struct Elf {
    /// What is subtracted from an address to get that in the file.
    bias: u64,
    /// The address behind all of it.
    end: u64,
    segments: Vec<Segment>,
}

fn elf_at(image: &Image, start: u64) -> Option<Elf> {
    let segments = segments(image, start)?;
    let loaded = || segments.iter().filter(|one| one.kind == LOAD);
    let first = loaded().map(|one| one.address).min()?;
    let end = loaded()
        .filter_map(|one| one.address.checked_add(one.bytes))
        .max()?;
    let bias = start.wrapping_sub(first & !0xfff);
    Some(Elf {
        bias,
        end: bias.wrapping_add(end).max(start),
        segments,
    })
}

impl Elf {
    /// The content of the first note of this name and type, and its address.
    fn note(&self, image: &Image, name: &[u8], kind: u32) -> Option<(u64, Vec<u8>)> {
        let notes = self.segments.iter().filter(|one| one.kind == NOTE);
        notes
            .filter_map(|one| {
                let start = self.bias.wrapping_add(one.address);
                note_in(image, start, one.bytes, name, kind)
            })
            .next()
    }
}

fn find_in(image: &Image, mapping: &Mapping) -> Option<Found> {
    const SHAPES: u32 = 1;
    let start = mapping.range.start;
    let elf = elf_at(image, start)?;
    let (place, content) = elf.note(image, NAME, SHAPES)?;
    let distance = i32::from_le_bytes(content.try_into().ok()?);
    Some(Found {
        file: mapping.name.clone(),
        range: start..elf.end,
        shapes: place.wrapping_add_signed(distance.into()),
    })
}

/// The programs and shared libraries in memory, for the names of functions.
pub fn modules(image: &Image) -> Vec<Module> {
    const BUILD_ID: u32 = 3;
    let module = |mapping: &Mapping| {
        let start = mapping.range.start;
        let elf = elf_at(image, start)?;
        let build_id = elf.note(image, b"GNU\0", BUILD_ID);
        Some(Module {
            start,
            end: elf.end,
            bias: elf.bias,
            build_id: build_id.map_or_else(Vec::new, |(_, content)| content),
            path: mapping.name.clone(),
            since: 0,
        })
    };
    starts(&image.mappings).filter_map(module).collect()
}

/// The program headers of a 64-bit ELF file, as `Elf64_Ehdr` and `Elf64_Phdr` have them.
fn segments(image: &Image, start: u64) -> Option<Vec<Segment>> {
    const MOST: u64 = 128;
    let head = image.bytes(start, 64).ok()?;
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let short = |at: usize| u64::from(u16::from_le_bytes([head[at], head[at + 1]]));
    let offset = u64::from_le_bytes(head[32..40].try_into().ok()?);
    let (bytes, count) = (short(54), short(56));
    if bytes < 56 || count > MOST || offset > 1 << 20 {
        return None;
    }
    let all = image
        .bytes(start.wrapping_add(offset), bytes * count)
        .ok()?;
    let segment = |of: &[u8]| {
        Some(Segment {
            kind: u32::from_le_bytes(of[..4].try_into().ok()?),
            address: u64::from_le_bytes(of[16..24].try_into().ok()?),
            bytes: u64::from_le_bytes(of[40..48].try_into().ok()?),
        })
    };
    all.chunks_exact(bytes as usize).map(segment).collect()
}

/// The content of the first note of a name and type, and its address.
fn note_in(
    image: &Image,
    start: u64,
    bytes: u64,
    name: &[u8],
    kind: u32,
) -> Option<(u64, Vec<u8>)> {
    const MOST: u64 = 64 << 10;
    let notes = image.bytes(start, bytes.min(MOST)).ok()?;
    let word = |at: usize| {
        let bytes = notes.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let whole = |bytes: u32| (bytes as usize).next_multiple_of(4);
    let mut at = 0;
    while let (Some(name_bytes), Some(bytes)) = (word(at), word(at + 4)) {
        let content_at = at + 12 + whole(name_bytes);
        let is_name = notes
            .get(at + 12..)
            .is_some_and(|rest| rest.starts_with(name));
        if is_name && word(at + 8) == Some(kind) {
            let content = notes.get(content_at..content_at.checked_add(bytes as usize)?)?;
            return Some((start.wrapping_add(content_at as u64), content.to_vec()));
        }
        at = content_at.checked_add(whole(bytes))?;
    }
    None
}

/// A field of a structure.
#[derive(Debug, Clone, Copy, Default)]
pub struct Field {
    pub offset: u32,
    pub bytes: u32,
}

/// The names of one copy of the library.
#[derive(Debug)]
pub struct Names {
    numbers: HashMap<String, Field>,
    variables: HashMap<String, u64>,
}

impl Names {
    pub fn read(image: &Image, at: u64) -> Result<Self> {
        let head = image.bytes(at, 32)?;
        if !head.starts_with(MAGIC) {
            bail!(DAMAGED);
        }
        let version = image.number(at + 16, 4)?;
        let count = image.number(at + 20, 4)?;
        if version != VERSION {
            bail!(
                "its description of the structures has version {version}, and this tool knows {VERSION}"
            );
        }
        if count > PARTS_MAX {
            bail!(DAMAGED);
        }
        let mut names = Names {
            numbers: HashMap::new(),
            variables: HashMap::new(),
        };
        for part in image.words(image.word(at + 24)?, count)? {
            names.read_part(image, part)?;
        }
        Ok(names)
    }

    fn read_part(&mut self, image: &Image, part: u64) -> Result<()> {
        const ROW: usize = 48;
        const IS_VARIABLE: u32 = u32::MAX;
        let (rows, addresses) = (image.word(part)?, image.word(part.wrapping_add(8))?);
        let row_count = image.number(part.wrapping_add(16), 4)?;
        let address_count = image.number(part.wrapping_add(20), 4)?;
        if row_count > ROWS_MAX || address_count > row_count {
            bail!(DAMAGED);
        }
        let rows = image.bytes(rows, row_count * ROW as u64)?;
        let mut addresses = image.words(addresses, address_count)?.into_iter();
        for row in rows.chunks_exact(ROW) {
            let word = |at: usize| u32::from_le_bytes(row[at..at + 4].try_into().expect("four"));
            let (name, offset, bytes) = (text_of(&row[..40]), word(40), word(44));
            if bytes == IS_VARIABLE {
                let address = addresses.next().context(DAMAGED)?;
                self.variables.insert(name, address);
            } else {
                self.numbers.insert(name, Field { offset, bytes });
            }
        }
        Ok(())
    }

    pub fn field(&self, name: &str) -> Result<Field> {
        self.numbers
            .get(name)
            .copied()
            .with_context(|| missing(name))
    }

    /// The value of a constant.
    pub fn constant(&self, name: &str) -> Result<u64> {
        Ok(self.field(name)?.offset.into())
    }

    /// The bytes of a type.
    pub fn size(&self, name: &str) -> Result<u64> {
        Ok(self.field(name)?.bytes.into())
    }

    /// The address of a field of a structure that lies at `start`.
    pub fn place(&self, start: u64, name: &str) -> Result<u64> {
        let offset = self.field(name)?.offset.into();
        start.checked_add(offset).context(DAMAGED)
    }

    /// Names with these constants, and variables.
    #[cfg(test)]
    pub fn made_up(constants: &[&str], variables: &[(&str, u64)]) -> Self {
        let field = |&name: &&str| {
            (
                name.to_string(),
                Field {
                    offset: 8,
                    bytes: 8,
                },
            )
        };
        let variable = |&(name, address): &(&str, u64)| (name.to_string(), address);
        Names {
            numbers: constants.iter().map(field).collect(),
            variables: variables.iter().map(variable).collect(),
        }
    }

    /// The address of a variable.
    pub fn variable(&self, name: &str) -> Result<u64> {
        self.variables
            .get(name)
            .copied()
            .with_context(|| missing(name))
    }
}

/// A structure that was read.
#[derive(Clone, Copy)]
pub struct Record<'a>(pub &'a [u8]);

impl<'a> Record<'a> {
    /// A number; 0 if the structure ends before the field.
    pub fn get(self, field: Field) -> u64 {
        let start = field.offset as usize;
        let mut word = [0; 8];
        let count = (field.bytes as usize).min(8);
        if let Some(bytes) = self.0.get(start..start + count) {
            word[..count].copy_from_slice(bytes);
        }
        u64::from_le_bytes(word)
    }

    pub fn text(self, field: Field) -> String {
        text_of(self.bytes(field))
    }

    pub fn bytes(self, field: Field) -> &'a [u8] {
        let start = field.offset as usize;
        self.0
            .get(start..start + field.bytes as usize)
            .unwrap_or(&[])
    }
}
