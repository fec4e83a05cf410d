//! The account of a process: each resident page is counted once, under what it is for.

use super::heap::{self, Heap, Holder, Kind, Own};
use super::image::{Image, Mapping, Resident, Weight};
use super::segments::{self, Segment, State};
use super::shape;
use super::tags::Tags;
use anyhow::{bail, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::thread::Builder;

/// What resident memory is for. The order is that of the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    Live,
    Large,
    Guarded,
    Rounding,
    ThreadMagazines,
    DepotMagazines,
    Quarantine,
    FreeInSlabs,
    Holes,
    NeverUsed,
    Tails,
    FreeUnits,
    KeptSpans,
    Changing,
    Headers,
    Records,
    Magazines,
    Handles,
    Arenas,
    Traces,
    GuardRecords,
    Library,
    Files,
    Brk,
    Stacks,
    Shared,
    Anonymous,
}

impl What {
    /// Whether it is memory that Slabyard manages or uses itself.
    pub fn is_slabyard(self) -> bool {
        self <= What::Library
    }

    /// Whether the program could have it: free memory that is resident.
    pub fn is_free(self) -> bool {
        use What::*;
        matches!(
            self,
            ThreadMagazines
                | DepotMagazines
                | Quarantine
                | FreeInSlabs
                | Holes
                | NeverUsed
                | FreeUnits
                | KeptSpans
        )
    }

    /// Its name in JSON and OpenMetrics.
    pub fn key(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|value| Some(value.as_str()?.to_string()))
            .unwrap_or_default()
    }

    pub fn words(self) -> &'static str {
        match self {
            What::Live => "live objects",
            What::Large => "live large objects",
            What::Guarded => "guarded objects",
            What::Rounding => "rounding of objects to slots",
            What::ThreadMagazines => "free, in magazines of threads",
            What::DepotMagazines => "free, in the depot",
            What::Quarantine => "free, in quarantine",
            What::FreeInSlabs => "free, in slabs",
            What::Holes => "free, in mixed units",
            What::NeverUsed => "in slabs, never used",
            What::Tails => "ends of slabs",
            What::FreeUnits => "free units",
            What::KeptSpans => "large spans kept for reuse",
            What::Changing => "just being changed",
            What::Headers => "headers of chunks, maps",
            What::Records => "records of caches and slabs",
            What::Magazines => "magazines and threads",
            What::Handles => "words of handles",
            What::Arenas => "arenas",
            What::Traces => "stack traces",
            What::GuardRecords => "records of guarded objects",
            What::Library => "the library's file",
            What::Files => "files: code, data",
            What::Brk => "heap of brk, of another malloc",
            What::Stacks => "stacks",
            What::Shared => "shared memory",
            What::Anonymous => "other anonymous memory",
        }
    }
}

impl From<Own> for What {
    fn from(own: Own) -> Self {
        match own {
            Own::Headers => What::Headers,
            Own::Records => What::Records,
            Own::Magazines => What::Magazines,
            Own::Handles => What::Handles,
            Own::Arenas => What::Arenas,
            Own::Stacks => What::Traces,
            Own::Guards => What::GuardRecords,
            Own::Library => What::Library,
        }
    }
}

