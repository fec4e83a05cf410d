//! Statistics: where the memory is, and how often slow paths ran.

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
                /// The name, as far as it is kept.
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
    /// Statistics of a cache. They are exact while no other thread uses or trims it; otherwise each
    /// number is a snapshot. Taking them reads the counts of each thread.
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
    /// The size of an object in bytes.
    object_size: usize,
    /// The distance in bytes from one object to the next.
    slot_size: usize,
    /// The alignment of objects in bytes.
    align: usize,
    /// The size of a slab in bytes.
    slab_bytes: usize,
    /// The number of objects in a slab.
    slots_per_slab: usize,
    /// The number of different offsets at which the objects of slabs begin.
    colours: u32,
    /// The maximum number of objects in a magazine.
    magazine_items: u32,
    /// The number of slots in all slabs.
    slots: usize,
    /// The number of objects in use.
    in_use: usize,
    /// Free objects in the magazines of the depot.
    in_depot: usize,
    /// Free objects in magazines of threads.
    in_loaded: usize,
    /// Objects in use that lie on pages of their own.
    guarded: usize,
    /// Freed objects in quarantine.
    in_quarantine: usize,
    /// Free objects in slabs.
    free: usize,
    /// Slots that are never used again, because all generations of their handles are used up.
    retired: usize,
    /// The maximum number of live objects; 0: no limit.
    limit: usize,
    /// The number of slabs.
    slabs: usize,
    /// Slabs without a free object.
    full: usize,
    /// Slabs with free objects and others.
    partial: usize,
    /// Slabs whose objects are all free.
    empty: usize,
    /// The bytes of all slabs.
    mapped: usize,
    /// Bytes at the ends of slabs that are too few for an object.
    tail: usize,
    /// `tail`, and the bytes by which slots are larger than objects.
    waste: usize,
    /// Bytes of slabs that a trim returned to the system and that were not touched since.
    discarded: usize,
    /// Bytes of slots that were never allocated.
    never_used: usize,
    /// How many magazines were filled from slabs.
    refills: u64,
    /// How many magazines were emptied into slabs.
    flushes: u64,
    /// How often a full magazine was requested from the depot and found.
    depot_hits: u64,
    /// How often a full magazine was requested from the depot and not found.
    depot_misses: u64,
    /// How many of the found magazines came from the shard of another processor.
    depot_steals: u64,
    /// How many slabs were created.
    slabs_made: u64,
    /// How many slabs were released.
    slabs_released: u64,
    /// How often a slab became full.
    slabs_filled: u64,
    /// How often a full slab got a free object.
    slabs_opened: u64,
    /// How often an object of an empty slab was taken.
    slabs_reused: u64,
    /// How many objects were constructed.
    constructed: u64,
    /// How many objects were destructed.
    destructed: u64,
    /// How many allocations were refused because of a limit.
    limits_hit: u64,
    /// How many objects were moved.
    moves: u64,
    /// How many objects were to be moved, but were in use.
    moves_put_off: u64,
    /// The bytes of slabs that became empty because their objects were moved.
    move_bytes: u64,
}

snapshot! {
    /// Statistics of the process, in bytes unless stated otherwise. `mapped == slabs + spans +
    /// units_free + chunk_headers`; the other memory is not part of `mapped`.
    ///
    /// ```
    /// let stats = slabyard::stats();
    /// let parts = stats.slabs + stats.spans + stats.units_free + stats.chunk_headers;
    /// assert_eq!(stats.mapped, parts);
    /// ```
    Stats from sy_stats;
    /// The number of caches, including the size classes of the heap.
    caches: usize,
    /// The number of chunks.
    chunks: usize,
    /// Bytes of chunks and large spans.
    mapped: usize,
    /// Bytes of slabs.
    slabs: usize,
    /// Bytes of large objects.
    spans: usize,
    /// Bytes of chunks that are in no slab or span.
    units_free: usize,
    /// Bytes of `units_free` that have no memory.
    units_clean: usize,
    /// Bytes of descriptors.
    chunk_headers: usize,
    /// Bytes of magazines.
    magazines: usize,
    /// Bytes of other tables.
    side: usize,
    /// The memory limit that control groups and resource limits set; 0: no limit.
    memory_limit: usize,
    /// The number of processors that the process may use at once.
    cpus: u32,
    /// How many allocations were refused because of the process limit.
    limits_hit: u64,
}

/// Statistics of the process. The limits of the system are those that the library has found last.
pub fn stats() -> Stats {
    let mut stats = slabyard_sys::sy_stats::default();
    // SAFETY: the pointer is valid for a write.
    unsafe { slabyard_sys::sy_get_stats(&mut stats) };
    Stats::from_sys(&stats)
}

