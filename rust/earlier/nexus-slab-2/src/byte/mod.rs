//! Slabs for values of any type that fits into slots of a fixed size.
//!
//! A slot has `N` bytes, and an alignment of 8. The handle of a value knows its type.
//!
//! ```
//! # use nexus_slab_2 as nexus_slab;
//! use nexus_slab::byte::bounded::Slab;
//!
//! // SAFETY: the slots are given back to this slab.
//! let slab: Slab<64> = unsafe { Slab::with_capacity(16) };
//! let number = slab.alloc(42u64);
//! let text = slab.alloc("forty-two".to_string());
//! assert_eq!((*number, text.as_str()), (42, "forty-two"));
//! slab.free(number);
//! assert_eq!(slab.take(text), "forty-two");
//! ```

pub mod bounded;
mod slab;
pub mod unbounded;

use crate::handle::{handle, movable, pinned};
use core::any::type_name;
use core::borrow::{Borrow, BorrowMut};
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::ptr::NonNull;
use slabyard::parts::Store;

/// The alignment of each slot, in bytes.
const ALIGN: usize = 8;

/// The content of a slot: `N` bytes, aligned to 8.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct AlignedBytes<const N: usize> {
    #[allow(dead_code)] // for its size
    bytes: [u8; N],
}

handle! {
    /// A raw handle of a value in a byte slab: an address, 8 bytes.
    ///
    /// Dropping it frees nothing: give it to `free` or `take` of its slab. A debug build panics if
    /// it is dropped instead.
    Slot of u8, holds T, "byte::Slot", "give it to free or take of its slab"
}
movable!(Slot, PinnedSlot);

handle! {
    /// A raw handle of a pinned value in a byte slab: it never moves until `free_pinned` drops it.
    ///
    /// [`Slot::into_pinned`] makes it. Give it to `free_pinned` of its slab before the slab is
    /// dropped. A debug build panics if you drop it instead.
    PinnedSlot of u8, holds T, "byte::PinnedSlot", "give it to free_pinned of its slab"
}
pinned!(PinnedSlot);

/// A slot of a byte slab that is taken and has no value yet. Dropping it frees the slot.
pub struct ByteClaim<'a> {
    place: NonNull<u8>,
    store: &'a Store,
    slot_size: usize,
}

impl ByteClaim<'_> {
    /// Puts a value into the slot.
    ///
    /// # Panics
    /// If the type is larger than a slot, or its alignment is greater than 8. The slot is then
    /// freed.
    #[inline]
    #[track_caller]
    pub fn write<T>(self, value: T) -> Slot<T> {
        fits::<T>(self.slot_size);
        let place = ManuallyDrop::new(self).place.cast::<T>();
        // SAFETY: the slot is ours and empty, and the value fits.
        unsafe {
            place.write(value);
            Slot::of(place)
        }
    }

    /// Copies `size` bytes from `source` into the slot, and returns the slot's address.
    ///
    /// # Safety
    /// `size` bytes can be read at `source`.
    ///
    /// # Panics
    /// If `size` is greater than the size of a slot. The slot is then freed.
    #[inline]
    #[track_caller]
    pub unsafe fn write_raw(self, source: *const u8, size: usize) -> *mut u8 {
        bytes_fit(size, self.slot_size);
        let place = ManuallyDrop::new(self).place.as_ptr();
        // SAFETY: as the caller says; the slot is ours, empty, and no smaller.
        unsafe { source.copy_to_nonoverlapping(place, size) };
        place
    }

    /// The address of the slot.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.place.as_ptr()
    }

    /// The size of the slot in bytes.
    #[inline]
    pub fn slot_size(&self) -> usize {
        self.slot_size
    }

    /// The number of the slot's chunk; 0 in a bounded slab. Each call searches the chunks.
    pub fn chunk_idx(&self) -> usize {
        self.store.chunk_of(self.as_ptr() as usize).unwrap_or(0)
    }
}

impl Drop for ByteClaim<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the slot is one of the slab, is taken, and has no handle.
        unsafe { self.store.push::<false>(self.place.as_ptr().cast()) }
    }
}

impl fmt::Debug for ByteClaim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteClaim")
            .field("ptr", &self.as_ptr())
            .field("slot_size", &self.slot_size)
            .finish()
    }
}

/// Panics if a value of type `T` does not fit into slots of `slot_size` bytes.
#[inline(always)]
#[track_caller]
fn fits<T>(slot_size: usize) {
    if size_of::<T>() > slot_size {
        too_large(type_name::<T>(), size_of::<T>(), slot_size);
    }
    if align_of::<T>() > ALIGN {
        too_aligned(type_name::<T>(), align_of::<T>());
    }
}

/// Panics if `size` bytes do not fit into slots of `slot_size` bytes.
#[inline(always)]
#[track_caller]
fn bytes_fit(size: usize, slot_size: usize) {
    if size > slot_size {
        too_large("raw value", size, slot_size);
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn too_large(what: &str, size: usize, slot_size: usize) -> ! {
    panic!("{what} ({size} bytes) exceeds byte slab slot size ({slot_size} bytes)")
}

#[cold]
#[inline(never)]
#[track_caller]
fn too_aligned(what: &str, align: usize) -> ! {
    panic!("{what} (align {align}) exceeds byte slab alignment ({ALIGN})")
}
