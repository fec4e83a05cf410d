//! Byte slabs: the part that bounded and unbounded slabs share.

use super::{bytes_fit, fits, AlignedBytes, ByteClaim, PinnedSlot, Slot};
use crate::slab::Slab;
use core::ptr::NonNull;
use slabyard::parts::Kind;

/// Slots of `N` bytes: [`byte::bounded::Slab`](crate::byte::bounded::Slab) or
/// [`byte::unbounded::Slab`](crate::byte::unbounded::Slab).
///
/// # Safety
/// Creating a slab is unsafe, and using it is safe. The code that creates it promises the same as
/// for a slab of [one type](crate::bounded::Slab).
///
/// It may be sent to another thread, whatever its values are: values are reached only through their
/// handles, which stay on their thread.
///
/// ```
/// # use nexus_slab_2 as nexus_slab;
/// fn moves<T: Send>() {}
/// moves::<nexus_slab::byte::bounded::Slab<64>>();
/// moves::<nexus_slab::byte::unbounded::Slab<64>>();
/// ```
///
/// ```compile_fail,E0277
/// # use nexus_slab_2 as nexus_slab;
/// fn is_shared<T: Sync>() {}
/// is_shared::<nexus_slab::byte::bounded::Slab<64>>();
/// ```
pub struct ByteSlab<const N: usize, K: Kind>(pub(super) Slab<AlignedBytes<N>, K>);

impl<const N: usize, K: Kind> ByteSlab<N, K> {
    /// Drops the value and frees the slot, also if the drop panics.
    ///
    /// # Panics
    /// In a debug build, if the slot belongs to another slab.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn free<T>(&self, slot: Slot<T>) {
        let place = slot.into_place();
        self.0.is_own(place);
        // SAFETY: the code that created the slab promised that the slot belongs to it. Its handle
        // is gone.
        unsafe { self.0.typed().free_as(place) }
    }

    /// Frees the slot and returns the value.
    ///
    /// # Panics
    /// In a debug build, if the slot belongs to another slab.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn take<T>(&self, slot: Slot<T>) -> T {
        let place = slot.into_place();
        self.0.is_own(place);
        // SAFETY: as in `free`.
        unsafe { self.0.typed().remove_as(place) }
    }

    /// Drops a pinned value in place and frees the slot, also if the drop panics.
    ///
    /// # Panics
    /// In a debug build, if the slot belongs to another slab.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn free_pinned<T>(&self, slot: PinnedSlot<T>) {
        let place = slot.into_place();
        self.0.is_own(place);
        // SAFETY: as in `free`; the value is not moved.
        unsafe { self.0.typed().free_as(place) }
    }

    /// Frees a slot without dropping its content.
    ///
    /// # Safety
    /// The slot belongs to this slab, is taken, and is not used again.
    ///
    /// # Panics
    /// In a debug build, if the slot belongs to another slab.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub unsafe fn free_raw(&self, slot: *mut u8) {
        // SAFETY: as the caller says; no slot is at address 0.
        unsafe {
            let slot = NonNull::new_unchecked(slot.cast());
            self.0.is_own(slot);
            self.0.typed().give(slot);
        }
    }

    /// Puts a value into a slot. `None`: no slot is free.
    #[inline(always)]
    #[track_caller]
    pub(super) fn put<T>(&self, value: T) -> Option<Slot<T>> {
        fits::<T>(N);
        let place = self.0.typed().take()?.cast::<T>();
        // SAFETY: the slot is ours and empty, and the value fits.
        unsafe {
            place.write(value);
            Some(Slot::of(place))
        }
    }

    /// Copies bytes into a slot. `None`: no slot is free.
    ///
    /// # Safety
    /// `size` bytes can be read at `source`.
    #[inline(always)]
    #[track_caller]
    pub(super) unsafe fn put_raw(&self, source: *const u8, size: usize) -> Option<*mut u8> {
        bytes_fit(size, N);
        let place = self.0.typed().take()?.as_ptr().cast::<u8>();
        // SAFETY: as the caller says; the slot is ours, empty, and no smaller.
        unsafe { source.copy_to_nonoverlapping(place, size) };
        Some(place)
    }

    /// Takes a slot. `None`: no slot is free.
    #[inline(always)]
    pub(super) fn reserve(&self) -> Option<ByteClaim<'_>> {
        Some(ByteClaim {
            place: self.0.typed().take()?.cast(),
            store: self.0.store(),
            slot_size: N,
        })
    }
}
