//! Collects what the picture shows, from what was read of a process: frames of 4 MiB, in them pages
//! of 4 KiB, and runs of units with the states of their slots.
//!
//! A frame in which no page is resident is not drawn: its bytes are only counted. So the picture is
//! as large as the memory, not as the address space.

use super::super::heap::{Area, Content, Heap, Kind};
use super::super::image::Image;
use super::super::segments::{self, Segment, State};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// The size of a chunk, and how large spans are aligned.
pub const FRAME: u64 = 4 << 20;
pub const UNIT: u64 = 64 << 10;
/// What the picture shows as a page, also where the system's pages are larger.
pub const PAGE: u64 = 4 << 10;
pub const PAGES: usize = (FRAME / PAGE) as usize;
pub const UNIT_PAGES: usize = (UNIT / PAGE) as usize;

/// Frames after these are left out: 64 GiB.
const FRAMES_MAX: usize = 16 << 10;

/// How many pages with few live objects are listed. Of such a page, at most this part is live.
const PINNED_SHOWN: usize = 8;
const PINNED_PART: u64 = 4;

/// What a run of units is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    Slab(Kind),
    Mixed,
    Large,
    Free,
    Kept,
    Changing,
}

/// Resident bytes by what they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bytes<N> {
    pub live: N,
    pub waiting: N,
    pub free: N,
}

impl<N: Copy + Into<u64>> Bytes<N> {
    pub fn resident(&self) -> u64 {
        self.live.into() + self.waiting.into() + self.free.into()
    }
}

impl Bytes<u64> {
    pub fn add<N: Copy + Into<u64>>(&mut self, other: &Bytes<N>) {
        self.live += other.live.into();
        self.waiting += other.waiting.into();
        self.free += other.free.into();
    }
}

pub type Page = Bytes<u16>;

/// What the legend has a row for: a cache, or another use of units.
#[derive(Debug, Clone)]
pub struct Group {
    pub name: String,
    pub of: Use,
    /// Bytes of an object and of a slot; 0: not all are the same.
    pub size: u64,
    pub slot: u64,
    pub bytes: Bytes<u64>,
    /// Free bytes on pages that live objects keep.
    pub pinned: u64,
    /// Live objects, those in magazines, and free slots.
    pub objects: Bytes<u64>,
}

#[derive(Debug)]
pub struct Frame {
    pub start: u64,
    pub pages: Vec<Page>,
}

/// A slab, a span, or a stretch of free units.
#[derive(Debug)]
pub struct Run {
    pub range: Range<u64>,
    pub group: usize,
    /// Where the first slot is.
    pub first: u64,
    pub objects: Bytes<u64>,
    pub free_bytes: u64,
    /// For neighbours of one state: their state (0 live, 1 in a magazine, 2 free, 3 never used) and
    /// 4 times their number, in `varint`s. In a mixed unit, an entry is one object or hole, and the
    /// number is its bytes / 8; 3 is not known.
    pub states: Vec<u8>,
}

/// A page on which live objects keep free memory.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pinned {
    pub live: u64,
    pub address: u64,
    pub free: u64,
    pub group: usize,
}

#[derive(Debug, Default)]
pub struct Picture {
    pub pid: u32,
    pub program: String,
    pub groups: Vec<Group>,
    pub frames: Vec<Frame>,
    /// In order of address, without overlaps.
    pub runs: Vec<Run>,
    /// The pages with the fewest live bytes, at most [`PINNED_SHOWN`].
    pub pinned: Vec<Pinned>,
    /// Address space of frames without memory.
    pub absent_bytes: u64,
    /// Frames with memory that had no room.
    pub frames_left_out: u64,
}

/// Writes a number in 7-bit pieces, the lowest first; all but the last have bit 7 set.
pub fn varint(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// `page`: the bytes of a page of the system.
pub fn collect(image: &Image, heaps: &[Heap], page: u64) -> Picture {
    let mut collector = Collector::default();
    for heap in heaps {
        collector.add_groups(heap);
        collector.add_frames(image, heap);
    }
    for (heap, first) in heaps.iter().zip(collector.first_group.clone()) {
        for area in &heap.areas {
            collector.add_area(heap, area, first);
        }
    }
    collector.sort_runs();
    for (heap, first) in heaps.iter().zip(collector.first_group.clone()) {
        let mut near = Near::at(image);
        let mut add = |segment: &Segment| collector.add_segment(&mut near, first, segment);
        segments::each(heap, &mut add);
    }
    collector.find_pins((page / PAGE).max(1) as usize);
    collector.sum_groups();
    collector.picture
}

/// What was looked up for the segment before: the next one is near. There may be 100 million.
struct Near<'a> {
    image: &'a Image,
    /// A part of the address space, and the resident parts of it.
    window: Range<u64>,
    resident: Vec<Range<u64>>,
    /// A run, and its number; none begins in an empty range.
    run: Range<u64>,
    number: Option<usize>,
}

