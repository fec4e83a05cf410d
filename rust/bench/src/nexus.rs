//! The measured loops over nexus-slab's bounded and unbounded slabs. An object's name is its
//! address.

use crate::kernels::{Kernels, GROWS};
use crate::loops::{table, tables_of, Object, Slab};
use core::ffi::{c_void, CStr};
use core::mem::MaybeUninit;
use nexus_slab::{bounded, unbounded, Slot, SlotCell};

/// Objects in a chunk of the unbounded slab. A free walks all chunks, and some rows have 100,000
/// and more objects: the default, 256, has 16 times as many chunks to walk.
const UNBOUNDED_CHUNK: usize = 4096;

/// The loops' interface to one kind of slab: its name, its traits, and how it is made.
macro_rules! slab {
    ($kind:ident $name:literal $traits:expr, |$capacity:ident| $new:expr) => {
        impl<const WORDS: usize> Slab for $kind::Slab<Object<WORDS>> {
            const NAME: &'static CStr = $name;
            const TRAITS: u64 = $traits;
            const SIZE: usize = WORDS * 8;

            unsafe fn with_capacity($capacity: usize) -> Self {
                // SAFETY: passed on to the caller.
                unsafe { $new }
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
    };
}

slab!(bounded c"nexus-bounded" 0, |capacity| Self::with_capacity(capacity));
slab!(unbounded c"nexus-unbounded" GROWS, |_capacity| Self::with_chunk_capacity(UNBOUNDED_CHUNK));

fn both<const WORDS: usize, const LAYOUT: usize>() -> [Kernels; 2] {
    [
        table::<bounded::Slab<Object<WORDS>>, LAYOUT>(),
        table::<unbounded::Slab<Object<WORDS>>, LAYOUT>(),
    ]
}

tables_of!(both);