snapshot! {
    /// The memory of the process by what it is for, in bytes: the rows of `slabyard account`, as far
    /// as they can be told from inside. An object that was allocated but never written counts as
    /// memory here.
    ///
    /// ```
    /// let cache = slabyard::Cache::new("point");
    /// let _point = cache.insert([0.0f64; 3]);
    /// let account = slabyard::account();
    /// assert!(account.live_bytes >= 24);
    /// ```
    Account from sy_account;
    /// Objects that the program has: those of caches with their size, others with their slots.
    live_bytes: usize,
    /// Objects that have memory of their own, outside of slabs.
    large_bytes: usize,
    /// Objects on pages of their own.
    guarded_bytes: usize,
    /// The bytes by which slots of live objects of caches exceed the objects.
    rounding_bytes: usize,
    /// Freed objects that are kept back until others are freed.
    quarantine_bytes: usize,
    /// Free objects in magazines of threads.
    thread_magazines_bytes: usize,
    /// Free objects in magazines in the depot.
    depot_magazines_bytes: usize,
    /// Free objects in slabs.
    free_in_slabs_bytes: usize,
    /// Holes between objects of several sizes.
    holes_bytes: usize,
    /// Ends of slabs.
    tails_bytes: usize,
    /// Free memory that is in no slab.
    free_units_bytes: usize,
    /// Large objects that were freed, kept for reuse.
    kept_spans_bytes: usize,
    /// Descriptors of slabs.
    headers_bytes: usize,
    /// Caches, bitmaps, descriptors of large objects.
    records_bytes: usize,
    /// Magazines and threads.
    magazines_bytes: usize,
    /// Words of handles.
    handles_bytes: usize,
    /// Tags and tables of arenas.
    arenas_bytes: usize,
    /// Stacks.
    traces_bytes: usize,
    /// Records of guarded objects.
    guard_records_bytes: usize,
    /// Address space for objects that holds no memory.
    address_space_bytes: usize,
    /// The anonymous memory of the process in RAM, as the system counts it; 0: unknown.
    resident_bytes: usize,
    /// What of `resident_bytes` is in no other field: the program's own mappings, stacks,
    /// variables, another allocator.
    other_bytes: usize,
}

/// Where the memory of the process is. This walks the slabs of one cache after the other, each under
/// the lock of that cache; other threads go on, on their fast paths also in this cache.
pub fn account() -> Account {
    let mut account = slabyard_sys::sy_account::default();
    // SAFETY: the pointer is valid for a write.
    unsafe { slabyard_sys::sy_get_account(&mut account) };
    Account::from_sys(&account)
}

/// The use of a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CacheKind {
    /// A cache created by the program: a [`Cache`](crate::Cache), a map, a recycling cache.
    Program,
    /// A size class of the allocator [`Slabyard`](crate::Slabyard).
    Sizes,
    /// A size class of a separate heap that the program created in C or C++.
    Heap,
}

/// Statistics of all caches of the process. If another thread creates or drops a cache meanwhile,
/// the list may contain it or not.
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
        // SAFETY: the call below passes such a list, which no other code uses meanwhile.
        let list = unsafe { &mut *list.cast::<Vec<(CacheKind, CacheStats)>>() };
        // SAFETY: the statistics are valid during this call.
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
    // SAFETY: the visitor fits the list.
    unsafe { slabyard_sys::sy_cache_each(add, (&raw mut list).cast()) };
    list
}

/// Writes readable statistics of the process and of each cache to a file, the caches with the most
/// memory first. The option `stats` writes them to stderr at exit.
///
/// ```
/// slabyard::print_stats(std::io::stderr())?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// The error of the write, or there is no memory.
#[cfg(feature = "std")]
pub fn print_stats(to: impl crate::os::AsFile) -> std::io::Result<()> {
    // SAFETY: the descriptor is open during the call.
    crate::os::write(to, |file| unsafe { slabyard_sys::sy_print_stats(file) })
}

impl CacheStats {
    #[cfg(not(miri))]
    pub(crate) fn of(cache: RawCache) -> Self {
        // SAFETY: the struct has numbers only, and 0 is valid for all of them.
        let mut stats: slabyard_sys::sy_cache_stats = unsafe { core::mem::zeroed() };
        // SAFETY: the cache exists.
        unsafe { slabyard_sys::sy_cache_get_stats(cache.pointer.as_ptr(), &mut stats) };
        Self::from_sys(&stats)
    }

    /// Statistics under Miri, where there are no slabs.
    #[cfg(miri)]
    pub(crate) fn of(cache: RawCache) -> Self {
        CacheStats {
            in_use: crate::raw::cache::in_use(cache),
            ..Self::default()
        }
    }
}

/// The text of `{:?}` for a cache: its kind, the type of its objects, its name, and the number of
/// live objects.
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
