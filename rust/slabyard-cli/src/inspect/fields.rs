//! The fields of the library's structures that [`heap`](super::heap) reads.

use super::image::Image;
use super::shape::{Field, Names, Record};
use anyhow::Result;
use std::ops::Range;

/// The fields of a cache that are read.
pub(super) struct CacheFields {
    pub name: Field,
    pub size: Field,
    pub slot: Field,
    pub zone: Field,
    pub flags: Field,
    pub class: Field,
    pub quota: Field,
    pub limits_hit: Field,
    pub retired: Field,
    pub refills: Field,
    pub flushes: Field,
    /// The quota of the process.
    pub process: u64,
    /// The owner of mixed units, which is no cache.
    pub mixed: u64,
    pub end: u64,
}

impl CacheFields {
    pub fn of(names: &Names) -> Result<Self> {
        let layout = names.field("sy_cache.layout")?.offset;
        let counts = names.field("sy_cache.counts")?;
        let within = |outer: u32, name: &str| {
            let inner = names.field(name)?;
            Ok::<_, anyhow::Error>(Field {
                offset: outer.saturating_add(inner.offset),
                ..inner
            })
        };
        Ok(CacheFields {
            name: names.field("sy_cache.name")?,
            size: names.field("sy_cache.size")?,
            slot: within(layout, "sy_layout.slot")?,
            zone: within(layout, "sy_layout.zone")?,
            flags: names.field("sy_cache.flags")?,
            class: names.field("sy_cache.class_number")?,
            quota: names.field("sy_cache.quota")?,
            limits_hit: names.field("sy_cache.limits_hit")?,
            retired: names.field("sy_cache.retired")?,
            refills: within(counts.offset, "sy_cache_counts.refills")?,
            flushes: within(counts.offset, "sy_cache_counts.flushes")?,
            process: names.variable("sy_quota_process")?,
            mixed: names.variable("sy_mixed")?,
            end: u64::from(counts.offset) + u64::from(counts.bytes),
        })
    }
}

/// The fields of chunks and runs.
pub(super) struct RunFields {
    pub first_unit: Field,
    pub slabs: Field,
    pub chunk_bytes: u64,
    pub slab_bytes: u64,
    pub unit_shift: u64,
    pub first: Field,
    pub owner: Field,
    pub free: Field,
    pub slots: Field,
    pub free_count: Field,
    pub watermark: Field,
    pub pieces: Field,
    pub bytes: Field,
    pub next: Field,
    pub start: Field,
    pub bits: Field,
    pub reserved: Field,
    /// The owner of mixed units.
    pub mixed: u64,
    pub grain_shift: u64,
    pub grains_bytes: u64,
    pub begins: Field,
    pub out: Field,
}

impl RunFields {
    pub fn of(names: &Names) -> Result<Self> {
        let slab_bytes = names.size("sy_slab")?.max(1);
        Ok(RunFields {
            first_unit: names.field("sy_chunk.first_unit")?,
            slabs: names.field("sy_chunk.slabs")?,
            chunk_bytes: names.size("sy_chunk")?,
            slab_bytes,
            unit_shift: names.constant("SY_UNIT_SHIFT")?.min(32),
            first: names.field("sy_slab.first")?,
            owner: names.field("sy_slab.owner")?,
            free: names.field("sy_slab.free")?,
            slots: names.field("sy_slab.slots")?,
            free_count: names.field("sy_slab.free_count")?,
            watermark: names.field("sy_slab.watermark")?,
            pieces: names.field("sy_slab.pieces")?,
            bytes: names.field("sy_slab.bytes")?,
            next: names.field("sy_slab.next")?,
            start: names.field("sy_slab.start")?,
            bits: names.field("sy_slab.bits")?,
            reserved: names.field("sy_slab.large.reserved")?,
            mixed: names.variable("sy_mixed")?,
            grain_shift: names.constant("SY_GRAIN_SHIFT")?.min(16),
            grains_bytes: names.size("sy_grains")?.max(1),
            begins: names.field("sy_grains.begins")?,
            out: names.field("sy_grains.out")?,
        })
    }
}

/// The fields of threads and magazines.
pub(super) struct MagazineFields {
    pub thread_bytes: u64,
    pub next_thread: Field,
    pub slots: Field,
    pub slots_end: Field,
    pub state: Field,
    pub number: Field,
    pub free_state: u64,
    pub slot_bytes: u64,
    pub slots_bytes: u64,
    pub loaded: Field,
    pub previous: Field,
    pub top: Field,
    pub gone: Field,
    pub magazine_bytes: u64,
    pub next: Field,
    pub count: Field,
    pub items: Field,
    pub items_max: u64,
    pub segments: u64,
    pub per_segment: u64,
    pub shard_bytes: u64,
    pub shard_top: Field,
    pub number_mask: u64,
    pub mixed_client: u64,
}

