//! The contenders of the loops: each malloc, and allocators for kinds and phases over Slabyard's.

use super::loops::SIZES;
use crate::allocators;
use core::alloc::Layout;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use slabyard_peers::MallocFn;
use slabyard_sys as sys;

/// An allocator of objects of some kinds, each with its size.
pub trait Maker {
    /// Whether an object can be freed before its phase ends.
    const FREES: bool = true;

    fn take(&mut self, kind: usize) -> *mut u8;
    /// # Safety
    /// `object` is a live object of this kind.
    unsafe fn give(&mut self, kind: usize, object: *mut u8);
    fn begin_phase(&mut self) {}
    /// If objects cannot be freed one by one, they all end now.
    fn end_phase(&mut self) {}
}

/// `malloc` and `free` of an allocator.
pub struct Malloc {
    malloc: MallocFn,
    free: unsafe extern "C" fn(*mut c_void),
}

impl Malloc {
    pub fn open(name: &str) -> Option<Malloc> {
        let (malloc, free) = allocators::find(name)?.any_size()?;
        Some(Malloc { malloc, free })
    }
}

impl Maker for Malloc {
    #[inline(always)]
    fn take(&mut self, kind: usize) -> *mut u8 {
        // SAFETY: any size may be asked for.
        unsafe { (self.malloc)(SIZES[kind]) }.cast()
    }

    #[inline(always)]
    unsafe fn give(&mut self, _kind: usize, object: *mut u8) {
        // SAFETY: as the caller says.
        unsafe { (self.free)(object.cast()) };
    }
}

/// A cache for each kind, with or without epochs. A phase is an epoch.
pub struct Caches {
    caches: [*mut sys::sy_cache; SIZES.len()],
    has_epochs: bool,
    epoch: *mut sys::sy_epoch,
}

impl Caches {
    pub fn open(has_epochs: bool) -> Caches {
        let caches = SIZES.map(|size| {
            let config = sys::sy_cache_config {
                size,
                flags: if has_epochs { sys::SY_EPOCHS } else { 0 },
                ..Default::default()
            };
            // SAFETY: a sensible configuration.
            let cache = unsafe { sys::sy_cache_create(&config) };
            assert!(!cache.is_null(), "a cache is made");
            cache
        });
        Caches {
            caches,
            has_epochs,
            epoch: null_mut(),
        }
    }
}

impl Maker for Caches {
    #[inline(always)]
    fn take(&mut self, kind: usize) -> *mut u8 {
        // SAFETY: the cache is open.
        unsafe { sys::sy_cache_alloc_inline(self.caches[kind]) }.cast()
    }

    #[inline(always)]
    unsafe fn give(&mut self, kind: usize, object: *mut u8) {
        // SAFETY: as the caller says.
        unsafe { sys::sy_cache_free_inline(self.caches[kind], object.cast()) };
    }

    fn begin_phase(&mut self) {
        if self.has_epochs {
            // SAFETY: the epoch is new, and this thread ends it.
            unsafe {
                self.epoch = sys::sy_epoch_create(c"phase".as_ptr());
                assert_eq!(sys::sy_epoch_begin(self.epoch), 0);
            }
        }
    }

    fn end_phase(&mut self) {
        if self.has_epochs {
            // SAFETY: this thread began the epoch, and does not use it after closing it.
            unsafe {
                assert_eq!(sys::sy_epoch_end(self.epoch), 0);
                sys::sy_epoch_close(self.epoch);
            }
        }
    }
}

/// A pool for each kind.
pub struct Pools([*mut sys::sy_pool; SIZES.len()]);

impl Pools {
    pub fn open() -> Pools {
        Pools(SIZES.map(|size| {
            let config = sys::sy_pool_config {
                size,
                ..Default::default()
            };
            // SAFETY: a sensible configuration.
            let pool = unsafe { sys::sy_pool_create(&config) };
            assert!(!pool.is_null(), "a pool is made");
            pool
        }))
    }
}

impl Maker for Pools {
    #[inline(always)]
    fn take(&mut self, kind: usize) -> *mut u8 {
        // SAFETY: the pool is open, and used by this thread only.
        unsafe { sys::sy_pool_alloc_inline(self.0[kind]) }.cast()
    }

    #[inline(always)]
    unsafe fn give(&mut self, kind: usize, object: *mut u8) {
        // SAFETY: as the caller says.
        unsafe { sys::sy_pool_free_inline(self.0[kind], object.cast()) };
    }
}

/// A region of the crate: objects end with their phase.
#[derive(Default)]
pub struct Region(slabyard::Arena);

impl Maker for Region {
    const FREES: bool = false;

    #[inline(always)]
    fn take(&mut self, kind: usize) -> *mut u8 {
        // No type for each kind: a choice between them could not be foretold by a processor.
        let words = SIZES[kind] / size_of::<u64>();
        let object = self
            .0
            .alloc_slice_with(words, |_| MaybeUninit::<u64>::uninit());
        object.as_mut_ptr().cast()
    }

    #[inline(always)]
    unsafe fn give(&mut self, _kind: usize, _object: *mut u8) {}

    fn end_phase(&mut self) {
        self.0.reset();
    }
}

/// The region of the crate bumpalo, over glibc's malloc.
#[derive(Default)]
pub struct Bump(bumpalo::Bump);

impl Maker for Bump {
    const FREES: bool = false;

    #[inline(always)]
    fn take(&mut self, kind: usize) -> *mut u8 {
        let layout = Layout::from_size_align(SIZES[kind], 8).expect("a small size");
        self.0.alloc_layout(layout).as_ptr()
    }

    #[inline(always)]
    unsafe fn give(&mut self, _kind: usize, _object: *mut u8) {}

    fn end_phase(&mut self) {
        self.0.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_gives_an_object_the_bytes_of_its_kind() {
        let (mut region, mut bump) = (Region::default(), Bump::default());
        for makers in [&mut region as &mut dyn Taker, &mut bump] {
            for (kind, size) in SIZES.into_iter().enumerate() {
                let both = [makers.take_one(kind), makers.take_one(kind)];
                let distance = (both[0] as usize).abs_diff(both[1] as usize);
                assert!(distance >= size, "{size}: {distance}");
            }
        }
    }

    /// `Maker` without its constant, which a trait object cannot have.
    trait Taker {
        fn take_one(&mut self, kind: usize) -> *mut u8;
    }

    impl<M: Maker> Taker for M {
        fn take_one(&mut self, kind: usize) -> *mut u8 {
            self.take(kind)
        }
    }
}
