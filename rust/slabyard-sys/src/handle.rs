//! `slabyard/handle.h`: objects with handles.
//!
//! The word of an ordinal:
//!
//! ```text
//! 63         32 31       18 17        2  1 0
//! | generation | cache     | pins      |state|
//! ```

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::{c_int, c_void, sy_cache};
use crate::{sy_loaded_pop, sy_loaded_push, sy_loaded_slot, sy_loaded_slots, SY_LOADED_INLINE};

/// A 64-bit name of an object: the ordinal in the lower half, the generation in the upper half. It
/// is never 0.
pub type sy_handle = u64;

/// What [`sy_read_enter`] returns.
pub type sy_read_guard = u64;

/// The maximum number of pins of one object.
pub const SY_HANDLE_PINS_MAX: u64 = (1 << 16) - 1;
/// State of a word: the object is live.
pub const SY_HANDLE_LIVE: u64 = 1;
/// State of a word: the object was freed while it was pinned.
pub const SY_HANDLE_DYING: u64 = 2;
/// State of a word: the object is live, and is about to be moved or being moved.
pub const SY_HANDLE_MOVING: u64 = 3;
/// With [`crate::SY_MOVABLE`]: the word behind an object's is its address, shifted left by this.
pub const SY_HANDLE_PLACE: u32 = 15;
/// The bits of a word that hold its state.
pub const SY_HANDLE_STATE: u64 = 3;
/// One pin.
pub const SY_HANDLE_PIN: u64 = 4;
/// The bits of a word that hold the number of pins.
pub const SY_HANDLE_PINS: u64 = 0xffff << 2;
/// The number of bits below the generation.
pub const SY_HANDLE_GENERATION: u32 = 32;
/// The last generation of an ordinal, which is retired after it.
pub const SY_HANDLE_GENERATIONS_MAX: u32 = u32::MAX;

/// The part of a cache with [`crate::SY_HANDLES`] that the inline functions read.
#[repr(C)]
pub struct sy_handle_head {
    /// The words of all ordinals.
    pub words: *mut AtomicU64,
    /// For each group of 64 ordinals: the address of the first object.
    pub places: *mut AtomicUsize,
    /// All ordinals of this cache are below this number, which grows.
    pub limit: AtomicU64,
    /// The lower half of the word of a live, unpinned object of this cache.
    pub live: u64,
    /// The distance in bytes from one object to the next.
    pub slot: usize,
    pub(crate) loaded_offset: usize,
    /// The distance in bytes from the thread's slots to the loaded slot with free ordinals.
    pub names_offset: usize,
    /// `live`, if a free needs nothing more; otherwise a value that no word has.
    pub plain: u64,
}

/// Called for each object, which is pinned meanwhile. A value other than 0 ends the walk.
pub type sy_handle_visit =
    unsafe extern "C" fn(arg: *mut c_void, handle: sy_handle, object: *mut c_void) -> c_int;

