//! The contenders: Slabyard's caches in three arrangements, its scopes, and the `malloc` of each
//! allocator.

use super::trace::{Life, Object, Server, SIZES};
use crate::allocators::{self, Allocator};
use core::ffi::c_void;
use slabyard_peers::{HookFn, MallocFn};
use slabyard_sys as sys;

/// One contender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contender {
    /// A cache for each kind, with an epoch for each burst. Kept objects are in other caches.
    Grouped,
    /// A cache for each kind, and other caches for kept objects.
    Split,
    /// A cache for each kind.
    Mixed,
    /// `sy_malloc`, with a scope for each burst. Kept objects are allocated outside of it.
    Scoped,
    /// `malloc` and `free` of the allocator of that name.
    Malloc(&'static str),
}

/// All, in the order of the table.
pub const ALL: [Contender; 11] = [
    Contender::Grouped,
    Contender::Split,
    Contender::Mixed,
    Contender::Scoped,
    Contender::Malloc("heap"),
    Contender::Malloc("mimalloc"),
    Contender::Malloc("jemalloc"),
    Contender::Malloc("snmalloc"),
    Contender::Malloc("tcmalloc"),
    Contender::Malloc("rpmalloc"),
    Contender::Malloc("glibc"),
];

impl Contender {
    pub fn name(self) -> &'static str {
        match self {
            Contender::Grouped => "grouped",
            Contender::Split => "split",
            Contender::Mixed => "mixed",
            Contender::Scoped => "scoped",
            Contender::Malloc(name) => name,
        }
    }

    pub fn find(name: &str) -> Option<Contender> {
        ALL.into_iter().find(|who| who.name() == name)
    }

    pub fn allocator(self) -> Option<Allocator> {
        match self {
            Contender::Malloc(name) => allocators::find(name),
            _ => None,
        }
    }
}

/// Counts of slabs: `made` from new units; once empty, used `again`, or `released`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Slabs {
    pub made: u64,
    pub again: u64,
    pub released: u64,
}

impl Slabs {
    /// The share of slabs that became empty, of all times that a slab was taken into use.
    pub fn recycled(&self) -> f64 {
        (self.again + self.released) as f64 / (self.made + self.again).max(1) as f64
    }
}

/// The caches of one kind of object.
struct Pair {
    caches: [*mut sys::sy_cache; 2],
    size: usize,
}

/// Caches, with or without epochs.
pub struct Caches {
    kinds: Vec<Pair>,
    grouped: bool,
    epoch: *mut sys::sy_epoch,
    trims: bool,
}

fn make_cache(size: usize, flags: u32) -> *mut sys::sy_cache {
    let config = sys::sy_cache_config {
        size,
        flags,
        ..Default::default()
    };
    // SAFETY: a sensible configuration.
    let cache = unsafe { sys::sy_cache_create(&config) };
    assert!(!cache.is_null(), "a cache is made");
    cache
}

impl Caches {
    pub fn open(who: Contender, trims: bool) -> Caches {
        let grouped = who == Contender::Grouped;
        let flags = if grouped { sys::SY_EPOCHS } else { 0 };
        let kinds = SIZES.map(|size| {
            let first = make_cache(size, flags);
            let other = if who == Contender::Mixed {
                first
            } else {
                make_cache(size, 0)
            };
            Pair {
                caches: [first, other],
                size,
            }
        });
        Caches {
            kinds: kinds.into(),
            grouped,
            epoch: core::ptr::null_mut(),
            trims,
        }
    }

    fn cache(&self, kind: usize, life: Life) -> *mut sys::sy_cache {
        self.kinds[kind].caches[usize::from(life == Life::Kept)]
    }

    pub fn slabs(&self) -> Slabs {
        let mut sum = Slabs::default();
        for pair in &self.kinds {
            let both = if pair.caches[0] == pair.caches[1] {
                1
            } else {
                2
            };
            for &cache in &pair.caches[..both] {
                // SAFETY: the cache is open; all of the struct may be zero.
                let stats = unsafe {
                    let mut stats: sys::sy_cache_stats = core::mem::zeroed();
                    sys::sy_cache_get_stats(cache, &mut stats);
                    stats
                };
                sum.made += stats.slabs_made;
                sum.again += stats.slabs_reused - stats.slabs_made; // each new one is empty too
                sum.released += stats.slabs_released;
            }
        }
        sum
    }
}

