//! The allocators that Slabyard is measured beside, in one table.
//!
//! Every allocator is linked statically under its own prefixed names, so all of them live in one
//! program and none of them is the program's `malloc`. What is the same for all of them is an
//! [`Allocator`]: a name, a version and function pointers. The `extern "C"` declarations are
//! public too, in one module per allocator, for callers that want direct calls.
//!
//! Rules for callers: an object goes back to the allocator that gave it; a thread that uses an
//! allocator with [`Allocator::thread_init`] calls it first, and [`Allocator::thread_exit`] last.
//! A [`ThreadGuard`] does both. A direct call of `malloc` and `free` may be removed by the compiler,
//! which knows what they mean: hide the pointers from it where that matters.

use core::ffi::c_void;
#[allow(unused_imports)] // some need none of them
use core::ffi::{c_char, c_int, CStr};

/// `malloc`.
pub type MallocFn = unsafe extern "C" fn(usize) -> *mut c_void;
/// `free`.
pub type FreeFn = unsafe extern "C" fn(*mut c_void);
/// `aligned_alloc`: the alignment comes first.
pub type AlignedAllocFn = unsafe extern "C" fn(usize, usize) -> *mut c_void;
/// `realloc`.
pub type ReallocFn = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
/// `calloc`.
pub type CallocFn = unsafe extern "C" fn(usize, usize) -> *mut c_void;
/// `malloc_usable_size`.
pub type UsableSizeFn = unsafe extern "C" fn(*const c_void) -> usize;
/// Something that is done to the allocator as a whole, or to the calling thread's part of it.
pub type HookFn = unsafe extern "C" fn();

/// One allocator: a name and its functions.
#[derive(Clone, Copy)]
pub struct Allocator {
    /// The word used on the command line and in tables.
    pub name: &'static str,
    /// Which version was linked, as the allocator or its package says.
    pub version: fn() -> String,
    pub malloc: MallocFn,
    pub free: FreeFn,
    pub aligned_alloc: AlignedAllocFn,
    pub realloc: ReallocFn,
    pub calloc: CallocFn,
    /// Where the allocator can tell.
    pub usable_size: Option<UsableSizeFn>,
    /// To be called by a thread before its first allocation.
    pub thread_init: Option<HookFn>,
    /// To be called by a thread after its last operation.
    pub thread_exit: Option<HookFn>,
    /// Gives memory back to the system: the strongest call that the allocator offers.
    pub purge: Option<HookFn>,
    /// The largest alignment that `aligned_alloc` honours.
    pub max_align: usize,
}

/// All peers that were built in; the C library first.
pub static PEERS: &[Allocator] = &[
    libc_malloc::ALLOCATOR,
    #[cfg(feature = "mimalloc")]
    mimalloc::ALLOCATOR,
    #[cfg(feature = "snmalloc")]
    snmalloc::ALLOCATOR,
    #[cfg(feature = "jemalloc")]
    jemalloc::ALLOCATOR,
    #[cfg(feature = "tcmalloc")]
    tcmalloc::ALLOCATOR,
    #[cfg(feature = "rpmalloc")]
    rpmalloc::ALLOCATOR,
];

/// The peer of that name.
pub fn find(name: &str) -> Option<&'static Allocator> {
    PEERS.iter().find(|peer| peer.name == name)
}

/// Makes the calling thread known to an allocator for as long as the guard lives.
pub struct ThreadGuard<'a>(&'a Allocator);

impl<'a> ThreadGuard<'a> {
    /// Call it before the thread's first operation on `allocator`.
    pub fn new(allocator: &'a Allocator) -> Self {
        if let Some(init) = allocator.thread_init {
            // SAFETY: a thread_init of the table may be called by any thread at any time.
            unsafe { init() };
        }
        ThreadGuard(allocator)
    }
}

impl Drop for ThreadGuard<'_> {
    fn drop(&mut self) {
        if let Some(exit) = self.0.thread_exit {
            // SAFETY: thread_init ran on this thread, and the guard outlives the thread's use.
            unsafe { exit() };
        }
    }
}

