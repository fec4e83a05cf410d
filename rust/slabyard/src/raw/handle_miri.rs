//! The model of `raw/handle.rs` for Miri. Slabs come from the global allocator and stay until the
//! cache is destroyed. Free ordinals are in a list under a spin lock.

use alloc::alloc::{alloc, dealloc, Layout};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::ptr::{null_mut, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

pub(crate) const LIVE: u64 = 1;
pub(crate) const DYING: u64 = 2;
pub(crate) const STATE: u64 = 3;
pub(crate) const PIN: u64 = 4;
pub(crate) const PINS: u64 = 0xffff << 2;
/// The cache's number in its words.
const NUMBER: u64 = 5 << 18;

const SLOTS: usize = 64;
const SLABS: usize = 64;

/// The settings of a cache with handles.
pub(crate) struct Config<'a> {
    pub name: &'a CStr,
    pub size: usize,
    pub align: usize,
    pub limit: usize,
    pub exact: bool,
    pub moves: bool,
}

struct Slab {
    words: [AtomicU64; SLOTS],
    memory: *mut u8,
}

struct Inner {
    slot: Layout,
    limit: usize,
    locked: AtomicBool,
    free: UnsafeCell<Vec<u32>>,
    slabs: [AtomicPtr<Slab>; SLABS],
    count: AtomicUsize,
    retired: AtomicUsize,
}

/// A cache with handles. The code that creates it destroys it.
#[derive(Clone, Copy)]
pub(crate) struct Cache(NonNull<Inner>);

impl Cache {
    /// No values move here, and no word is folded away.
    pub fn settled<R>(self, _handle: u64, look: impl FnOnce(bool) -> R) -> R {
        look(true)
    }

    pub fn create(config: &Config<'_>) -> Option<Self> {
        let _ = (config.name, config.exact, config.moves);
        let slot = Layout::from_size_align(config.size.max(1), config.align.max(8)).ok()?;
        let inner = Box::new(Inner {
            slot: slot.pad_to_align(),
            limit: config.limit,
            locked: AtomicBool::new(false),
            free: UnsafeCell::new(Vec::new()),
            slabs: [const { AtomicPtr::new(null_mut()) }; SLABS],
            count: AtomicUsize::new(0),
            retired: AtomicUsize::new(0),
        });
        Some(Self(NonNull::from(Box::leak(inner))))
    }

    /// The name; only `Debug` uses it.
    pub fn name(self) -> alloc::string::String {
        alloc::string::String::new()
    }

    fn inner(&self) -> &Inner {
        // SAFETY: the cache exists as long as this is used.
        unsafe { self.0.as_ref() }
    }

    fn memory(&self) -> Layout {
        let slot = self.inner().slot;
        Layout::from_size_align(slot.size() * SLOTS, slot.align()).expect("it is small")
    }

    /// # Safety
    /// Neither the cache nor one of its objects is used again.
    pub unsafe fn destroy(self) {
        // SAFETY: as the caller says; all memory of create and grow is freed once.
        unsafe {
            for slab in &self.inner().slabs[..self.inner().count.load(Ordering::Relaxed)] {
                let slab = Box::from_raw(slab.load(Ordering::Relaxed));
                dealloc(slab.memory, self.memory());
            }
            drop(Box::from_raw(self.0.as_ptr()));
        }
    }

    fn with_free<R>(&self, then: impl FnOnce(&mut Vec<u32>) -> R) -> R {
        let inner = self.inner();
        while inner.locked.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        // SAFETY: the lock is held, and `then` does not call out of this file.
        let result = then(unsafe { &mut *inner.free.get() });
        inner.locked.store(false, Ordering::Release);
        result
    }

