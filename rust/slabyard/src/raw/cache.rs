//! Caches of untyped objects. `pop` and `push` are the inlined fast path; the other functions call
//! the C library. The fast path uses the *offset* of the cache's loaded slot from the first one of
//! this thread.
//!
//! Offset 0 leads to a slot that is shut in every thread. Code that has no cache yet starts with
//! offset 0, and reaches the slow path without a test of its own.

use core::ffi::{c_int, c_void};
use core::ptr::NonNull;

/// The functions of a config: one is called before an object is first allocated, the other before
/// its memory is returned.
#[derive(Clone, Copy)]
pub(crate) struct Lifecycle {
    pub(crate) construct: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
    pub(crate) destruct: unsafe extern "C" fn(*mut c_void, *mut c_void),
}

/// The settings of a cache.
#[derive(Clone, Copy)]
#[cfg_attr(miri, allow(dead_code))] // the stand-in checks and reports nothing
pub(crate) struct Config<'n> {
    pub(crate) name: &'n str,
    pub(crate) size: usize,
    pub(crate) align: usize,
    pub(crate) limit: usize,
    pub(crate) flags: u32,
    pub(crate) lifecycle: Option<Lifecycle>,
}

/// A cache that was created. The code that created it decides when it is destroyed.
#[derive(Clone, Copy)]
pub struct RawCache {
    pub(crate) pointer: NonNull<Opaque>,
    pub(crate) offset: usize,
}

// SAFETY: every function of a cache may be called from any thread.
unsafe impl Send for RawCache {}
// SAFETY: as above.
unsafe impl Sync for RawCache {}

impl RawCache {
    /// Allocates an object.
    #[inline(always)]
    pub(crate) fn take(self) -> Option<NonNull<u8>> {
        match pop(self.offset) {
            Some(object) => Some(object),
            None => take_slow(self.pointer),
        }
    }

    /// Frees an object.
    ///
    /// # Safety
    /// It is a live object of this cache, and is not used again.
    #[inline(always)]
    pub(crate) unsafe fn give(self, object: NonNull<u8>) {
        // SAFETY: as the caller says.
        unsafe {
            if !push(self.offset, object) {
                give_slow(self.pointer, object);
            }
        }
    }
}

/// Owns a cache and destroys it when dropped. If objects are live then, the cache stays until the
/// process ends. It does not name the type of the objects, so that objects of a cache may borrow
/// it.
pub(crate) struct OwnedCache(pub(crate) RawCache);

impl Drop for OwnedCache {
    fn drop(&mut self) {
        // SAFETY: all users of the cache borrow its owner, except objects that were leaked or
        // forgotten. With such objects the cache stays.
        unsafe { destroy(self.0) };
    }
}

pub(crate) use backend::{
    create, destroy, give_slow, in_use, pop, push, reserve, slot_size, take_slow, thread_reserve,
    trim, Opaque,
};

#[cfg(not(miri))]
mod backend {
    use super::{Config, RawCache};
    use core::ffi::{c_char, c_void};
    use core::ptr::{null_mut, NonNull};
    use slabyard_sys as sys;

    pub(crate) type Opaque = sys::sy_cache;

    /// A name as a C array: cut to the length that the library keeps, and at a zero byte.
    pub(super) fn name_of(name: &str) -> [c_char; sys::SY_CACHE_NAME_MAX + 1] {
        let mut copy = [0; sys::SY_CACHE_NAME_MAX + 1];
        let kept = name.bytes().take(sys::SY_CACHE_NAME_MAX);
        for (to, from) in copy.iter_mut().zip(kept) {
            *to = from as c_char;
        }
        copy
    }

    /// Creates a cache. `None`: the library refuses the config, or there is no memory.
    pub(crate) fn create(config: &Config<'_>) -> Option<RawCache> {
        let name = name_of(config.name);
        let config = sys::sy_cache_config {
            name: if name[0] == 0 {
                core::ptr::null()
            } else {
                name.as_ptr()
            },
            size: config.size,
            align: config.align,
            construct: config.lifecycle.map(|functions| functions.construct as _),
            destruct: config.lifecycle.map(|functions| functions.destruct as _),
            arg: null_mut(),
            limit: config.limit,
            flags: config.flags,
            memory: null_mut(),
            dispose: None,
            relocate: None,
            reserved: [0; 5],
        };
        // SAFETY: the config is valid, and its functions may be called from any thread.
        let pointer = NonNull::new(unsafe { sys::sy_cache_create(&config) })?;
        // SAFETY: the cache exists.
        let offset = unsafe { sys::sy_cache_loaded_offset(pointer.as_ptr()) };
        Some(RawCache { pointer, offset })
    }

