//! The allocators that a replay can run on: Slabyard's heap, Slabyard with object caches, the
//! peers, and one that does nothing.
//!
//! The allocator that does nothing hands out the places of a small ring in turn. One place for all
//! objects would make every write wait for the read before it, which does not happen with a real
//! allocator. Its memory is mapped before the time is measured.

use crate::replay::memory::Wheel;
use anyhow::Result;
use core::ffi::c_void;
use slabyard_peers::{Allocator, PEERS};
use slabyard_sys as sys;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// The allocator that does nothing: the time of a replay on it is the replay's own cost.
pub const NOTHING: &str = "nothing";

/// Slabyard with object caches for the sizes that the program asks for most: what the program gains
/// if it uses caches instead of malloc.
pub const SLABYARD_CACHES: &str = "slabyard-caches";

/// All allocators that are compared, in the order of the table.
pub fn all() -> Vec<&'static Allocator> {
    [&SLABYARD, &WITH_CACHES].into_iter().chain(PEERS).collect()
}

/// Gives this thread's loaded objects back to their slabs, and empty slabs to the system.
unsafe extern "C" fn slabyard_purge() {
    // SAFETY: any thread may call both at any time.
    unsafe {
        sys::sy_thread_flush();
        sys::sy_trim();
    }
}

const SLABYARD_HEAP: Allocator = Allocator {
    name: "slabyard",
    version: || env!("CARGO_PKG_VERSION").to_string(),
    malloc: sys::sy_malloc,
    free: sys::sy_free,
    aligned_alloc: sys::sy_aligned_alloc,
    realloc: sys::sy_realloc,
    calloc: sys::sy_calloc,
    usable_size: Some(sys::sy_usable_size),
    thread_init: None,
    thread_exit: None,
    purge: Some(slabyard_purge),
    max_align: usize::MAX / 2 + 1,
};

static SLABYARD: Allocator = SLABYARD_HEAP;

/// Sizes without a cache are served by the heap.
static WITH_CACHES: Allocator = Allocator {
    name: SLABYARD_CACHES,
    ..SLABYARD_HEAP
};

/// The allocators that a tool built with the feature `peers` has.
const PEER_NAMES: [&str; 5] = ["mimalloc", "snmalloc", "jemalloc", "tcmalloc", "rpmalloc"];

/// Says how to get the peers that this tool was built without. `None` if it has all.
pub fn how_to_get_peers() -> Option<String> {
    let absent = PEER_NAMES.into_iter().filter(|name| find(name).is_none());
    let absent: Vec<_> = absent.collect();
    (!absent.is_empty()).then(|| {
        format!(
            "this tool was built without {}; built with --features peers, it replays on them too",
            absent.join(", ")
        )
    })
}

/// Finds an allocator by its name, which may be [`NOTHING`].
pub fn find(name: &str) -> Option<&'static Allocator> {
    if name == NOTHING {
        return Some(&DOES_NOTHING);
    }
    all().into_iter().find(|allocator| allocator.name == name)
}

/// The places of a ring are 4 KiB and a cache line apart. Larger objects extend into the next ones.
const PLACES: usize = 64;
const PLACE_BYTES: usize = 4096 + 64;
const RING_BYTES: usize = PLACES * PLACE_BYTES;
/// Each thread has its own ring, so that threads do not disturb each other. If there are more
/// threads than rings, threads share.
const RINGS: usize = 64;
static SCRATCH: OnceLock<Wheel> = OnceLock::new();
static NEXT_RING: AtomicUsize = AtomicUsize::new(0);

/// A thread's ring, and the number of its next place.
#[derive(Clone, Copy)]
struct Ring {
    start: *mut u8,
    next: usize,
}

thread_local! {
    static RING: Cell<Ring> = const {
        Cell::new(Ring { start: core::ptr::null_mut(), next: 0 })
    };
}

/// Maps the memory of [`NOTHING`] in this process, for requests up to `largest` bytes. A process
/// whose parent has done so uses the same memory, which then is only mapped once more.
pub fn prepare_nothing(largest: u64) -> Result<()> {
    if let Some(scratch) = SCRATCH.get() {
        return scratch.populate();
    }
    let scratch = Wheel::new(largest as usize + RINGS * RING_BYTES)?;
    SCRATCH.get_or_init(|| scratch);
    Ok(())
}

#[cold]
fn choose_ring() -> *mut u8 {
    let number = NEXT_RING.fetch_add(1, Ordering::Relaxed) % RINGS;
    let scratch = SCRATCH.get().expect("prepare_nothing comes first");
    scratch.as_ptr().wrapping_add(number * RING_BYTES)
}

#[inline(always)]
fn next_place() -> *mut c_void {
    let mut ring = RING.get();
    if ring.start.is_null() {
        ring.start = choose_ring();
    }
    let place = ring.start.wrapping_add(ring.next * PLACE_BYTES);
    ring.next = (ring.next + 1) % PLACES;
    RING.set(ring);
    place.cast()
}

extern "C" fn nothing_malloc(_: usize) -> *mut c_void {
    next_place()
}

extern "C" fn nothing_free(_: *mut c_void) {}

extern "C" fn nothing_two(_: usize, _: usize) -> *mut c_void {
    next_place()
}

extern "C" fn nothing_realloc(object: *mut c_void, _: usize) -> *mut c_void {
    object
}

static DOES_NOTHING: Allocator = Allocator {
    name: NOTHING,
    version: String::new,
    malloc: nothing_malloc,
    free: nothing_free,
    aligned_alloc: nothing_two,
    realloc: nothing_realloc,
    calloc: nothing_two,
    usable_size: None,
    thread_init: None,
    thread_exit: None,
    purge: None,
    max_align: usize::MAX / 2 + 1,
};