/// The name of the C library, and of its malloc.
pub const LIBC: &str = libc_malloc::ALLOCATOR.name;

/// The C library's own, which is also this program's `malloc`.
pub mod libc_malloc {
    use super::*;

    extern "C" {
        pub fn malloc(size: usize) -> *mut c_void;
        pub fn free(object: *mut c_void);
        pub fn aligned_alloc(align: usize, size: usize) -> *mut c_void;
        pub fn realloc(object: *mut c_void, size: usize) -> *mut c_void;
        pub fn calloc(count: usize, size: usize) -> *mut c_void;
        pub fn malloc_usable_size(object: *const c_void) -> usize;
    }

    #[cfg(target_env = "musl")]
    mod own {
        pub const NAME: &str = "musl";
        pub const PURGE: Option<super::HookFn> = None;

        pub fn version() -> String {
            "of an unknown version".to_string() // musl does not tell
        }
    }

    #[cfg(not(target_env = "musl"))]
    mod own {
        use super::*;

        extern "C" {
            fn malloc_trim(pad: usize) -> c_int;
            fn gnu_get_libc_version() -> *const c_char;
        }

        pub const NAME: &str = "glibc";
        pub const PURGE: Option<HookFn> = Some(purge);

        unsafe extern "C" fn purge() {
            // SAFETY: malloc_trim has no preconditions.
            unsafe { malloc_trim(0) };
        }

        pub fn version() -> String {
            // SAFETY: a static string of the C library.
            let text = unsafe { CStr::from_ptr(gnu_get_libc_version()) };
            text.to_string_lossy().into_owned()
        }
    }

    /// Gives free memory back to the system, if the C library can.
    pub fn trim() {
        if let Some(purge) = own::PURGE {
            // SAFETY: it has no preconditions.
            unsafe { purge() };
        }
    }

    pub const ALLOCATOR: Allocator = Allocator {
        name: own::NAME,
        version: own::version,
        malloc,
        free,
        aligned_alloc,
        realloc,
        calloc,
        usable_size: Some(malloc_usable_size),
        thread_init: None,
        thread_exit: None,
        purge: own::PURGE,
        max_align: usize::MAX / 2 + 1,
    };
}

/// Microsoft's mimalloc, version 3.
#[cfg(feature = "mimalloc")]
pub mod mimalloc {
    use super::*;
    use libmimalloc_sys as _;

    extern "C" {
        pub fn mi_malloc(size: usize) -> *mut c_void;
        pub fn mi_free(object: *mut c_void);
        pub fn mi_aligned_alloc(align: usize, size: usize) -> *mut c_void;
        pub fn mi_realloc(object: *mut c_void, size: usize) -> *mut c_void;
        pub fn mi_calloc(count: usize, size: usize) -> *mut c_void;
        pub fn mi_usable_size(object: *const c_void) -> usize;
        pub fn mi_collect(force: bool);
        fn mi_version() -> c_int;
    }

    unsafe extern "C" fn purge() {
        // SAFETY: mi_collect may be called by any thread.
        unsafe { mi_collect(true) };
    }

    /// Digits are major, two of minor, two of patch.
    fn version() -> String {
        // SAFETY: returns a constant.
        let number = unsafe { mi_version() };
        format!("{}.{}.{}", number / 10000, number / 100 % 100, number % 100)
    }

    pub const ALLOCATOR: Allocator = Allocator {
        name: "mimalloc",
        version,
        malloc: mi_malloc,
        free: mi_free,
        aligned_alloc: mi_aligned_alloc,
        realloc: mi_realloc,
        calloc: mi_calloc,
        usable_size: Some(mi_usable_size),
        thread_init: None,
        thread_exit: None,
        purge: Some(purge),
        max_align: usize::MAX / 2 + 1,
    };
}

/// Microsoft Research's snmalloc. It has no call that gives memory back.
#[cfg(feature = "snmalloc")]
pub mod snmalloc {
    use super::*;
    use snmalloc_sys as _;

