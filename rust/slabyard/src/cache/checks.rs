//! What a cache looks for.

use core::ops::BitOr;

/// What a cache looks for, or keeps secret, at a price: see `docs/checks.md`. The options of the
/// same names ask for it without compiling anything again ([`set_options`](crate::set_options)).
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
    /// None.
    pub const NONE: Checks = Checks(0);
    /// Every free is validated. The next four bring it along.
    pub const CHECKED: Checks = Checks(slabyard_sys::SY_CHECKED);
    /// Bytes before and behind each object, verified when it is freed.
    pub const REDZONE: Checks = Checks(slabyard_sys::SY_REDZONE);
    /// Free objects are filled, and verified before they are given out again.
    pub const POISON: Checks = Checks(slabyard_sys::SY_POISON);
    /// Freed objects wait, and are reused in random order.
    pub const QUARANTINE: Checks = Checks(slabyard_sys::SY_QUARANTINE);
    /// Who allocated and who freed an object is noted, for reports.
    pub const AUDIT: Checks = Checks(slabyard_sys::SY_AUDIT);
    /// Slots are taken in random order. The fast path stays.
    pub const RANDOM: Checks = Checks(slabyard_sys::SY_RANDOM);
    /// The ends of each slab are filled, and verified when it is released. The fast path stays.
    pub const EDGES: Checks = Checks(slabyard_sys::SY_EDGES);
    /// Now and then an object gets pages of its own, with inaccessible ones beside.
    pub const GUARD: Checks = Checks(slabyard_sys::SY_GUARD);
    /// Objects are filled with zeroes when they are freed.
    pub const ZERO: Checks = Checks(slabyard_sys::SY_ZERO);
    /// The memory of objects is kept out of core dumps.
    pub const NO_DUMP: Checks = Checks(slabyard_sys::SY_NO_DUMP);
    /// The memory of objects is never written to swap; there is no room where it cannot be locked.
    pub const LOCKED: Checks = Checks(slabyard_sys::SY_LOCKED);

    /// Both, in constants.
    pub const fn and(self, other: Checks) -> Checks {
        Checks(self.0 | other.0)
    }

    /// Whether all of `other` are among these.
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
