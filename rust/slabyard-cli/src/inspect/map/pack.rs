//! Packs a picture for the page. page.js unpacks it. All numbers are `varint`s except the pages:
//!
//! ```text
//! frames  their number; of each: frames left out before it
//! runs    their number; of each: units left out before it, units, group, bytes before the first
//!         slot, live objects, those in magazines, free slots
//! units   of each frame 64 times: bytes that are live, in magazines, free
//! pages   of each frame 1,024 bytes: 0 not resident, else 1 + 8 * (15ths live) + 7ths in magazines
//! slots   as long as there is room: index of a run + 1, bytes that follow, states (collect.rs)
//! 0
//! ```
//!
//! The whole is compressed (zlib) and in base64. Frames, runs, units and pages are always there: for
//! 8 GiB they are at most some 4 MiB, usually far less. Slots may be much larger. They come in the
//! order in which they are worth looking at: the runs with the most free memory first, until
//! [`MOST`] bytes are full.

use super::collect::{varint, Bytes, Page, Picture, Run, FRAME, PAGE, UNIT, UNIT_PAGES};
use base64::prelude::{Engine, BASE64_STANDARD};
use flate2::{write::ZlibEncoder, Compression};
use std::io::{self, Write};

/// Compressed bytes after which no more slots are added. In base64 they are a third more.
pub const MOST: usize = 7 << 20;

pub struct Packed {
    pub text: String,
    /// Slabs and mixed units, and those of them whose slots are not in the text.
    pub slabs: u64,
    pub slabs_without_slots: u64,
}

pub fn pack(picture: &Picture) -> Packed {
    pack_within(picture, MOST).expect("writing to memory does not fail")
}

/// The same with another [`MOST`].
pub fn pack_within(picture: &Picture, most: usize) -> io::Result<Packed> {
    let mut to = ZlibEncoder::new(Vec::new(), Compression::default());
    to.write_all(&frames(picture))?;
    let shown = shown_runs(picture);
    to.write_all(&runs(&shown))?;
    to.write_all(&units(picture))?;
    for frame in &picture.frames {
        let pages: Vec<u8> = frame.pages.iter().map(level).collect();
        to.write_all(&pages)?;
    }
    let mut order: Vec<usize> = (0..shown.len()).collect();
    order.retain(|&at| !shown[at].states.is_empty());
    order.sort_by_key(|&at| u64::MAX - shown[at].free_bytes);
    let mut packed = 0;
    for &at in &order {
        if to.get_ref().len() >= most {
            break;
        }
        let states = &shown[at].states;
        let mut start = Vec::new();
        varint(&mut start, at as u64 + 1);
        varint(&mut start, states.len() as u64);
        to.write_all(&start)?;
        to.write_all(states)?;
        packed += 1;
    }
    to.write_all(&[0])?;
    Ok(Packed {
        text: BASE64_STANDARD.encode(to.finish()?),
        slabs: order.len() as u64,
        slabs_without_slots: order.len() as u64 - packed,
    })
}

fn frames(picture: &Picture) -> Vec<u8> {
    let mut to = Vec::new();
    varint(&mut to, picture.frames.len() as u64);
    let mut next = 0;
    for frame in &picture.frames {
        let number = frame.start / FRAME;
        varint(&mut to, number - next);
        next = number + 1;
    }
    to
}

/// The runs that lie in a frame which is drawn.
fn shown_runs(picture: &Picture) -> Vec<&Run> {
    let frames = &picture.frames;
    let is_shown = |run: &&Run| {
        let next = frames.partition_point(|one| one.start + FRAME <= run.range.start);
        frames
            .get(next)
            .is_some_and(|one| one.start < run.range.end)
    };
    picture.runs.iter().filter(is_shown).collect()
}

fn runs(shown: &[&Run]) -> Vec<u8> {
    let mut to = Vec::new();
    varint(&mut to, shown.len() as u64);
    let mut next = 0;
    for run in shown {
        // Only torn memory has runs that do not begin at a unit.
        let start = (run.range.start / UNIT).max(next);
        let end = run.range.end.div_ceil(UNIT).max(start);
        varint(&mut to, start - next);
        varint(&mut to, end - start);
        next = end;
        varint(&mut to, run.group as u64);
        varint(&mut to, run.first.saturating_sub(run.range.start));
        let Bytes {
            live,
            waiting,
            free,
        } = run.objects;
        for count in [live, waiting, free] {
            varint(&mut to, count);
        }
    }
    to
}

fn units(picture: &Picture) -> Vec<u8> {
    let mut to = Vec::new();
    for unit in picture
        .frames
        .iter()
        .flat_map(|frame| frame.pages.chunks(UNIT_PAGES))
    {
        let mut sum = Bytes::<u64>::default();
        unit.iter().for_each(|page| sum.add(page));
        for bytes in [sum.live, sum.waiting, sum.free] {
            varint(&mut to, bytes);
        }
    }
    to
}

/// What a page is, in a byte. Parts are rounded up: a page with one live object is not free.
pub fn level(page: &Page) -> u8 {
    let part = |bytes: u16, of: u64| (u64::from(bytes) * of).div_ceil(PAGE) as u8;
    match page.resident() {
        0 => 0,
        _ => 1 + 8 * part(page.live, 15) + part(page.waiting, 7),
    }
}
