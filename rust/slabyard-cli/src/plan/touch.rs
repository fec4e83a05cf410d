//! How a replay touches an object's memory, and how much memory an allocator must have for it.

/// A cache line, a page, and up to where an object is written densely: a program writes most of a
/// small object, and at least something on each page of a large one.
pub const LINE: usize = 64;
const PAGE: usize = 4096;
const DENSE: usize = 1024;

/// The byte that is touched after the byte `at`: each line of the first bytes, then each page.
#[inline(always)]
pub fn next_touch(at: usize) -> usize {
    if at < DENSE {
        at + LINE
    } else {
        (at & !(PAGE - 1)) + PAGE
    }
}

/// So many bytes are in RAM at least for each live object of `size` bytes that was written: what
/// lies between its touched bytes, without the last page, which it may share with its neighbour.
pub fn sure_bytes(size: u64) -> u64 {
    let (line, page, dense) = (LINE as u64, PAGE as u64, DENSE as u64);
    if size == 0 {
        return 0;
    }
    let start = (size.min(dense) - 1) / line * line + 1;
    start + ((size - 1) / page).saturating_sub(1) * page
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Objects that lie side by side, as densely as they can.
    #[test]
    fn sure_bytes_are_never_more_than_the_pages_touched() {
        for size in [
            1, 16, 64, 65, 100, 1000, 1024, 1500, 4096, 4097, 10_000, 70_000,
        ] {
            let mut pages = BTreeSet::new();
            for object in 0..500 {
                let mut at = 0;
                while at < size {
                    pages.insert((object * size + at) / PAGE);
                    at = next_touch(at);
                }
            }
            let (resident, sure) = (pages.len() * PAGE, 500 * sure_bytes(size as u64) as usize);
            assert!(sure <= resident, "{size}: {sure} of {resident}");
            assert!(
                size <= 128 || sure * 5 >= 500 * size.min(DENSE),
                "{size}: {sure}"
            );
        }
        assert_eq!(sure_bytes(0), 0);
    }
}
