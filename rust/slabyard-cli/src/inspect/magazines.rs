//! Reads what waits in magazines: of threads, in depots, on the way to the slabs, and in quarantine.

use super::fields::{Load, MagazineFields, Ordinals};
use super::heap::{Holder, Reader, Thread, Waiting};
use super::shape::Record;
use anyhow::Result;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Threads whose slots are read at once: 2 MiB.
const THREADS_AT_ONCE: usize = 8;

/// Magazines whose items are read at once: 256 KiB.
const LOADS_AT_ONCE: usize = 128;

/// What a magazine of a thread costs of the image's budget: it is looked at later.
const LOAD_COST: u64 = 64;

impl Reader<'_> {
    pub(super) fn waiting(&mut self) -> Result<()> {
        let fields = MagazineFields::of(self.names)?;
        let first = self.variable("sy_threads")?;
        let records = self.list(first, fields.next_thread, "threads");
        let ordinals = Ordinals::read(self.image, self.names)?;
        let threads = self.threads(&fields, &records)?;
        self.divide(&threads, |reader, threads| {
            for some in threads.chunks(THREADS_AT_ONCE) {
                let ranges = some.iter().map(|(range, _)| range.clone());
                reader.image.fetch(ranges);
                for (range, thread) in some {
                    reader.slots(&fields, range.clone(), *thread);
                }
            }
        });
        self.magazines(&fields, &ordinals)?;
        self.depots(&fields, &ordinals)?;
        self.quarantines(&ordinals)
    }

    /// Adds the threads; returns the slots of each with its index, in order of address. A thread that
    /// uses scopes has two records.
    fn threads(
        &mut self,
        fields: &MagazineFields,
        records: &[u64],
    ) -> Result<Vec<(Range<u64>, u32)>> {
        let (mut all, mut indices) = (Vec::new(), HashMap::new());
        for &record in records {
            let bytes = self.image.bytes(record, fields.thread_bytes)?;
            let record = Record(&bytes);
            if record.get(fields.state) == fields.free_state {
                continue;
            }
            let number = record.get(fields.number) as u32;
            let next = self.heap.threads.len() as u32;
            let thread = *indices.entry(number).or_insert(next);
            if thread == next {
                self.heap.threads.push(Thread { number });
            }
            let end = record.get(fields.slots_end);
            let end = end.min(fields.slots_bytes / fields.slot_bytes);
            let start = record.get(fields.slots);
            all.push((start..start.saturating_add(end * fields.slot_bytes), thread));
        }
        all.sort_unstable_by_key(|(range, _)| range.start);
        Ok(all)
    }

    /// Most of the slots of a thread were never used, and hold no memory.
    fn slots(&mut self, fields: &MagazineFields, all: Range<u64>, thread: u32) {
        let bytes = fields.slot_bytes;
        let unused = vec![0; bytes as usize];
        let image = self.image;
        let mut next = 0;
        for part in image.parts(all.clone()) {
            let first = ((part.start - all.start) / bytes).max(next);
            next = (part.end - all.start).div_ceil(bytes);
            let at = all.start.wrapping_add(first * bytes);
            let end = all.start.wrapping_add(next * bytes).min(all.end);
            let Ok(some) = image.bytes(at, end.saturating_sub(at)) else {
                self.problem("the slots of a thread cannot be read");
                return;
            };
            for (client, slot) in (first..).zip(some.chunks_exact(bytes as usize)) {
                if slot != unused && image.pay(LOAD_COST) {
                    let loads = fields.loads(Record(slot), client as u32, thread);
                    self.loads.extend(loads);
                }
            }
        }
    }

    /// The magazines of threads, in order of address.
    fn magazines(&mut self, fields: &MagazineFields, ordinals: &Ordinals) -> Result<()> {
        let mut loads = std::mem::take(&mut self.loads);
        loads.sort_unstable_by_key(|load| load.magazine);
        self.divide(&loads, |reader, loads| {
            for some in loads.chunks(LOADS_AT_ONCE) {
                reader
                    .image
                    .fetch(reader.items_of(fields, some).into_iter());
                for load in some {
                    reader.load(fields, ordinals, load);
                }
            }
            reader.heap.waiting.sort_unstable_by_key(|one| one.address);
        });
        Ok(())
    }

    /// Where the items of some magazines lie, in order of address.
    fn items_of(&self, fields: &MagazineFields, loads: &[Load]) -> Vec<Range<u64>> {
        const GAP_MAX: u64 = 4096;
        let bytes = fields.items_max * 8;
        let items = |load: &Load| {
            let at = load.magazine.wrapping_add(fields.items.offset.into());
            self.image.word(at).ok()
        };
        let mut all: Vec<u64> = loads.iter().filter_map(items).collect();
        all.sort_unstable();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for at in all {
            let end = at.saturating_add(bytes);
            match ranges.last_mut() {
                Some(last) if at.saturating_sub(last.end) < GAP_MAX => last.end = end,
                _ => ranges.push(at..end),
            }
        }
        ranges
    }

    fn load(&mut self, fields: &MagazineFields, ordinals: &Ordinals, load: &Load) {
        let holder = Holder::Thread(load.thread);
        let which = |items, count| load.which(items, count, fields.items_max);
        let client = load.client.into();
        self.magazine(fields, ordinals, client, load.magazine, holder, which);
    }

    /// The memory of magazines, in order of address.
    pub(super) fn segments(&self) -> Result<Vec<Range<u64>>> {
        let segments = self.names.variable("sy_magazine_segments")?;
        let count = self.names.constant("SY_MAGAZINE_SEGMENTS")?.min(1 << 16);
        let headers = u64::from(self.field("sy_magazine_segment.headers")?.offset);
        let bytes = self.names.constant("sy_magazine_segment.bytes")?;
        let segments = self.image.words(segments, count)?.into_iter();
        let range = |at: u64| {
            let start = at.wrapping_sub(headers);
            start..start.saturating_add(bytes)
        };
        let mut all: Vec<_> = segments.filter(|&at| at != 0).map(range).collect();
        all.sort_unstable_by_key(|range| range.start);
        Ok(all)
    }

    fn magazine(
        &mut self,
        fields: &MagazineFields,
        ordinals: &Ordinals,
        client: u64,
        magazine: u64,
        holder: Holder,
        which: impl Fn(u64, u64) -> Range<u64>,
    ) -> u64 {
        let Ok(header) = self.image.bytes(magazine, fields.magazine_bytes) else {
            self.problem("a magazine cannot be read");
            return 0;
        };
        let header = Record(&header);
        let next = header.get(fields.next);
        let items = header.get(fields.items);
        let which = which(items, header.get(fields.count).min(fields.items_max));
        if which.start >= which.end || which.end > fields.items_max {
            return next;
        }
        let first = items.wrapping_add(which.start * 8);
        let Ok(words) = self.image.words(first, which.end - which.start) else {
            self.problem("the items of a magazine cannot be read");
            return next;
        };
        // The client of mixed units is no cache in the list.
        let cache = self
            .caches
            .by_client
            .get(&client)
            .map(|&at| &self.caches.all[at]);
        let named = cache
            .filter(|cache| cache.has_handles)
            .map(|cache| (cache.slot, cache.moves));
        if cache.is_none() && client != fields.mixed_client {
            return next;
        }
        for word in words {
            let address = match named {
                Some((_, true)) => ordinals.moved_place(self.image, word),
                Some((slot, false)) => ordinals.place(self.image, word, slot),
                None => Some(word),
            };
            self.heap.waiting.extend(address.map(|address| Waiting {
                address,
                client: client as u32,
                holder,
            }));
        }
        next
    }

    fn depots(&mut self, fields: &MagazineFields, ordinals: &Ordinals) -> Result<()> {
        let count = self
            .image
            .number(self.names.variable("sy_depot_shard_count")?, 4)?;
        let shards = self.variable("sy_depot_shards")?;
        let count = count.min(1 << 10);
        let mut numbers: Vec<u64> = self.caches.by_client.keys().copied().collect();
        numbers.push(fields.mixed_client);
        numbers.sort_unstable();
        for client in numbers {
            for shard in 0..count {
                let number = client * count + shard;
                let at = shards.wrapping_add(number.wrapping_mul(fields.shard_bytes));
                let top = self
                    .image
                    .word(at.wrapping_add(fields.shard_top.offset.into()));
                self.stack(
                    fields,
                    ordinals,
                    client,
                    top.unwrap_or(0) & fields.number_mask,
                );
            }
        }
        self.moves(fields, ordinals)
    }

    /// The freed objects that caches with checks keep back.
    fn quarantines(&mut self, ordinals: &Ordinals) -> Result<()> {
        const WAITING_MAX: u64 = 1 << 20;
        let watch = self.field("sy_cache.watch")?;
        let items = self.field("sy_watch.waiting")?;
        let count = self.field("sy_watch.waiting_count")?;
        let mut found = Vec::new();
        for cache in &self.caches.all {
            let at = self
                .image
                .word(cache.address.wrapping_add(watch.offset.into()));
            let watch = at.unwrap_or(0);
            if watch == 0 {
                continue;
            }
            let count = self
                .image
                .number(watch.wrapping_add(count.offset.into()), count.bytes);
            let items = self.image.word(watch.wrapping_add(items.offset.into()));
            let (Ok(count), Ok(items)) = (count, items) else {
                continue; // the cache is just being destroyed
            };
            let words = self.image.words(items, count.min(WAITING_MAX));
            for word in words.unwrap_or_default() {
                let address = match cache.has_handles {
                    true => ordinals.place(self.image, word, cache.slot),
                    false => Some(word),
                };
                found.extend(address.map(|address| Waiting {
                    address,
                    client: cache.client,
                    holder: Holder::Quarantine,
                }));
            }
        }
        self.heap.waiting.append(&mut found);
        Ok(())
    }

    /// The magazines of a stack, from the number of the uppermost one on.
    fn stack(&mut self, fields: &MagazineFields, ordinals: &Ordinals, client: u64, top: u64) {
        let mut number = top;
        let mut seen = HashSet::new();
        while number != 0 {
            let segment = number / fields.per_segment;
            let headers = self
                .image
                .word(fields.segments.wrapping_add(segment * 8))
                .unwrap_or(0);
            if headers == 0 || !seen.insert(number) {
                self.problem("a stack of magazines makes no sense");
                return;
            }
            let magazine =
                headers.wrapping_add(number % fields.per_segment * fields.magazine_bytes);
            number = self.magazine(
                fields,
                ordinals,
                client,
                magazine,
                Holder::Depot,
                |_, count| 0..count,
            ) & fields.number_mask;
        }
    }

    /// Magazines that threads are just emptying.
    fn moves(&mut self, fields: &MagazineFields, ordinals: &Ordinals) -> Result<()> {
        let client_at = u64::from(self.field("sy_cache.client")?.offset);
        let moves = self.field("sy_client.moves")?;
        let (chain, next) = (self.field("sy_move.chain")?, self.field("sy_move.next")?);
        let link = self.field("sy_magazine.chain")?;
        let caches: Vec<_> = self
            .caches
            .all
            .iter()
            .map(|one| (one.address, one.client))
            .collect();
        for (address, client) in caches {
            let at = address.wrapping_add(client_at + u64::from(moves.offset));
            // Moves lie on the stacks of threads, and end at any time.
            let mut first = self.image.word(at).unwrap_or(0);
            for _ in 0..64 {
                if first == 0 {
                    break;
                }
                let magazines = self.image.word(first.wrapping_add(chain.offset.into()));
                let mut magazine = magazines.unwrap_or(0);
                for _ in 0..1024 {
                    if magazine == 0 {
                        break;
                    }
                    self.magazine(
                        fields,
                        ordinals,
                        client.into(),
                        magazine,
                        Holder::Depot,
                        |_, n| 0..n,
                    );
                    let following = self.image.word(magazine.wrapping_add(link.offset.into()));
                    magazine = following.unwrap_or(0);
                }
                first = self
                    .image
                    .word(first.wrapping_add(next.offset.into()))
                    .unwrap_or(0);
            }
        }
        Ok(())
    }
}
