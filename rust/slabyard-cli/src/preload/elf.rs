//! Reads the head of an ELF file: the processor it is for, whether a loader starts it, and which
//! malloc is in it. The bytes may be damaged in any way.

use memmap2::Mmap;
use object::elf::{
    FileHeader32, FileHeader64, SectionType, DT_NEEDED, SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionTable, Sym};
use object::Endianness;
use std::fs::File;
use std::io;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elf {
    machine: u16,
    bits: u8,
    big_endian: bool,
    /// The path of its loader; `None` for a statically linked program.
    pub loader: Option<String>,
    /// Whether it defines malloc, which then precedes that of libraries behind it. `None`: its
    /// symbols cannot be read.
    pub has_malloc: Option<bool>,
    /// The sanitizer that it is built with.
    pub sanitizer: Option<&'static Sanitizer>,
}

/// A tool that a compiler builds into a program, and that has a malloc of its own.
#[derive(Debug, PartialEq, Eq)]
pub struct Sanitizer {
    pub name: &'static str,
    /// The value of the compiler's option `-fsanitize`.
    pub option: &'static str,
    /// What its libraries are called: lib*.so, or libclang_rt.*-x86_64.so.
    library: &'static str,
    /// A function that each program built with it calls at its start.
    start: &'static str,
}

const fn sanitizer(
    name: &'static str,
    option: &'static str,
    library: &'static str,
    start: &'static str,
) -> Sanitizer {
    Sanitizer {
        name,
        option,
        library,
        start,
    }
}

static SANITIZERS: [Sanitizer; 5] = [
    sanitizer("AddressSanitizer", "address", "asan", "__asan_init"),
    sanitizer("ThreadSanitizer", "thread", "tsan", "__tsan_init"),
    sanitizer("MemorySanitizer", "memory", "msan", "__msan_init"),
    sanitizer("HWAddressSanitizer", "hwaddress", "hwasan", "__hwasan_init"),
    sanitizer("LeakSanitizer", "leak", "lsan", "__lsan_init"),
];

impl Sanitizer {
    fn is_library(&self, name: &str) -> bool {
        let end = name
            .strip_prefix("libclang_rt.")
            .or(name.strip_prefix("lib"))
            .and_then(|name| name.strip_prefix(self.library));
        end.is_some_and(|end| end.starts_with(['.', '-', '_']))
    }
}

/// The sections of a file, and what is needed to read them.
struct Sections<'data, Head: FileHeader> {
    table: SectionTable<'data, Head>,
    endian: Head::Endian,
    data: &'data [u8],
}

impl<Head: FileHeader> Sections<'_, Head> {
    /// Which of these names the first symbol has that is defined in the file and has one of them.
    /// `None`: the file has no such symbols, or they cannot be read.
    fn defined(&self, kind: SectionType, wanted: &[&str]) -> Option<Option<usize>> {
        let symbols = self.table.symbols(self.endian, self.data, kind).ok()?;
        let which = |symbol: &Head::Sym| {
            let name = symbol.name(self.endian, symbols.strings()).ok()?;
            let is_defined = symbol.st_shndx(self.endian) != SHN_UNDEF;
            let mut wanted = wanted.iter().filter(|_| is_defined);
            wanted.position(|wanted| wanted.as_bytes() == name)
        };
        (!symbols.is_empty()).then(|| symbols.iter().find_map(which))
    }

    /// Whether the file needs a library of this name.
    fn needs(&self, is_it: impl Fn(&str) -> bool) -> bool {
        let Ok(table) = self.table.dynamic_table(self.endian, self.data) else {
            return false;
        };
        let mut libraries = table.iter().filter(|entry| entry.tag == DT_NEEDED);
        libraries.any(|entry| {
            let name = table.string(entry).ok();
            name.is_some_and(|name| is_it(&String::from_utf8_lossy(name)))
        })
    }

    /// Which sanitizer the file is built with. A sanitizer's runtime is a library that the file
    /// needs, or is linked into it, together with a malloc.
    fn sanitizer(&self, has_malloc: bool) -> Option<&'static Sanitizer> {
        let mut all = SANITIZERS.iter();
        let by_library = all.find(|one| self.needs(|name| one.is_library(name)));
        by_library.or_else(|| {
            let starts = SANITIZERS.each_ref().map(|one| one.start);
            [SHT_DYNSYM, SHT_SYMTAB]
                .into_iter()
                .filter(|_| has_malloc)
                .find_map(|kind| self.defined(kind, &starts)?)
                .map(|which| &SANITIZERS[which])
        })
    }
}

