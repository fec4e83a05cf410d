//! Caches with handles: ordinals, their words and their places.
//!
//! [`crate::handle`] describes the content of a word and which code may write it.

use alloc::vec::Vec;
use core::ffi::CStr;
use core::sync::atomic::AtomicU64;

use slabyard_sys as sys;

pub(crate) use sys::{
    SY_HANDLE_DYING as DYING, SY_HANDLE_LIVE as LIVE, SY_HANDLE_PIN as PIN, SY_HANDLE_PINS as PINS,
    SY_HANDLE_STATE as STATE,
};

/// The settings of a cache with handles.
pub(crate) struct Config<'a> {
    pub name: &'a CStr,
    pub size: usize,
    pub align: usize,
    /// The maximum number of objects, or 0.
    pub limit: usize,
    /// Whether the limit counts objects exactly, at the cost of a lock.
    pub exact: bool,
}

/// A cache with handles. The code that creates it destroys it.
#[derive(Clone, Copy)]
pub(crate) struct Cache(*mut sys::sy_cache);

/// The number of slabs for which a walk takes the cache's lock once.
const FEW_SLABS: usize = 16;

impl Cache {
    /// Creates a cache. `None`: there is no memory, there are too many caches, or the alignment is
    /// too large.
    pub fn create(config: &Config<'_>) -> Option<Self> {
        let exact = if config.exact { sys::SY_LIMIT_EXACT } else { 0 };
        let config = sys::sy_cache_config {
            name: config.name.as_ptr(),
            size: config.size.max(1),
            align: config.align,
            limit: config.limit,
            flags: sys::SY_HANDLES | exact,
            ..Default::default()
        };
        // SAFETY: the name is a C string, and there are no functions.
        let cache = unsafe { sys::sy_cache_create(&config) };
        (!cache.is_null()).then_some(Self(cache))
    }

    /// The name in reports and statistics.
    pub fn name(self) -> alloc::string::String {
        // SAFETY: numbers, all of which may be 0.
        let mut stats: sys::sy_cache_stats = unsafe { core::mem::zeroed() };
        // SAFETY: the cache exists.
        unsafe { sys::sy_cache_get_stats(self.0, &mut stats) };
        crate::stats::text(&stats.name)
    }

    pub fn as_sys(self) -> *mut sys::sy_cache {
        self.0
    }

    /// Frees all memory, including objects.
    ///
    /// # Safety
    /// Neither the cache nor one of its objects is used again.
    pub unsafe fn destroy(self) {
        // SAFETY: as the caller says.
        unsafe { sys::sy_cache_destroy_all(self.0) }
    }

    #[inline(always)]
    fn head(&self) -> &sys::sy_handle_head {
        // SAFETY: the cache exists as long as this is used, and has handles.
        unsafe { sys::sy_handle_head_of(self.0) }
    }

    /// Takes one of the free ordinals that this thread holds; the caller owns it.
    #[inline(always)]
    pub fn take_at_hand(self) -> Option<u32> {
        // SAFETY: the cache has handles.
        unsafe { sys::sy_handle_take_loaded_inline(self.0) }
    }

    /// Takes a free ordinal when this thread holds none; the caller owns it. `None`: there is no
    /// memory, or the limit is reached.
    pub fn take_slow(self) -> Option<u32> {
        let mut ordinal = 0;
        // SAFETY: the cache has handles.
        unsafe { sys::sy_handle_take_slow(self.0, &mut ordinal).then_some(ordinal) }
    }

    /// Puts an ordinal back.
    ///
    /// # Safety
    /// The caller owns the ordinal, its word is free, and its generation is not the last.
    #[inline(always)]
    pub unsafe fn put(self, ordinal: u32) {
        // SAFETY: as the caller says.
        unsafe { sys::sy_handle_put_inline(self.0, ordinal) }
    }

    /// Removes the only pin of a dying object, and frees its ordinal, or retires it if its
    /// generation was the last.
    ///
    /// # Safety
    /// The word of the handle is dying, with one pin, which the caller owns.
    #[cold]
    #[inline(never)]
    pub unsafe fn put_dying(self, handle: u64) {
        // SAFETY: as the caller says.
        unsafe { sys::sy_handle_unpin(self.0, handle) }
    }

    /// The word of the ordinal in `handle`, which may be any 64 bits. `None`: the cache has no such
    /// ordinal.
    #[inline(always)]
    pub fn word(&self, handle: u64) -> Option<&AtomicU64> {
        self.head().word(handle)
    }

    /// The word of an ordinal.
    ///
    /// # Safety
    /// The cache gave the ordinal.
    #[inline(always)]
    pub unsafe fn word_of(&self, ordinal: u32) -> &AtomicU64 {
        // SAFETY: words of ordinals that were given out are never freed.
        unsafe { &*self.head().words.add(ordinal as usize) }
    }

    /// The words of consecutive ordinals.
    ///
    /// # Safety
    /// The cache gave these ordinals, all of one slab.
    #[inline(always)]
    pub unsafe fn words_of(&self, first: u32, count: u32) -> &[AtomicU64] {
        // SAFETY: words of ordinals that were given out are never freed, and lie in one array.
        unsafe {
            let first = self.head().words.add(first as usize);
            core::slice::from_raw_parts(first, count as usize)
        }
    }

    /// The ordinal of a word that this cache gave.
    #[inline(always)]
    pub fn ordinal_of(&self, word: &AtomicU64) -> u32 {
        let words = self.head().words.addr();
        ((core::ptr::from_ref(word).addr() - words) / size_of::<AtomicU64>()) as u32
    }

    /// The lower half of the word of a live, unpinned object of this cache.
    #[inline(always)]
    pub fn live(&self) -> u64 {
        self.head().live
    }

    /// The address of the object of an ordinal.
    ///
    /// # Safety
    /// The ordinal is taken, so that its slab stays.
    #[inline(always)]
    pub unsafe fn place(&self, ordinal: u32) -> *mut u8 {
        // SAFETY: as the caller says.
        unsafe { self.head().place(ordinal).cast() }
    }

    /// The number of taken ordinals. It is exact while no thread takes or frees one.
    pub fn in_use(self) -> usize {
        // SAFETY: the cache exists.
        unsafe { sys::sy_cache_in_use(self.0) }
    }

    /// Provides memory for `count` more ordinals. False: there is not enough memory.
    pub fn reserve(self, count: usize) -> bool {
        // SAFETY: the cache exists.
        unsafe { sys::sy_cache_reserve(self.0, count) == 0 }
    }

    /// Returns free memory to the system; the result is the number of bytes.
    pub fn trim(self) -> usize {
        // SAFETY: the cache exists.
        unsafe { sys::sy_cache_trim(self.0) }
    }

    /// The first ordinal of each slab, and the number of ordinals of a slab.
    pub fn slabs(self) -> (Vec<u32>, u32) {
        let (mut few, mut slots) = ([0; FEW_SLABS], 0);
        // SAFETY: the array has this room.
        let mut count =
            unsafe { sys::sy_handle_slabs(self.0, few.as_mut_ptr(), FEW_SLABS, &mut slots) };
        if count <= FEW_SLABS {
            return (few[..count].to_vec(), slots);
        }
        let mut firsts = Vec::new();
        loop {
            firsts.reserve(count + count / 8);
            let room = firsts.capacity();
            // SAFETY: the vector has this room, and the counted elements were written.
            unsafe {
                count = sys::sy_handle_slabs(self.0, firsts.as_mut_ptr(), room, &mut slots);
                if count <= room {
                    firsts.set_len(count);
                    return (firsts, slots);
                }
            }
        }
    }
}
