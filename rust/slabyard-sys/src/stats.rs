//! `slabyard/stats.h`: where the memory is, and how often the slow paths ran.

use core::mem::size_of;

use crate::{c_char, c_int, c_uint, c_void, sy_cache};

/// Bytes of a cache's name that are kept.
pub const SY_CACHE_NAME_MAX: usize = 31;

/// Statistics of a cache. The header has equations between the fields.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // the header describes each field
pub struct sy_cache_stats {
    pub name: [c_char; SY_CACHE_NAME_MAX + 1],
    pub object_size: usize,
    pub slot_size: usize,
    pub align: usize,
    pub slab_bytes: usize,
    pub slots_per_slab: usize,
    pub colours: c_uint,
    pub magazine_items: c_uint,
    pub slots: usize,
    pub in_use: usize,
    pub in_depot: usize,
    pub in_loaded: usize,
    pub guarded: usize,
    pub in_quarantine: usize,
    pub free: usize,
    pub retired: usize,
    pub limit: usize,
    pub slabs: usize,
    pub full: usize,
    pub partial: usize,
    pub empty: usize,
    pub mapped: usize,
    pub tail: usize,
    pub waste: usize,
    pub discarded: usize,
    pub never_used: usize,
    pub refills: u64,
    pub flushes: u64,
    pub depot_hits: u64,
    pub depot_misses: u64,
    pub depot_steals: u64,
    pub slabs_made: u64,
    pub slabs_released: u64,
    pub slabs_filled: u64,
    pub slabs_opened: u64,
    pub slabs_reused: u64,
    pub constructed: u64,
    pub destructed: u64,
    pub limits_hit: u64,
    pub moves: u64,
    pub moves_put_off: u64,
    pub move_bytes: u64,
}

/// Statistics of the process.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // the header describes each field
pub struct sy_stats {
    pub caches: usize,
    pub chunks: usize,
    pub mapped: usize,
    pub slabs: usize,
    pub spans: usize,
    pub units_free: usize,
    pub units_clean: usize,
    pub chunk_headers: usize,
    pub magazines: usize,
    pub side: usize,
    pub memory_limit: usize,
    pub cpus: c_uint,
    pub limits_hit: u64,
}

/// The memory of the process by what it is for, in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // the header describes each field
pub struct sy_account {
    pub live_bytes: usize,
    pub large_bytes: usize,
    pub guarded_bytes: usize,
    pub rounding_bytes: usize,
    pub quarantine_bytes: usize,
    pub thread_magazines_bytes: usize,
    pub depot_magazines_bytes: usize,
    pub free_in_slabs_bytes: usize,
    pub holes_bytes: usize,
    pub tails_bytes: usize,
    pub free_units_bytes: usize,
    pub kept_spans_bytes: usize,
    pub headers_bytes: usize,
    pub records_bytes: usize,
    pub magazines_bytes: usize,
    pub handles_bytes: usize,
    pub arenas_bytes: usize,
    pub traces_bytes: usize,
    pub guard_records_bytes: usize,
    pub address_space_bytes: usize,
    pub resident_bytes: usize,
    pub other_bytes: usize,
}

/// The use of a cache.
pub type sy_cache_kind = c_uint;
/// Created by `sy_cache_create`.
pub const SY_CACHE_OF_PROGRAM: sy_cache_kind = 0;
/// A size class of `sy_malloc`.
pub const SY_CACHE_OF_SIZES: sy_cache_kind = 1;
/// A size class of a `sy_heap`.
pub const SY_CACHE_OF_HEAP: sy_cache_kind = 2;

/// The description of a cache that `sy_cache_each` passes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // the header describes each field
pub struct sy_cache_account {
    pub cache: *const sy_cache,
    pub kind: sy_cache_kind,
    pub stats: sy_cache_stats,
}

/// Called for each cache.
pub type sy_cache_visit =
    unsafe extern "C" fn(arg: *mut c_void, account: *const sy_cache_account) -> c_int;

extern "C" {
    /// Calls `visit` for each cache, until it returns another value than 0.
    ///
    /// # Safety
    /// `visit` may be called with `arg`.
    pub fn sy_cache_each(visit: sy_cache_visit, arg: *mut c_void) -> c_int;

    /// Writes readable statistics to a file descriptor; -1 if not all was written.
    ///
    /// # Safety
    /// None beyond the rules of the crate.
    pub fn sy_print_stats(fd: c_int) -> c_int;

    /// Fills `size` bytes at `stats`; -1 with `EINVAL` for null, or if the first version of the
    /// struct had more bytes.
    ///
    /// # Safety
    /// `stats` is null or valid for a write of `size` bytes.
    pub fn sy_cache_get_stats_sized(
        cache: *const sy_cache,
        stats: *mut sy_cache_stats,
        size: usize,
    ) -> c_int;

    /// Fills `size` bytes at `stats`; -1 with `EINVAL` for null, or if the first version of the
    /// struct had more bytes.
    ///
    /// # Safety
    /// `stats` is null or valid for a write of `size` bytes.
    pub fn sy_get_stats_sized(stats: *mut sy_stats, size: usize) -> c_int;

    /// Fills `size` bytes at `account`; -1 with `EINVAL` for null, or if the first version of the
    /// struct had more bytes.
    ///
    /// # Safety
    /// `account` is null or valid for a write of `size` bytes.
    pub fn sy_get_account_sized(account: *mut sy_account, size: usize) -> c_int;
}

/// Fills `stats`; -1 with `EINVAL` for null.
///
/// # Safety
/// `stats` is null or valid for a write.
#[inline]
pub unsafe fn sy_cache_get_stats(cache: *const sy_cache, stats: *mut sy_cache_stats) -> c_int {
    // SAFETY: as much is valid as this crate's struct has.
    unsafe { sy_cache_get_stats_sized(cache, stats, size_of::<sy_cache_stats>()) }
}

/// Fills `stats`.
///
/// # Safety
/// `stats` is valid for a write.
#[inline]
pub unsafe fn sy_get_stats(stats: *mut sy_stats) {
    // SAFETY: as much is valid as this crate's struct has.
    unsafe { sy_get_stats_sized(stats, size_of::<sy_stats>()) };
}

/// Fills `account`.
///
/// # Safety
/// `account` is valid for a write.
#[inline]
pub unsafe fn sy_get_account(account: *mut sy_account) {
    // SAFETY: as much is valid as this crate's struct has.
    unsafe { sy_get_account_sized(account, size_of::<sy_account>()) };
}