extern "C" {
    /// Allocates an object and its handle; null with `errno`, and `handle` unchanged.
    ///
    /// # Safety
    /// `handle` may be written.
    pub fn sy_handle_alloc(cache: *mut sy_cache, handle: *mut sy_handle) -> *mut c_void;

    /// The object of a live handle of this cache; otherwise null.
    ///
    /// # Safety
    /// Any 64 bits may be passed.
    pub fn sy_handle_get(cache: *const sy_cache, handle: sy_handle) -> *mut c_void;

    /// Frees the object; returns true exactly once for each handle.
    ///
    /// # Safety
    /// Any 64 bits may be passed. Only threads that have the object pinned may use it afterwards.
    pub fn sy_handle_free(cache: *mut sy_cache, handle: sy_handle) -> bool;

    /// Begins a read guard of this thread: no object moves until it ends.
    ///
    /// # Safety
    /// The same thread passes the result to [`sy_read_leave`].
    pub fn sy_read_enter() -> sy_read_guard;

    /// Ends a read guard.
    ///
    /// # Safety
    /// The guard is the last one that this thread has entered and not left.
    pub fn sy_read_leave(guard: sy_read_guard);

    /// The object of a live handle of this cache, which may have [`crate::SY_MOVABLE`]; otherwise
    /// null.
    ///
    /// # Safety
    /// Any 64 bits may be passed. If objects move, the object is used in a read guard.
    pub fn sy_read_get(cache: *const sy_cache, handle: sy_handle) -> *mut c_void;

    /// Moves objects out of sparse slabs; returns the bytes of slabs that are empty now.
    ///
    /// # Safety
    /// The program has no addresses of objects of this cache, but for pinned objects.
    pub fn sy_cache_compact(cache: *mut sy_cache, bytes: usize, budget_ns: u64) -> usize;

    /// Pins the object and returns it, as [`sy_handle_get`] does; the object stays until it is
    /// unpinned.
    ///
    /// # Safety
    /// Any 64 bits may be passed.
    pub fn sy_handle_pin(cache: *mut sy_cache, handle: sy_handle) -> *mut c_void;

    /// Removes a pin, and frees the object if this was the last pin of a freed object.
    ///
    /// # Safety
    /// The caller has pinned the object.
    pub fn sy_handle_unpin(cache: *mut sy_cache, handle: sy_handle);

    /// Allocates an object that no look-up finds yet; null as for [`sy_handle_alloc`].
    ///
    /// # Safety
    /// [`sy_handle_publish`] or [`sy_handle_cancel`] is called for it, once.
    pub fn sy_handle_prepare(cache: *mut sy_cache, handle: *mut sy_handle) -> *mut c_void;

    /// Makes a prepared object live.
    ///
    /// # Safety
    /// The handle is from [`sy_handle_prepare`] of this cache.
    pub fn sy_handle_publish(cache: *mut sy_cache, handle: sy_handle);

    /// Frees a prepared object.
    ///
    /// # Safety
    /// The handle is from [`sy_handle_prepare`] of this cache; its object is not used again.
    pub fn sy_handle_cancel(cache: *mut sy_cache, handle: sy_handle);

    /// The handle of a live object, or 0.
    ///
    /// # Safety
    /// Any address may be passed.
    pub fn sy_handle_of(object: *const c_void) -> sy_handle;

    /// Calls `visit` for the live objects of the cache.
    ///
    /// # Safety
    /// `visit` may be called with `arg`.
    pub fn sy_handle_each(cache: *mut sy_cache, visit: sy_handle_visit, arg: *mut c_void) -> c_int;

    /// Writes the first ordinal of each of the cache's slabs, if there is room for all, and the
    /// number of ordinals of a slab; returns the number of slabs. If objects move, it lists blocks of
    /// ordinals in place of slabs.
    ///
    /// # Safety
    /// `firsts` has this room, and `slots` may be written.
    pub fn sy_handle_slabs(
        cache: *mut sy_cache,
        firsts: *mut u32,
        room: usize,
        slots: *mut u32,
    ) -> usize;
}

extern "C" {
    #[link_name = "sy_handle_free_slow_abi_1"]
    fn sy_handle_free_slow(cache: *mut sy_cache, handle: sy_handle) -> bool;
    /// Takes a free ordinal. The caller owns it and its word until it has made the object live and
    /// freed it, or puts the ordinal back. False with `errno` as for [`sy_handle_alloc`].
    ///
    /// # Safety
    /// `ordinal` may be written.
    #[link_name = "sy_handle_take_slow_abi_1"]
    pub fn sy_handle_take_slow(cache: *mut sy_cache, ordinal: *mut u32) -> bool;
    #[link_name = "sy_read_get_slow_abi_1"]
    fn sy_read_get_slow(cache: *const sy_cache, handle: sy_handle) -> *mut c_void;
    #[link_name = "sy_handle_put_slow_abi_1"]
    fn sy_handle_put_slow(cache: *mut sy_cache, ordinal: u32) -> bool;
}

/// The part of the cache that the inline functions read.
///
/// # Safety
/// The cache exists as long as the reference is used, and has [`crate::SY_HANDLES`].
#[inline(always)]
pub unsafe fn sy_handle_head_of<'a>(cache: *const sy_cache) -> &'a sy_handle_head {
    // SAFETY: a cache with handles begins with this struct.
    unsafe { &*cache.cast() }
}