    extern "C" {
        pub fn sn_malloc(size: usize) -> *mut c_void;
        pub fn sn_free(object: *mut c_void);
        pub fn sn_aligned_alloc(align: usize, size: usize) -> *mut c_void;
        pub fn sn_realloc(object: *mut c_void, size: usize) -> *mut c_void;
        pub fn sn_calloc(count: usize, size: usize) -> *mut c_void;
        pub fn sn_malloc_usable_size(object: *const c_void) -> usize;
    }

    pub const ALLOCATOR: Allocator = Allocator {
        name: "snmalloc",
        version: || env!("PEER_SNMALLOC_SYS").to_string(),
        malloc: sn_malloc,
        free: sn_free,
        aligned_alloc: sn_aligned_alloc,
        realloc: sn_realloc,
        calloc: sn_calloc,
        usable_size: Some(sn_malloc_usable_size),
        thread_init: None,
        thread_exit: None,
        purge: None,
        max_align: usize::MAX / 2 + 1,
    };
}

/// jemalloc, as TiKV packages it.
#[cfg(feature = "jemalloc")]
pub mod jemalloc {
    use super::*;
    use tikv_jemalloc_sys as _;

    extern "C" {
        pub fn _rjem_malloc(size: usize) -> *mut c_void;
        pub fn _rjem_free(object: *mut c_void);
        pub fn _rjem_aligned_alloc(align: usize, size: usize) -> *mut c_void;
        pub fn _rjem_realloc(object: *mut c_void, size: usize) -> *mut c_void;
        pub fn _rjem_calloc(count: usize, size: usize) -> *mut c_void;
        pub fn _rjem_malloc_usable_size(object: *const c_void) -> usize;
        pub fn _rjem_mallctl(
            name: *const c_char,
            old: *mut c_void,
            old_length: *mut usize,
            new: *mut c_void,
            new_length: usize,
        ) -> c_int;
    }

    /// Empties this thread's cache, then purges all arenas (4096 stands for all of them).
    unsafe extern "C" fn purge() {
        for name in [c"thread.tcache.flush", c"arena.4096.purge"] {
            let none = core::ptr::null_mut();
            // SAFETY: both names take and give nothing.
            unsafe { _rjem_mallctl(name.as_ptr(), none, core::ptr::null_mut(), none, 0) };
        }
    }

    fn version() -> String {
        let mut text: *const c_char = core::ptr::null();
        let mut length = core::mem::size_of_val(&text);
        let old = (&raw mut text).cast();
        // SAFETY: "version" stores one pointer to a static string.
        let failed = unsafe {
            let none = core::ptr::null_mut();
            _rjem_mallctl(c"version".as_ptr(), old, &mut length, none, 0) != 0
        };
        if failed || text.is_null() {
            return env!("PEER_TIKV_JEMALLOC_SYS").to_string();
        }
        // SAFETY: a static string of jemalloc.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        text.split("-0-g").next().unwrap_or(&text).to_string()
    }

    pub const ALLOCATOR: Allocator = Allocator {
        name: "jemalloc",
        version,
        malloc: _rjem_malloc,
        free: _rjem_free,
        aligned_alloc: _rjem_aligned_alloc,
        realloc: _rjem_realloc,
        calloc: _rjem_calloc,
        usable_size: Some(_rjem_malloc_usable_size),
        thread_init: None,
        thread_exit: None,
        purge: Some(purge),
        max_align: usize::MAX / 2 + 1,
    };
}

/// Google's TCMalloc with 8 KiB pages, per-CPU caches where the kernel has restartable sequences.
/// Its background thread, which a program has to start itself, is not running.
#[cfg(feature = "tcmalloc")]
pub mod tcmalloc {
    use super::*;
    use libtcmalloc_sys as _;

