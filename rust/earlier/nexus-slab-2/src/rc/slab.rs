//! Slabs of counted values: the part that bounded and unbounded slabs share.

use super::{RcCell, RcSlot};
use crate::shared::Slot;
use crate::slab::Slab;
use core::marker::PhantomData;
use slabyard::parts::Kind;

/// Slots for values with several owners: [`rc::bounded::Slab`](crate::rc::bounded::Slab) or
/// [`rc::unbounded::Slab`](crate::rc::unbounded::Slab).
///
/// # Safety
/// Creating a slab is unsafe, and using it is safe. The code that creates it promises the same as
/// for a slab of values with [one owner](crate::bounded::Slab).
///
/// It cannot leave its thread, because its owners cannot.
///
/// ```compile_fail,E0277
/// # use nexus_slab_2 as nexus_slab;
/// fn moves<T: Send>() {}
/// moves::<nexus_slab::rc::bounded::Slab<u64>>();
/// ```
///
/// ```compile_fail,E0277
/// # use nexus_slab_2 as nexus_slab;
/// fn moves<T: Send>() {}
/// moves::<nexus_slab::rc::unbounded::Slab<u64>>();
/// ```
pub struct RcSlab<T, K: Kind> {
    pub(super) inner: Slab<RcCell<T>, K>,
    stays: PhantomData<*const ()>,
}

impl<T, K: Kind> RcSlab<T, K> {
    #[inline(always)]
    pub(super) fn of(inner: Slab<RcCell<T>, K>) -> Self {
        RcSlab {
            inner,
            stays: PhantomData,
        }
    }

    /// Makes the first owner of the value in a slot.
    #[inline(always)]
    pub(super) fn own(slot: Slot<RcCell<T>>) -> RcSlot<T> {
        // SAFETY: the cell counts one owner, and its handle is gone.
        unsafe { RcSlot::of(slot.into_place()) }
    }

    /// Removes an owner. After the last one the value is dropped and its slot freed, also if the
    /// drop panics.
    ///
    /// # Panics
    /// In a debug build, if the slot belongs to another slab.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn free(&self, owner: RcSlot<T>) {
        let left = owner.cell().leave();
        let cell = owner.into_cell();
        if left > 0 {
            return;
        }
        self.inner.is_own(cell);
        // SAFETY: as promised when the slab was created, the slot belongs to this slab. It has no
        // owner any more, so the value cannot be reached.
        unsafe {
            let _taken = self.inner.typed().guard(cell);
            let value = cell.as_ref().value_ptr();
            value.drop_in_place();
        }
    }

    /// The number of slots of all chunks, taken and free.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.inner.capacity()
    }

    /// Whether the address is in a slot of this slab.
    #[doc(hidden)]
    pub fn contains_ptr(&self, address: *const ()) -> bool {
        self.inner.contains_ptr(address)
    }
}