impl sy_handle_head {
    /// The word of a value that is passed as a handle. `None`: all ordinals of the cache are
    /// smaller.
    #[inline(always)]
    pub fn word(&self, handle: sy_handle) -> Option<&AtomicU64> {
        // SAFETY: the words of all ordinals below the limit are never freed.
        unsafe {
            let ordinal = u64::from(handle as u32);
            (ordinal < self.limit.load(Ordering::Relaxed))
                .then(|| &*self.words.add(ordinal as usize))
        }
    }

    /// The word that a live, unpinned object with this handle has.
    #[inline(always)]
    pub fn expected(&self, handle: sy_handle) -> u64 {
        (handle >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION) | self.live
    }

    /// The address of the object of an ordinal.
    ///
    /// # Safety
    /// The ordinal belongs to the cache, and its slab stays.
    #[inline(always)]
    pub unsafe fn place(&self, ordinal: u32) -> *mut c_void {
        // SAFETY: every ordinal has a group.
        unsafe {
            let first = (*self.places.add(ordinal as usize / 64)).load(Ordering::Relaxed);
            core::ptr::with_exposed_provenance_mut(first + ordinal as usize % 64 * self.slot)
        }
    }

    /// This thread's loaded slot with free ordinals.
    #[inline(always)]
    fn loaded(&self) -> *mut sy_loaded_slot {
        sy_loaded_slots().wrapping_byte_add(self.names_offset)
    }
}

/// Takes a free ordinal that this thread has loaded; otherwise as [`sy_handle_take_slow`].
///
/// # Safety
/// The cache has [`crate::SY_HANDLES`].
#[inline(always)]
pub unsafe fn sy_handle_take_loaded_inline(cache: *mut sy_cache) -> Option<u32> {
    // SAFETY: as the caller says; the slot is this thread's.
    unsafe {
        if !SY_LOADED_INLINE {
            return None;
        }
        sy_loaded_pop(sy_handle_head_of(cache).loaded()).map(|ordinal| ordinal as u32)
    }
}

/// Takes a free ordinal, loaded or not. `None` with `errno` as for [`sy_handle_alloc`].
///
/// # Safety
/// The cache has [`crate::SY_HANDLES`].
#[inline(always)]
pub unsafe fn sy_handle_take_inline(cache: *mut sy_cache) -> Option<u32> {
    let mut ordinal = 0;
    // SAFETY: as the caller says.
    unsafe {
        sy_handle_take_loaded_inline(cache)
            .or_else(|| sy_handle_take_slow(cache, &mut ordinal).then_some(ordinal))
    }
}

/// Puts a free ordinal back.
///
/// # Safety
/// The caller owns the ordinal, its word is free, and its generation is not the last.
#[inline(always)]
pub unsafe fn sy_handle_put_inline(cache: *mut sy_cache, ordinal: u32) {
    // SAFETY: as the caller says; the slot is this thread's.
    unsafe {
        if !SY_LOADED_INLINE || !sy_loaded_push(sy_handle_head_of(cache).loaded(), ordinal as usize)
        {
            sy_handle_put_slow(cache, ordinal);
        }
    }
}

/// [`sy_handle_alloc`], compiled into the caller.
///
/// # Safety
/// The cache has [`crate::SY_HANDLES`]; `handle` may be written.
#[inline(always)]
pub unsafe fn sy_handle_alloc_inline(cache: *mut sy_cache, handle: *mut sy_handle) -> *mut c_void {
    // SAFETY: as the caller says; no other thread changes a free word.
    unsafe {
        let Some(ordinal) = sy_handle_take_inline(cache) else {
            return core::ptr::null_mut();
        };
        let head = sy_handle_head_of(cache);
        let word = &*head.words.add(ordinal as usize);
        let live = (word.load(Ordering::Relaxed) + (1 << SY_HANDLE_GENERATION)) | SY_HANDLE_LIVE;
        word.store(live, Ordering::Release);
        handle.write((live >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION) | u64::from(ordinal));
        head.place(ordinal)
    }
}