/// Writes the whole object, which makes it resident.
fn fill(address: *mut u8, size: usize) {
    assert!(!address.is_null(), "there is enough memory");
    // SAFETY: an object of that size that was just taken.
    unsafe { address.write_bytes(0xa5, size) };
}

impl Server for Caches {
    fn begin_burst(&mut self) {
        if self.grouped {
            // SAFETY: the name is a C string, and the epoch is open until the end of the burst.
            unsafe {
                self.epoch = sys::sy_epoch_create(c"burst".as_ptr());
                assert_eq!(sys::sy_epoch_begin(self.epoch), 0);
            }
        }
    }

    fn take(&mut self, kind: usize, life: Life) -> *mut u8 {
        // SAFETY: the cache is open.
        let address = unsafe { sys::sy_cache_alloc(self.cache(kind, life)) }.cast();
        fill(address, self.kinds[kind].size);
        address
    }

    fn give(&mut self, object: Object) {
        let cache = self.cache(object.kind, object.life);
        // SAFETY: taken from this cache, and given back once.
        unsafe { sys::sy_cache_free(cache, object.address.cast()) };
    }

    fn end_burst(&mut self) {
        // SAFETY: this thread began the epoch, and does not use it after closing it.
        unsafe {
            if self.grouped {
                assert_eq!(sys::sy_epoch_end(self.epoch), 0);
                sys::sy_epoch_close(self.epoch);
            }
            if self.trims {
                sys::sy_trim_some(usize::MAX, u64::MAX);
            }
        }
    }
}

/// `sy_malloc`, with a scope for each burst.
pub struct Scopes {
    scope: *mut sys::sy_scope,
    trims: bool,
}

impl Scopes {
    pub fn open(trims: bool) -> Scopes {
        Scopes {
            scope: core::ptr::null_mut(),
            trims,
        }
    }
}

impl Server for Scopes {
    fn begin_burst(&mut self) {
        // SAFETY: the name is a C string, and the scope exists until the end of the burst.
        unsafe {
            self.scope = sys::sy_scope_create(c"burst".as_ptr());
            assert_eq!(sys::sy_scope_enter(self.scope), 0);
        }
    }

    fn take(&mut self, kind: usize, life: Life) -> *mut u8 {
        let kept = life == Life::Kept;
        // SAFETY: this thread leaves what it has entered.
        let address = unsafe {
            if kept {
                assert_eq!(sys::sy_scope_enter(core::ptr::null_mut()), 0);
            }
            let address = sys::sy_malloc(SIZES[kind]);
            if kept {
                assert_eq!(sys::sy_scope_leave(core::ptr::null_mut()), 0);
            }
            address.cast()
        };
        fill(address, SIZES[kind]);
        address
    }

    fn give(&mut self, object: Object) {
        // SAFETY: taken from sy_malloc, and given back once.
        unsafe { sys::sy_free(object.address.cast()) };
    }

    fn end_burst(&mut self) {
        // SAFETY: this thread entered the scope, and does not use it after destroying it.
        unsafe {
            assert_eq!(sys::sy_scope_leave(self.scope), 0);
            assert_eq!(sys::sy_scope_destroy(self.scope), 0);
            if self.trims {
                sys::sy_trim_some(usize::MAX, u64::MAX);
            }
        }
    }
}

/// The `malloc` of an allocator.
pub struct Malloc {
    malloc: MallocFn,
    free: unsafe extern "C" fn(*mut c_void),
    purge: Option<HookFn>,
}

impl Malloc {
    pub fn open(allocator: &Allocator, purges: bool) -> Option<Malloc> {
        let (malloc, free) = allocator.any_size()?;
        Some(Malloc {
            malloc,
            free,
            purge: allocator.purge().filter(|_| purges),
        })
    }
}

impl Server for Malloc {
    fn begin_burst(&mut self) {}

    fn take(&mut self, kind: usize, _life: Life) -> *mut u8 {
        // SAFETY: any size may be asked for.
        let address = unsafe { (self.malloc)(SIZES[kind]) }.cast();
        fill(address, SIZES[kind]);
        address
    }

    fn give(&mut self, object: Object) {
        // SAFETY: taken from this allocator, and given back once.
        unsafe { (self.free)(object.address.cast()) };
    }

    fn end_burst(&mut self) {
        if let Some(purge) = self.purge {
            // SAFETY: a purge of the table may be called at any time.
            unsafe { purge() };
        }
    }
}
