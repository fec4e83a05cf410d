//! Where the slots of a slab come from, without their type: chunks of a fixed number of slots.
//!
//! Above: [`TypedStore`](super::TypedStore). Below: a pool of the C core.
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
//!   - `runs` has each slot that has ever been in the list or, where each slot is a call, was taken.
//!
//! What is compiled into programs does not pass the address of the store on, but for a call that is
//! to fill the list: so the head of the list may be kept in a register.

use crate::raw::pool::{RawPool, Shape, CALLS};
use alloc::vec::Vec;
use core::cell::Cell;
use core::fmt;
use core::ptr::{null_mut, NonNull};

/// How a free slot begins.
#[derive(Debug)]
pub struct Free {
    next: *mut Free,
}

/// Slots side by side.
#[derive(Clone, Copy)]
struct Run {
    start: usize,
    end: usize,
    /// Slots that were counted before these.
    before: usize,
}

/// Where slots lie, in order of address. Extents of a pool double, so the runs of a pool without
/// checks are few.
struct Runs {
    sorted: Vec<Run>,
    slots: usize,
}

impl Runs {
    const fn new() -> Self {
        Runs {
            sorted: Vec::new(),
            slots: 0,
        }
    }

    /// The place of the first run that begins above the address.
    fn above(&self, address: usize) -> usize {
        self.sorted.partition_point(|run| run.start <= address)
    }

    /// The run that the address is in.
    fn run_of(&self, address: usize) -> Option<Run> {
        let run = *self.sorted.get(self.above(address).checked_sub(1)?)?;
        (address < run.end).then_some(run)
    }

    /// Counts slots from `start` to `end`, of so many bytes each, that were not counted before.
    fn add(&mut self, start: usize, end: usize, slot_bytes: usize) {
        let before = self.slots;
        self.slots += (end - start) / slot_bytes;
        let at = self.above(start);
        if let Some(run) = at.checked_sub(1).map(|at| &mut self.sorted[at]) {
            if run.end == start && run.before + (run.end - run.start) / slot_bytes == before {
                run.end = end;
                return;
            }
        }
        self.sorted.insert(at, Run { start, end, before });
    }
}

/// Chunks of slots, some of which are free.
pub struct Store {
    free: Cell<*mut Free>,
    pool: Cell<Option<RawPool>>,
    out: Cell<usize>,
    /// Slots of a chunk; 0 until the store is initialized.
    chunk_slots: Cell<usize>,
    chunks: Cell<usize>,
    runs: Cell<Runs>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("capacity", &self.capacity())
            .finish_non_exhaustive()
    }
}

impl Store {
    /// A store without memory, to be initialized.
    #[allow(clippy::new_without_default)] // only for constants and slabs
    pub const fn new() -> Self {
        Store {
            free: Cell::new(null_mut()),
            pool: Cell::new(None),
            out: Cell::new(0),
            chunk_slots: Cell::new(0),
            chunks: Cell::new(0),
            runs: Cell::new(Runs::new()),
        }
    }

    /// Slots of a chunk; 0 until the store is initialized.
    #[inline]
    pub fn chunk_slots(&self) -> usize {
        self.chunk_slots.get()
    }

    /// Chunks that there are.
    #[inline]
    pub fn chunks(&self) -> usize {
        self.chunks.get()
    }

