//! Opens a running process: its mappings, its resident pages, its memory. The process is not stopped,
//! and nothing in it changes.

use super::files::Memory;
use super::image::{Image, Mapping};
use super::shape;
use anyhow::{bail, Context, Result};
use procfs::process::{MMPermissions, MMapPath, MemoryMaps, Process};
use procfs::ProcError;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

/// Opens the memory of a process. `shares`: also how much of each mapping is the process's own, which
/// takes the system as long as all the rest (60 ns for each resident page).
pub fn open(pid: u32, shares: bool) -> Result<Image> {
    let process = Process::new(pid as i32).map_err(|error| explained(pid, error))?;
    let maps = match shares {
        true => process.smaps(),
        false => process.maps(),
    };
    let maps = maps.map_err(|error| explained(pid, error))?;
    if maps.0.is_empty() {
        bail!("process {pid} has no memory: it has ended, or it belongs to the kernel");
    }
    let file = |name: &str| {
        let path = format!("/proc/{pid}/{name}");
        File::open(&path).with_context(|| match name {
            "mem" => denied(pid),
            _ => format!("cannot open {path}"),
        })
    };
    let memory = file("mem")?;
    let mappings = mappings_of(&maps);
    let pagemap = file("pagemap")?;
    // The system lists a page of its own (vsyscall) behind all addresses of programs.
    let ends = mappings.iter().map(|one| one.range.end);
    let end = ends.filter(|&end| end < 1 << 63).max().unwrap_or(0);
    let found = scan_all(&pagemap, &mappings, end).or_else(|| walk(&pagemap, &mappings));
    let found = found.context("the resident pages of the process cannot be listed")?;
    let mut pages = found.resident;
    for mapping in mappings.iter().filter(|one| is_of_huge_files(&one.name)) {
        // They count neither as RSS nor as PSS.
        pages.retain(|range| !mapping.range.contains(&range.start));
    }
    let all = |range: &Range<u64>| range.clone();
    let memory = Memory::new(pid, memory, &maps, &all, &pages, &found.swapped);
    // Pages in swap, and of files, are read only if a structure of the library lies there.
    let mut elsewhere: Vec<_> = memory.ranges().chain(found.swapped).collect();
    elsewhere.sort_by_key(|range| range.start);
    Ok(Image::new(Box::new(memory), mappings, &pages).with(elsewhere))
}

/// Whether a mapping consists of pages that the administrator set apart (hugetlbfs).
fn is_of_huge_files(name: &str) -> bool {
    name.starts_with("/anon_hugepage") || name.starts_with("/dev/hugepages/")
}

/// Pages of a process, in order of address.
#[derive(Default)]
struct Pages {
    resident: Vec<Range<u64>>,
    swapped: Vec<Range<u64>>,
}

/// The same for no more than the starts of its files, where the library's note is: this is cheap
/// whatever the process's size.
pub fn open_starts(pid: u32) -> Result<Image> {
    const START: u64 = 1 << 20;
    let process = Process::new(pid as i32).map_err(|error| explained(pid, error))?;
    let maps = process.maps().map_err(|error| explained(pid, error))?;
    let open = |name| File::open(format!("/proc/{pid}/{name}")).with_context(|| denied(pid));
    let (memory, pagemap) = (open("mem")?, open("pagemap")?);
    let mappings = mappings_of(&maps);
    let start_of = |range: &Range<u64>| range.start..range.end.min(range.start + START);
    let starts: Vec<Mapping> = shape::starts(&mappings)
        .map(|one| Mapping {
            range: start_of(&one.range),
            ..one.clone()
        })
        .collect();
    let pages = starts.iter().filter_map(|one| {
        let pages = scan(&pagemap, one.range.clone());
        pages.or_else(|| walk(&pagemap, std::slice::from_ref(one)))
    });
    let pages: Vec<_> = pages.flat_map(|pages| pages.resident).collect();
    let within = |range: &Range<u64>| match starts.iter().find(|one| one.range.start == range.start)
    {
        Some(one) => one.range.clone(),
        None => range.start..range.start,
    };
    let memory = Memory::new(pid, memory, &maps, &within, &pages, &[]);
    let elsewhere = memory.ranges().collect();
    Ok(Image::new(Box::new(memory), mappings, &pages).with(elsewhere))
}

