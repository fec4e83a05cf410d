//! Going from value to value of a [`LocalHandleMap`](super::LocalHandleMap).

use core::ptr::NonNull;

use super::slot::Slot;

/// The slots that have a value, by place. They are counted, so a vacant slot costs one branch, no
/// bound is compared with, and what is vacant behind the last value is not looked at.
///
/// As free as a raw pointer: who has it says for how long, who else may look, and from which thread.
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
    ///
    /// # Safety
    /// At least `count` of the slots there have a value, and slots that `next` has not come to stay
    /// as they are.
    #[inline(always)]
    pub unsafe fn new(slots: NonNull<Slot<T>>, count: u32) -> Self {
        Self {
            next: slots,
            ordinal: 0,
            left: count,
        }
    }

    /// Those still to come.
    pub fn left(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }

    /// The next with a value, its ordinal, and its generation.
    #[inline(always)]
    pub fn next(&mut self) -> Option<(NonNull<Slot<T>>, u32, u32)> {
        self.left = self.left.checked_sub(1)?;
        loop {
            let (slot, ordinal) = (self.next, self.ordinal);
            // SAFETY: a slot with a value is still to come, so this one is there.
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
