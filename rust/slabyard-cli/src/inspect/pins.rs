//! Who keeps free memory from going back: for each resident page that is not all live, the live
//! objects on it, or the magazines with its free objects.

use super::heap::{Heap, Holder};
use super::image::Image;
use super::segments::{self, Segment, State};
use serde::Serialize;
use std::collections::HashMap;
use std::ops::Range;

/// What keeps a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pin {
    /// Live objects of a cache; `None`: of no cache.
    Objects(Option<usize>),
    /// Free objects in magazines.
    Magazine(Holder),
    /// Nothing: the page goes back with the next passes, or with `sy_trim`.
    Nothing,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Kept {
    pub pages: u64,
    /// Free bytes on these pages.
    pub free_bytes: u64,
    /// Live objects on them, or free ones in magazines.
    pub objects: u64,
}

/// A page that few objects keep.
#[derive(Debug, Clone, Serialize)]
pub struct Page {
    pub address: u64,
    pub cache: Option<usize>,
    pub free_bytes: u64,
    /// The addresses of the objects, at most [`OBJECTS_SHOWN`].
    pub objects: Vec<u64>,
    pub object_count: u64,
}

const OBJECTS_SHOWN: usize = 4;

#[derive(Debug, Default)]
pub struct Pins {
    pub by: HashMap<Pin, Kept>,
    /// The pages with the most free bytes that live objects keep.
    pub pages: Vec<Page>,
}

/// The state of the page that is being looked at.
#[derive(Default)]
struct Open {
    start: u64,
    free: u64,
    live: HashMap<Option<usize>, u64>,
    objects: Vec<u64>,
    waiting: HashMap<Holder, u64>,
}

struct Walk<'a> {
    page: u64,
    resident: Vec<Range<u64>>,
    image: &'a Image,
    open: Open,
    pins: Pins,
    shown: usize,
}

/// Looks at all pages of `page` bytes, and lists the `shown` ones with the most free bytes.
pub fn find(image: &Image, heap: &Heap, page: u64, shown: usize) -> Pins {
    let mut walk = Walk {
        page,
        resident: Vec::new(),
        image,
        open: Open::default(),
        pins: Pins::default(),
        shown,
    };
    segments::each(heap, &mut |segment| walk.add(segment));
    walk.close();
    let pages = &mut walk.pins.pages;
    pages.sort_by_key(|page| (u64::MAX - page.free_bytes, page.address));
    pages.truncate(shown);
    walk.pins
}

impl Walk<'_> {
    fn add(&mut self, segment: &Segment) {
        self.resident.clear();
        self.resident
            .extend(self.image.resident.within(segment.range.clone()));
        for at in 0..self.resident.len() {
            let part = self.resident[at].clone();
            let mut from = part.start;
            while from < part.end {
                let start = from - from % self.page;
                let end = (start + self.page).min(part.end);
                if self.open.start != start {
                    self.close();
                    self.open.start = start;
                }
                self.add_part(segment, from..end);
                from = end;
            }
        }
    }

    fn add_part(&mut self, segment: &Segment, part: Range<u64>) {
        let bytes = part.end - part.start;
        // The objects that lie in the part, or partly so.
        let slot = segment.slot.max(1);
        let first = (part.start - segment.range.start) / slot;
        let last = (part.end - 1 - segment.range.start) / slot;
        match segment.state {
            State::Live | State::Large => {
                *self.open.live.entry(segment.cache).or_default() += last - first + 1;
                let starts = (first..=last).map(|number| segment.range.start + number * slot);
                let room = OBJECTS_SHOWN.saturating_sub(self.open.objects.len());
                self.open.objects.extend(starts.take(room));
            }
            State::Waiting(holder) => {
                self.open.free += bytes;
                *self.open.waiting.entry(holder).or_default() += last - first + 1;
            }
            State::Free | State::NeverUsed | State::Units | State::Kept | State::Tail => {
                self.open.free += bytes;
            }
            // It is not known what it is: as good as live.
            State::Changing => *self.open.live.entry(None).or_default() += 1,
        }
    }

    /// Notes the page that was looked at.
    fn close(&mut self) {
        let page = std::mem::take(&mut self.open);
        if page.free == 0 {
            return;
        }
        let mut note = |pin, free, objects| {
            let kept = self.pins.by.entry(pin).or_default();
            kept.pages += 1;
            kept.free_bytes += free;
            kept.objects += objects;
        };
        let count: u64 = page.live.values().sum();
        if let Some((&cache, _)) = page.live.iter().max_by_key(|(_, &count)| count) {
            note(Pin::Objects(cache), page.free, count);
            self.pins.pages.push(Page {
                address: page.start,
                cache,
                free_bytes: page.free,
                objects: page.objects,
                object_count: count,
            });
            let room = 4096.max(self.shown * 4);
            if self.pins.pages.len() > 2 * room {
                let pages = &mut self.pins.pages;
                pages.sort_by_key(|page| (u64::MAX - page.free_bytes, page.address));
                pages.truncate(room);
            }
        } else if let Some((&holder, &count)) = page.waiting.iter().max_by_key(|(_, &count)| count)
        {
            note(Pin::Magazine(holder), page.free, count);
        } else {
            note(Pin::Nothing, page.free, 0);
        }
    }
}

/// What lies at an address, in words; `None`: nothing of the library.
pub fn what_is(heap: &Heap, address: u64) -> Option<String> {
    let mut found = None;
    segments::each(heap, &mut |segment| {
        if segment.range.contains(&address) {
            found = Some(segment.clone());
        }
    });
    if let Some(segment) = found {
        return Some(in_words(heap, &segment, address));
    }
    if heap.guarded.contains(&address) {
        return Some("on a page of a guarded object, or between two of them".into());
    }
    let own = heap
        .own
        .iter()
        .rfind(|(range, _)| range.contains(&address))?;
    let what = super::account::What::from(own.1).words();
    Some(format!("Slabyard's own memory: {what}"))
}

fn in_words(heap: &Heap, segment: &Segment, address: u64) -> String {
    let cache = segment.cache.map(|at| &heap.caches[at]);
    let name = cache.map_or("no cache", |cache| cache.name.as_str());
    let slot = segment.slot.max(1);
    let start = segment.range.start + (address - segment.range.start) / slot * slot;
    let size = cache.map_or(slot, |cache| cache.size);
    let start = start + cache.map_or(0, |cache| cache.zone);
    let place = match address.wrapping_sub(start) {
        _ if address < start => format!("of {name}, {size} bytes, at {start:#x}: before it"),
        0 => format!("of {name}, {size} bytes"),
        inside => format!("of {name}, {size} bytes, at {start:#x}: byte {inside} of it"),
    };
    match segment.state {
        State::Live => format!("a live object {place}"),
        State::Large => format!(
            "a live large object, {} bytes, at {:#x}",
            segment.slot, segment.range.start
        ),
        State::Waiting(holder) => format!("a free object {place}, {}", heap.place_of(holder)),
        State::Free if segment.count == 0 => "a hole between objects, free for any size".into(),
        State::Free => format!("a free object {place}, in its slab"),
        State::NeverUsed => format!("a slot {place}, that was never used"),
        State::Tail => format!("in a slab of {name}, in no slot"),
        State::Units => "in free units of a chunk".into(),
        State::Kept => "in a large span that was freed and is kept for reuse".into(),
        State::Changing => "in a slab that is just being made or released".into(),
    }
}
