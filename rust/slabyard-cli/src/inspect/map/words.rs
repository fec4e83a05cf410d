//! The words of the picture: its title, the sentences above it, and what it leaves out.

use super::collect::{Group, Picture, Use, FRAME};
use super::pack::Packed;
use crate::inspect::heap::Kind;
use crate::ui::{grouped, round_bytes};

/// Bytes in words, in which no line ends.
fn bytes(count: u64) -> String {
    round_bytes(count).replace(' ', "\u{a0}")
}

pub fn title(picture: &Picture) -> String {
    format!("The heap of {} (process {})", picture.program, picture.pid)
}

fn percent(part: u64, whole: u64) -> String {
    match 100 * part / whole.max(1) {
        0 if part > 0 => "less than 1\u{a0}%".into(),
        percent => format!("{percent}\u{a0}%"),
    }
}

/// How much memory there is, and how much of it is live.
pub fn answer(picture: &Picture) -> String {
    let sums = picture.bytes();
    format!(
        "{} in memory, {} of it live ({}).",
        bytes(sums.resident()),
        bytes(sums.live),
        percent(sums.live, sums.resident())
    )
}

/// Where the free memory is.
pub fn holes(picture: &Picture) -> String {
    let sums = picture.bytes();
    let free = sums.waiting + sums.free;
    let pinned = picture.pinned();
    let rest = free.saturating_sub(pinned);
    let mut words = format!("{} are free", bytes(free));
    if pinned > 0 {
        words += &format!(
            ": {} of them are holes on pages that live objects keep",
            bytes(pinned)
        );
        if rest > 0 {
            words += &format!(", {} lie on pages without live objects", bytes(rest));
        }
    }
    if sums.waiting > 0 {
        words += &format!(
            ". {} wait in magazines for the next allocations",
            bytes(sums.waiting)
        );
    }
    words + "."
}

/// What the picture does not show.
pub fn left_out(picture: &Picture, packed: Option<&Packed>) -> Vec<String> {
    let mut all = Vec::new();
    if picture.absent_bytes > 0 {
        all.push(format!(
            "{} of address space are not drawn: they are parts of 4 MiB in which no page is in memory.",
            bytes(picture.absent_bytes)
        ));
    }
    if picture.frames_left_out > 0 {
        all.push(format!(
            "The last {} parts of 4 MiB have no room in the picture.",
            grouped(picture.frames_left_out)
        ));
    }
    if let Some(packed) = packed.filter(|packed| packed.slabs_without_slots > 0) {
        all.push(format!(
            "The slots of {} of {} slabs are left out, so that the file stays small. These slabs have \
             the least free memory; their pages are here.",
            grouped(packed.slabs_without_slots),
            grouped(packed.slabs)
        ));
    }
    all.push(
        "The picture has the memory for objects only. `slabyard account` shows all memory of the \
         process."
            .into(),
    );
    all
}

/// How many bytes the drawn parts are.
pub fn extent(picture: &Picture) -> String {
    bytes(picture.frames.len() as u64 * FRAME)
}

/// What a group is, in a few words beside its name.
pub fn kind(group: &Group) -> String {
    match group.of {
        Use::Slab(kind) => {
            let of = match kind {
                Kind::Program => "cache",
                Kind::Size => "size class of malloc",
                Kind::Heap => "size class of a heap",
            };
            format!("{of}, objects of {}", bytes(group.size))
        }
        Use::Mixed => "objects of several size classes share a unit".into(),
        Use::Large => "above 128 KiB, each in units of its own".into(),
        Use::Free => "for any cache".into(),
        Use::Kept => "freed large objects".into(),
        Use::Changing => "made or released while it was read".into(),
    }
}
