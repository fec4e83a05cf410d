//! How a replay touches an object's memory, and the least memory that an allocator must then have.

/// The size of a cache line and of a page. Objects are written densely up to DENSE bytes, because a
/// program writes most of a small object, and at least something on each page of a large one.
pub const LINE: usize = 64;
const PAGE: usize = 4096;
const DENSE: usize = 1024;

/// The offset that is touched after offset `at`: in each line of the first bytes, then in each
/// page.
#[inline(always)]
pub fn next_touch(at: usize) -> usize {
    if at < DENSE {
        at + LINE
    } else {
        (at & !(PAGE - 1)) + PAGE
    }
}

/// The bytes that are in RAM at least for a live, written object of `size` bytes: from its first to
/// its last touched byte, without the last page, which it may share with its neighbour.
pub fn sure_bytes(size: u64) -> u64 {
    let (line, page, dense) = (LINE as u64, PAGE as u64, DENSE as u64);
    if size == 0 {
        return 0;
    }
    let start = (size.min(dense) - 1) / line * line + 1;
    start + ((size - 1) / page).saturating_sub(1) * page
}

/// Objects of at least this size may have pages that the program never touches, so the recorder
/// looks at their pages. The same as `RECORD_LARGE_BYTES` of `recorder/format.h`.
pub const LARGE: u64 = 64 << 10;

/// The number of pages of a large object, counted from its first byte.
pub fn pages_of(size: u64) -> u64 {
    size.div_ceil(PAGE as u64)
}

/// The share of an operation's new pages that the program touched: 1 means none, [`Touched::ALL`]
/// means all, and 0 means that it is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched(pub u16);

impl Touched {
    pub const UNKNOWN: Touched = Touched(0);
    const ALL: u64 = u16::MAX as u64;

    pub fn share(touched: u64, pages: u64) -> Touched {
        let parts = u128::from(touched.min(pages)) * u128::from(Touched::ALL - 1);
        let rounded = (parts + u128::from(pages) / 2) / u128::from(pages.max(1));
        Touched(1 + rounded as u16)
    }

    #[inline(always)]
    pub fn is_known(self) -> bool {
        self != Touched::UNKNOWN
    }

    /// The offsets between `from` and `to` that a replay touches if the share is known. The
    /// beginning is touched densely, then one byte of each touched page. Touched pages are a whole
    /// number of pages apart; if there are more of them, each further one follows one of these. So
    /// if an object takes the place of another with about the same share, both touch the same
    /// pages, as in the program.
    pub fn places(self, from: usize, to: usize) -> impl Iterator<Item = usize> {
        let pages = (to.saturating_sub(from)).div_ceil(PAGE);
        let parts = pages as u64 * u64::from(self.0.saturating_sub(1));
        let count = (parts + Touched::ALL / 2) / (Touched::ALL - 1);
        let dense = if count > 0 {
            to.min(from + DENSE)
        } else {
            from
        };
        let apart = (pages + count as usize / 2) / (count as usize).max(1);
        let apart = apart.max(1);
        let spread = pages.div_ceil(apart);
        let page = move |n: u64| match (n as usize).checked_sub(spread) {
            None => from + n as usize * apart * PAGE,
            Some(more) => from + (more * apart + 1) * PAGE,
        };
        (from..dense).step_by(LINE).chain((1..count).map(page))
    }
}

/// The bytes that are in RAM at least of an object of `size` bytes of which `touched` were there.
/// Its first and its last page do not count, because it may share them; nor does the rounding of
/// the share.
pub fn sure_of_touched(touched: u64, size: u64) -> u64 {
    touched.saturating_sub(2 * PAGE as u64 + size / (Touched::ALL - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Tests objects that lie side by side as densely as possible.
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

    #[test]
    fn what_is_sure_of_a_share_is_touched() {
        for size in [LARGE, 1 << 20, (1 << 30) + 5, 1 << 36] {
            for touched in [1u64, 2, 3, 10, 999].map(|pages| pages * PAGE as u64) {
                let share = Touched::share(pages_of(touched), pages_of(size));
                let places = share.places(0, size as usize);
                let pages: BTreeSet<_> = places.map(|at| at / PAGE).collect();
                let sure = sure_of_touched(touched.min(size), size);
                assert!(sure <= (pages.len() * PAGE) as u64, "{size}, {touched}");
            }
        }
    }

    #[test]
    fn a_share_of_the_pages_is_touched_evenly() {
        let size = 1000 * PAGE + 5;
        for touched in [0u64, 1, 2, 7, 63, 500, 1000, 1001, 5000] {
            let share = Touched::share(touched, pages_of(size as u64));
            let places: Vec<_> = share.places(0, size).collect();
            let pages: BTreeSet<_> = places.iter().map(|at| at / PAGE).collect();
            assert_eq!(pages.len() as u64, touched.min(1001), "{touched}");
            assert!(places.iter().all(|&at| at < size));
            let gaps = pages.iter().zip(pages.iter().skip(1)).map(|(a, b)| b - a);
            let most = gaps.max().unwrap_or(0);
            assert!(
                touched < 2 || most <= 1500 / touched as usize + 1,
                "{touched}: {most}"
            );
        }
        assert!(!Touched::UNKNOWN.is_known() && Touched::share(0, 16).is_known());
        assert_eq!(Touched::share(16, 16).places(100, 100).count(), 0);
    }

    #[test]
    fn about_as_many_pages_are_the_same_pages() {
        let size = 8 << 20;
        let pages = |touched: u64| -> BTreeSet<usize> {
            let places = Touched::share(touched, pages_of(size as u64)).places(0, size);
            places.map(|at| at / PAGE).collect()
        };
        for (fewer, more) in [(128, 129), (127, 131), (600, 604), (1500, 1510)] {
            let all: BTreeSet<_> = pages(fewer).union(&pages(more)).copied().collect();
            assert!(
                all.len() as u64 <= more + 1,
                "{fewer} and {more}: {}",
                all.len()
            );
        }
    }
}
