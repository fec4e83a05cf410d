//! The measured loops over slotmap and sharded-slab, which handles are compared with. An object's
//! name is its key.

use crate::kernels::{Kernels, GROWS, SHARED};
use crate::loops::{table, tables_of, Object, Slab};
use core::cell::UnsafeCell;
use core::ffi::{c_void, CStr};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use slotmap::{DefaultKey, Key, KeyData, SlotMap};

/// slotmap's map. One thread uses it. It has room for all objects from the start: growth would move
/// them.
struct Map<const WORDS: usize>(UnsafeCell<SlotMap<DefaultKey, Object<WORDS>>>);

fn key_of(name: *mut c_void) -> DefaultKey {
    KeyData::from_ffi(name as u64).into()
}

impl<const WORDS: usize> Slab for Map<WORDS> {
    const NAME: &'static CStr = c"slotmap";
    const TRAITS: u64 = 0;
    const SIZE: usize = WORDS * 8;

    unsafe fn with_capacity(capacity: usize) -> Self {
        Map(UnsafeCell::new(SlotMap::with_capacity(capacity)))
    }

    #[inline(always)]
    fn alloc(&self) -> *mut c_void {
        // SAFETY: one thread, and no reference into the map outlives a call.
        let key = unsafe { (*self.0.get()).insert(MaybeUninit::uninit()) };
        key.data().as_ffi() as *mut c_void
    }

    #[inline(always)]
    unsafe fn free(&self, name: *mut c_void) {
        // SAFETY: as in `alloc`.
        let _ = unsafe { (*self.0.get()).remove(key_of(name)) };
    }

    #[inline(always)]
    unsafe fn find(&self, name: *mut c_void) -> *mut c_void {
        // SAFETY: as in `alloc`.
        let object = unsafe { (*self.0.get()).get_mut(key_of(name)) };
        object.map_or(null_mut(), |object| object.as_mut_ptr().cast())
    }

    #[inline(always)]
    unsafe fn write_first(&self, name: *mut c_void) {
        // SAFETY: the name is live, and an object has at least eight bytes.
        unsafe {
            let object = (*self.0.get()).get_unchecked_mut(key_of(name));
            object.as_mut_ptr().cast::<u64>().write(name as u64);
        }
    }
}

/// An object of sharded-slab. Threads share it from the start.
struct Shared<const WORDS: usize>(UnsafeCell<Object<WORDS>>);

// SAFETY: the loops of one thread write to an object before others learn its name.
unsafe impl<const WORDS: usize> Sync for Shared<WORDS> {}

impl<const WORDS: usize> Slab for sharded_slab::Slab<Shared<WORDS>> {
    const NAME: &'static CStr = c"sharded-slab";
    const TRAITS: u64 = SHARED | GROWS;
    const SIZE: usize = WORDS * 8;
    /// A look-up returns a guard. The object cannot go before the guard is dropped.
    const PINS: bool = true;

    unsafe fn with_capacity(_capacity: usize) -> Self {
        sharded_slab::Slab::new()
    }

    #[inline(always)]
    fn alloc(&self) -> *mut c_void {
        let mut object = Object::<WORDS>::uninit();
        // SAFETY: an object has at least eight bytes.
        unsafe { object.as_mut_ptr().cast::<u64>().write(1) };
        let key = self.insert(Shared(UnsafeCell::new(object)));
        key.expect("the slab is not full") as *mut c_void
    }

    #[inline(always)]
    unsafe fn free(&self, name: *mut c_void) {
        self.remove(name as usize);
    }

    #[inline(always)]
    unsafe fn find(&self, name: *mut c_void) -> *mut c_void {
        let object = self.get(name as usize);
        object.map_or(null_mut(), |object| object.0.get().cast())
    }

    /// Does nothing: `alloc` writes the bytes before the object is shared.
    #[inline(always)]
    unsafe fn write_first(&self, _name: *mut c_void) {}
}

fn both<const WORDS: usize, const LAYOUT: usize>() -> [Kernels; 2] {
    [
        table::<Map<WORDS>, LAYOUT>(),
        table::<sharded_slab::Slab<Shared<WORDS>>, LAYOUT>(),
    ]
}

tables_of!(both);
