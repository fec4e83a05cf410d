//! Reads the head of an ELF file: the processor it is for, whether a loader starts it, and which
//! malloc is in it. The bytes may be damaged in any way.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A limit: the program headers and the loader's path of a real program are far smaller.
const TABLE_BYTES_MAX: usize = 1 << 20;

/// A limit: the symbols of the largest programs are far smaller.
const SYMBOL_BYTES_MAX: usize = 1 << 28;

const PT_INTERP: u64 = 3;
const SHT_SYMTAB: u64 = 2;
const SHT_DYNAMIC: u64 = 6;
const SHT_DYNSYM: u64 = 11;
const DT_NEEDED: u64 = 1;

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

/// Reads `length` bytes of a file from `offset` on.
type Read<'a> = &'a dyn Fn(u64, usize) -> Option<Vec<u8>>;

/// The sections of a 64-bit file.
struct Sections<'a> {
    elf: &'a Elf,
    read: Read<'a>,
    /// The table of their headers, and the size of one.
    headers: Vec<u8>,
    size: usize,
}

impl<'a> Sections<'a> {
    fn of(elf: &'a Elf, read: Read<'a>) -> Option<Self> {
        if elf.bits != 64 {
            return None;
        }
        let head = read(0, 64)?;
        let table = elf.number(&head, 0x28, 8)?;
        let size = elf.number(&head, 0x3a, 2)? as usize;
        let count = elf.number(&head, 0x3c, 2)? as usize;
        if size == 0 || size * count > TABLE_BYTES_MAX {
            return None;
        }
        let headers = read(table, size * count)?;
        Some(Sections {
            elf,
            read,
            headers,
            size,
        })
    }

    fn bytes(&self, header: &[u8]) -> Option<Vec<u8>> {
        let length = usize::try_from(self.elf.number(header, 0x20, 8)?).ok()?;
        let small = length <= SYMBOL_BYTES_MAX;
        small.then(|| (self.read)(self.elf.number(header, 0x18, 8)?, length))?
    }

    /// The contents of the first section of a kind, and of the section with its names.
    fn with_names(&self, kind: u64) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut sections = self.headers.chunks_exact(self.size);
        let found = sections.find(|header| self.elf.number(header, 4, 4) == Some(kind))?;
        let names = self.elf.number(found, 0x28, 4)? as usize;
        let names = self.headers.chunks_exact(self.size).nth(names)?;
        Some((self.bytes(found)?, self.bytes(names)?))
    }

    /// Which of these names the first symbol has that is defined in the file and has one of them.
    fn defined(&self, table: u64, wanted: &[&str]) -> Option<Option<usize>> {
        let (symbols, names) = self.with_names(table)?;
        let which = |symbol: &[u8]| {
            let start = self.elf.number(symbol, 0, 4)? as usize;
            let is_it = |name: &&str| {
                let rest = names.get(start..).unwrap_or_default();
                rest.starts_with(name.as_bytes()) && rest.get(name.len()) == Some(&0)
            };
            let which = wanted.iter().position(is_it)?;
            (self.elf.number(symbol, 6, 2)? != 0).then_some(which)
        };
        Some(symbols.chunks_exact(24).find_map(which))
    }

    /// The names of the libraries that the file needs.
    fn needed(&self) -> Option<Vec<String>> {
        let (entries, names) = self.with_names(SHT_DYNAMIC)?;
        let name = |entry: &[u8]| {
            let is_library = self.elf.number(entry, 0, 8)? == DT_NEEDED;
            let start = usize::try_from(self.elf.number(entry, 8, 8)?).ok()?;
            let name = names.get(start..).filter(|_| is_library)?;
            let end = name.iter().position(|&byte| byte == 0)?;
            Some(String::from_utf8_lossy(&name[..end]).into_owned())
        };
        Some(entries.chunks_exact(16).filter_map(name).collect())
    }
}

