//! Where the slots of a slab come from, without their type: chunks of a fixed number of slots.
//!
//! Above: [`crate::slab`]. Below: a pool of the C core.
//!
//! The free slots are in a list whose head lies in the store itself, so to take a slot is two loads
//! and a store, and to give it back a load and two stores. A chunk comes from the pool as a whole,
//! and is put into the list in order of address.
//!
//! With debug assertions, or the feature `checked`, the list stays empty: each slot is taken from
//! the pool and given back to it by a call, and the pool reports misuse (`SLABYARD=check`).
//!
//! What always holds:
//!   - Each slot of the list is free, and begins with the address of the next one, or null.
//!   - `out` is the number of slots that are taken or in the list, and `out <= capacity()`.
//!   - The pool is destroyed only when no slot is taken: a raw slot has no lifetime, and may be read
//!     after its slab.
//!
//! What is compiled into programs does not pass the address of the store on, but for a call that is
//! to fill the list: so the head of the list may be kept in a register.

use slabyard::parts::{RawPool, Shape, CALLS};
use std::cell::Cell;
use std::ptr::{null_mut, NonNull};

/// How a free slot begins.
pub(crate) struct Free {
    next: *mut Free,
}

/// Chunks of slots, some of which are free.
pub(crate) struct Store {
    free: Cell<*mut Free>,
    pool: Cell<Option<RawPool>>,
    out: Cell<usize>,
    /// Slots of a chunk; 0 until the store is initialized.
    chunk_slots: Cell<usize>,
    chunks: Cell<usize>,
}

impl Store {
    pub(crate) const fn new() -> Self {
        Store {
            free: Cell::new(null_mut()),
            pool: Cell::new(None),
            out: Cell::new(0),
            chunk_slots: Cell::new(0),
            chunks: Cell::new(0),
        }
    }

    #[inline]
    pub(crate) fn chunk_slots(&self) -> usize {
        self.chunk_slots.get()
    }

    #[inline]
    pub(crate) fn chunks(&self) -> usize {
        self.chunks.get()
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.chunks.get() * self.chunk_slots.get()
    }

    #[inline]
    pub(crate) fn is_initialized(&self) -> bool {
        self.chunk_slots.get() > 0
    }

    /// Chunks are to have so many slots.
    #[inline]
    pub(crate) fn initialize(&self, chunk_slots: usize) {
        assert!(!self.is_initialized(), "Slab already initialized");
        self.chunk_slots.set(chunk_slots);
    }

    /// The first slot of the list, or null.
    #[inline(always)]
    pub(crate) fn head(&self) -> *mut Free {
        self.free.get()
    }

    /// The list behind a slot of the list.
    ///
    /// # Safety
    /// It is such a slot.
    #[inline(always)]
    pub(crate) unsafe fn behind(slot: *mut Free) -> *mut Free {
        // SAFETY: it begins with the address of the next one.
        unsafe { (*slot).next }
    }

    /// Takes the first slot.
    ///
    /// # Safety
    /// The list is the one behind the head, and nothing was taken or given back since.
    #[inline(always)]
    pub(crate) unsafe fn set_list(&self, list: *mut Free) {
        self.free.set(list);
    }

    /// A slot of the list.
    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<NonNull<Free>> {
        let slot = NonNull::new(self.free.get())?;
        // SAFETY: it is the first slot of the list.
        self.free.set(unsafe { Self::behind(slot.as_ptr()) });
        Some(slot)
    }

    /// A slot where the list is empty. `None`: the store is not initialized, there is no memory, or
    /// the pool is bounded and no slot of it is free.
    #[cold]
    #[inline(never)]
    pub(crate) fn refill(&self, shape: fn(usize) -> Option<Shape>) -> Option<NonNull<Free>> {
        if !self.is_initialized() {
            return None;
        }
        if !CALLS {
            return self.add_chunk(shape).then(|| self.pop())?;
        }
        let slot = self.take(self.pool_or_new(shape)?)?;
        if self.out.get() > self.capacity() {
            self.chunks.set(self.chunks.get() + 1);
        }
        Some(slot)
    }