    /// Adds a slab; the lock is held.
    fn grow(&self, free: &mut Vec<u32>) -> Option<()> {
        let inner = self.inner();
        let count = inner.count.load(Ordering::Relaxed);
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc(self.memory()) };
        assert!(count < SLABS && !memory.is_null());
        let slab = Box::new(Slab {
            words: [const { AtomicU64::new(NUMBER) }; SLOTS],
            memory,
        });
        inner.slabs[count].store(Box::into_raw(slab), Ordering::Relaxed);
        inner.count.store(count + 1, Ordering::Release);
        free.extend(
            (count * SLOTS..(count + 1) * SLOTS)
                .rev()
                .map(|it| it as u32),
        );
        Some(())
    }

    pub fn take_at_hand(self) -> Option<u32> {
        None
    }

    pub fn take_slow(self) -> Option<u32> {
        let inner = self.inner();
        self.with_free(|free| {
            let out = inner.count.load(Ordering::Relaxed) * SLOTS - free.len();
            let retired = inner.retired.load(Ordering::Relaxed);
            if inner.limit != 0 && out - retired == inner.limit {
                return None;
            }
            if free.is_empty() {
                self.grow(free)?;
            }
            free.pop()
        })
    }

    /// # Safety
    /// The caller owns the ordinal, its word is free, and its generation is not the last.
    pub unsafe fn put(self, ordinal: u32) {
        // SAFETY: as the caller says.
        let word = unsafe { self.word_of(ordinal) }.load(Ordering::Relaxed);
        assert_eq!(word & (STATE | PINS), 0, "the word is free");
        self.with_free(|free| {
            assert!(!free.contains(&ordinal), "it is put once");
            free.push(ordinal);
        });
    }

    /// # Safety
    /// The word of the handle is dying, with one pin, which the caller owns.
    pub unsafe fn put_dying(self, handle: u64) {
        let expected = (handle >> 32 << 32) | NUMBER;
        // SAFETY: as the caller says.
        unsafe {
            self.word_of(handle as u32)
                .compare_exchange(
                    expected | DYING | PIN,
                    expected,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                )
                .expect("the caller has the last pin");
            if handle >> 32 == u64::from(u32::MAX) {
                self.inner().retired.fetch_add(1, Ordering::Relaxed);
            } else {
                self.put(handle as u32);
            }
        }
    }

    fn slab(&self, ordinal: u32) -> &Slab {
        let slab = &self.inner().slabs[ordinal as usize / SLOTS];
        // SAFETY: slabs are not freed, and each ordinal belongs to one.
        unsafe { &*slab.load(Ordering::Relaxed) }
    }

    pub fn word(&self, handle: u64) -> Option<&AtomicU64> {
        let limit = self.inner().count.load(Ordering::Acquire) * SLOTS;
        let ordinal = handle as u32;
        ((ordinal as usize) < limit).then(|| &self.slab(ordinal).words[ordinal as usize % SLOTS])
    }

    /// # Safety
    /// The cache gave the ordinal.
    pub unsafe fn word_of(&self, ordinal: u32) -> &AtomicU64 {
        &self.slab(ordinal).words[ordinal as usize % SLOTS]
    }

    /// # Safety
    /// The cache gave these ordinals, all of one slab.
    pub unsafe fn words_of(&self, first: u32, count: u32) -> &[AtomicU64] {
        &self.slab(first).words[first as usize % SLOTS..][..count as usize]
    }

    pub fn ordinal_of(&self, word: &AtomicU64) -> u32 {
        let count = self.inner().count.load(Ordering::Acquire);
        (0..count as u32)
            .map(|slab| slab * SLOTS as u32)
            .find_map(|first| {
                let words = self.slab(first).words.as_ptr_range();
                let at = core::ptr::from_ref(word);
                words
                    .contains(&at)
                    .then(|| first + ((at.addr() - words.start.addr()) / 8) as u32)
            })
            .expect("it is one of this cache's")
    }

    pub fn live(&self) -> u64 {
        NUMBER | LIVE
    }

    pub fn live_of_any(&self) -> u64 {
        self.live()
    }

    /// # Safety
    /// The ordinal is taken.
    pub unsafe fn place(&self, ordinal: u32) -> *mut u8 {
        let offset = ordinal as usize % SLOTS * self.inner().slot.size();
        // SAFETY: the slab's memory has all its slots.
        unsafe { self.slab(ordinal).memory.add(offset) }
    }

    pub fn in_use(self) -> usize {
        self.with_free(|free| {
            let all = self.inner().count.load(Ordering::Relaxed) * SLOTS;
            all - free.len() - self.inner().retired.load(Ordering::Relaxed)
        })
    }

    pub fn reserve(self, _count: usize) -> bool {
        true
    }

    pub fn trim(self) -> usize {
        0
    }

    pub fn slabs(self) -> (Vec<u32>, u32) {
        let count = self.inner().count.load(Ordering::Acquire) as u32;
        (
            (0..count).map(|slab| slab * SLOTS as u32).collect(),
            SLOTS as u32,
        )
    }
}
