//! Caches with handles: ordinals, their words and their places.
//!
//! [`crate::handle`] describes the content of a word and which code may write it.

use alloc::vec::Vec;
use core::ffi::CStr;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

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
    /// Whether objects move.
    pub moves: bool,
}

/// A cache with handles. The code that creates it destroys it.
#[derive(Clone, Copy)]
pub(crate) struct Cache(*mut sys::sy_cache);

/// While it exists, no object moves that this thread looks up.
pub(crate) struct ReadGuard {
    outer: sys::sy_read_guard,
    /// It ends in the thread that began it.
    _here: PhantomData<*mut ()>,
}

impl ReadGuard {
    /// # Safety
    /// The guards of a thread are dropped in reverse order: only a scope may own one.
    pub unsafe fn new() -> Self {
        Self {
            // SAFETY: the drop ends it, in this thread.
            outer: unsafe { sys::sy_read_enter() },
            _here: PhantomData,
        }
    }
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        // SAFETY: this thread began it, and it ends once.
        unsafe { sys::sy_read_leave(self.outer) }
    }
}

/// The number of slabs for which a walk takes the cache's lock once.
const FEW_SLABS: usize = 16;

impl Cache {
    /// Creates a cache. `None`: there is no memory, there are too many caches, or the alignment is
    /// too large.
    pub fn create(config: &Config<'_>) -> Option<Self> {
        let exact = if config.exact { sys::SY_LIMIT_EXACT } else { 0 };
        let moves = if config.moves { sys::SY_MOVABLE } else { 0 };
        let config = sys::sy_cache_config {
            name: config.name.as_ptr(),
            size: config.size.max(1),
            align: config.align,
            limit: config.limit,
            flags: sys::SY_HANDLES | exact | moves,
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

    /// [`live`](Self::live), of a cache whose objects may move.
    #[inline(always)]
    pub fn live_of_any(&self) -> u64 {
        match self.head().live {
            sys::SY_HANDLE_MOVING => self.head().slot as u64,
            live => live,
        }
    }

    /// The address of the object of an ordinal, which may move.
    ///
    /// # Safety
    /// The ordinal is taken, and its object stays where it is.
    #[inline(always)]
    pub unsafe fn place_of_any(&self, ordinal: u32) -> *mut u8 {
        // SAFETY: as the caller says. If objects move, the word behind an object's is its place.
        unsafe {
            if !self.values_move() {
                return self.place(ordinal);
            }
            let place = self.word_of(ordinal + 1).load(Ordering::Relaxed);
            core::ptr::with_exposed_provenance_mut((place >> sys::SY_HANDLE_PLACE) as usize)
        }
    }

    /// The address of the object of a handle, which stays there until the read guard ends. `None`: the handle
    /// is stale.
    ///
    /// # Safety
    /// This thread is in a read guard.
    #[inline(always)]
    pub unsafe fn still_place(&self, handle: u64) -> Option<NonNull<u8>> {
        // SAFETY: the cache has handles, and this is in a read guard, as the caller says.
        NonNull::new(unsafe { sys::sy_read_get_inline(self.0, handle).cast() })
    }

    /// If the object of the handle is about to move, calls that off; if it is being moved, waits. If
    /// its word is folded away, unfolds it. False: the handle is stale.
    pub fn settle(self, handle: u64) -> bool {
        self.settled(handle, |live| live)
    }

    /// The same; then calls `look`, with whether the handle is live. Meanwhile no word is folded.
    #[cold]
    #[inline(never)]
    pub fn settled<R>(self, handle: u64, look: impl FnOnce(bool) -> R) -> R {
        // SAFETY: the guard stays in this function. Any 64 bits may be passed.
        unsafe {
            let _guard = ReadGuard::new();
            look(!sys::sy_read_get(self.0, handle).is_null())
        }
    }

    /// Whether its objects move.
    #[inline(always)]
    pub fn values_move(&self) -> bool {
        self.head().live == sys::SY_HANDLE_MOVING
    }

    /// Takes a place for an object, which look-ups do not find and which stays where it is until
    /// `publish` or `cancel`. `None`: there is no memory, or the limit is reached.
    pub fn prepare(self) -> Option<(u64, NonNull<u8>)> {
        let mut handle = 0;
        // SAFETY: the cache has handles.
        let place = unsafe { sys::sy_handle_prepare(self.0, &mut handle) };
        NonNull::new(place.cast()).map(|place| (handle, place))
    }

    /// Makes a prepared object live.
    ///
    /// # Safety
    /// It was prepared and not published, and is complete.
    pub unsafe fn publish(self, handle: u64) {
        // SAFETY: as the caller says.
        unsafe { sys::sy_handle_publish(self.0, handle) }
    }

    /// Frees the place of a prepared object.
    ///
    /// # Safety
    /// It was prepared and not published.
    pub unsafe fn cancel(self, handle: u64) {
        // SAFETY: as the caller says.
        unsafe { sys::sy_handle_cancel(self.0, handle) }
    }

    /// Moves objects for at most so many nanoseconds; the result is the bytes of slabs that became
    /// empty.
    pub fn compact(self, bytes: usize, budget_ns: u64) -> usize {
        // SAFETY: a place is used only while its object stays where it is.
        unsafe { sys::sy_cache_compact(self.0, bytes, budget_ns) }
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
