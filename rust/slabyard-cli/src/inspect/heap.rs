//! Reads what a copy of the library has: chunks, large spans, slabs, caches, threads, magazines, and
//! its own tables.
//!
//! The process runs on, so a list may change while it is read, and single objects may seem to be in
//! two places. Lists that make no sense end early. What was given up is noted in `problems`.

use super::fields::{CacheFields, Load, MagazineFields, Ordinals, RunFields};
use super::image::{Again, Image};
use super::shape::{Field, Found, Names, Record};
use super::tags::{self, Tags};
use anyhow::Result;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::thread::Builder;

/// Who holds a free object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A magazine of the thread with this index in [`Heap::threads`].
    Thread(u32),
    /// A magazine in the depot, or on its way to the slabs.
    Depot,
    /// The quarantine of its cache.
    Quarantine,
}

/// A free object in a magazine, or in quarantine.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    pub address: u64,
    /// The number of the cache's client that the magazine belongs to.
    pub client: u32,
    pub holder: Holder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Made by the program.
    Program,
    /// A size class of malloc.
    Size,
    /// A size class of a separate heap.
    Heap,
}

#[derive(Debug, Clone)]
pub struct Cache {
    pub address: u64,
    /// Its number among the clients of the magazine layer; 0: not known there.
    pub client: u32,
    pub name: String,
    pub kind: Kind,
    pub size: u64,
    pub slot: u64,
    /// Bytes of each slot before its object.
    pub zone: u64,
    /// Magazines filled from slabs and emptied into slabs, since it was made.
    pub refills: u64,
    pub flushes: u64,
    pub limits_hit: u64,
    /// Slots that are never used again, since their handles are used up. They are out of the slabs.
    pub retired: u64,
    /// Its magazines hold ordinals, not addresses.
    pub has_handles: bool,
    /// Its objects move.
    pub moves: bool,
}