impl MagazineFields {
    pub fn of(names: &Names) -> Result<Self> {
        Ok(MagazineFields {
            thread_bytes: names.size("sy_thread")?,
            next_thread: names.field("sy_thread.next")?,
            slots: names.field("sy_thread.slots")?,
            slots_end: names.field("sy_thread.slots_end")?,
            state: names.field("sy_thread.state")?,
            number: names.field("sy_thread.number")?,
            free_state: names.constant("SY_THREAD_FREE")?,
            slot_bytes: names.size("sy_slot")?.max(1),
            slots_bytes: names.constant("sy_slots_bytes")?,
            loaded: names.field("sy_slot.loaded")?,
            previous: names.field("sy_slot.previous")?,
            top: names.field("sy_slot.top")?,
            gone: names.field("sy_slot.gone")?,
            magazine_bytes: names.size("sy_magazine")?,
            next: names.field("sy_magazine.next")?,
            count: names.field("sy_magazine.count")?,
            items: names.field("sy_magazine.items")?,
            items_max: names.constant("SY_MAGAZINE_ITEMS")?,
            segments: names.variable("sy_magazine_segments")?,
            per_segment: names.constant("SY_MAGAZINES_PER_SEGMENT")?.max(1),
            shard_bytes: names.size("sy_depot_shard")?,
            shard_top: names.field("sy_depot_shard.top")?,
            number_mask: (1 << names.constant("SY_DEPOT_TAG_SHIFT")?.min(63)) - 1,
            mixed_client: names.constant("SY_CLASS_MIXED")?,
        })
    }

    /// The magazines of a slot: the loaded one, and the second one.
    pub fn loads(&self, slot: Record, client: u32, thread: u32) -> impl Iterator<Item = Load> {
        let (loaded, previous) = (slot.get(self.loaded), slot.get(self.previous));
        let first = (loaded != 0).then(|| Load {
            magazine: loaded,
            client,
            thread,
            top: slot.get(self.top),
            gone: slot.get(self.gone),
        });
        let second = (previous != 0 && previous != loaded).then_some(Load {
            magazine: previous,
            client,
            thread,
            top: 0,
            gone: 0,
        });
        first.into_iter().chain(second)
    }
}

/// A magazine in a slot of a thread.
pub(super) struct Load {
    pub magazine: u64,
    pub client: u32,
    /// The index of the thread.
    pub thread: u32,
    /// Where its items end, and which of them come first; 0: the magazine's count holds.
    top: u64,
    gone: u64,
}

impl Load {
    /// Which of its items there are. A `top` outside of the magazine belongs to another one, which
    /// the thread is just exchanging.
    pub fn which(&self, items: u64, count: u64, most: u64) -> Range<u64> {
        match self.top.checked_sub(items) {
            _ if self.top == 0 => 0..count,
            Some(bytes) if bytes / 8 <= most => self.gone..bytes / 8,
            _ => 0..0,
        }
    }
}

/// The directory of ordinals, which the items of caches with handles are.
pub(super) struct Ordinals {
    /// The address of the words of handles; 0: there is no directory.
    pub words: u64,
    /// For how many ordinals it has room, as a power of two.
    pub shift: u64,
    /// Each ordinal in use is below it.
    pub limit: u64,
    /// Ordinals that have a place together.
    pub group: u64,
    /// Ordinals of a block of a cache whose objects move; 0: the library has no table of blocks.
    pub block: u64,
}

impl Ordinals {
    pub fn read(image: &Image, names: &Names) -> Result<Self> {
        let base = image.word(names.variable("sy_directory")?)?;
        let shift = base % names.constant("sy_directory_shift_bits")?.max(1);
        Ok(Ordinals {
            words: base - shift,
            shift: shift.min(40),
            limit: image.word(names.variable("sy_directory_limit")?)?,
            group: names.constant("sy_directory_group")?.max(1),
            block: names.constant("sy_directory_block").unwrap_or(0),
        })
    }

    pub fn words_bytes(&self) -> u64 {
        8 << self.shift
    }

    /// Words, places, highest generations, blocks and marks (src/cache/directory.c).
    pub fn all_bytes(&self) -> u64 {
        let count = 1_u64 << self.shift;
        let blocks = count.checked_div(self.block).unwrap_or(0);
        self.words_bytes() + count / self.group * 12 + blocks * 16 + count / 512
    }

    /// The address of the slot that has an ordinal.
    pub fn place(&self, image: &Image, ordinal: u64, slot: u64) -> Option<u64> {
        if ordinal >= self.limit {
            return None;
        }
        let places = self.words.checked_add(self.words_bytes())?;
        let place = image
            .word(places.checked_add(ordinal / self.group * 8)?)
            .ok()?;
        place.checked_add((ordinal % self.group).checked_mul(slot)?)
    }

    /// The same in a cache whose objects move: the word behind the object's.
    pub fn moved_place(&self, image: &Image, ordinal: u64) -> Option<u64> {
        if ordinal >= self.limit {
            return None;
        }
        let word = self.words.checked_add((ordinal | 1) * 8)?;
        let place = image.word(word).ok()?;
        Some(place >> slabyard_sys::SY_HANDLE_PLACE)
    }
}