/// [`sy_handle_get`], compiled into the caller.
///
/// # Safety
/// The cache has [`crate::SY_HANDLES`].
#[inline(always)]
pub unsafe fn sy_handle_get_inline(cache: *const sy_cache, handle: sy_handle) -> *mut c_void {
    // SAFETY: a live object of the cache has a place.
    unsafe {
        let head = sy_handle_head_of(cache);
        match head.word(handle) {
            Some(word)
                if word.load(Ordering::Acquire) & !SY_HANDLE_PINS == head.expected(handle) =>
            {
                head.place(handle as u32)
            }
            _ => core::ptr::null_mut(),
        }
    }
}

/// [`sy_read_get`], compiled into the caller.
///
/// # Safety
/// As for [`sy_read_get`]; the cache has [`crate::SY_HANDLES`].
#[inline(always)]
pub unsafe fn sy_read_get_inline(cache: *const sy_cache, handle: sy_handle) -> *mut c_void {
    // SAFETY: the word behind that of a live object is its place, if objects move.
    unsafe {
        let head = sy_handle_head_of(cache);
        let Some(at) = head.word(handle) else {
            return core::ptr::null_mut();
        };
        let word = at.load(Ordering::Acquire);
        let generation = handle >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION;
        let live = generation | head.slot as u64;
        if word & !SY_HANDLE_PINS != live || word & SY_HANDLE_LIVE == 0 {
            return sy_read_get_slow(cache, handle);
        }
        let place = (*core::ptr::from_ref(at).add(1)).load(Ordering::Relaxed);
        core::ptr::with_exposed_provenance_mut((place >> SY_HANDLE_PLACE) as usize)
    }
}

/// [`sy_handle_free`], compiled into the caller.
///
/// # Safety
/// The cache has [`crate::SY_HANDLES`], and as for [`sy_handle_free`].
#[inline(always)]
pub unsafe fn sy_handle_free_inline(cache: *mut sy_cache, handle: sy_handle) -> bool {
    // SAFETY: the thread that makes the word free owns the ordinal.
    unsafe {
        let head = sy_handle_head_of(cache);
        let Some(word) = head.word(handle) else {
            return false;
        };
        let live = (handle >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION) | head.plain;
        let spent = (handle >> SY_HANDLE_GENERATION) as u32 == SY_HANDLE_GENERATIONS_MAX;
        let free = live & !SY_HANDLE_STATE;
        if spent
            || word
                .compare_exchange(live, free, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
        {
            return sy_handle_free_slow(cache, handle);
        }
        sy_handle_put_inline(cache, handle as u32);
        true
    }
}

/// [`sy_handle_pin`], compiled into the caller for the common case.
///
/// # Safety
/// The cache has [`crate::SY_HANDLES`].
#[inline(always)]
pub unsafe fn sy_handle_pin_inline(cache: *mut sy_cache, handle: sy_handle) -> *mut c_void {
    // SAFETY: a pinned object of the cache has a place.
    unsafe {
        let head = sy_handle_head_of(cache);
        let Some(word) = head.word(handle) else {
            return core::ptr::null_mut();
        };
        let seen = word.load(Ordering::Relaxed);
        if seen & !SY_HANDLE_PINS != head.expected(handle) {
            return core::ptr::null_mut();
        }
        let pinned = seen + SY_HANDLE_PIN;
        if seen & SY_HANDLE_PINS == SY_HANDLE_PINS
            || word
                .compare_exchange(seen, pinned, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
        {
            return sy_handle_pin(cache, handle);
        }
        head.place(handle as u32)
    }
}

/// [`sy_handle_unpin`], compiled into the caller for the common case.
///
/// # Safety
/// The caller has pinned the object.
#[inline(always)]
pub unsafe fn sy_handle_unpin_inline(cache: *mut sy_cache, handle: sy_handle) {
    // SAFETY: as the caller says, so the ordinal belongs to the cache.
    unsafe {
        let head = sy_handle_head_of(cache);
        let word = &*head.words.add(handle as u32 as usize);
        let seen = word.load(Ordering::Relaxed);
        if seen & SY_HANDLE_STATE != SY_HANDLE_LIVE
            || word
                .compare_exchange(
                    seen,
                    seen - SY_HANDLE_PIN,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                )
                .is_err()
        {
            sy_handle_unpin(cache, handle);
        }
    }
}