#[cfg(test)]
impl Cache {
    pub fn of(name: &str, kind: Kind, slot: u64) -> Self {
        Cache {
            address: 0,
            client: 0,
            name: name.to_string(),
            kind,
            size: slot,
            slot,
            zone: 0,
            refills: 0,
            flushes: 0,
            limits_hit: 0,
            retired: 0,
            has_handles: false,
            moves: false,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Thread {
    /// The system's number.
    pub number: u32,
}

/// What lies in a run of units.
#[derive(Debug, Clone)]
pub enum Content {
    /// A large object.
    Span,
    /// A slab of the cache with this index.
    Slab(Slab),
    /// A mixed unit: objects of several size classes, and holes.
    Mixed(Vec<Piece>),
    /// Its owner is not known: it is just being made or released.
    Unknown,
}

#[derive(Debug, Clone)]
pub struct Slab {
    pub cache: usize,
    pub first: u64,
    pub slots: u64,
    /// Free slots, as the slab counts them.
    pub free_count: u64,
    /// Slots from here on were never used.
    pub watermark: u64,
    /// A bit for each slot: it is free in the slab. Words of zeros at the end are left out, so that the
    /// many full slabs need no memory here.
    pub free: Box<[u64]>,
}

impl Slab {
    pub fn is_free(&self, slot: u64) -> bool {
        let word = self.free.get((slot / 64) as usize);
        word.is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    /// Free slots below this one.
    pub fn free_below(&self, slot: u64) -> u64 {
        let whole = self.free.len().min((slot / 64) as usize);
        let part = match self.free.get(whole) {
            Some(word) => word & !(u64::MAX << (slot % 64)),
            None => 0,
        };
        let ones = |word: &u64| u64::from(word.count_ones());
        self.free[..whole].iter().map(ones).sum::<u64>() + ones(&part)
    }

    /// The first slot from this one on whose bit differs; beyond the bits no slot is free.
    pub fn same_until(&self, slot: u64) -> u64 {
        let flip = if self.is_free(slot) { u64::MAX } else { 0 };
        let first = slot / 64;
        let mut mask = u64::MAX << (slot % 64);
        for number in first..self.free.len() as u64 {
            let differ = (self.free[number as usize] ^ flip) & mask;
            if differ != 0 {
                return number * 64 + u64::from(differ.trailing_zeros());
            }
            mask = u64::MAX;
        }
        match flip {
            0 => u64::MAX,
            _ => self.free.len() as u64 * 64,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Piece {
    pub start: u64,
    pub bytes: u64,
    /// It is an object, live or in a magazine; else a hole.
    pub out: bool,
}

#[derive(Debug, Clone)]
pub struct Area {
    /// All of its address space.
    pub range: Range<u64>,
    /// The runs in it, in order.
    pub runs: Vec<Run>,
    /// It was freed, and is kept for reuse.
    pub kept: bool,
}

#[derive(Debug, Clone)]
pub struct Run {
    pub range: Range<u64>,
    pub content: Content,
}

/// The library's own memory, by what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Own {
    Headers,
    Records,
    Magazines,
    Handles,
    Arenas,
    Stacks,
    Guards,
    Library,
}

impl Heap {
    /// The system's number of a thread; 0: it is not known.
    pub fn number_of(&self, thread: u32) -> u32 {
        let thread = self.threads.get(thread as usize);
        thread.map_or(0, |one| one.number)
    }

    /// Where a free object waits, in words.
    pub fn place_of(&self, holder: Holder) -> String {
        match holder {
            Holder::Thread(thread) => {
                format!("in a magazine of thread {}", self.number_of(thread))
            }
            Holder::Depot => "in the depot".to_string(),
            Holder::Quarantine => "in quarantine".to_string(),
        }
    }
}

#[derive(Debug, Default)]
pub struct Heap {
    pub file: String,
    pub caches: Vec<Cache>,
    pub threads: Vec<Thread>,
    /// Chunks and large spans, in order of address.
    pub areas: Vec<Area>,
    /// In order of address.
    pub waiting: Vec<Waiting>,
    /// Free objects that were found in two magazines.
    pub twice: Vec<(Waiting, Waiting)>,
    /// In order of address; parts of one may be in none.
    pub own: Vec<(Range<u64>, Own)>,
    /// Pages of guarded objects.
    pub guarded: Range<u64>,
    /// Live memory by tag; `None`: the program has no tags.
    pub tags: Option<Tags>,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// No list of the library is longer than this.
const LIST_MAX: usize = 1 << 22;

/// No slab has more slots: the smallest of them in the largest slab (src/cache/slab.h).
const SLOTS_MAX: u64 = 1 << 20;

/// Headers of chunks that are read at once: 2 MiB.
const HEADERS_AT_ONCE: usize = 16;

/// Units of a chunk; a description may say anything.
const UNITS_USUAL: usize = 64;

/// What a slot, and a piece of a mixed unit, cost of the image's budget: they are looked at later.
const SLOT_COST: u64 = 8;
const PIECE_COST: u64 = 32;

/// Reads one copy of the library.
pub fn read(image: &Image, found: &Found) -> Result<Heap> {
    let names = Names::read(image, found.shapes)?;
    let mut reader = Reader {
        image,
        names: &names,
        heap: Heap {
            file: found.file.clone(),
            ..Heap::default()
        },
        caches: Arc::default(),
        loads: Vec::new(),
    };
    reader.heap.own.push((found.range.clone(), Own::Library));
    reader.own()?;
    reader.caches()?;
    reader.areas()?;
    reader.waiting()?;
    reader.sort_own();
    reader.tags_of_program();
    if image.is_spent() {
        reader.heap.problems.push(GAVE_UP.into());
    }
    let Reader {
        mut heap, caches, ..
    } = reader;
    heap.caches =
        Arc::try_unwrap(caches).map_or_else(|caches| caches.all.clone(), |caches| caches.all);
    drop_overlaps(&mut heap);
    // Long parts of it are in order, which this sort uses.
    heap.waiting.sort_by_key(|one| one.address);
    let pairs = heap.waiting.windows(2);
    let twice = pairs.filter(|pair| pair[0].address == pair[1].address);
    let in_order = |pair: &[Waiting]| match pair[0].client <= pair[1].client {
        true => (pair[0], pair[1]),
        false => (pair[1], pair[0]),
    };
    heap.twice = twice.map(in_order).collect();
    heap.waiting.dedup_by_key(|one| one.address);
    Ok(heap)
}

const GAVE_UP: &str = "its structures lead around in circles, so reading them was given up";

/// Sorts the areas, and drops those that lie in others.
fn drop_overlaps(heap: &mut Heap) {
    heap.areas.sort_by_key(|area| area.range.start);
    heap.areas.dedup_by_key(|area| area.range.start);
    let count = heap.areas.len();
    let mut end = 0;
    heap.areas.retain(|area| {
        let is_behind = area.range.start >= end;
        end = end.max(area.range.end);
        is_behind
    });
    let dropped = count - heap.areas.len();
    if dropped > 0 {
        let problem = format!("{dropped} chunks or large spans lie in others");
        heap.problems.push(problem);
    }
}

/// Drops areas that copies of the library before have, so that no page counts twice.
pub fn drop_shared(heaps: &mut [Heap]) {
    let mut taken: BTreeMap<u64, u64> = BTreeMap::new();
    for heap in heaps {
        let count = heap.areas.len();
        heap.areas.retain(|area| {
            let before = taken.range(..area.range.end).next_back();
            before.is_none_or(|(_, &end)| end <= area.range.start)
        });
        let dropped = count - heap.areas.len();
        if dropped > 0 {
            let problem = format!("{dropped} chunks or large spans belong to two libraries");
            heap.problems.push(problem);
        }
        let own = heap.areas.iter();
        taken.extend(own.map(|area| (area.range.start, area.range.end)));
    }
}

pub(super) struct Reader<'a> {
    pub(super) image: &'a Image,
    pub(super) names: &'a Names,
    /// What was read so far.
    pub(super) heap: Heap,
    pub(super) caches: Arc<Caches>,
    /// The magazines of threads.
    pub(super) loads: Vec<Load>,
}

/// The caches that were read, and their indexes by address, and by the number of their client.
#[derive(Default)]
pub(super) struct Caches {
    pub all: Vec<Cache>,
    by_address: HashMap<u64, usize>,
    pub by_client: HashMap<u64, usize>,
}

/// So many threads read, and each of them at least so many of the things that they divide.
const READERS_MAX: usize = 4;
const SHARE_LEAST: usize = 16;

impl Reader<'_> {
    pub(super) fn field(&self, name: &str) -> Result<Field> {
        self.names.field(name)
    }

    pub(super) fn problem(&mut self, what: impl Into<String>) {
        const MOST: usize = 20;
        if self.heap.problems.len() < MOST {
            self.heap.problems.push(what.into());
        }
    }

    /// The members of a list, from the pointer in a variable on.
    pub(super) fn list(&mut self, first: u64, next: Field, what: &str) -> Vec<u64> {
        let mut seen = HashSet::new();
        let mut members = Vec::new();
        let mut at = first;
        while at != 0 {
            if members.len() == LIST_MAX || !seen.insert(at) {
                self.problem(format!("the list of {what} has no end"));
                break;
            }
            members.push(at);
            match self.image.word(at.wrapping_add(next.offset.into())) {
                Ok(following) => at = following,
                Err(_) => {
                    members.pop();
                    self.problem(format!("the list of {what} leads out of the memory"));
                    break;
                }
            }
        }
        members
    }

    pub(super) fn variable(&self, name: &str) -> Result<u64> {
        Ok(self.image.word(self.names.variable(name)?)?)
    }

    // ---- caches ----

    fn caches(&mut self) -> Result<()> {
        let most = self.names.constant("SY_CLIENTS_MAX")?.min(1 << 20);
        let clients = self.image.words(self.names.variable("sy_clients")?, most)?;
        let (client, owner) = (
            u64::from(self.field("sy_cache.client")?.offset),
            self.field("sy_client.config.owner")?,
        );
        let fields = CacheFields::of(self.names)?;
        let mut caches = Caches::default();
        for (number, &at) in clients.iter().enumerate().filter(|(_, &at)| at != 0) {
            let cache = at.wrapping_sub(client);
            // The client of a cache lies within its owner. Others belong to arenas.
            match self.image.word(at.wrapping_add(owner.offset.into())) {
                Ok(found) if found == cache && cache != fields.mixed => {
                    self.cache(&fields, cache, number as u32, &mut caches);
                }
                Ok(_) => {}
                Err(_) => self.problem("a client of the magazine layer cannot be read"),
            }
        }
        self.caches = caches.into();
        Ok(())
    }

    fn cache(&mut self, fields: &CacheFields, address: u64, client: u32, to: &mut Caches) {
        let Ok(bytes) = self.image.bytes(address, fields.end) else {
            self.problem("a cache cannot be read");
            return;
        };
        let record = Record(&bytes);
        let cache = Cache {
            address,
            client,
            name: record.text(fields.name),
            kind: match (record.get(fields.class), record.get(fields.quota)) {
                (1.., _) => Kind::Size,
                (_, quota) if quota == fields.process || quota == 0 => Kind::Program,
                _ => Kind::Heap,
            },
            size: record.get(fields.size),
            slot: record.get(fields.slot),
            zone: record.get(fields.zone),
            refills: record.get(fields.refills),
            flushes: record.get(fields.flushes),
            limits_hit: record.get(fields.limits_hit),
            retired: record.get(fields.retired),
            has_handles: record.get(fields.flags) & u64::from(slabyard_sys::SY_HANDLES) != 0,
            moves: record.get(fields.flags) & u64::from(slabyard_sys::SY_MOVABLE) != 0,
        };
        let index = to.all.len();
        to.by_address.insert(address, index);
        to.by_client.insert(client.into(), index);
        to.all.push(cache);
    }

    // ---- chunks and large spans ----

    fn areas(&mut self) -> Result<()> {
        let next = self.field("sy_memory.next")?;
        let first = self.variable("sy_memories")?;
        let memories = self.list(first, next, "memories");
        let fields = RunFields::of(self.names)?;
        for table in self.tables()? {
            self.table(&fields, table)?;
        }
        let kept = self.field("sy_memory.kept")?;
        for memory in memories {
            let first = self.image.word(memory.wrapping_add(kept.offset.into()));
            for span in self.list(first.unwrap_or(0), fields.next, "kept spans") {
                self.span(&fields, span, true);
            }
        }
        Ok(())
    }

    /// The tables of owners: for each, its address and the first address that it is for.
    fn tables(&self) -> Result<Vec<(u64, u64)>> {
        let map = self.names.variable("sy_the_map")?;
        let window = u64::from(self.field("sy_map.window")?.offset);
        let owners = u64::from(self.field("sy_leaf.owners")?.offset);
        let start = u64::from(self.field("sy_window.start")?.offset);
        let leaf_shift = self.names.constant("SY_LEAF_SHIFT")?.min(63);
        let placed = self
            .image
            .word(self.names.variable("sy_the_window")?.wrapping_add(start))?;
        let mut tables = vec![(map.wrapping_add(window + owners), placed)];
        let leaves = map.wrapping_add(self.field("sy_map.leaf_at")?.offset.into());
        let count = self.names.constant("SY_LEAVES")?.min(1 << 16);
        for (number, leaf) in self.image.words(leaves, count)?.into_iter().enumerate() {
            if leaf != 0 {
                tables.push((leaf.wrapping_add(owners), (number as u64) << leaf_shift));
            }
        }
        Ok(tables)
    }

    fn table(&mut self, fields: &RunFields, (owners, start): (u64, u64)) -> Result<()> {
        let chunk_shift = self.names.constant("SY_CHUNK_SHIFT")?.min(63);
        let leaf_shift = self.names.constant("SY_LEAF_SHIFT")?.min(chunk_shift + 20);
        let is_chunk = self.names.constant("SY_OWNER_IS_CHUNK")?;
        let count = 1 << leaf_shift.saturating_sub(chunk_shift);
        let owners = self.image.words(owners, count)?;
        let mut owners: Vec<_> = (0..).zip(owners).filter(|(_, owner)| *owner != 0).collect();
        owners.dedup_by_key(|(_, owner)| *owner);
        self.divide(&owners, |reader, owners| {
            for some in owners.chunks(HEADERS_AT_ONCE) {
                reader.owners(
                    fields,
                    some,
                    |number| {
                        let at = start.wrapping_add(number << chunk_shift);
                        at..at.saturating_add(1 << chunk_shift)
                    },
                    is_chunk,
                );
            }
        });
        Ok(())
    }

    /// Some owners with their numbers in a table. `place`: of a chunk, by its number.
    fn owners(
        &mut self,
        fields: &RunFields,
        owners: &[(u64, u64)],
        place: impl Fn(u64) -> Range<u64>,
        is_chunk: u64,
    ) {
        let chunks = owners.iter().filter(|(_, owner)| owner & is_chunk != 0);
        let mut headers: Vec<u64> = chunks.map(|(_, owner)| owner & !is_chunk).collect();
        headers.sort_unstable();
        let range = |at: u64| at..at.saturating_add(fields.chunk_bytes);
        self.image.fetch(headers.into_iter().map(range));
        for &(number, owner) in owners {
            match owner & is_chunk {
                0 => self.span(fields, owner, false),
                _ => self.chunk(fields, owner & !is_chunk, place(number)),
            }
        }
    }

    fn chunk(&mut self, fields: &RunFields, header: u64, range: Range<u64>) {
        let Ok(bytes) = self.image.bytes(header, fields.chunk_bytes) else {
            self.problem("the header of a chunk cannot be read");
            return;
        };
        let record = Record(&bytes);
        let first_units = record.bytes(fields.first_unit);
        let mut runs = Vec::with_capacity(first_units.len().min(UNITS_USUAL));
        for (unit, _) in first_units
            .iter()
            .enumerate()
            .skip(1)
            .filter(|&(unit, &first)| usize::from(first) == unit)
        {
            let at = u64::from(fields.slabs.offset) + (unit as u64 - 1) * fields.slab_bytes;
            let Some(slab) = bytes.get(at as usize..(at + fields.slab_bytes) as usize) else {
                continue;
            };
            let place = range
                .start
                .saturating_add((unit as u64) << fields.unit_shift);
            let room = range.end.saturating_sub(place);
            let run = place..place + Record(slab).get(fields.bytes).min(room);
            if runs.last().is_some_and(|last: &Run| last.range.end > place) {
                continue; // it is changing
            }
            let content = self.content(fields, header.wrapping_add(at), Record(slab), &run);
            runs.push(Run {
                range: run,
                content,
            });
        }
        self.heap.areas.push(Area {
            range,
            runs,
            kept: false,
        });
    }

    fn span(&mut self, fields: &RunFields, descriptor: u64, kept: bool) {
        let Ok(bytes) = self.image.bytes(descriptor, fields.slab_bytes) else {
            self.problem("the descriptor of a large span cannot be read");
            return;
        };
        let record = Record(&bytes);
        let start = record.get(fields.start);
        let length = record.get(fields.bytes);
        let reserved = record.get(fields.reserved).max(length);
        let (Some(end), Some(last)) = (start.checked_add(length), start.checked_add(reserved))
        else {
            self.problem("the descriptor of a large span makes no sense");
            return;
        };
        let run = start..end;
        let content = self.content(fields, descriptor, record, &run);
        self.heap.areas.push(Area {
            range: start..last,
            runs: vec![Run {
                range: run,
                content,
            }],
            kept,
        });
    }

    /// `at`: the address of the descriptor.
    fn content(
        &mut self,
        fields: &RunFields,
        at: u64,
        record: Record,
        run: &Range<u64>,
    ) -> Content {
        let owner = record.get(fields.owner);
        if owner == 0 {
            return Content::Span;
        }
        if owner == fields.mixed {
            return match self.pieces(fields, record.get(fields.pieces), run.start) {
                Some(pieces) => Content::Mixed(pieces),
                None => Content::Unknown,
            };
        }
        let Some(&cache) = self.caches.by_address.get(&owner) else {
            return Content::Unknown;
        };
        let slots = record.get(fields.slots);
        let words = slots.div_ceil(64);
        if slots > SLOTS_MAX || !self.image.pay(slots * SLOT_COST) {
            self.problem("a slab has too many slots");
            return Content::Unknown;
        }
        // The bitmap lies in the descriptor, or in a table of its own.
        let table = record.get(fields.free);
        let is_inline = table == at.wrapping_add(fields.bits.offset.into());
        let inline = record.bytes(fields.bits).get(..(words * 8) as usize);
        let free = match inline.filter(|_| is_inline) {
            Some(inline) => words_of(inline),
            None => match self.image.bytes(table, words * 8) {
                Ok(bytes) => words_of(&bytes),
                Err(_) => {
                    self.problem("the bitmap of a slab cannot be read");
                    Box::default()
                }
            },
        };
        Content::Slab(Slab {
            cache,
            first: record.get(fields.first),
            slots,
            free_count: record.get(fields.free_count),
            watermark: record.get(fields.watermark),
            free,
        })
    }

    fn pieces(&mut self, fields: &RunFields, table: u64, start: u64) -> Option<Vec<Piece>> {
        let unit_bytes: u64 = 1 << fields.unit_shift;
        start.checked_add(unit_bytes)?;
        let words = (unit_bytes >> fields.grain_shift) / 64;
        let grains = self.image.bytes(table, words * fields.grains_bytes).ok()?;
        let of = |field: Field| {
            let rows = grains.chunks_exact(fields.grains_bytes as usize);
            rows.map(move |row| Record(row).get(field))
                .collect::<Vec<_>>()
        };
        let (begins, out) = (of(fields.begins), of(fields.out));
        let mut pieces: Vec<Piece> = Vec::new();
        let count: u64 = begins.iter().map(|word| u64::from(word.count_ones())).sum();
        if !self.image.pay(count * PIECE_COST) {
            return None;
        }
        for (word, (mut bits, out)) in begins.into_iter().zip(out).enumerate() {
            while bits != 0 {
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                let grain = word as u64 * 64 + u64::from(bit);
                let at = start + (grain << fields.grain_shift);
                if let Some(last) = pieces.last_mut() {
                    last.bytes = at - last.start;
                }
                pieces.push(Piece {
                    start: at,
                    bytes: 0,
                    out: out >> bit & 1 == 1,
                });
            }
        }
        if let Some(last) = pieces.last_mut() {
            last.bytes = start + unit_bytes - last.start;
        }
        Some(pieces)
    }

    // ---- by several threads ----

    /// Lets several threads do some work, each for a share of the items, and adds what they read.
    pub(super) fn divide<T: Sync>(&mut self, items: &[T], work: impl Fn(&mut Reader, &[T]) + Sync) {
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
        let threads = processors.min(READERS_MAX).min(items.len() / SHARE_LEAST);
        let others: Vec<Again> = (1..threads).map_while(|_| self.image.again()).collect();
        let share = items.len().div_ceil(others.len() + 1).max(1);
        let mut shares = items.chunks(share);
        let first = shares.next().unwrap_or_default();
        let (names, caches) = (self.names, &self.caches.clone());
        let read = |share: &[T], image: &Image| {
            let mut reader = Reader {
                image,
                names,
                heap: Heap::default(),
                caches: caches.clone(),
                loads: Vec::new(),
            };
            work(&mut reader, share);
            (reader.heap, reader.loads)
        };
        let read = &read;
        std::thread::scope(|scope| {
            let start = |(again, share): (Again, _)| {
                let read = move || again.read(|image| read(share, image));
                (share, Builder::new().spawn_scoped(scope, read))
            };
            let jobs: Vec<_> = others.into_iter().zip(shares).map(start).collect();
            work(self, first);
            for (share, job) in jobs {
                match job.map(|job| job.join()) {
                    Ok(Ok(((heap, loads), spent))) => {
                        self.image.pay_for(&spent);
                        self.add(heap, loads);
                    }
                    Ok(Err(_)) => self.problem("a thread of this tool has failed"),
                    Err(_) => work(self, share), // no thread could be started
                }
            }
        });
    }

    fn add(&mut self, heap: Heap, loads: Vec<Load>) {
        self.heap.areas.extend(heap.areas);
        self.heap.waiting.extend(heap.waiting);
        self.loads.extend(loads);
        for problem in heap.problems {
            self.problem(problem);
        }
    }

    // ---- tags ----

    fn tags_of_program(&mut self) {
        match tags::read(self.image, self.names) {
            Ok(tags) => self.heap.tags = tags,
            Err(error) => self.problem(format!("live memory by tag ({error})")),
        }
    }

    // ---- the library's own memory ----

    fn own(&mut self) -> Result<()> {
        self.header_areas()?;
        self.side_areas()?;
        self.map_and_store()?;
        self.threads_own()?;
        self.depots_own()?;
        self.handles()?;
        self.arenas()?;
        self.debug()
    }

    fn sort_own(&mut self) {
        let own = &mut self.heap.own;
        own.retain(|(range, _)| range.start < range.end && range.start != 0);
        // Of two that begin at one place the longer one comes first: parts of it may be others'.
        own.sort_by_key(|(range, _)| (range.start, u64::MAX - range.end));
    }

    fn add_own(&mut self, start: u64, bytes: u64, what: Own) {
        if start != 0 {
            self.heap
                .own
                .push((start..start.saturating_add(bytes), what));
        }
    }

    /// Records of threads, and the slots of their magazines.
    fn threads_own(&mut self) -> Result<()> {
        let fields = MagazineFields::of(self.names)?;
        let first = self.variable("sy_threads")?;
        for record in self.list(first, fields.next_thread, "threads") {
            self.add_own(record, fields.thread_bytes, Own::Magazines);
            let slots = record.wrapping_add(fields.slots.offset.into());
            let slots = self.image.number(slots, fields.slots.bytes)?;
            self.add_own(slots, fields.slots_bytes, Own::Magazines);
        }
        Ok(())
    }

    fn depots_own(&mut self) -> Result<()> {
        let count = self.names.variable("sy_depot_shard_count")?;
        let count = self.image.number(count, 4)?.min(1 << 10);
        let clients = self.names.constant("SY_CLIENTS_MAX")?.min(1 << 20);
        let shards = self.variable("sy_depot_shards")?;
        let bytes = clients * count * self.names.size("sy_depot_shard")?;
        self.add_own(shards, bytes, Own::Magazines);
        Ok(())
    }

    fn header_areas(&mut self) -> Result<()> {
        let bytes = self.names.constant("sy_header_area.bytes")?;
        let next = self.field("sy_header_area.previous")?;
        let first = self.variable("sy_header_areas")?;
        for area in self.list(first, next, "areas of headers") {
            self.add_own(area, bytes, Own::Headers);
        }
        Ok(())
    }

    fn side_areas(&mut self) -> Result<()> {
        let (next, bytes) = (
            self.field("sy_side_area.previous")?,
            self.field("sy_side_area.bytes")?,
        );
        let first = self.variable("sy_side_areas")?;
        for area in self.list(first, next, "areas of records") {
            let bytes = self.image.word(area.wrapping_add(bytes.offset.into()))?;
            self.add_own(area, bytes, Own::Records);
        }
        Ok(())
    }

    fn map_and_store(&mut self) -> Result<()> {
        let leaf = self.names.size("sy_leaf")?;
        let map = self.names.variable("sy_the_map")?;
        let leaves = map.wrapping_add(self.field("sy_map.leaf_at")?.offset.into());
        let count = self.names.constant("SY_LEAVES")?.min(1 << 16);
        for at in self.image.words(leaves, count)? {
            self.add_own(at, leaf, Own::Headers);
        }
        for segment in self.segments()? {
            self.heap.own.push((segment, Own::Magazines));
        }
        Ok(())
    }

    fn handles(&mut self) -> Result<()> {
        let ordinals = Ordinals::read(self.image, self.names)?;
        self.add_own(ordinals.words, ordinals.all_bytes(), Own::Handles);
        Ok(())
    }

    fn arenas(&mut self) -> Result<()> {
        let arena_bytes = self.names.size("sy_vmem")?;
        let next = self.field("sy_vmem.next")?;
        let first = self.variable("sy_arenas")?;
        for arena in self.list(first, next, "arenas") {
            self.add_own(arena, arena_bytes, Own::Arenas);
            self.tags(arena)?;
            let part = self.field("sy_vmem.part")?;
            let buckets = self.names.constant("SY_BUCKETS")?;
            let parts = self.names.constant("SY_TABLE_PARTS")?.min(48);
            let parts = self
                .image
                .words(arena.wrapping_add(part.offset.into()), parts)?;
            for (number, at) in parts.into_iter().enumerate() {
                self.add_own(at, (buckets * 8) << number, Own::Arenas);
            }
        }
        Ok(())
    }

    /// The blocks that the boundary tags of an arena lie in.
    fn tags(&mut self, arena: u64) -> Result<()> {
        let of = |name| Ok::<_, anyhow::Error>(u64::from(self.names.field(name)?.offset));
        let (block_at, bytes_at) = (of("sy_boundary.block")?, of("sy_tag_block.bytes")?);
        let (first_at, blocks_at) = (of("sy_vmem.first")?, of("sy_vmem.blocks")?);
        let next_tag = self.field("sy_boundary.next")?;
        let next_block = self.field("sy_tag_block.next")?;
        let first = self.image.word(arena.wrapping_add(first_at))?;
        let mut blocks: HashSet<u64> = HashSet::new();
        for tag in self.list(first, next_tag, "tags of an arena") {
            blocks.extend(self.image.word(tag.wrapping_add(block_at)));
        }
        let first = self.image.word(arena.wrapping_add(blocks_at))?;
        blocks.extend(self.list(first, next_block, "blocks of an arena"));
        for block in blocks {
            if let Ok(bytes) = self.image.word(block.wrapping_add(bytes_at)) {
                self.add_own(block & !0xfff, bytes.min(1 << 20), Own::Arenas);
            }
        }
        Ok(())
    }

    fn debug(&mut self) -> Result<()> {
        let stacks = self.variable("sy_stack_table")?;
        let bytes = self.names.constant("sy_stack_table.bytes")?;
        self.add_own(stacks, bytes, Own::Stacks);
        let places = self.variable("sy_stack_places")?;
        if places != 0 {
            let at = self.field("sy_stack_places.bytes")?.offset;
            let bytes = self.image.word(places.wrapping_add(at.into()))?;
            self.add_own(places, bytes, Own::Stacks);
        }
        let profile = self.variable("sy_profile_place")?;
        let bytes = self.names.size("sy_profile_table")?;
        self.add_own(profile, bytes, Own::Stacks);
        let slots = self.variable("sy_guard_slots")?;
        let count = self
            .image
            .number(self.names.variable("sy_guard_slot_count")?, 4)?;
        let bytes = count * self.names.size("sy_guarded")?;
        self.add_own(slots, bytes, Own::Guards);
        let start = self.variable("sy_guard_start")?;
        let bytes = self.variable("sy_guard_bytes")?;
        self.heap.guarded = start..start.saturating_add(bytes);
        Ok(())
    }
}

/// The words up to the last one that is not zero.
fn words_of(bytes: &[u8]) -> Box<[u64]> {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let end = bytes
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |at| at / 8 + 1);
    bytes.chunks_exact(8).take(end).map(word).collect()
}