/// A cache in the account. Bytes are resident ones, except `held`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CacheRow {
    pub name: String,
    pub kind: String,
    pub object_bytes: u64,
    pub slot_bytes: u64,
    pub live_objects: u64,
    pub waiting_objects: u64,
    pub live_bytes: u64,
    pub waiting_bytes: u64,
    pub free_bytes: u64,
    pub resident_bytes: u64,
    /// Address space of its slabs.
    pub held_bytes: u64,
    pub refills: u64,
    pub flushes: u64,
    pub limits_hit: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ThreadRow {
    pub number: u32,
    pub name: String,
    /// As the system has it: `S` sleeps, `R` runs.
    pub state: char,
    pub waiting_objects: u64,
    pub waiting_bytes: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FileRow {
    pub name: String,
    pub resident_bytes: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Account {
    pub pid: u32,
    pub program: String,
    /// The files that have a copy of the library.
    pub libraries: Vec<String>,
    pub resident: BTreeMap<What, Weight>,
    /// The sums of all rows.
    pub rss_bytes: u64,
    /// `None`: it was not asked for.
    pub pss_bytes: Option<u64>,
    /// What the system says directly afterwards; `None`: it was not asked.
    pub system_rss_bytes: Option<u64>,
    pub system_pss_bytes: Option<u64>,
    /// Address space for objects that holds no memory.
    pub address_space_bytes: u64,
    /// One for each kind, name and size: separate heaps may have one name.
    pub caches: Vec<CacheRow>,
    /// One for each thread, in order of number: it may use several copies of the library.
    pub threads: Vec<ThreadRow>,
    pub files: Vec<FileRow>,
    /// Live memory by the program's tags; `None`: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Tags>,
    pub problems: Vec<String>,
    /// What the account cannot tell, in sentences.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// Reads all copies of the library in an image.
pub fn heaps(image: &Image) -> Result<Vec<Heap>> {
    let found = shape::find(image);
    if found.is_empty() {
        bail!(match shape::is_foreign(image) {
            true => "only programs with 64 bits, little-endian, can be looked into",
            false =>
                "no Slabyard in this process: it does not use the library, or its version is older \
                 than 0.3.0",
        });
    }
    let read = |one: &shape::Found| {
        heap::read(image, one)
            .map_err(|error| error.context(format!("the library in {}", one.file)))
    };
    let mut heaps = found.iter().map(read).collect::<Result<Vec<Heap>>>()?;
    heap::drop_shared(&mut heaps);
    Ok(heaps)
}

impl Account {
    /// `stacks`: an address in the stack of each thread, if all are known.
    pub fn take(pid: u32, image: &Image, heaps: &[Heap], stacks: Option<&[u64]>) -> Account {
        let mut sums = Sums {
            image,
            resident: BTreeMap::new(),
            claims: BTreeMap::new(),
            address_space: 0,
            problems: Vec::new(),
        };
        let mut caches: BTreeMap<CacheKey, CacheRow> = BTreeMap::new();
        let mut threads: BTreeMap<u32, ThreadRow> = BTreeMap::new();
        for heap in heaps {
            let (of_caches, of_threads) = sums.add_heap(heap);
            for one in of_caches {
                let sum = caches
                    .entry(one.key())
                    .or_insert_with(|| one.without_figures());
                sum.add_row(&one);
            }
            for one in of_threads {
                let sum = threads.entry(one.number).or_insert_with(|| ThreadRow {
                    waiting_objects: 0,
                    waiting_bytes: 0,
                    ..one.clone()
                });
                sum.waiting_objects += one.waiting_objects;
                sum.waiting_bytes += one.waiting_bytes;
            }
            sums.problems.extend(heap.problems.iter().cloned());
        }
        let files = sums.add_rest(stacks);
        let total: Weight = sums.resident.values().copied().sum();
        Account {
            pid,
            program: String::new(),
            libraries: heaps.iter().map(|heap| heap.file.clone()).collect(),
            resident: sums.resident,
            rss_bytes: total.bytes,
            pss_bytes: Some(total.shares.round() as u64),
            system_rss_bytes: None,
            system_pss_bytes: None,
            address_space_bytes: sums.address_space,
            caches: caches.into_values().collect(),
            threads: threads.into_values().collect(),
            files,
            tags: Tags::merged(heaps.iter().filter_map(|heap| heap.tags.as_ref())),
            problems: sums.problems,
            remarks: Vec::new(),
        }
    }

    /// Resident bytes for one thing.
    pub fn of(&self, what: What) -> u64 {
        self.resident.get(&what).map_or(0, |weight| weight.bytes)
    }

    /// Resident bytes that are free.
    pub fn free(&self) -> u64 {
        let free = self.resident.iter().filter(|(what, _)| what.is_free());
        free.map(|(_, weight)| weight.bytes).sum()
    }

    /// The system's figure, less the account's: the process ran on between them.
    pub fn residual(&self) -> Option<i64> {
        Some(self.system_rss_bytes? as i64 - self.rss_bytes as i64)
    }
}

/// What lies in some areas of a heap.
struct AreaSums {
    /// The figures of each cache of the heap.
    rows: Vec<CacheRow>,
    /// Objects and bytes that wait in magazines of each thread of the heap.
    threads: Vec<(u64, u64)>,
    /// There are few parts and millions of segments: a short list is faster than a map.
    parts: Vec<(What, Weight)>,
    address_space: u64,
}

/// Sums up the areas, in several threads if there are many.
fn sums_of_areas(heap: &Heap, resident: &Resident) -> Vec<AreaSums> {
    const THREADS_MAX: usize = 4;
    const LEAST: usize = 64;
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    let threads = processors.min(THREADS_MAX).min(heap.areas.len() / LEAST);
    let share = heap.areas.len().div_ceil(threads.max(1)).max(1);
    let mut shares = heap.areas.chunks(share);
    let first = shares.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let sum = |areas| AreaSums::of(heap, areas, resident);
        let others: Vec<_> = shares
            .map(|areas| {
                (
                    areas,
                    Builder::new().spawn_scoped(scope, move || sum(areas)),
                )
            })
            .collect();
        let mut all = vec![sum(first)];
        // If a thread cannot do it, this one does.
        all.extend(
            others
                .into_iter()
                .map(|(areas, one)| (areas, one.ok().and_then(|one| one.join().ok())))
                .map(|(areas, sums)| sums.unwrap_or_else(|| sum(areas))),
        );
        all
    })
}

impl AreaSums {
    fn of(heap: &Heap, areas: &[heap::Area], resident: &Resident) -> AreaSums {
        let mut sums = AreaSums {
            rows: vec![CacheRow::default(); heap.caches.len()],
            threads: vec![(0, 0); heap.threads.len()],
            parts: Vec::new(),
            address_space: 0,
        };
        let (mut pages, mut cursor) = (resident.cursor(), resident.cursor());
        let mut alike = |slab: &Range<u64>| pages.has_all(slab);
        segments::each_of(heap, areas, &mut alike, &mut |segment| {
            sums.add_segment(heap, segment, cursor.between(segment.range.clone()));
        });
        sums
    }

    fn add_segment(&mut self, heap: &Heap, segment: &Segment, weight: Weight) {
        let space = (segment.range.end - segment.range.start).saturating_sub(weight.bytes);
        self.address_space = self.address_space.saturating_add(space);
        let size = segment.cache.map_or(0, |at| heap.caches[at].size);
        for (what, part) in parts_of(segment, weight, size).into_iter().flatten() {
            self.add_part(what, part);
        }
        if let Some(cache) = segment.cache {
            self.rows[cache].add(segment, weight);
        }
        if let State::Waiting(Holder::Thread(thread)) = segment.state {
            if let Some(row) = self.threads.get_mut(thread as usize) {
                row.0 += segment.count;
                row.1 += weight.bytes;
            }
        }
    }

    fn add_part(&mut self, what: What, part: Weight) {
        match self.parts.iter_mut().find(|(known, _)| *known == what) {
            Some((_, sum)) => *sum += part,
            None => self.parts.push((what, part)),
        }
    }
}

struct Sums<'a> {
    image: &'a Image,
    resident: BTreeMap<What, Weight>,
    /// Ranges that were counted: their ends by their starts.
    claims: BTreeMap<u64, u64>,
    address_space: u64,
    problems: Vec<String>,
}