impl Elf {
    /// Reads the head of a file. `None`: it is not an ELF file.
    pub fn open(path: &Path) -> io::Result<Option<Elf>> {
        let file = File::open(path)?;
        // SAFETY: the bytes are read only here, and may have any value. As with a recording, the
        // file must not be shortened meanwhile.
        let map = unsafe { Mmap::map(&file) };
        Ok(map.ok().and_then(|map| Elf::of_bytes(&map)))
    }

    pub fn of_bytes(bytes: &[u8]) -> Option<Elf> {
        Elf::of::<FileHeader64<Endianness>>(bytes)
            .or_else(|| Elf::of::<FileHeader32<Endianness>>(bytes))
    }

    fn of<Head: FileHeader<Endian = Endianness>>(data: &[u8]) -> Option<Elf> {
        let head = Head::parse(data).ok()?;
        let endian = head.endian().ok()?;
        let loader = head.program_headers(endian, data).ok().and_then(|all| {
            let mut loaders = all.iter().map(|header| header.interpreter(endian, data));
            loaders.find_map(|loader| loader.ok().flatten())
        });
        let sections = head.sections(endian, data).ok();
        let sections = sections.map(|table| Sections {
            table,
            endian,
            data,
        });
        let sections: Option<Sections<Head>> = sections;
        let malloc = sections
            .as_ref()
            .and_then(|all| all.defined(SHT_DYNSYM, &["malloc"]));
        let has_malloc = malloc.map(|which| which.is_some());
        Some(Elf {
            machine: head.e_machine(endian).0,
            bits: if head.is_class_64() { 64 } else { 32 },
            big_endian: head.is_big_endian(),
            loader: loader.map(|path| String::from_utf8_lossy(path).into_owned()),
            has_malloc,
            sanitizer: sections.and_then(|all| all.sanitizer(has_malloc == Some(true))),
        })
    }

    /// Whether a library of one kind can be loaded into a process of the other.
    pub fn fits(&self, other: &Elf) -> bool {
        let kind = |elf: &Elf| (elf.machine, elf.bits, elf.big_endian);
        kind(self) == kind(other)
    }

    /// A description such as `64-bit x86-64`.
    pub fn kind(&self) -> String {
        let name = match (self.machine, self.bits) {
            (0x03, _) => "x86".to_string(),
            (0x08, _) => "MIPS".to_string(),
            (0x14, _) | (0x15, _) => "PowerPC".to_string(),
            (0x16, _) => "s390".to_string(),
            (0x28, _) => "arm".to_string(),
            (0x3e, _) => "x86-64".to_string(),
            (0xb7, _) => "arm64".to_string(),
            (0xf3, _) => "RISC-V".to_string(),
            (0x102, _) => "LoongArch".to_string(),
            (number, _) => format!("processor number {number}"),
        };
        let order = if self.big_endian { " big-endian" } else { "" };
        format!("{}-bit{order} {name}", self.bits)
    }
}