impl Near<'_> {
    fn at(image: &Image) -> Near<'_> {
        Near {
            image,
            window: 0..0,
            resident: Vec::new(),
            run: 0..0,
            number: None,
        }
    }

    fn resident(&mut self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + Clone + '_ {
        if range.start < self.window.start || range.end > self.window.end {
            let unit = range.start - range.start % UNIT;
            self.window = unit..range.end.max(unit.saturating_add(UNIT));
            self.resident.clear();
            let within = self.image.resident.within(self.window.clone());
            self.resident.extend(within);
        }
        let (start, end) = (range.start, range.end);
        self.resident
            .iter()
            .map(move |part| part.start.max(start)..part.end.min(end))
            .filter(|part| part.start < part.end)
    }
}

#[derive(Default)]
struct Collector {
    picture: Picture,
    /// Of each heap, the index of the group of its first cache.
    first_group: Vec<usize>,
    /// Indexes of frames by address / [`FRAME`].
    frame_at: HashMap<u64, usize>,
}

/// The groups of a heap after those of its caches, and their names.
const OTHERS: [(Use, &str); 5] = [
    (Use::Mixed, "mixed units"),
    (Use::Large, "large objects"),
    (Use::Free, "free units"),
    (Use::Kept, "large spans kept for reuse"),
    (Use::Changing, "just being changed"),
];

impl Collector {
    fn add_groups(&mut self, heap: &Heap) {
        let groups = &mut self.picture.groups;
        self.first_group.push(groups.len());
        groups.extend(heap.caches.iter().map(|cache| Group {
            size: cache.size,
            slot: cache.slot,
            ..group(cache.name.clone(), Use::Slab(cache.kind))
        }));
        groups.extend(OTHERS.map(|(of, name)| group(name.into(), of)));
    }

    fn add_frames(&mut self, image: &Image, heap: &Heap) {
        let mut numbers = BTreeSet::new();
        for area in &heap.areas {
            let mut drawn = BTreeSet::new();
            for resident in image.resident.within(area.range.clone()) {
                drawn.extend(resident.start / FRAME..resident.end.div_ceil(FRAME));
            }
            let bytes = area.range.end.saturating_sub(area.range.start);
            self.picture.absent_bytes += bytes.saturating_sub(drawn.len() as u64 * FRAME);
            numbers.append(&mut drawn);
        }
        for number in numbers {
            if self.picture.frames.len() >= FRAMES_MAX {
                self.picture.frames_left_out += 1;
                continue;
            }
            self.picture.frames.push(Frame {
                start: number * FRAME,
                pages: vec![Page::default(); PAGES],
            });
        }
        let frames = &mut self.picture.frames;
        frames.sort_by_key(|frame| frame.start);
        frames.dedup_by_key(|frame| frame.start);
        let numbers = frames.iter().enumerate();
        self.frame_at = numbers.map(|(at, one)| (one.start / FRAME, at)).collect();
    }

    /// Adds the runs of an area, and the stretches between them.
    fn add_area(&mut self, heap: &Heap, area: &Area, first_group: usize) {
        let others = first_group + heap.caches.len();
        let of = |one: Use| {
            let place = OTHERS.iter().position(|&(of, _)| of == one);
            others + place.expect("a use that is in the list")
        };
        if area.kept {
            self.add_run(area.range.clone(), of(Use::Kept), 0);
            return;
        }
        let mut at = area.range.start;
        for run in &area.runs {
            self.add_run(at..run.range.start, of(Use::Free), 0);
            let (group, first) = match &run.content {
                Content::Slab(slab) => (first_group + slab.cache, slab.first),
                Content::Mixed(_) => (of(Use::Mixed), run.range.start),
                Content::Span => (of(Use::Large), run.range.start),
                Content::Unknown => (of(Use::Changing), 0),
            };
            self.add_run(run.range.clone(), group, first);
            at = run.range.end;
        }
        self.add_run(at..area.range.end, of(Use::Free), 0);
    }

    fn add_run(&mut self, range: Range<u64>, group: usize, first: u64) {
        if range.start < range.end {
            self.picture.runs.push(Run {
                range,
                group,
                first,
                objects: Bytes::default(),
                free_bytes: 0,
                states: Vec::new(),
            });
        }
    }

    /// Puts runs in order. Of two that overlap, which only torn memory has, the first one stays.
    fn sort_runs(&mut self) {
        let runs = &mut self.picture.runs;
        runs.sort_by_key(|run| run.range.start);
        let mut end = 0;
        runs.retain(|run| {
            let is_apart = run.range.start >= end;
            if is_apart {
                end = run.range.end;
            }
            is_apart
        });
    }

    fn run_at(&self, address: u64) -> Option<usize> {
        let runs = &self.picture.runs;
        let after = runs.partition_point(|run| run.range.start <= address);
        let at = after.checked_sub(1)?;
        (address < runs[at].range.end).then_some(at)
    }