/// The system's own sums: resident bytes and the process's share of them.
pub fn sums(pid: u32) -> Option<(u64, u64)> {
    let process = Process::new(pid as i32).ok()?;
    let rollup = process.smaps_rollup().ok()?;
    let map = rollup.memory_map_rollup.0.first()?;
    let of = |key: &str| map.extension.map.get(key).copied();
    Some((of("Rss")?, of("Pss")?))
}

pub fn denied(pid: u32) -> String {
    format!(
        "you may not read the memory of process {pid}: run this as the same user or as root, and see \
         /proc/sys/kernel/yama/ptrace_scope (with 1, only the parent of a process and root may)"
    )
}

fn explained(pid: u32, error: ProcError) -> anyhow::Error {
    match error {
        ProcError::NotFound(_) => anyhow::anyhow!("there is no process {pid}"),
        ProcError::PermissionDenied(_) => anyhow::anyhow!(denied(pid)),
        other => anyhow::Error::new(other).context(format!("cannot read about process {pid}")),
    }
}

fn mappings_of(maps: &MemoryMaps) -> Vec<Mapping> {
    let figures = maps.0.iter().map(|one| {
        let of = |key: &str| one.extension.map.get(key).copied().unwrap_or(0) as f64;
        Mapping {
            range: one.address.0..one.address.1,
            name: name_of(&one.pathname).replace(char::is_control, "?"),
            offset: one.offset,
            writable: one.perms.contains(MMPermissions::WRITE),
            share: if of("Rss") > 0.0 {
                (of("Pss") / of("Rss")).min(1.0)
            } else {
                1.0
            },
        }
    });
    figures.collect()
}

fn name_of(path: &MMapPath) -> String {
    match path {
        MMapPath::Path(path) => path.display().to_string(),
        MMapPath::Heap => "[heap]".into(),
        MMapPath::Stack => "[stack]".into(),
        MMapPath::TStack(thread) => format!("[stack:{thread}]"),
        MMapPath::Vdso => "[vdso]".into(),
        MMapPath::Vvar => "[vvar]".into(),
        MMapPath::Vsyscall => "[vsyscall]".into(),
        MMapPath::Rollup => "[rollup]".into(),
        MMapPath::Vsys(_) => "[shared memory]".into(),
        MMapPath::Other(name) => format!("[{name}]"),
        MMapPath::Anonymous => String::new(),
    }
}

// ---- resident pages ----

/// Linux 6.7 and later: `struct pm_scan_arg` of linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct ScanArg {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

#[repr(C)]
#[derive(Default, Clone, Copy)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
const PAGE_IS_PRESENT: u64 = 1 << 3;
const PAGE_IS_SWAPPED: u64 = 1 << 4;
const PAGE_IS_PFNZERO: u64 = 1 << 5;

/// Parts of the address space below `end`, each with at most so many mapped bytes.
fn parts_of(mappings: &[Mapping], end: u64, most: u64) -> Vec<Range<u64>> {
    let mut parts = Vec::new();
    let (mut start, mut sum) = (0, 0);
    for one in mappings.iter().filter(|one| one.range.end <= end) {
        let mut at = one.range.start;
        while sum + (one.range.end - at) >= most {
            at += most - sum;
            parts.push(start..at);
            (start, sum) = (at, 0);
        }
        sum += one.range.end - at;
    }
    parts.push(start..end);
    parts
}

/// The pages below an address. The system looks at each one, which takes 50 ms for 8 GiB, so several
/// threads ask it.
fn scan_all(pagemap: &File, mappings: &[Mapping], end: u64) -> Option<Pages> {
    const THREADS_MAX: usize = 4;
    const PART: u64 = 512 << 20;
    let parts = parts_of(mappings, end, PART);
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    let next = AtomicUsize::new(0);
    let work = || -> Option<Vec<Pages>> {
        let mine = std::iter::from_fn(|| parts.get(next.fetch_add(1, Ordering::Relaxed)));
        mine.map(|part| scan(pagemap, part.clone())).collect()
    };
    let scanned: Option<Vec<Vec<Pages>>> = std::thread::scope(|scope| {
        let others = processors.min(THREADS_MAX).min(parts.len()) - 1;
        let start = |_| Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (0..others).map_while(start).collect();
        let own = work();
        let ended = others.into_iter().map(|one| one.join().ok().flatten());
        std::iter::once(own).chain(ended).collect()
    });
    let mut pages = Pages::default();
    for part in scanned?.into_iter().flatten() {
        pages.resident.extend(part.resident);
        pages.swapped.extend(part.swapped);
    }
    pages.resident = merged(pages.resident);
    pages.swapped = merged(pages.swapped);
    Some(pages)
}

