//! Slabs of typed values: the part that bounded and unbounded slabs share.
//!
//! Above: [`crate::bounded`] and [`crate::unbounded`], which name the two kinds; byte slabs and slabs
//! of counted values, which each have one of these. Below: [`TypedStore`], where slots come from.

use crate::shared::{PinnedSlot, Slot};
use core::fmt;
use core::ptr::NonNull;
use slabyard::parts::{Kind, Store, Taken, TypedStore};

/// Slots for values of one type: [`bounded::Slab`](crate::bounded::Slab) or
/// [`unbounded::Slab`](crate::unbounded::Slab).
///
/// # Safety
/// Creating a slab is unsafe, and using it is safe. The code that creates it promises:
///
/// - Each slot is given back to the slab that it came from.
/// - Each slot is given back before the slab is dropped. If one is not, a debug build panics at the
///   drop. A value that is left in a slot is not dropped, and the slab then keeps its memory, so
///   that the slot can still be read.
///
/// A slab may be sent to another thread if its values may. Its slots stay on the thread where they
/// were allocated.
///
/// ```
/// # use nexus_slab_2 as nexus_slab;
/// fn moves<T: Send>() {}
/// moves::<nexus_slab::bounded::Slab<u64>>();
/// moves::<nexus_slab::unbounded::Slab<u64>>();
/// ```
///
/// ```compile_fail,E0277
/// # use nexus_slab_2 as nexus_slab;
/// fn is_shared<T: Sync>() {}
/// is_shared::<nexus_slab::bounded::Slab<u64>>();
/// ```
pub struct Slab<T, K: Kind>(TypedStore<T, K>);

// SAFETY: the list of free slots, the counts and the free slots are reached only through the slab,
// which one thread at a time has, as a pool of the C core requires. A raw handle, which cannot
// leave its thread, reaches only its own value.
unsafe impl<T: Send, K: Kind> Send for Slab<T, K> {}

impl<T, K: Kind> Slab<T, K> {
    /// Creates a slab without memory, whose chunks will have `slots` slots each, at least one.
    #[inline]
    pub(crate) fn of_chunks(slots: usize) -> Self {
        let slab = Slab(TypedStore::new());
        slab.store().initialize(slots);
        slab
    }

    /// Adds a chunk.
    ///
    /// # Panics
    /// If there is no memory.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn add_chunk(&self) {
        if !self.0.add_chunk() {
            self.no_memory();
        }
    }

    #[inline(always)]
    #[track_caller]
    pub(crate) fn no_memory(&self) -> ! {
        no_memory_for(self.store().chunk_slots())
    }

    /// The slots, with their type.
    #[inline(always)]
    pub(crate) fn typed(&self) -> &TypedStore<T, K> {
        &self.0
    }

    /// The slots, without their type.
    #[inline(always)]
    pub(crate) fn store(&self) -> &Store {
        self.0.store()
    }

    /// The number of slots of all chunks, taken and free.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.store().capacity()
    }

    /// Whether the address is in a slot of this slab.
    #[doc(hidden)]
    pub fn contains_ptr(&self, address: *const ()) -> bool {
        self.store().contains(address as usize)
    }

    /// Drops the value and frees the slot, also if the drop panics.
    ///
    /// # Panics
    /// In a debug build, if the slot belongs to another slab.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn free(&self, slot: Slot<T>) {
        let place = slot.into_place();
        self.is_own(place);
        // SAFETY: the code that created the slab promised that the slot belongs to it. Its handle
        // is gone.
        unsafe { self.0.free(place) }
    }

    /// Frees the slot and returns the value.
    ///
    /// # Panics
    /// In a debug build, if the slot belongs to another slab.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn take(&self, slot: Slot<T>) -> T {
        let place = slot.into_place();
        self.is_own(place);
        // SAFETY: as in `free`.
        unsafe { self.0.remove(place) }
    }

    /// Drops a pinned value in place and frees the slot, also if the drop panics.
    ///
    /// # Panics
    /// In a debug build, if the slot belongs to another slab.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn free_pinned(&self, slot: PinnedSlot<T>) {
        let place = slot.into_place();
        self.is_own(place);
        // SAFETY: as in `free`; the value is not moved.
        unsafe { self.0.free(place) }
    }

    /// Panics in a debug build if the address is in no slot of this slab.
    #[inline(always)]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn is_own<U>(&self, slot: NonNull<U>) {
        debug_assert!(
            self.contains_ptr(slot.as_ptr().cast()),
            "slot was not allocated from this slab"
        );
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn no_memory_for(slots: usize) -> ! {
    panic!("there is no memory for a chunk of {slots} slots")
}

impl<T, K: Kind> fmt::Debug for Slab<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab")
            .field("capacity", &self.capacity())
            .finish()
    }
}

// This drop exists in every build, so the type of the values must outlive the slab in every build:
// a program compiles either in all builds or in none.
impl<T, K: Kind> Drop for Slab<T, K> {
    #[inline]
    fn drop(&mut self) {
        #[cfg(debug_assertions)]
        self.is_empty();
    }
}

#[cfg(debug_assertions)]
impl<T, K: Kind> Slab<T, K> {
    /// Panics if a slot is taken, unless the thread panics already.
    fn is_empty(&self) {
        #[cfg(feature = "std")]
        if std::thread::panicking() {
            return;
        }
        let taken = self.store().taken();
        assert!(
            taken == 0,
            "Slab<{}> dropped with {taken} occupied slot(s): give them back first, or forget the \
             slab, which then stays",
            core::any::type_name::<T>()
        );
    }
}

/// A slot that is taken and has no value yet. Dropping it frees the slot.
pub struct Claim<'a, T, K: Kind>(pub(crate) Taken<'a, T, K>);

impl<T, K: Kind> Claim<'_, T, K> {
    /// Puts a value into the slot.
    #[inline]
    pub fn write(self, value: T) -> Slot<T> {
        // SAFETY: the slot holds the value, and has no other handle.
        unsafe { Slot::of(self.0.fill(value)) }
    }
}

impl<T, K: Kind> fmt::Debug for Claim<'_, T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slot = self.0.slot();
        let mut shown = f.debug_struct("Claim");
        shown.field("slot_ptr", &slot.as_ptr());
        if K::GROWS {
            let store = self.0.slab().store();
            let chunk = store.chunk_of(slot.as_ptr() as usize).unwrap_or(0);
            shown.field("chunk_idx", &chunk);
        }
        shown.finish()
    }
}
