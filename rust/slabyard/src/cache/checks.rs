//! The checks of a cache.

use core::ops::BitOr;

/// What a cache checks, or keeps secret, at a price: see `docs/checks.md`. The options of the same
/// names turn these on without a rebuild ([`set_options`](crate::set_options)).
///
/// ```
/// use slabyard::{Cache, Checks};
///
/// let secrets = Cache::builder().checks(Checks::CHECKED | Checks::ZERO).build().unwrap();
/// drop(secrets.insert([7u8; 32])); // leaves zeroes
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Checks(pub(crate) u32);

impl Checks {
    /// No checks.
    pub const NONE: Checks = Checks(0);
    /// Every free is validated. The next four checks include this one.
    pub const CHECKED: Checks = Checks(slabyard_sys::SY_CHECKED);
    /// Bytes before and behind each object are filled, and verified when the object is freed.
    pub const REDZONE: Checks = Checks(slabyard_sys::SY_REDZONE);
    /// Free objects are filled with a pattern, which is verified before they are allocated again.
    pub const POISON: Checks = Checks(slabyard_sys::SY_POISON);
    /// Freed objects wait, and are reused in random order.
    pub const QUARANTINE: Checks = Checks(slabyard_sys::SY_QUARANTINE);
    /// Which code allocated and which code freed an object is recorded, for reports.
    pub const AUDIT: Checks = Checks(slabyard_sys::SY_AUDIT);
    /// Slots are taken in random order. The fast path stays inline.
    pub const RANDOM: Checks = Checks(slabyard_sys::SY_RANDOM);
    /// The ends of each slab are filled with a pattern, which is verified when the slab is
    /// released. The fast path stays inline.
    pub const EDGES: Checks = Checks(slabyard_sys::SY_EDGES);
    /// Some objects, chosen by sampling, get pages of their own between inaccessible pages.
    pub const GUARD: Checks = Checks(slabyard_sys::SY_GUARD);
    /// Objects are filled with zeroes when they are freed.
    pub const ZERO: Checks = Checks(slabyard_sys::SY_ZERO);
    /// The memory of objects is kept out of core dumps.
    pub const NO_DUMP: Checks = Checks(slabyard_sys::SY_NO_DUMP);
    /// The memory of objects is never written to swap. If it cannot be locked, the allocation is
    /// refused.
    pub const LOCKED: Checks = Checks(slabyard_sys::SY_LOCKED);

    /// Both sets of checks; for constants, where `|` cannot be called.
    pub const fn and(self, other: Checks) -> Checks {
        Checks(self.0 | other.0)
    }

    /// Whether all checks of `other` are in this set.
    pub const fn contains(self, other: Checks) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Checks {
    type Output = Checks;

    fn bitor(self, other: Checks) -> Checks {
        self.and(other)
    }
}
