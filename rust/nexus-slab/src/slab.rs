//! Slabs: the slots of a [`Store`], with the type of their values.
//!
//! Above: [`crate::bounded`] and [`crate::unbounded`], which name the two kinds, and
//! [`crate::local`], which keeps one of either kind for a thread. A bounded slab is one chunk; an
//! unbounded one adds a chunk when no slot is free.

use crate::shared::{Slot, SlotCell};
use crate::store::Store;
use slabyard::parts::{Name, Shape, CALLS};
use std::alloc::Layout;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// Bytes that the pool itself takes of its first chunk, at most.
const POOL_BYTES: usize = 192;

/// Whether a slab adds chunks. There are two kinds.
pub trait Kind: 'static {
    #[doc(hidden)]
    const GROWS: bool;
}

/// Slots for one thread: [`bounded::Slab`](crate::bounded::Slab) or
/// [`unbounded::Slab`](crate::unbounded::Slab).
///
/// Dropped, it gives its memory back if no slot is taken. If one is, its [`Slot`] may be read later,
/// so the memory stays until the process ends.
pub struct Slab<T, K: Kind> {
    /// Without the type: what a slab does with its memory, when it is dropped too, does not look at
    /// values. So these may borrow from what is dropped before the slab.
    store: Store,
    holds: PhantomData<fn(T) -> T>,
    kind: PhantomData<K>,
}

impl<T, K: Kind> Slab<T, K> {
    /// A slab without memory. It has to be initialized before it is used.
    #[inline]
    pub const fn new() -> Self {
        Slab {
            store: Store::new(),
            holds: PhantomData,
            kind: PhantomData,
        }
    }

    /// Is it initialized?
    #[inline]
    pub fn is_initialized(&self) -> bool {
        self.store.is_initialized()
    }

    /// Slots of all chunks, taken and free.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.store.capacity()
    }

    /// Drops the value and frees the slot, also when the drop panics.
    ///
    /// # Safety
    /// The slot was allocated from this slab, and there is no reference to the value.
    #[inline]
    pub unsafe fn free(&self, slot: Slot<T>) {
        let cell = slot.into_cell();
        let _taken = Taken { slab: self, cell };
        // SAFETY: as the caller says; the slot holds a value, which nobody uses again.
        unsafe { cell.cast::<T>().as_ptr().drop_in_place() }
    }

    /// Frees the slot and returns the value.
    ///
    /// # Safety
    /// The slot was allocated from this slab, and there is no reference to the value.
    #[inline]
    pub unsafe fn take(&self, slot: Slot<T>) -> T {
        let cell = slot.as_ptr();
        // SAFETY: as the caller says; the slot holds a value, which is moved out.
        unsafe {
            let value = cell.cast::<T>().read();
            self.free_ptr(cell);
            value
        }
    }

    /// Frees a slot that holds no value.
    ///
    /// # Safety
    /// The slot was allocated or claimed from this slab, and is not used again.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn free_ptr(&self, cell: *mut SlotCell<T>) {
        // SAFETY: as the caller says.
        unsafe { self.store.push(cell.cast()) }
    }

    /// Takes a slot, which goes back if nothing is put in.
    #[inline]
    pub(crate) fn claim_cell(&self) -> Option<Claim<'_, T, K>> {
        let cell = self.take_cell()?;
        Some(Claim(Taken { slab: self, cell }))
    }

    /// A slot, content undefined. `None`: the slab is bounded and full or not initialized, or there
    /// is no memory.
    #[inline(always)]
    pub(crate) fn take_cell(&self) -> Option<NonNull<SlotCell<T>>> {
        match self.store.pop() {
            Some(slot) => Some(slot.cast()),
            None if CALLS || K::GROWS => self.store.refill(Self::shape).map(NonNull::cast),
            None => None,
        }
    }

    /// The store of the slab, to be initialized.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Adds a chunk. False: there is no memory.
    pub(crate) fn add_chunk(&self) -> bool {
        self.store.add_chunk(Self::shape)
    }

    /// The pool of a slab whose chunks have so many slots. `None`: that is more than there is.
    fn shape(chunk_slots: usize) -> Option<Shape> {
        let slot = Layout::new::<SlotCell<T>>();
        let chunk_bytes = slot
            .size()
            .checked_mul(chunk_slots)?
            .checked_add(POOL_BYTES)?;
        (chunk_bytes <= isize::MAX as usize).then(|| Shape {
            slot,
            capacity: if K::GROWS { 0 } else { chunk_slots },
            chunk_bytes,
            prefault: true,
            huge: false,
            name: Name::new(std::any::type_name::<T>()),
        })
    }
}

impl<T, K: Kind> Default for Slab<T, K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, K: Kind> fmt::Debug for Slab<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab")
            .field("capacity", &self.capacity())
            .finish()
    }
}

/// A slot that is taken and holds no value. It goes back when this is dropped, in a panic too.
struct Taken<'a, T, K: Kind> {
    slab: &'a Slab<T, K>,
    cell: NonNull<SlotCell<T>>,
}

impl<T, K: Kind> Drop for Taken<'_, T, K> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the slot is one of the slab, and nobody else's.
        unsafe { self.slab.free_ptr(self.cell.as_ptr()) }
    }
}

/// A slot that is taken and has no value yet. Dropped, it goes back to its slab.
#[must_use = "a slot that is dropped goes back at once"]
pub struct Claim<'a, T, K: Kind>(Taken<'a, T, K>);

impl<T, K: Kind> Claim<'_, T, K> {
    /// Puts the value in.
    #[inline]
    pub fn write(self, value: T) -> Slot<T> {
        let cell = ManuallyDrop::new(self).0.cell;
        // SAFETY: the slot is ours, and empty.
        unsafe { Slot::fill(cell, value) }
    }
}