impl Sums<'_> {
    fn add(&mut self, what: What, weight: Weight) {
        if weight.bytes > 0 {
            *self.resident.entry(what).or_default() += weight;
        }
    }

    /// Claims a range for the account; false: a part of it is claimed already.
    fn claim(&mut self, range: &Range<u64>) -> bool {
        let before = self.claims.range(..range.end).next_back();
        if before.is_some_and(|(_, &end)| end > range.start) {
            return false;
        }
        self.claims.insert(range.start, range.end);
        true
    }

    fn add_heap(&mut self, heap: &Heap) -> (Vec<CacheRow>, Vec<ThreadRow>) {
        for area in &heap.areas {
            self.claim(&area.range);
        }
        let mut rows: Vec<CacheRow> = heap.caches.iter().map(row_of).collect();
        let thread = |thread: &heap::Thread| ThreadRow {
            number: thread.number,
            state: '?',
            ..ThreadRow::default()
        };
        let mut threads: Vec<ThreadRow> = heap.threads.iter().map(thread).collect();
        for sums in sums_of_areas(heap, &self.image.resident) {
            for (row, more) in rows.iter_mut().zip(&sums.rows) {
                row.add_row(more);
            }
            for (row, (objects, bytes)) in threads.iter_mut().zip(sums.threads) {
                row.waiting_objects += objects;
                row.waiting_bytes += bytes;
            }
            for (what, weight) in sums.parts {
                self.add(what, weight);
            }
            self.address_space = self.address_space.saturating_add(sums.address_space);
        }
        for (row, cache) in rows.iter_mut().zip(&heap.caches) {
            row.live_objects = row.live_objects.saturating_sub(cache.retired);
        }
        self.add_own(heap);
        (rows, threads)
    }

    fn add_own(&mut self, heap: &Heap) {
        let guarded = heap.guarded.clone();
        if guarded.start != 0 && guarded.start < guarded.end && self.claim(&guarded) {
            self.add(What::Guarded, self.image.resident.between(guarded));
        }
        // Ranges lie within others, which begin before them: variables within the library's file.
        let mut outer: Vec<(Range<u64>, Own)> = Vec::new();
        let mut flat: Vec<(Range<u64>, Own)> = Vec::new();
        let mut at = 0;
        for (range, own) in heap.own.iter().filter(|one| is_own(heap, one)) {
            close(&mut outer, &mut flat, &mut at, range.start);
            if let Some((_, around)) = outer.last().filter(|_| at < range.start) {
                flat.push((at..range.start, *around));
            }
            at = at.max(range.start);
            outer.push((range.clone(), *own));
        }
        close(&mut outer, &mut flat, &mut at, u64::MAX);
        for (range, own) in flat {
            if range.start < range.end && self.claim(&range) {
                self.add(own.into(), self.image.resident.between(range));
            }
        }
    }

    /// Counts all that is not claimed, by the mapping that it is in.
    fn add_rest(&mut self, stacks: Option<&[u64]>) -> Vec<FileRow> {
        let mut files: HashMap<String, u64> = HashMap::new();
        let mut sum = Weight::default();
        let mut before: Option<&Mapping> = None;
        for mapping in self.image.mappings.iter() {
            let resident = &self.image.resident;
            let mut weight = resident.between(mapping.range.clone());
            sum += weight;
            let Range { start, end } = mapping.range;
            let around = self.claims.range(..start).next_back();
            for (&from, &to) in around.into_iter().chain(self.claims.range(start..end)) {
                weight = weight - resident.between(from.max(start)..to.min(end));
            }
            let file = file_of(mapping, before);
            let what = match &file {
                Some(_) => What::Files,
                None => kind_of(mapping, before, stacks),
            };
            if let Some(name) = file.filter(|_| weight.bytes > 0) {
                *files.entry(name).or_default() += weight.bytes;
            }
            self.add(what, weight);
            before = Some(mapping);
        }
        // Pages that were mapped since the mappings were listed, and are no known memory.
        let late = self.image.resident.all() - sum;
        self.add(What::Anonymous, late);
        let mut files: Vec<_> = files
            .into_iter()
            .map(|(name, resident_bytes)| FileRow {
                name,
                resident_bytes,
            })
            .collect();
        files.sort_by(|a, b| (b.resident_bytes, &a.name).cmp(&(a.resident_bytes, &b.name)));
        files
    }
}