    /// Slots of all chunks, taken and free.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.chunks.get() * self.chunk_slots.get()
    }

    /// Is it initialized?
    #[inline]
    pub fn is_initialized(&self) -> bool {
        self.chunk_slots.get() > 0
    }

    /// Chunks are to have so many slots.
    #[inline]
    pub fn initialize(&self, chunk_slots: usize) {
        assert!(!self.is_initialized(), "Slab already initialized");
        self.chunk_slots.set(chunk_slots);
    }

    /// The first slot of the list, or null.
    #[inline(always)]
    pub fn head(&self) -> *mut Free {
        self.free.get()
    }

    /// The list behind a slot of the list.
    ///
    /// # Safety
    /// It is such a slot.
    #[inline(always)]
    pub unsafe fn behind(slot: *mut Free) -> *mut Free {
        // SAFETY: it begins with the address of the next one.
        unsafe { (*slot).next }
    }

    /// Takes the first slot.
    ///
    /// # Safety
    /// The list is the one behind the head, and nothing was taken or given back since.
    #[inline(always)]
    pub unsafe fn set_list(&self, list: *mut Free) {
        self.free.set(list);
    }

    /// A slot of the list.
    #[inline(always)]
    pub fn pop(&self) -> Option<NonNull<Free>> {
        let slot = NonNull::new(self.free.get())?;
        // SAFETY: it is the first slot of the list.
        self.free.set(unsafe { Self::behind(slot.as_ptr()) });
        Some(slot)
    }

    /// A slot where the list is empty. `None`: the store is not initialized, there is no memory, or
    /// the pool is bounded and no slot of it is free.
    #[cold]
    #[inline(never)]
    pub fn refill(&self, shape: fn(usize) -> Option<Shape>) -> Option<NonNull<Free>> {
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
        let (address, bytes) = (slot.as_ptr() as usize, self.slot_bytes()?);
        self.with_runs(|runs| {
            if runs.run_of(address).is_none() {
                runs.add(address, address + bytes, bytes);
            }
        });
        Some(slot)
    }

    /// Gives a slot back.
    ///
    /// # Safety
    /// The slot is one of this store, and not used again.
    #[inline(always)]
    pub unsafe fn push(&self, slot: *mut Free) {
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

    /// Calls a function with the runs.
    fn with_runs<R>(&self, function: impl FnOnce(&mut Runs) -> R) -> R {
        let mut runs = self.runs.replace(Runs::new());
        let result = function(&mut runs);
        self.runs.set(runs);
        result
    }

    /// Is the address in a slot?
    pub fn contains(&self, address: usize) -> bool {
        self.with_runs(|runs| runs.run_of(address).is_some())
    }

    /// The number of the chunk that the address is in.
    pub fn chunk_of(&self, address: usize) -> Option<usize> {
        let run = self.with_runs(|runs| runs.run_of(address))?;
        let slot = run.before + (address - run.start) / self.slot_bytes()?;
        // Where each slot is a call, the pool may hold slots back and have carved more of them.
        Some((slot / self.chunk_slots.get()).min(self.chunks.get().saturating_sub(1)))
    }

    /// Bytes from slot to slot.
    fn slot_bytes(&self) -> Option<usize> {
        // SAFETY: the pool exists, and is this thread's.
        Some(unsafe { self.pool.get()?.slot_size() })
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
    pub fn add_chunk(&self, shape: fn(usize) -> Option<Shape>) -> bool {
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
        // SAFETY: the pool exists, and is this thread's.
        let slot_bytes = unsafe { pool.slot_size() };
        let before = self.free.replace(null_mut());
        let mut last: Option<NonNull<Free>> = None;
        let mut fresh: Vec<(usize, usize)> = Vec::new();
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
            let start = slot.as_ptr() as usize;
            match fresh.last_mut() {
                Some((_, end)) if *end == start => *end += slot_bytes,
                _ => fresh.push((start, start + slot_bytes)),
            }
        }
        self.with_runs(|runs| {
            for (start, end) in fresh {
                runs.add(start, end, slot_bytes);
            }
        });
        if let Some(last) = last {
            // SAFETY: the last slot of the new ones.
            unsafe { (*last.as_ptr()).next = before };
        }
        true
    }

    /// The slots of the list.
    fn list(&self) -> impl Iterator<Item = NonNull<Free>> {
        let next = |slot: &NonNull<Free>| {
            // SAFETY: a slot of the list begins with the address of the next one.
            NonNull::new(unsafe { (*slot.as_ptr()).next })
        };
        core::iter::successors(NonNull::new(self.free.get()), next)
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
    pub fn taken(&self) -> usize {
        // After a double free the list may be a circle.
        self.out.get() - self.list().take(self.out.get()).count()
    }

    /// Gives all memory back if no slot is taken, and whether it did. Then the store is as new.
    #[inline]
    pub fn release(&self) -> bool {
        if self.taken() > 0 {
            return false;
        }
        self.free.set(null_mut());
        self.out.set(0);
        self.chunks.set(0);
        self.chunk_slots.set(0);
        self.runs.set(Runs::new());
        if let Some(pool) = self.pool.take() {
            // SAFETY: no slot is taken, and the store does not know the pool any more.
            unsafe { pool.destroy() }
        }
        true
    }

    /// The memory stays until the process ends.
    #[inline]
    pub fn keep(&self) {
        self.runs.set(Runs::new());
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