/// Parses any bytes as an ELF file and discards it, for the fuzzers.
#[cfg(any(test, feature = "fuzz"))]
pub fn try_bytes(bytes: &[u8]) {
    if let Some(elf) = Elf::of_bytes(bytes) {
        assert!(elf.fits(&elf) && !elf.kind().is_empty());
        assert!(elf.loader.is_none_or(|path| path.len() <= 3 * bytes.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_a_loader_and_fits_itself() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let elf = Elf::of_bytes(&bytes).unwrap();
        assert!(elf.loader.as_ref().unwrap().contains("ld"), "{elf:?}");
        assert_eq!(
            Elf::open(Path::new("/proc/self/exe")).unwrap(),
            Some(elf.clone())
        );
        let mut other = bytes.clone();
        other[18] ^= 1;
        assert!(!Elf::of_bytes(&other).unwrap().fits(&elf));
    }

    #[test]
    fn a_malloc_that_a_file_offers_is_seen() {
        let bytes = crate::preload::DROP_IN;
        let malloc = |bytes: &[u8]| Elf::of_bytes(bytes).unwrap().has_malloc;
        assert_eq!(malloc(bytes), Some(true));
        let without = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(malloc(&without), Some(false));
        for length in [64, 4096, bytes.len() - 1] {
            assert_eq!(malloc(&bytes[..length]), None);
        }
    }

    #[test]
    fn libraries_of_sanitizers_are_recognized_by_their_names() {
        for (library, name) in [
            ("libasan.so.8", Some("AddressSanitizer")),
            ("libclang_rt.asan-x86_64.so", Some("AddressSanitizer")),
            ("libclang_rt.asan.so", Some("AddressSanitizer")),
            (
                "libclang_rt.hwasan_aliases-x86_64.so",
                Some("HWAddressSanitizer"),
            ),
            ("libhwasan.so.0", Some("HWAddressSanitizer")),
            ("libtsan.so.2", Some("ThreadSanitizer")),
            ("liblsan.so.0", Some("LeakSanitizer")),
            ("libubsan.so.1", None),
            ("libclang_rt.ubsan_standalone-x86_64.so", None),
            ("libasanas.so", None),
            ("libm.so.6", None),
        ] {
            let found = SANITIZERS.iter().find(|one| one.is_library(library));
            assert_eq!(found.map(|one| one.name), name, "{library}");
        }
    }

    /// The head of an ELF file of 32 bits, or of the other byte order, followed by one program
    /// header.
    fn small(bits: u8, big_endian: bool) -> Vec<u8> {
        let put = |bytes: &mut Vec<u8>, at: usize, value: u64, length: usize| {
            for place in 0..length {
                let shift = if big_endian {
                    length - 1 - place
                } else {
                    place
                };
                bytes[at + place] = (value >> (8 * shift)) as u8;
            }
        };
        // The sizes of the two headers and of a word, and where their fields are.
        let (head, program, word, table, sizes, offset, length) = match bits {
            64 => (64, 56, 8, 0x20, 0x36, 8, 0x20),
            _ => (52, 32, 4, 0x1c, 0x2a, 4, 0x10),
        };
        let mut bytes = vec![0; head + program];
        bytes[..4].copy_from_slice(b"\x7fELF");
        bytes[4..7].copy_from_slice(&[bits / 32, 1 + u8::from(big_endian), 1]);
        put(&mut bytes, 18, 0x28, 2);
        put(&mut bytes, table, head as u64, word);
        put(&mut bytes, sizes, program as u64, 2);
        put(&mut bytes, sizes + 2, 1, 2);
        put(&mut bytes, head, 3, 4);
        let end = bytes.len() as u64;
        put(&mut bytes, head + offset, end, word);
        put(&mut bytes, head + length, 8, word);
        bytes.extend(b"/lib/ld\0");
        bytes
    }

    #[test]
    fn files_of_other_machines_are_read_too() {
        for (bits, big_endian, kind) in [
            (32, false, "32-bit arm"),
            (32, true, "32-bit big-endian arm"),
            (64, true, "64-bit big-endian arm"),
        ] {
            let mut bytes = small(bits, big_endian);
            let elf = Elf::of_bytes(&bytes).unwrap();
            assert_eq!(elf.kind(), kind);
            assert_eq!(elf.loader.as_deref(), Some("/lib/ld"));
            let head = if bits == 64 { 64 } else { 52 };
            bytes[head..head + 4].fill(1);
            assert_eq!(Elf::of_bytes(&bytes).unwrap().loader, None);
        }
        assert_eq!(Elf::of_bytes(b"\x7fELF"), None);
        assert_eq!(Elf::of_bytes(b"#!/bin/sh\n and more of this text"), None);
    }
}