/// Ends the ranges that end before `until`.
fn close(
    outer: &mut Vec<(Range<u64>, Own)>,
    flat: &mut Vec<(Range<u64>, Own)>,
    at: &mut u64,
    until: u64,
) {
    while let Some((range, own)) = outer.pop_if(|(range, _)| range.end <= until) {
        if *at < range.end {
            flat.push((*at..range.end, own));
            *at = range.end;
        }
    }
}

/// The file of a program that contains the library is the program's.
fn is_own(heap: &Heap, (_, own): &(Range<u64>, Own)) -> bool {
    let name = heap.file.rsplit('/').next().unwrap_or_default();
    *own != Own::Library || name.starts_with("libslabyard")
}

fn row_of(cache: &heap::Cache) -> CacheRow {
    CacheRow {
        name: cache.name.clone(),
        kind: match cache.kind {
            Kind::Program => "cache",
            Kind::Size => "malloc",
            Kind::Heap => OF_HEAP,
        }
        .to_string(),
        object_bytes: cache.size,
        slot_bytes: cache.slot,
        refills: cache.refills,
        flushes: cache.flushes,
        limits_hit: cache.limits_hit,
        ..CacheRow::default()
    }
}

/// The kind of the size classes of separate heaps.
pub const OF_HEAP: &str = "heap";

/// What identifies a cache, also in another account: its kind, its name, and the bytes of an object.
pub type CacheKey = (String, String, u64);

impl CacheRow {
    pub fn key(&self) -> CacheKey {
        (self.kind.clone(), self.name.clone(), self.object_bytes)
    }

    fn without_figures(&self) -> Self {
        CacheRow {
            name: self.name.clone(),
            kind: self.kind.clone(),
            object_bytes: self.object_bytes,
            slot_bytes: self.slot_bytes,
            ..CacheRow::default()
        }
    }