    /// Destroys the cache if no object is live. False: there are live objects, and the cache is
    /// never destroyed.
    ///
    /// # Safety
    /// No other thread uses the cache. If true is returned, it is not used again.
    pub(crate) unsafe fn destroy(cache: RawCache) -> bool {
        // SAFETY: as the caller says.
        unsafe { sys::sy_cache_destroy(cache.pointer.as_ptr()) == 0 }
    }

    /// Takes the newest object of this thread's loaded slot.
    #[inline(always)]
    pub(crate) fn pop(offset: usize) -> Option<NonNull<u8>> {
        if !sys::SY_LOADED_INLINE {
            return None;
        }
        // SAFETY: the offset is 0 or belongs to a cache, so it leads to a slot of this thread,
        // which holds addresses of objects. None of them is null.
        unsafe {
            let slot = sys::sy_loaded_slots().byte_add(offset);
            let object = sys::sy_loaded_pop(slot)?;
            Some(NonNull::new_unchecked(
                core::ptr::with_exposed_provenance_mut(object),
            ))
        }
    }

    /// Puts an object into this thread's loaded slot, if there is room.
    ///
    /// # Safety
    /// It is a live object of the cache with this offset. If true is returned, it is not used
    /// again.
    #[inline(always)]
    pub(crate) unsafe fn push(offset: usize, object: NonNull<u8>) -> bool {
        // SAFETY: as the caller says.
        unsafe {
            sys::SY_LOADED_INLINE
                && sys::sy_loaded_push_once(
                    sys::sy_loaded_slots().byte_add(offset),
                    object.as_ptr().expose_provenance(),
                )
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn take_slow(cache: NonNull<Opaque>) -> Option<NonNull<u8>> {
        // SAFETY: the cache exists.
        let object = unsafe {
            if sys::SY_LOADED_INLINE {
                sys::sy_cache_alloc_slow(cache.as_ptr())
            } else {
                sys::sy_cache_alloc(cache.as_ptr())
            }
        };
        NonNull::new(object.cast())
    }

    /// # Safety
    /// As for [`push`]; the object is not used again.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn give_slow(cache: NonNull<Opaque>, object: NonNull<u8>) {
        let object: *mut c_void = object.as_ptr().cast();
        // SAFETY: as the caller says.
        unsafe {
            if sys::SY_LOADED_INLINE {
                sys::sy_cache_free_slow(cache.as_ptr(), object);
            } else {
                sys::sy_cache_free(cache.as_ptr(), object);
            }
        }
    }

    pub(crate) fn in_use(cache: RawCache) -> usize {
        // SAFETY: the cache exists.
        unsafe { sys::sy_cache_in_use(cache.pointer.as_ptr()) }
    }

    pub(crate) fn slot_size(cache: RawCache) -> usize {
        // SAFETY: the cache exists.
        unsafe { sys::sy_cache_slot_size(cache.pointer.as_ptr()) }
    }

    pub(crate) fn reserve(cache: RawCache, count: usize) -> bool {
        // SAFETY: the cache exists.
        unsafe { sys::sy_cache_reserve(cache.pointer.as_ptr(), count) == 0 }
    }

    pub(crate) fn thread_reserve(cache: RawCache, count: usize) -> bool {
        // SAFETY: the cache exists.
        unsafe { sys::sy_thread_reserve(cache.pointer.as_ptr(), count) == 0 }
    }

    pub(crate) fn trim(cache: RawCache) -> usize {
        // SAFETY: the cache exists.
        unsafe { sys::sy_cache_trim(cache.pointer.as_ptr()) }
    }
}

/// The model for Miri. Each object is an allocation of its own, so that Miri sees accesses after a
/// free. Free constructed objects wait in a list.
#[cfg(miri)]
mod backend {
    use super::{Config, Lifecycle, RawCache};
    use alloc::alloc::{alloc, dealloc};
    use alloc::boxed::Box;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;
    use core::alloc::Layout;
    use core::cell::UnsafeCell;
    use core::ptr::{null_mut, NonNull};
    use core::sync::atomic::{AtomicBool, Ordering};

    pub(crate) struct Opaque {
        layout: Layout,
        limit: usize,
        lifecycle: Option<Lifecycle>,
        locked: AtomicBool,
        state: UnsafeCell<State>,
    }

    impl core::panic::RefUnwindSafe for Opaque {}

