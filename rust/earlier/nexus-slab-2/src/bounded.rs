//! Slabs of a fixed number of slots.

use crate::shared::{Full, Slot};
use crate::slab;
use slabyard::parts::Kind;

/// The kind of a bounded [`Slab`]: it has one chunk.
#[derive(Debug)]
pub enum Bounded {}

impl Kind for Bounded {
    const GROWS: bool = false;
    const TELLS: bool = false; // handles cannot be copied
}

/// A slab with a fixed number of slots. Its memory is allocated and touched when it is created.
///
/// ```
/// # use nexus_slab_2 as nexus_slab;
/// use nexus_slab::bounded::Slab;
///
/// // SAFETY: the slot is given back to this slab.
/// let slab = unsafe { Slab::with_capacity(1) };
/// let slot = slab.alloc(42u64);
/// assert_eq!(slab.try_alloc(43).unwrap_err().into_inner(), 43);
/// slab.free(slot);
/// ```
pub type Slab<T> = slab::Slab<T, Bounded>;

/// A slot of a [`Slab`] that is taken and has no value yet. Dropping it frees the slot.
pub type Claim<'a, T> = slab::Claim<'a, T, Bounded>;

impl<T> Slab<T> {
    /// Creates a slab with `capacity` slots.
    ///
    /// # Safety
    /// Slots are given back to this slab, before it is dropped: see [`Slab`].
    ///
    /// # Panics
    /// If `capacity` is 0, or there is not enough memory.
    #[inline]
    #[track_caller]
    pub unsafe fn with_capacity(capacity: usize) -> Self {
        assert!(capacity > 0, "capacity must be non-zero");
        let slab = Self::of_chunks(capacity);
        slab.add_chunk();
        slab
    }

    /// Puts the value into a slot.
    ///
    /// # Panics
    /// If the slab is full.
    #[inline]
    #[track_caller]
    pub fn alloc(&self, value: T) -> Slot<T> {
        match self.claim() {
            Some(claim) => claim.write(value),
            None => full("slab full"),
        }
    }

    /// Puts the value into a slot.
    ///
    /// # Errors
    /// [`Full`], with the value: the slab is full.
    #[inline]
    pub fn try_alloc(&self, value: T) -> Result<Slot<T>, Full<T>> {
        self.typed().insert(
            value,
            // SAFETY: the slot holds the value, and has no other handle.
            |slot| Ok(unsafe { Slot::of(slot) }),
            |value| Err(Full(value)),
        )
    }

    /// Claims a slot, in which a value can be written in place. `None`: the slab is full.
    #[inline]
    pub fn claim(&self) -> Option<Claim<'_, T>> {
        self.typed().take_guarded().map(slab::Claim)
    }
}

#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn full(what: &str) -> ! {
    panic!("{what}")
}
