//! Where the memory is, and how often slow paths ran.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::raw::cache::RawCache;

macro_rules! snapshot {
    (
        $(#[$about:meta])* $name:ident from $of:ident $(with $($extra:ident: $kind:ty),+)?;
        $($(#[$field_about:meta])* $field:ident: $type:ty,)+
    ) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[non_exhaustive]
        pub struct $name {
            $($(
                /// Its name, as far as it is kept.
                pub $extra: $kind,
            )+)?
            $($(#[$field_about])* pub $field: $type,)+
        }

        impl $name {
            #[cfg_attr(miri, allow(dead_code))]
            fn from_sys(stats: &slabyard_sys::$of) -> Self {
                $name {
                    $($($extra: text(&stats.$extra),)+)?
                    $($field: stats.$field,)+
                }
            }
        }
    };
}

snapshot! {
    /// A cache. Exact while no other thread uses or trims it, else a snapshot of each figure. Taking it
    /// looks at each thread.
    ///
    /// `slots + guarded == in_use + in_depot + in_loaded + in_quarantine + free + retired`,
    /// `slabs == full + partial + empty` and `mapped == slots * slot_size + tail`.
    ///
    /// ```
    /// let cache = slabyard::Cache::new("point");
    /// let _point = cache.insert([0.0f64; 3]);
    /// let stats = cache.stats();
    /// assert_eq!((stats.name.as_str(), stats.object_size, stats.in_use), ("point", 24, 1));
    /// ```
    CacheStats from sy_cache_stats with name: String;
    /// Bytes of an object.
    object_size: usize,
    /// Bytes from one object to the next.
    slot_size: usize,
    /// Bytes.
    align: usize,
    /// Bytes of a slab.
    slab_bytes: usize,
    /// Objects of a slab.
    slots_per_slab: usize,
    /// Different offsets at which slabs begin.
    colours: u32,
    /// Most objects that a magazine holds.
    magazine_items: u32,
    /// Objects in all slabs.
    slots: usize,
    /// Objects that the program holds.
    in_use: usize,
    /// Free objects in magazines that wait.
    in_depot: usize,
    /// Free objects in magazines of threads.
    in_loaded: usize,
    /// Of those in use, on pages of their own.
    guarded: usize,
    /// Free objects that wait for others to be.
    in_quarantine: usize,
    /// Free objects in slabs.
    free: usize,
    /// Objects that are never used again: their handles are spent.
    retired: usize,
    /// Most live objects; 0: no limit.
    limit: usize,
    /// Slabs.
    slabs: usize,
    /// Slabs with no free object.
    full: usize,
    /// Slabs with some.
    partial: usize,
    /// Slabs with nothing else.
    empty: usize,
    /// Bytes of slabs.
    mapped: usize,
    /// Bytes of slabs that are too few for an object.
    tail: usize,
    /// Bytes in slabs that are no object's.
    waste: usize,
    /// Bytes of slabs that went back to the system, and were not touched since.
    discarded: usize,
    /// Bytes of slabs that were never given out.
    never_used: usize,
    /// Magazines filled from slabs.
    refills: u64,
    /// Magazines emptied into slabs.
    flushes: u64,
    /// Full magazines that were wanted and found.
    depot_hits: u64,
    /// Full magazines that were wanted and not found.
    depot_misses: u64,
    /// Of the hits, in the shard of another processor.
    depot_steals: u64,
    /// Slabs that were made.
    slabs_made: u64,
    /// Slabs that were given up.
    slabs_released: u64,
    /// Slabs that became full.
    slabs_filled: u64,
    /// Slabs that were full, and are not any more.
    slabs_opened: u64,
    /// Slabs that were empty, and are not any more.
    slabs_reused: u64,
    /// Constructions.
    constructed: u64,
    /// Destructions.
    destructed: u64,
    /// Allocations that were refused for a limit.
    limits_hit: u64,
}

snapshot! {
    /// The process, in bytes where nothing else is said: `mapped == slabs + spans + units_free +
    /// chunk_headers`; the rest is beside it.
    ///
    /// ```
    /// let stats = slabyard::stats();
    /// let parts = stats.slabs + stats.spans + stats.units_free + stats.chunk_headers;
    /// assert_eq!(stats.mapped, parts);
    /// ```
    Stats from sy_stats;
    /// Number of caches, the size classes of the heap among them.
    caches: usize,
    /// Number of chunks.
    chunks: usize,
    /// In chunks and large spans.
    mapped: usize,
    /// Of slabs.
    slabs: usize,
    /// Of large objects.
    spans: usize,
    /// Of chunks, in no slab or span.
    units_free: usize,
    /// Of these, without memory.
    units_clean: usize,
    /// Descriptors.
    chunk_headers: usize,
    /// Memory of magazines.
    magazines: usize,
    /// Memory of other tables.
    side: usize,
    /// What the system grants; 0: no limit.
    memory_limit: usize,
    /// Number of processors that may be used at once.
    cpus: u32,
    /// Allocations that were refused for the limit of the process.
    limits_hit: u64,
}

/// The process now. Reads files of the system for the limits that it sets.
pub fn stats() -> Stats {
    let mut stats = slabyard_sys::sy_stats::default();
    // SAFETY: valid for a write.
    unsafe { slabyard_sys::sy_get_stats(&mut stats) };
    Stats::from_sys(&stats)
}

/// What a cache is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CacheKind {
    /// A cache that the program made: [`Cache`](crate::Cache), a map, a recycling cache.
    Program,
    /// A size class of the allocator [`Slabyard`](crate::Slabyard).
    Sizes,
    /// A size class of a heap of the program's own, in C or C++.
    Heap,
}

/// All caches of the process now. A cache that another thread creates or drops meanwhile is in the list
/// or not.
///
/// ```
/// use slabyard::CacheKind;
///
/// let cache = slabyard::Cache::new("point");
/// let _point = cache.insert([0.0f64; 3]);
/// let caches = slabyard::caches();
/// let (kind, stats) = caches.iter().find(|(_, stats)| stats.name == "point").unwrap();
/// assert_eq!((*kind, stats.in_use), (CacheKind::Program, 1));
/// ```
pub fn caches() -> Vec<(CacheKind, CacheStats)> {
    unsafe extern "C" fn add(
        list: *mut core::ffi::c_void,
        of: *const slabyard_sys::sy_cache_account,
    ) -> core::ffi::c_int {
        // SAFETY: below such a list is passed, which nobody else has meanwhile.
        let list = unsafe { &mut *list.cast::<Vec<(CacheKind, CacheStats)>>() };
        // SAFETY: the library passes it for as long as this runs.
        let of = unsafe { &*of };
        let kind = match of.kind {
            slabyard_sys::SY_CACHE_OF_SIZES => CacheKind::Sizes,
            slabyard_sys::SY_CACHE_OF_HEAP => CacheKind::Heap,
            _ => CacheKind::Program,
        };
        list.push((kind, CacheStats::from_sys(&of.stats)));
        0
    }

    let mut list = Vec::new();
    // SAFETY: the visitor goes with the list.
    unsafe { slabyard_sys::sy_each_cache(add, (&raw mut list).cast()) };
    list
}

/// Writes a readable account of the process and of each cache to a file, the caches with the most memory
/// first. The option `stats` has it written to stderr at exit.
///
/// ```
/// slabyard::print_stats(std::io::stderr())?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// What writing said; or there is no memory.
#[cfg(feature = "std")]
pub fn print_stats(to: impl std::os::fd::AsFd) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open as long as `to` is borrowed.
    match unsafe { slabyard_sys::sy_print_stats(to.as_fd().as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

impl CacheStats {
    #[cfg(not(miri))]
    pub(crate) fn of(cache: RawCache) -> Self {
        // SAFETY: numbers, all of which may be 0.
        let mut stats: slabyard_sys::sy_cache_stats = unsafe { core::mem::zeroed() };
        // SAFETY: the cache exists.
        unsafe { slabyard_sys::sy_cache_get_stats(cache.pointer.as_ptr(), &mut stats) };
        Self::from_sys(&stats)
    }

    /// Miri has no slabs.
    #[cfg(miri)]
    pub(crate) fn of(cache: RawCache) -> Self {
        CacheStats {
            in_use: crate::raw::cache::in_use(cache),
            ..Self::default()
        }
    }
}

/// The text of `{:?}` for a cache: its kind, what it is of, its name, and how many objects are live.
pub(crate) fn describe<T>(f: &mut fmt::Formatter<'_>, kind: &str, cache: RawCache) -> fmt::Result {
    let stats = CacheStats::of(cache);
    f.debug_struct(&alloc::format!("{kind}<{}>", core::any::type_name::<T>()))
        .field("name", &stats.name)
        .field("in_use", &stats.in_use)
        .finish_non_exhaustive()
}

pub(crate) fn text(name: &[core::ffi::c_char]) -> String {
    let bytes: alloc::vec::Vec<u8> = name
        .iter()
        .map(|byte| *byte as u8)
        .take_while(|byte| *byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