    /// Gives a slot back.
    ///
    /// # Safety
    /// The slot is one of this store, and not used again.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, slot: *mut Free) {
        if CALLS {
            // SAFETY: as the caller says.
            return unsafe { self.push_by_call(slot) };
        }
        let newest = self.free.get();
        if slot == newest {
            return pushed_twice(self.pool.get(), slot);
        }
        // SAFETY: the slot is free from here on.
        unsafe { (*slot).next = newest };
        self.free.set(slot);
    }

    /// # Safety
    /// As [`Store::push`].
    #[inline(never)]
    unsafe fn push_by_call(&self, slot: *mut Free) {
        if let (Some(pool), Some(slot)) = (self.pool.get(), NonNull::new(slot)) {
            // SAFETY: as the caller says.
            unsafe { self.give(pool, slot) }
        }
    }

    /// A slot of the pool.
    #[inline]
    fn take(&self, pool: RawPool) -> Option<NonNull<Free>> {
        // SAFETY: the pool exists, and is this thread's.
        let slot = unsafe { pool.pop().or_else(|| pool.grow()) }?;
        self.out.set(self.out.get() + 1);
        Some(slot.cast())
    }

    /// Gives a slot back to the pool.
    ///
    /// # Safety
    /// The slot is one of the pool, and not used again.
    #[inline]
    unsafe fn give(&self, pool: RawPool, slot: NonNull<Free>) {
        // A double free is for the pool to report.
        self.out.set(self.out.get().saturating_sub(1));
        // SAFETY: as the caller says; the pool exists, and is this thread's.
        unsafe { pool.push(slot.cast()) }
    }

    /// The pool, which is made with the first chunk. `None`: there is no memory.
    #[inline]
    fn pool_or_new(&self, shape: fn(usize) -> Option<Shape>) -> Option<RawPool> {
        if self.pool.get().is_none() {
            let shape = shape(self.chunk_slots.get())?;
            self.pool.set(RawPool::create(&shape));
        }
        self.pool.get()
    }

    /// Puts the slots of another chunk before the list, the first of them on top. False, and nothing
    /// has changed: there is no memory.
    #[inline]
    pub(crate) fn add_chunk(&self, shape: fn(usize) -> Option<Shape>) -> bool {
        let Some(pool) = self.pool_or_new(shape) else {
            return false;
        };
        if !CALLS && !self.add_slots(pool) {
            return false;
        }
        self.chunks.set(self.chunks.get() + 1);
        true
    }

    #[inline]
    fn add_slots(&self, pool: RawPool) -> bool {
        let before = self.free.replace(null_mut());
        let mut last: Option<NonNull<Free>> = None;
        for _ in 0..self.chunk_slots.get() {
            let Some(slot) = self.take(pool) else {
                self.give_list(pool);
                self.free.set(before);
                return false;
            };
            // SAFETY: both slots are ours, and free.
            unsafe {
                (*slot.as_ptr()).next = null_mut();
                match last {
                    Some(last) => (*last.as_ptr()).next = slot.as_ptr(),
                    None => self.free.set(slot.as_ptr()),
                }
            }
            last = Some(slot);
        }
        if let Some(last) = last {
            // SAFETY: the last slot of the new ones.
            unsafe { (*last.as_ptr()).next = before };
        }
        true
    }

    /// Gives the slots of the list back to the pool.
    #[inline]
    fn give_list(&self, pool: RawPool) {
        while let Some(slot) = self.pop() {
            // SAFETY: a slot of the list is one of the pool, and free.
            unsafe { self.give(pool, slot) }
        }
    }

    /// Slots that are taken. It walks through the list.
    #[inline]
    fn taken(&self) -> usize {
        let next = |slot: &NonNull<Free>| {
            // SAFETY: a slot of the list begins with the address of the next one.
            NonNull::new(unsafe { (*slot.as_ptr()).next })
        };
        let free = std::iter::successors(NonNull::new(self.free.get()), next);
        // After a double free the list may be a circle.
        self.out.get() - free.take(self.out.get()).count()
    }

    /// Gives all memory back if no slot is taken, and whether it did. Then the store is as new.
    #[inline]
    pub(crate) fn release(&self) -> bool {
        if self.taken() > 0 {
            return false;
        }
        self.free.set(null_mut());
        self.out.set(0);
        self.chunks.set(0);
        self.chunk_slots.set(0);
        if let Some(pool) = self.pool.take() {
            // SAFETY: no slot is taken, and the store does not know the pool any more.
            unsafe { pool.destroy() }
        }
        true
    }

    /// The memory stays until the process ends.
    #[inline]
    pub(crate) fn keep(&self) {
        if let Some(pool) = self.pool.take() {
            // SAFETY: the pool exists, and the store does not know it any more.
            unsafe { pool.keep() }
        }
    }
}

/// Reports that the slot that was given back last is given back again.
#[cold]
#[inline(never)]
fn pushed_twice(pool: Option<RawPool>, slot: *mut Free) {
    if let (Some(pool), Some(slot)) = (pool, NonNull::new(slot)) {
        // SAFETY: it is the pool of a store, so it exists, and is this thread's.
        unsafe { pool.given_twice(slot.cast()) }
    }
}

impl Drop for Store {
    /// Gives all memory back if no slot is taken.
    #[inline]
    fn drop(&mut self) {
        if !self.release() {
            self.keep();
        }
    }
}
