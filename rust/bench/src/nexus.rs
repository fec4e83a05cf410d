//! nexus-slab's bounded and unbounded slabs, whose names are addresses.

use crate::kernels::{Kernels, GROWS};
use crate::loops::{table, tables_of, Object, Slab};
use core::ffi::{c_void, CStr};
use core::mem::MaybeUninit;
use nexus_slab::{bounded, unbounded, Slot, SlotCell};

/// Objects in a chunk of the unbounded slab. Its default is 256; a free walks all chunks, so at the
/// 100,000 and more objects of some rows the default would be 16 times as far from its best.
const UNBOUNDED_CHUNK: usize = 4096;

impl<const WORDS: usize> Slab for bounded::Slab<Object<WORDS>> {
    const NAME: &'static CStr = c"nexus-bounded";
    const TRAITS: u64 = 0;
    const SIZE: usize = WORDS * 8;

    unsafe fn with_capacity(capacity: usize) -> Self {
        // SAFETY: passed on to the caller.
        unsafe { bounded::Slab::with_capacity(capacity) }
    }

    #[inline(always)]
    fn alloc(&self) -> *mut c_void {
        self.alloc(MaybeUninit::uninit()).into_raw().cast()
    }

    #[inline(always)]
    unsafe fn free(&self, object: *mut c_void) {
        // SAFETY: the pointer came from into_raw of this slab, and is not used again.
        self.free(unsafe { Slot::from_raw(object.cast::<SlotCell<Object<WORDS>>>()) });
    }

    #[inline(always)]
    unsafe fn find(&self, object: *mut c_void) -> *mut c_void {
        object
    }

    #[inline(always)]
    unsafe fn write_first(&self, object: *mut c_void) {
        // SAFETY: an object has at least eight bytes.
        unsafe { object.cast::<u64>().write(object as u64) };
    }
}

impl<const WORDS: usize> Slab for unbounded::Slab<Object<WORDS>> {
    const NAME: &'static CStr = c"nexus-unbounded";
    const TRAITS: u64 = GROWS;
    const SIZE: usize = WORDS * 8;

    unsafe fn with_capacity(_capacity: usize) -> Self {
        // SAFETY: passed on to the caller.
        unsafe { unbounded::Slab::with_chunk_capacity(UNBOUNDED_CHUNK) }
    }

    #[inline(always)]
    fn alloc(&self) -> *mut c_void {
        self.alloc(MaybeUninit::uninit()).into_raw().cast()
    }

    #[inline(always)]
    unsafe fn free(&self, object: *mut c_void) {
        // SAFETY: the pointer came from into_raw of this slab, and is not used again.
        self.free(unsafe { Slot::from_raw(object.cast::<SlotCell<Object<WORDS>>>()) });
    }

    #[inline(always)]
    unsafe fn find(&self, object: *mut c_void) -> *mut c_void {
        object
    }

    #[inline(always)]
    unsafe fn write_first(&self, object: *mut c_void) {
        // SAFETY: an object has at least eight bytes.
        unsafe { object.cast::<u64>().write(object as u64) };
    }
}

fn both<const WORDS: usize, const LAYOUT: usize>() -> [Kernels; 2] {
    [
        table::<bounded::Slab<Object<WORDS>>, LAYOUT>(),
        table::<unbounded::Slab<Object<WORDS>>, LAYOUT>(),
    ]
}

tables_of!(both);