impl Elf {
    /// Reads the head of a file. `None`: it is not an ELF file.
    pub fn open(path: &Path) -> io::Result<Option<Elf>> {
        let file = File::open(path)?;
        Ok(Elf::read(&|offset, length| {
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, offset).ok()?;
            Some(bytes)
        }))
    }

    pub fn of_bytes(bytes: &[u8]) -> Option<Elf> {
        Elf::read(&|offset, length| {
            let start = usize::try_from(offset).ok()?;
            Some(bytes.get(start..start.checked_add(length)?)?.to_vec())
        })
    }

    fn read(read: Read) -> Option<Elf> {
        let head = read(0, 20)?;
        let (bits, big_endian) = match (head.get(..4)?, head[4], head[5]) {
            (b"\x7fELF", 1, order) => (32, order == 2),
            (b"\x7fELF", 2, order) => (64, order == 2),
            _ => return None,
        };
        let mut elf = Elf {
            machine: 0,
            bits,
            big_endian,
            loader: None,
            has_malloc: None,
            sanitizer: None,
        };
        elf.machine = elf.number(&head, 18, 2)? as u16;
        elf.loader = elf.find_loader(read);
        if let Some(sections) = Sections::of(&elf.clone(), read) {
            let malloc = sections.defined(SHT_DYNSYM, &["malloc"]);
            elf.has_malloc = malloc.map(|which| which.is_some());
            elf.sanitizer = elf.find_sanitizer(&sections);
        }
        Some(elf)
    }

    /// The number in the `length` bytes at `at`.
    fn number(&self, bytes: &[u8], at: usize, length: usize) -> Option<u64> {
        let bytes = bytes.get(at..at.checked_add(length)?)?;
        let shift = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(if self.big_endian {
            bytes.iter().fold(0, shift)
        } else {
            bytes.iter().rev().fold(0, shift)
        })
    }

    fn find_loader(&self, read: Read) -> Option<String> {
        let wide = self.bits == 64;
        let word = if wide { 8 } else { 4 };
        let head = read(0, if wide { 64 } else { 52 })?;
        let table = self.number(&head, if wide { 0x20 } else { 0x1c }, word)?;
        let sizes = if wide { 0x36 } else { 0x2a };
        let size = self.number(&head, sizes, 2)? as usize;
        let count = self.number(&head, sizes + 2, 2)? as usize;
        if size == 0 || size * count > TABLE_BYTES_MAX {
            return None;
        }
        let headers = read(table, size * count)?;
        let found = headers
            .chunks_exact(size)
            .find(|header| self.number(header, 0, 4) == Some(PT_INTERP))?;
        let offset = self.number(found, if wide { 8 } else { 4 }, word)?;
        let length = self.number(found, if wide { 0x20 } else { 0x10 }, word)?;
        let length = usize::try_from(length).ok()?;
        if length > TABLE_BYTES_MAX {
            return None;
        }
        let path = read(offset, length)?;
        let end = path.iter().position(|&byte| byte == 0).unwrap_or(length);
        Some(String::from_utf8_lossy(&path[..end]).into_owned())
    }

    /// Which sanitizer it is built with. A sanitizer's runtime is a library that the file needs, or
    /// is linked into it, together with a malloc.
    fn find_sanitizer(&self, sections: &Sections) -> Option<&'static Sanitizer> {
        let needed = sections.needed().unwrap_or_default();
        let by_library = SANITIZERS
            .iter()
            .find(|one| needed.iter().any(|library| one.is_library(library)));
        by_library.or_else(|| {
            let starts = SANITIZERS.each_ref().map(|one| one.start);
            [SHT_DYNSYM, SHT_SYMTAB]
                .into_iter()
                .filter(|_| self.has_malloc == Some(true))
                .find_map(|table| sections.defined(table, &starts)?)
                .map(|which| &SANITIZERS[which])
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
        let (head, word) = if bits == 64 { (64, 8) } else { (52, 4) };
        let mut bytes = vec![0; head + 56];
        bytes[..4].copy_from_slice(b"\x7fELF");
        (bytes[4], bytes[5]) = (bits / 32, 1 + u8::from(big_endian));
        put(&mut bytes, 18, 0x28, 2);
        let (table, sizes) = if bits == 64 {
            (0x20, 0x36)
        } else {
            (0x1c, 0x2a)
        };
        put(&mut bytes, table, head as u64, word);
        put(&mut bytes, sizes, 56, 2);
        put(&mut bytes, sizes + 2, 1, 2);
        put(&mut bytes, head, 3, 4);
        let (offset, size) = if bits == 64 { (8, 0x20) } else { (4, 0x10) };
        let end = bytes.len() as u64;
        put(&mut bytes, head + offset, end, word);
        put(&mut bytes, head + size, 7, word);
        bytes.extend(b"/lib/ld\0"[..7].iter());
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