/// The pages within a range, by the system call for that. The system's page of zeros counts nowhere as
/// memory. `None`: the system does not have the call.
fn scan(pagemap: &File, within: Range<u64>) -> Option<Pages> {
    let mut regions = vec![PageRegion::default(); 4096];
    let mut pages = Pages::default();
    let mut start = within.start;
    while start < within.end {
        let mut arg = ScanArg {
            size: size_of::<ScanArg>() as u64,
            start,
            end: within.end,
            vec: regions.as_mut_ptr() as u64,
            vec_len: regions.len() as u64,
            category_inverted: PAGE_IS_PFNZERO,
            category_mask: PAGE_IS_PFNZERO,
            category_anyof_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
            return_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
            ..ScanArg::default()
        };
        // SAFETY: the structure is the kernel's, and `vec` has room for `vec_len` regions.
        let found = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN as _, &mut arg) };
        let found = usize::try_from(found).ok()?;
        for region in &regions[..found] {
            let list = match region.categories & PAGE_IS_PRESENT {
                0 => &mut pages.swapped,
                _ => &mut pages.resident,
            };
            list.push(region.start..region.end);
        }
        if arg.walk_end <= start {
            break;
        }
        start = arg.walk_end;
    }
    pages.resident = merged(pages.resident);
    pages.swapped = merged(pages.swapped);
    Some(pages)
}

/// Puts ranges in order, and joins those that overlap. Linux 6.18 may say that a scan ended before
/// the last region that it reports; the next scan then reports regions again.
fn merged(mut pages: Vec<Range<u64>>) -> Vec<Range<u64>> {
    pages.sort_by_key(|range| range.start);
    let mut all: Vec<Range<u64>> = Vec::with_capacity(pages.len());
    for range in pages {
        match all.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => all.push(range),
        }
    }
    all
}

/// Memory of the system that it shows to each process, and counts for none.
fn is_outside(mapping: &Mapping) -> bool {
    mapping.name.starts_with("[vvar") || mapping.name == "[vsyscall]"
}

/// The same from the entries of single pages. The system's page of zeros cannot be told apart.
fn walk(pagemap: &File, mappings: &[Mapping]) -> Option<Pages> {
    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    // SAFETY: sysconf has no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    let mut pages = Pages::default();
    let mut entries = vec![0; 64 << 10];
    for mapping in mappings.iter().filter(|one| !is_outside(one)) {
        let mut at = mapping.range.start;
        while at < mapping.range.end {
            let count = ((mapping.range.end - at) / page * 8).min(entries.len() as u64) as usize;
            pagemap
                .read_exact_at(&mut entries[..count], at / page * 8)
                .ok()?;
            for entry in entries[..count].chunks_exact(8) {
                let entry = u64::from_le_bytes(entry.try_into().expect("eight bytes"));
                let list = match entry {
                    present if present & PRESENT != 0 => Some(&mut pages.resident),
                    swapped if swapped & SWAPPED != 0 => Some(&mut pages.swapped),
                    _ => None,
                };
                if let Some(list) = list {
                    match list.last_mut() {
                        Some(last) if last.end == at => last.end += page,
                        _ => list.push(at..at + page),
                    }
                }
                at += page;
            }
        }
    }
    Some(pages)
}

#[cfg(test)]
mod tests {
    use super::{merged, parts_of, Mapping};

    #[test]
    fn parts_have_so_many_mapped_bytes() {
        let mapping = |range: std::ops::Range<u64>| Mapping {
            range,
            name: String::new(),
            offset: 0,
            writable: true,
            share: 1.0,
        };
        let mappings = [mapping(100..150), mapping(200..460), mapping(900..950)];
        let parts = parts_of(&mappings, 600, 100);
        assert_eq!(parts, [0..250, 250..350, 350..450, 450..600]);
        assert_eq!(
            parts_of(&mappings, 600, 1000),
            std::slice::from_ref(&(0..600))
        );
        assert_eq!(parts_of(&[], 600, 100), std::slice::from_ref(&(0..600)));
    }

    #[test]
    fn regions_that_are_reported_twice_count_once() {
        let twice = vec![0..2, 5..6, 8..9, 1..3, 5..6, 6..7, 8..9];
        assert_eq!(merged(twice), [0..3, 5..7, 8..9]);
    }
}