    /// Objects by address, as in the library: the pointer of a free may be valid for less than the
    /// object.
    #[derive(Default)]
    struct State {
        live: BTreeMap<usize, NonNull<u8>>,
        claimed: usize, // of the limit: live, and those that are being made
        constructed: Vec<NonNull<u8>>,
    }

    fn with<R>(cache: NonNull<Opaque>, work: impl FnOnce(&mut State) -> R) -> R {
        // SAFETY: the cache exists, and its state is only accessed under its lock.
        unsafe {
            let cache = cache.as_ref();
            while cache.locked.swap(true, Ordering::Acquire) {
                core::hint::spin_loop();
            }
            let result = work(&mut *cache.state.get());
            cache.locked.store(false, Ordering::Release);
            result
        }
    }

    /// The layout and the lifecycle functions of its objects.
    fn kind(cache: NonNull<Opaque>) -> (Layout, Option<Lifecycle>) {
        // SAFETY: the cache exists; these never change.
        unsafe { (cache.as_ref().layout, cache.as_ref().lifecycle) }
    }

    pub(crate) fn create(config: &Config<'_>) -> Option<RawCache> {
        let cache = Box::new(Opaque {
            layout: Layout::from_size_align(config.size, config.align).ok()?,
            limit: config.limit,
            lifecycle: config.lifecycle,
            locked: AtomicBool::new(false),
            state: UnsafeCell::default(),
        });
        let pointer = NonNull::from(Box::leak(cache));
        Some(RawCache { pointer, offset: 8 })
    }

    pub(crate) unsafe fn destroy(cache: RawCache) -> bool {
        if in_use(cache) > 0 {
            return false;
        }
        trim(cache);
        // SAFETY: it came from a box, and is not used any more.
        drop(unsafe { Box::from_raw(cache.pointer.as_ptr()) });
        true
    }

    pub(crate) fn pop(_offset: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(crate) unsafe fn push(_offset: usize, _object: NonNull<u8>) -> bool {
        false
    }

    fn make(layout: Layout, lifecycle: Option<Lifecycle>) -> NonNull<u8> {
        // SAFETY: the size of an object is not 0.
        let object = NonNull::new(unsafe { alloc(layout) }).expect("Miri has memory");
        if let Some(functions) = lifecycle {
            // SAFETY: memory for an object.
            let built = unsafe { (functions.construct)(object.as_ptr().cast(), null_mut()) };
            assert_eq!(built, 0, "constructors of this crate do not fail");
        }
        object
    }

    pub(crate) fn take_slow(cache: NonNull<Opaque>) -> Option<NonNull<u8>> {
        // SAFETY: the cache exists; this never changes.
        let limit = unsafe { cache.as_ref().limit };
        let kept = with(cache, |state| {
            let room = limit == 0 || state.claimed < limit;
            state.claimed += usize::from(room);
            room.then(|| state.constructed.pop())
        })?;
        let (layout, lifecycle) = kind(cache);
        let object = kept.unwrap_or_else(|| make(layout, lifecycle));
        with(cache, |state| {
            state.live.insert(object.addr().get(), object)
        });
        Some(object)
    }

    pub(crate) unsafe fn give_slow(cache: NonNull<Opaque>, object: NonNull<u8>) {
        let (layout, lifecycle) = kind(cache);
        with(cache, |state| {
            let object = state.live.remove(&object.addr().get()).expect("it is live");
            state.claimed -= 1;
            match lifecycle {
                Some(_) => state.constructed.push(object),
                // SAFETY: it was allocated with this layout.
                None => unsafe { dealloc(object.as_ptr(), layout) },
            }
        });
    }

    pub(crate) fn in_use(cache: RawCache) -> usize {
        with(cache.pointer, |state| state.live.len())
    }

    pub(crate) fn slot_size(cache: RawCache) -> usize {
        kind(cache.pointer).0.pad_to_align().size()
    }

    pub(crate) fn reserve(_cache: RawCache, _count: usize) -> bool {
        true
    }

    pub(crate) fn thread_reserve(_cache: RawCache, _count: usize) -> bool {
        true
    }

    pub(crate) fn trim(cache: RawCache) -> usize {
        let (layout, lifecycle) = kind(cache.pointer);
        let constructed = with(cache.pointer, |state| {
            core::mem::take(&mut state.constructed)
        });
        for object in &constructed {
            // SAFETY: it was constructed and is free, and was allocated with this layout.
            unsafe {
                if let Some(functions) = lifecycle {
                    (functions.destruct)(object.as_ptr().cast(), null_mut());
                }
                dealloc(object.as_ptr(), layout);
            }
        }
        constructed.len() * layout.size()
    }
}
