//! Finds the bytes of files that a core leaves out: code and constants. The files on this machine
//! have them, if they are the same.

use super::memory::{load_at, Load};
use crate::inspect::image::Mapping;
use crate::preload;
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A part of the address space whose bytes a file has.
#[derive(Debug)]
pub struct Part {
    pub range: Range<u64>,
    /// The index in [`Files::open`].
    pub file: usize,
    pub offset: u64,
}

#[derive(Debug, Default)]
pub struct Files {
    pub open: Vec<File>,
    /// In order of address.
    pub parts: Vec<Part>,
    /// Names of files that are not here, or not as they were.
    pub missing: Vec<String>,
    /// Names of files that are older than the core, and that cannot be compared with it.
    pub unproved: Vec<String>,
}

/// Files that are opened at most: a process with more has most of them for other purposes.
const FILES_MAX: usize = 1024;

/// The bytes at the beginning of a file that are compared: the heads of a program or library, with
/// its build id.
const HEAD: usize = 4096;

/// `path`: of the core.
pub fn find(core: &File, path: &Path, loads: &[Load], mappings: &[Mapping]) -> Files {
    let mut files = Files::default();
    let mut known: HashMap<&str, Option<usize>> = HashMap::new();
    let constant = |one: &&Mapping| one.name.starts_with('/') && !one.writable;
    for mapping in mappings.iter().filter(constant) {
        let load = load_at(loads, mapping.range.start);
        let start = load.map_or(mapping.range.start, |load| {
            load.present_range()
                .end
                .clamp(mapping.range.start, mapping.range.end)
        });
        if start == mapping.range.end || load.is_some_and(|load| load.lost > 0) {
            continue;
        }
        let name = mapping.name.as_str();
        if !known.contains_key(name) && known.len() < FILES_MAX {
            let head = head_in(core, loads, mappings, name);
            known.insert(name, files.open_as(core, path, name, head));
        }
        if let Some(&Some(file)) = known.get(name) {
            files.parts.push(Part {
                offset: mapping.offset + (start - mapping.range.start),
                range: start..mapping.range.end,
                file,
            });
        }
    }
    files
}

/// The beginning of a mapped file, if the core has it.
fn head_in(core: &File, loads: &[Load], mappings: &[Mapping], name: &str) -> Option<Vec<u8>> {
    let first = mappings
        .iter()
        .find(|one| one.offset == 0 && one.name == name)?;
    let load = load_at(loads, first.range.start)?;
    let offset = load.offset_of(first.range.start, HEAD as u64)?;
    let mut head = vec![0; HEAD];
    core.read_exact_at(&mut head, offset).ok()?;
    Some(head)
}

fn is_program(head: &[u8]) -> bool {
    head.starts_with(b"\x7fELF")
}

impl Files {
    /// Opens a file that the process had mapped; returns its index.
    fn open_as(
        &mut self,
        core: &File,
        path: &Path,
        name: &str,
        head: Option<Vec<u8>>,
    ) -> Option<usize> {
        if head.as_ref().is_some_and(|head| !is_program(head)) {
            return None;
        }
        let name = name.strip_suffix(" (deleted)").unwrap_or(name);
        let file = match &head {
            Some(head) => same(path, name, head),
            None => self.older(core, name)?,
        };
        let Some(file) = file else {
            self.missing.push(name.to_string());
            return None;
        };
        self.open.push(file);
        Some(self.open.len() - 1)
    }

    /// A file that was not changed since the core was written. The outer `None`: it is no program.
    fn older(&mut self, core: &File, name: &str) -> Option<Option<File>> {
        let Some((file, head)) = open(Path::new(name)) else {
            return name.contains(".so").then_some(None);
        };
        if !is_program(&head) {
            return None;
        }
        let time = |file: &File| file.metadata().ok()?.modified().ok();
        let is_older = time(&file)? <= time(core)?;
        if is_older {
            self.unproved.push(name.to_string());
        }
        Some(is_older.then_some(file))
    }
}

/// A file that begins like the one of the process: at its path, beside the core, or in this tool.
fn same(core: &Path, name: &str, head: &[u8]) -> Option<File> {
    let path = PathBuf::from(name);
    let beside = path.file_name().map(|name| core.with_file_name(name));
    for path in [Some(path), beside].into_iter().flatten() {
        match open(&path) {
            Some((file, found)) if found == head => return Some(file),
            _ => {}
        }
    }
    if !preload::DROP_IN.starts_with(head) {
        return None;
    }
    let mut file = tempfile::tempfile().ok()?;
    file.write_all(preload::DROP_IN).ok()?;
    Some(file)
}

/// Opens a file, unless it is a device or the like, and reads its beginning.
fn open(path: &Path) -> Option<(File, Vec<u8>)> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    let mut head = vec![0; HEAD];
    file.read_exact_at(&mut head, 0).ok()?;
    Some((file, head))
}