    fn add_segment(&mut self, near: &mut Near, first_group: usize, segment: &Segment) {
        let parts = near.resident(&segment.range);
        for part in parts.clone() {
            self.add_part(segment.state, part);
        }
        let resident: u64 = parts.map(|part| part.end - part.start).sum();
        if !near.run.contains(&segment.range.start) {
            near.number = self.run_at(segment.range.start);
            let run = near.number.map(|at| self.picture.runs[at].range.clone());
            near.run = run.unwrap_or_default();
        }
        let Some(at) = near
            .number
            .filter(|_| near.run.contains(&segment.range.start))
        else {
            return;
        };
        let run = &mut self.picture.runs[at];
        if is_free(segment.state) {
            run.free_bytes += resident;
        }
        let count = segment.count;
        let state = match segment.state {
            State::Live | State::Large => 0,
            State::Waiting(_) => 1,
            State::Free => 2,
            State::NeverUsed | State::Changing => 3,
            State::Tail | State::Units | State::Kept => return,
        };
        match state {
            0 => run.objects.live += count,
            1 => run.objects.waiting += count,
            _ => run.objects.free += count,
        }
        let of = self.picture.groups[run.group].of;
        let number = match of {
            Use::Slab(_) if segment.cache == run.group.checked_sub(first_group) => count,
            Use::Mixed => (segment.range.end - segment.range.start) / 8,
            _ => return,
        };
        varint(&mut run.states, number << 2 | state);
    }

    /// Counts resident bytes for the pages that they lie on.
    fn add_part(&mut self, state: State, part: Range<u64>) {
        let mut at = part.start;
        while at < part.end {
            let end = part.end.min(at - at % PAGE + PAGE);
            if let Some(&frame) = self.frame_at.get(&(at / FRAME)) {
                let frame = &mut self.picture.frames[frame];
                let page = &mut frame.pages[(at % FRAME / PAGE) as usize];
                // Areas that overlap, which only torn memory has, could count a byte twice.
                let room = PAGE.saturating_sub(page.resident());
                let bytes = (end - at).min(room) as u16;
                match state {
                    _ if is_free(state) => page.free += bytes,
                    State::Waiting(_) => page.waiting += bytes,
                    _ => page.live += bytes,
                }
            }
            at = end;
        }
    }

    /// Finds the pages that live objects keep. `lines`: how many pages of the picture are a page of
    /// the system.
    fn find_pins(&mut self, lines: usize) {
        let mut found: BTreeSet<Pinned> = BTreeSet::new();
        for frame in 0..self.picture.frames.len() {
            for place in (0..PAGES).step_by(lines) {
                let frame = &self.picture.frames[frame];
                let mut sum = Bytes::<u64>::default();
                let end = PAGES.min(place + lines);
                frame.pages[place..end].iter().for_each(|one| sum.add(one));
                let free = sum.waiting + sum.free;
                let address = frame.start + place as u64 * PAGE;
                if sum.live == 0 || free == 0 {
                    continue;
                }
                let Some(run) = self.run_at(address) else {
                    continue;
                };
                let group = self.picture.runs[run].group;
                self.picture.groups[group].pinned += free;
                if sum.live * PINNED_PART > sum.resident() {
                    continue;
                }
                found.insert(Pinned {
                    live: sum.live,
                    address,
                    free,
                    group,
                });
                if found.len() > PINNED_SHOWN {
                    found.pop_last();
                }
            }
        }
        self.picture.pinned = found.into_iter().collect();
    }

    fn sum_groups(&mut self) {
        let picture = &mut self.picture;
        let mut runs = picture.runs.iter().peekable();
        for frame in &picture.frames {
            for (number, unit) in frame.pages.chunks(UNIT_PAGES).enumerate() {
                let address = frame.start + number as u64 * UNIT;
                while runs.next_if(|run| run.range.end <= address).is_some() {}
                if let Some(run) = runs.peek().filter(|run| run.range.start <= address) {
                    let bytes = &mut picture.groups[run.group].bytes;
                    unit.iter().for_each(|page| bytes.add(page));
                }
            }
        }
        for run in &picture.runs {
            picture.groups[run.group].objects.add(&run.objects);
        }
    }
}

fn group(name: String, of: Use) -> Group {
    Group {
        name,
        of,
        size: 0,
        slot: 0,
        bytes: Bytes::default(),
        pinned: 0,
        objects: Bytes::default(),
    }
}

fn is_free(state: State) -> bool {
    use State::*;
    matches!(state, Free | NeverUsed | Tail | Units | Kept)
}

impl Picture {
    /// Sums of all groups.
    pub fn bytes(&self) -> Bytes<u64> {
        let mut sum = Bytes::default();
        self.groups.iter().for_each(|group| sum.add(&group.bytes));
        sum
    }

    pub fn pinned(&self) -> u64 {
        self.groups.iter().map(|group| group.pinned).sum()
    }

    /// Groups that have memory or live objects, those with the most memory first.
    pub fn ranked(&self) -> Vec<usize> {
        let mut all: Vec<usize> = (0..self.groups.len()).collect();
        let groups = &self.groups;
        all.retain(|&at| groups[at].bytes.resident() + groups[at].objects.live > 0);
        all.sort_by_key(|&at| u64::MAX - self.groups[at].bytes.resident());
        all
    }
}
