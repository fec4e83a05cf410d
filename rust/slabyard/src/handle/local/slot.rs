//! One slot of a [`LocalHandleMap`](super::LocalHandleMap).

use core::mem::{needs_drop, ManuallyDrop};
use core::ptr::NonNull;

use super::NONE;

/// The content of a vacant slot.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// The next vacant slot, or [`NONE`].
    pub next: u32,
    /// The generation of the next value; 0: the slot is retired or in use by an entry.
    pub generation: u32,
}

impl Link {
    /// The link of a slot that is in no list.
    pub const RETIRED: Self = Self {
        next: NONE,
        generation: 0,
    };

    /// The link of a slot whose value had this generation; `next` was the newest vacant slot.
    #[inline(always)]
    pub fn after(generation: u32, next: u32) -> Self {
        Self {
            next,
            generation: generation.wrapping_add(1),
        }
    }

    #[inline(always)]
    pub fn is_retired(&self) -> bool {
        self.generation == 0
    }
}

union Content<T> {
    value: ManuallyDrop<T>,
    link: Link,
}

/// A value with its generation, or a link with generation 0.
pub(crate) struct Slot<T> {
    content: Content<T>,
    generation: u32,
}

impl<T> Slot<T> {
    #[inline(always)]
    pub fn with(value: T, generation: u32) -> Self {
        debug_assert!(generation != 0);
        Self {
            content: Content {
                value: ManuallyDrop::new(value),
            },
            generation,
        }
    }

    pub fn vacant(link: Link) -> Self {
        Self {
            content: Content { link },
            generation: 0,
        }
    }

    /// The generation of its value; 0: there is none.
    #[inline(always)]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The generation of a slot to which no reference is made.
    ///
    /// # Safety
    /// The slot exists.
    #[inline(always)]
    pub unsafe fn generation_at(slot: NonNull<Self>) -> u32 {
        // SAFETY: as the caller says.
        unsafe { (*slot.as_ptr()).generation }
    }

    #[inline(always)]
    pub fn is_vacant(&self) -> bool {
        self.generation == 0
    }

    /// # Safety
    /// The generation is not 0.
    #[inline(always)]
    pub unsafe fn value(&self) -> &T {
        debug_assert!(!self.is_vacant());
        // SAFETY: as the caller says.
        unsafe { &self.content.value }
    }

    /// # Safety
    /// The generation is not 0.
    #[inline(always)]
    pub unsafe fn value_mut(&mut self) -> &mut T {
        debug_assert!(!self.is_vacant());
        // SAFETY: as the caller says.
        unsafe { &mut self.content.value }
    }

    /// The link of a vacant slot.
    #[inline(always)]
    pub fn link(&self) -> Option<Link> {
        if !self.is_vacant() {
            return None;
        }
        // SAFETY: a slot of generation 0 has a link.
        Some(unsafe { self.content.link })
    }

    /// Sets the link of a vacant slot.
    pub fn set_link(&mut self, link: Link) {
        assert!(self.is_vacant());
        self.content.link = link;
    }

    /// Puts a value into a vacant slot, and returns the slot's link.
    ///
    /// # Safety
    /// The generation is 0, and the generation of the link is not.
    #[inline(always)]
    pub unsafe fn fill(&mut self, value: T) -> Link {
        debug_assert!(self.is_vacant());
        // SAFETY: as the caller says.
        let link = unsafe { self.content.link };
        self.content.value = ManuallyDrop::new(value);
        self.generation = link.generation;
        link
    }

    /// Moves the value out, and sets the link.
    ///
    /// # Safety
    /// The generation is not 0.
    #[inline(always)]
    pub unsafe fn empty(&mut self, link: Link) -> T {
        debug_assert!(!self.is_vacant());
        // SAFETY: as the caller says; the value is no longer in the slot.
        let value = unsafe { ManuallyDrop::take(&mut self.content.value) };
        self.generation = 0;
        self.content.link = link;
        value
    }

    /// Pointers to the value and to the generation, for code that makes references to several
    /// slots. No reference to the slot itself is made.
    ///
    /// # Safety
    /// The slot exists.
    #[inline(always)]
    pub unsafe fn parts(slot: *mut Self) -> (*mut T, *mut u32) {
        // SAFETY: addresses are computed, nothing is read.
        unsafe {
            let value = &raw mut (*slot).content.value;
            (value.cast(), &raw mut (*slot).generation)
        }
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        if needs_drop::<T>() && !self.is_vacant() {
            // SAFETY: there is a value, and it is not used again.
            unsafe { ManuallyDrop::drop(&mut self.content.value) }
        }
    }
}

impl<T: Clone> Clone for Slot<T> {
    fn clone(&self) -> Self {
        match self.link() {
            Some(link) => Self::vacant(link),
            // SAFETY: it is not vacant.
            None => Self::with(unsafe { self.value() }.clone(), self.generation),
        }
    }
}
