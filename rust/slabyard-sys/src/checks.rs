//! `slabyard/checks.h`: the checks of caches, heaps and pools, and options to keep their content
//! secret.

use crate::c_uint;

/// Every free is validated. The next four checks include this one.
pub const SY_CHECKED: c_uint = 1 << 7;
/// Bytes before and behind each object are filled, and verified when the object is freed.
pub const SY_REDZONE: c_uint = 1 << 8;
/// Free objects are filled with a pattern, which is verified before they are allocated again.
pub const SY_POISON: c_uint = 1 << 9;
/// Freed objects wait, and are reused in random order.
pub const SY_QUARANTINE: c_uint = 1 << 10;
/// The stack and thread of each allocation and free are recorded.
pub const SY_AUDIT: c_uint = 1 << 11;
/// Slots are taken in random order.
pub const SY_RANDOM: c_uint = 1 << 12;
/// The two ends of each slab are filled with a pattern, which is verified when the slab is
/// released.
pub const SY_EDGES: c_uint = 1 << 13;
/// Some objects, chosen by sampling, get pages of their own.
pub const SY_GUARD: c_uint = 1 << 14;
/// Objects are filled with zeroes when they are freed.
pub const SY_ZERO: c_uint = 1 << 15;
/// The memory of objects is kept out of core dumps.
pub const SY_NO_DUMP: c_uint = 1 << 16;
/// The memory of objects is never written to swap; an allocation fails if it cannot be locked.
pub const SY_LOCKED: c_uint = 1 << 17;
/// All flags above.
pub const SY_CHECK_FLAGS: c_uint = SY_CHECKED
    | SY_REDZONE
    | SY_POISON
    | SY_QUARANTINE
    | SY_AUDIT
    | SY_RANDOM
    | SY_EDGES
    | SY_GUARD
    | SY_ZERO
    | SY_NO_DUMP
    | SY_LOCKED;