    extern "C" {
        pub fn TCMallocInternalMalloc(size: usize) -> *mut c_void;
        pub fn TCMallocInternalFree(object: *mut c_void);
        pub fn TCMallocInternalAlignedAlloc(align: usize, size: usize) -> *mut c_void;
        pub fn TCMallocInternalRealloc(object: *mut c_void, size: usize) -> *mut c_void;
        pub fn TCMallocInternalCalloc(count: usize, size: usize) -> *mut c_void;
        pub fn TCMallocInternalMallocSize(object: *const c_void) -> usize;
        pub fn MallocExtension_Internal_ReleaseCpuMemory(cpu: c_int) -> usize;
        pub fn MallocExtension_Internal_ReleaseMemoryToSystem(bytes: usize) -> usize;
    }

    unsafe extern "C" fn purge() {
        // SAFETY: sysconf has no preconditions; both release calls take any number.
        unsafe {
            let cpus = libc::sysconf(libc::_SC_NPROCESSORS_CONF);
            for cpu in 0..cpus.max(1) {
                MallocExtension_Internal_ReleaseCpuMemory(cpu as c_int);
            }
            MallocExtension_Internal_ReleaseMemoryToSystem(usize::MAX);
        }
    }

    pub const ALLOCATOR: Allocator = Allocator {
        name: "tcmalloc",
        version: || format!("{} (package)", env!("PEER_LIBTCMALLOC_SYS")),
        malloc: TCMallocInternalMalloc,
        free: TCMallocInternalFree,
        aligned_alloc: TCMallocInternalAlignedAlloc,
        realloc: TCMallocInternalRealloc,
        calloc: TCMallocInternalCalloc,
        usable_size: Some(TCMallocInternalMallocSize),
        thread_init: None,
        thread_exit: None,
        purge: Some(purge),
        max_align: usize::MAX / 2 + 1,
    };
}

/// Mattias Jansson's rpmalloc. Each thread has to say that it begins and ends.
#[cfg(feature = "rpmalloc")]
pub mod rpmalloc {
    use super::*;
    use rpmalloc_sys as _;

    extern "C" {
        pub fn rpmalloc(size: usize) -> *mut c_void;
        pub fn rpfree(object: *mut c_void);
        pub fn rpaligned_alloc(align: usize, size: usize) -> *mut c_void;
        pub fn rprealloc(object: *mut c_void, size: usize) -> *mut c_void;
        pub fn rpcalloc(count: usize, size: usize) -> *mut c_void;
        pub fn rpmalloc_usable_size(object: *const c_void) -> usize;
        pub fn rpmalloc_initialize() -> c_int;
        pub fn rpmalloc_thread_initialize();
        pub fn rpmalloc_thread_finalize(release_caches: c_int);
        pub fn rpmalloc_thread_collect();
    }

    /// Starting the library is idempotent, but only once it has been done: hence the once.
    unsafe extern "C" fn thread_init() {
        static START: std::sync::Once = std::sync::Once::new();
        // SAFETY: initialisation runs once, before any thread's.
        START.call_once(|| unsafe {
            rpmalloc_initialize();
        });
        // SAFETY: the library is initialised.
        unsafe { rpmalloc_thread_initialize() };
    }

    unsafe extern "C" fn thread_exit() {
        // SAFETY: thread_init ran on this thread.
        unsafe { rpmalloc_thread_finalize(1) };
    }

    /// Only hands deferred frees back: rpmalloc offers nothing stronger while it is in use.
    unsafe extern "C" fn purge() {
        // SAFETY: thread_init ran on this thread.
        unsafe { rpmalloc_thread_collect() };
    }

    pub const ALLOCATOR: Allocator = Allocator {
        name: "rpmalloc",
        version: || format!("{} (package)", env!("PEER_RPMALLOC_SYS")),
        malloc: rpmalloc,
        free: rpfree,
        aligned_alloc: rpaligned_alloc,
        realloc: rprealloc,
        calloc: rpcalloc,
        usable_size: Some(rpmalloc_usable_size),
        thread_init: Some(thread_init),
        thread_exit: Some(thread_exit),
        purge: Some(purge),
        max_align: 32 << 10,
    };
}

#[cfg(test)]
mod tests;