    /// The figures come from the process: they may have no sum.
    fn add_row(&mut self, other: &Self) {
        let sums = [
            (&mut self.live_objects, other.live_objects),
            (&mut self.waiting_objects, other.waiting_objects),
            (&mut self.live_bytes, other.live_bytes),
            (&mut self.waiting_bytes, other.waiting_bytes),
            (&mut self.free_bytes, other.free_bytes),
            (&mut self.resident_bytes, other.resident_bytes),
            (&mut self.held_bytes, other.held_bytes),
            (&mut self.refills, other.refills),
            (&mut self.flushes, other.flushes),
            (&mut self.limits_hit, other.limits_hit),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
    }

    /// Whether it has memory, or has had objects.
    pub fn is_used(&self) -> bool {
        self.held_bytes > 0 || self.refills > 0 || self.limits_hit > 0
    }

    fn add(&mut self, segment: &Segment, weight: Weight) {
        self.held_bytes += segment.range.end - segment.range.start;
        self.resident_bytes += weight.bytes;
        match segment.state {
            State::Live => {
                self.live_objects += segment.count;
                self.live_bytes += weight.bytes;
            }
            State::Waiting(_) => {
                self.waiting_objects += segment.count;
                self.waiting_bytes += weight.bytes;
            }
            _ => self.free_bytes += weight.bytes,
        }
    }
}

/// What the bytes of a segment are for. `size`: of an object of its cache.
fn parts_of(segment: &Segment, weight: Weight, size: u64) -> [Option<(What, Weight)>; 2] {
    let what = match segment.state {
        State::Live => What::Live,
        State::Waiting(Holder::Thread(_)) => What::ThreadMagazines,
        State::Waiting(Holder::Depot) => What::DepotMagazines,
        State::Waiting(Holder::Quarantine) => What::Quarantine,
        State::Free if segment.cache.is_none() => What::Holes,
        State::Free => What::FreeInSlabs,
        State::NeverUsed => What::NeverUsed,
        State::Tail => What::Tails,
        State::Large => What::Large,
        State::Units => What::FreeUnits,
        State::Kept => What::KeptSpans,
        State::Changing => What::Changing,
    };
    if what != What::Live || size == 0 || size >= segment.slot {
        return [Some((what, weight)), None];
    }
    let objects = u128::from(weight.bytes) * u128::from(size) / u128::from(segment.slot);
    let objects = objects as u64;
    let part = Weight {
        bytes: objects,
        shares: weight.shares * objects as f64 / weight.bytes.max(1) as f64,
    };
    [
        Some((What::Live, part)),
        Some((What::Rounding, weight - part)),
    ]
}

/// The file that a mapping belongs to. Variables that are zero at the start of a program lie in
/// anonymous memory directly behind those of the file.
fn file_of(mapping: &Mapping, before: Option<&Mapping>) -> Option<String> {
    let is_file = |one: &Mapping| one.name.starts_with('/') && !is_shared(&one.name);
    if is_file(mapping) {
        return Some(mapping.name.clone());
    }
    let before = before
        .filter(|one| one.range.end == mapping.range.start && is_file(one) && one.writable)?;
    (mapping.name.is_empty() && mapping.writable).then(|| before.name.clone())
}

fn is_shared(name: &str) -> bool {
    ["/dev/shm/", "/memfd:", "/SYSV", "/dev/zero"]
        .iter()
        .any(|start| name.starts_with(start))
}

fn kind_of(mapping: &Mapping, before: Option<&Mapping>, stacks: Option<&[u64]>) -> What {
    if mapping.name.starts_with("[stack") {
        return What::Stacks;
    }
    if mapping.name == "[heap]" {
        return What::Brk;
    }
    if is_shared(&mapping.name) || mapping.name == "[shared memory]" {
        return What::Shared;
    }
    // The guard of a stack is memory that cannot be written, below it.
    let is_guard = |one: &Mapping| {
        one.range.end == mapping.range.start && one.name.is_empty() && !one.writable
    };
    let is_stack = match stacks {
        Some(all) => all.iter().any(|at| mapping.range.contains(at)),
        None => before.is_some_and(is_guard),
    };
    match is_stack {
        true => What::Stacks,
        false => What::Anonymous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_have_no_sum_are_the_largest_number() {
        let row = CacheRow {
            live_objects: u64::MAX,
            refills: u64::MAX,
            limits_hit: 2,
            ..CacheRow::default()
        };
        let mut sum = row.clone();
        sum.add_row(&row);
        assert_eq!(
            (sum.live_objects, sum.refills, sum.limits_hit),
            (u64::MAX, u64::MAX, 4)
        );
    }
}
