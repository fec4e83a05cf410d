//! The list of measured allocators, with the functions that each of them has.

use crate::kernels::{self, Kernels, GROWS, SHARED};
use crate::{keyed, nexus};
use core::ffi::{c_void, CStr};
use slabyard_peers::{HookFn, MallocFn, ReallocFn};
use slabyard_sys as sys;

/// The part of an allocator in the comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Slabyard's.
    Ours,
    /// An allocator that Slabyard is compared with.
    Peer,
    /// A prototype that has only the fast path of its kind.
    Limit,
    /// No allocator at all: the cost of the loop itself.
    Floor,
}

/// One allocator.
#[derive(Clone, Copy, Debug)]
pub struct Allocator {
    pub name: &'static str,
    pub kind: Kind,
    traits: u64,
}

const fn one(name: &'static str, kind: Kind, traits: u64) -> Allocator {
    Allocator { name, kind, traits }
}

/// All allocators, in the order of the tables.
pub const ALL: [Allocator; 21] = [
    one("pool", Kind::Ours, GROWS),
    one("pool-bounded", Kind::Ours, GROWS),
    one("cache", Kind::Ours, SHARED | GROWS),
    one("handles", Kind::Ours, SHARED | GROWS),
    one("heap", Kind::Ours, SHARED | GROWS),
    one("heap-constant", Kind::Ours, SHARED | GROWS),
    one("limit-freelist", Kind::Limit, 0),
    one("limit-magazine", Kind::Limit, SHARED | GROWS),
    one("nexus-bounded", Kind::Peer, 0),
    one("nexus-unbounded", Kind::Peer, GROWS),
    one("slotmap", Kind::Peer, 0),
    one("sharded-slab", Kind::Peer, SHARED | GROWS),
    one("snmalloc-inline", Kind::Peer, SHARED | GROWS),
    one("snmalloc", Kind::Peer, SHARED | GROWS),
    one("mimalloc", Kind::Peer, SHARED | GROWS),
    one("jemalloc", Kind::Peer, SHARED | GROWS),
    one("tcmalloc", Kind::Peer, SHARED | GROWS),
    one("rpmalloc", Kind::Peer, SHARED | GROWS),
    one("glibc", Kind::Peer, SHARED | GROWS),
    one("loop", Kind::Floor, SHARED),
    one("cas", Kind::Floor, SHARED),
];

/// The allocator of that name.
pub fn find(name: &str) -> Option<Allocator> {
    ALL.into_iter().find(|allocator| allocator.name == name)
}

unsafe extern "C" fn trim() {
    // SAFETY: both may be called by any thread at any time.
    unsafe {
        sys::sy_thread_flush();
        sys::sy_trim();
    }
}

impl Allocator {
    /// Any thread may allocate, and free what another allocated.
    pub fn shared(&self) -> bool {
        self.traits & SHARED != 0
    }

    /// Opening does not touch the memory of all objects.
    pub fn grows(&self) -> bool {
        self.traits & GROWS != 0
    }

    /// Its loops for objects of a size, in one layout. None if the size is not compiled in.
    pub fn kernels(&self, layout: usize, size: usize) -> Option<Kernels> {
        let named = |kernels: &&Kernels| {
            // SAFETY: every table carries a static string.
            let name = unsafe { CStr::from_ptr(kernels.name) };
            name.to_bytes() == self.name.as_bytes()
        };
        match self.name {
            "heap-constant" => kernels::heap_constant(layout, size).copied(),
            "snmalloc-inline" => kernels::snmalloc_inline(layout, size).copied(),
            "nexus-bounded" | "nexus-unbounded" => {
                nexus::tables(layout, size)?.iter().find(named).copied()
            }
            "slotmap" | "sharded-slab" => keyed::tables(layout, size)?.iter().find(named).copied(),
            _ => kernels::table(layout).iter().find(named).copied(),
        }
    }

    fn peer(&self) -> Option<&'static slabyard_peers::Allocator> {
        slabyard_peers::find(self.name)
    }

    /// `malloc` and `free` for any size, if it has them.
    pub fn any_size(&self) -> Option<(MallocFn, unsafe extern "C" fn(*mut c_void))> {
        match self.name {
            "heap" => Some((sys::sy_malloc, sys::sy_free)),
            _ => self.peer().map(|peer| (peer.malloc, peer.free)),
        }
    }

    /// `realloc`, if it has one.
    pub fn realloc(&self) -> Option<ReallocFn> {
        match self.name {
            "heap" => Some(sys::sy_realloc),
            _ => self.peer().map(|peer| peer.realloc),
        }
    }

    /// Its strongest call that gives memory back to the OS.
    pub fn purge(&self) -> Option<HookFn> {
        match self.name {
            "cache" | "heap" | "heap-constant" => Some(trim),
            _ => self.peer().and_then(|peer| peer.purge),
        }
    }

    /// The version that is linked.
    pub fn version(&self) -> String {
        match self.name {
            "nexus-bounded" | "nexus-unbounded" => "2.4.0".to_owned(),
            "slotmap" => "1.1.1".to_owned(),
            "sharded-slab" => "0.1.7".to_owned(),
            _ => self
                .peer()
                .map_or_else(String::new, |peer| (peer.version)()),
        }
    }

    /// A variable that has to be set in the environment of its process.
    ///
    /// TCMalloc's caches by processor need the restartable sequence that the C library otherwise
    /// takes for itself.
    pub fn environment(&self) -> Option<(&'static str, &'static str)> {
        (self.name == "tcmalloc").then_some(("GLIBC_TUNABLES", "glibc.pthread.rseq=0"))
    }

    /// To be held by a thread for as long as it uses the allocator.
    pub fn enter_thread(&self) -> Option<slabyard_peers::ThreadGuard<'static>> {
        self.peer().map(slabyard_peers::ThreadGuard::new)
    }
}

/// One opened allocator: for caches and pools an instance, for the others the process's heap.
///
/// The loops of all layouts work on the same state.
pub struct State {
    kernels: Kernels,
    pointer: *mut c_void,
}

// SAFETY: given to several threads only for allocators with the SHARED trait.
unsafe impl Sync for State {}

impl State {
    /// For objects of `size` bytes, never more than `capacity` live.
    pub fn open(kernels: Kernels, size: usize, capacity: usize) -> Option<State> {
        // SAFETY: the table's own function.
        let pointer = unsafe { (kernels.open)(size, capacity) };
        (!pointer.is_null()).then_some(State { kernels, pointer })
    }

    pub fn pointer(&self) -> *mut c_void {
        self.pointer
    }

    /// A thread calls this after its last operation.
    pub fn thread_end(&self) {
        // SAFETY: the state is open.
        unsafe { (self.kernels.thread_end)(self.pointer) }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // SAFETY: opened by the same table, and no thread uses it any more.
        unsafe { (self.kernels.close)(self.pointer) }
    }
}
