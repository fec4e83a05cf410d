//! Walks the values of a [`LocalHandleMap`](super::LocalHandleMap).

use core::ptr::NonNull;

use super::slot::Slot;

/// Walks the slots that have a value, in the order of places. It counts the values that are left.
/// So a vacant slot costs one branch, there is no compare with the end, and vacant slots behind the
/// last value are not read.
///
/// It has no lifetime, like a raw pointer: its user makes sure that the slots stay, and who may
/// access them.
pub(super) struct Live<T> {
    next: NonNull<Slot<T>>,
    ordinal: u32,
    left: u32,
}

impl<T> Clone for Live<T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<T> Live<T> {
    /// From the first slot on.
    /// # Safety
    /// At least `count` of the slots from this one on have a value. Slots that `next` has not
    /// reached yet are not changed.
    #[inline(always)]
    pub unsafe fn new(slots: NonNull<Slot<T>>, count: u32) -> Self {
        Self {
            next: slots,
            ordinal: 0,
            left: count,
        }
    }

    /// The number of values that are left.
    pub fn left(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }

    /// The next slot with a value, its ordinal, and its generation.
    #[inline(always)]
    pub fn next(&mut self) -> Option<(NonNull<Slot<T>>, u32, u32)> {
        self.left = self.left.checked_sub(1)?;
        loop {
            let (slot, ordinal) = (self.next, self.ordinal);
            // SAFETY: a slot with a value is still left, so this slot exists.
            let generation = unsafe {
                self.next = slot.add(1);
                Slot::generation_at(slot)
            };
            self.ordinal = ordinal.wrapping_add(1);
            if generation != 0 {
                return Some((slot, ordinal, generation));
            }
        }
    }
}
