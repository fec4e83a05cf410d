//! The untyped slots of a slab, in chunks with a fixed number of slots.
//!
//! Above: [`TypedStore`](super::TypedStore). Below: a pool of the C core.
//!
//! The free slots are in a list whose head lies in the store itself. So taking a slot is two loads
//! and a store, giving it back a load and two stores. The pool provides a whole chunk at a time,
//! whose slots are put into the list in the order of addresses.
//!
//! With debug assertions, or the feature `checked`, the list stays empty. Each slot is taken from
//! the pool and given back to it by a call, and the pool reports misuse (`SLABYARD=check`).
//!
//! Invariants:
//! - Each slot in the list is free, and begins with the address of the next one, or null.
//! - `out` is the number of slots that are taken or in the list, and `out <= capacity()`.
//! - The pool is destroyed only if no slot is taken: a raw slot has no lifetime, and may be read
//!   after its slab is dropped.
//! - `runs` contains each slot that has ever been in the list. If each slot is taken by a call,
//!   `runs` contains each slot that has ever been taken.
//!
//! Inlined code does not pass on the address of the store. The inlined drop of a slab is two loads
//! and a call. All data but the head of the list is in [`Chunks`], elsewhere in memory; calls get a
//! copy of the head and return it. So the compiler can keep the head of a slab that is a local
//! variable in a register.

use crate::raw::pool::{RawPool, Shape, CALLS};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;
use core::fmt;
use core::ptr::{null_mut, NonNull};

/// The beginning of a free slot.
#[derive(Debug)]
pub struct Free {
    next: *mut Free,
}

/// A run of adjacent slots.
#[derive(Clone, Copy)]
struct Run {
    start: usize,
    end: usize,
    /// The number of slots in earlier runs.
    before: usize,
}

/// The runs of slots, in the order of addresses. Extents of a pool double, so a pool without checks
/// has few runs.
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

    /// The index of the first run that begins above the address.
    fn above(&self, address: usize) -> usize {
        self.sorted.partition_point(|run| run.start <= address)
    }

    /// The run that contains the address.
    fn run_of(&self, address: usize) -> Option<Run> {
        let run = *self.sorted.get(self.above(address).checked_sub(1)?)?;
        (address < run.end).then_some(run)
    }

    /// Counts the slots of `slot_bytes` bytes from `start` to `end`, which were not counted before.
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
    /// Null until the store is initialized.
    chunks: Cell<*mut Chunks>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("capacity", &self.capacity())
            .finish_non_exhaustive()
    }
}

impl Store {
    /// A store without memory; `initialize` must be called.
    #[allow(clippy::new_without_default)] // only for constants and slabs
    #[inline]
    pub const fn new() -> Self {
        Store {
            free: Cell::new(null_mut()),
            chunks: Cell::new(null_mut()),
        }
    }

    /// The chunks, once the store is initialized.
    #[inline(always)]
    fn chunks_if_any(&self) -> Option<&Chunks> {
        // SAFETY: the store owns them. Only its calls change them, and these return no reference.
        unsafe { self.chunks.get().as_ref() }
    }

    /// The number of slots of a chunk; 0 until the store is initialized.
    #[inline]
    pub fn chunk_slots(&self) -> usize {
        self.chunks_if_any().map_or(0, |chunks| chunks.slots)
    }

    /// The number of chunks.
    #[inline]
    pub fn chunks(&self) -> usize {
        self.chunks_if_any().map_or(0, |chunks| chunks.count)
    }

    /// The number of slots of all chunks, taken and free.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.chunks_if_any().map_or(0, Chunks::capacity)
    }

    /// Whether the store is initialized.
    #[inline]
    pub fn is_initialized(&self) -> bool {
        !self.chunks.get().is_null()
    }

    /// Sets the number of slots of a chunk.
    #[inline]
    pub fn initialize(&self, chunk_slots: usize) {
        assert!(!self.is_initialized(), "Slab already initialized");
        self.chunks.set(Chunks::new(chunk_slots));
    }

    /// The first slot of the list, or null.
    #[inline(always)]
    pub fn head(&self) -> *mut Free {
        self.free.get()
    }

    /// The slot that follows a slot of the list, or null.
    ///
    /// # Safety
    /// The slot is in the list.
    #[inline(always)]
    pub unsafe fn behind(slot: *mut Free) -> *mut Free {
        // SAFETY: it begins with the address of the next one.
        unsafe { (*slot).next }
    }

    /// Sets the list, which takes the first slot out.
    ///
    /// # Safety
    /// The list is the one behind the head, and no slot was taken or given back since it was read.
    #[inline(always)]
    pub unsafe fn set_list(&self, list: *mut Free) {
        self.free.set(list);
    }

    /// Takes a slot of the list.
    #[inline(always)]
    pub fn pop(&self) -> Option<NonNull<Free>> {
        let slot = NonNull::new(self.free.get())?;
        // SAFETY: it is the first slot of the list.
        self.free.set(unsafe { Self::behind(slot.as_ptr()) });
        Some(slot)
    }

    /// Takes a slot when the list is empty. `None`: the store is not initialized, there is no
    /// memory, or the pool is bounded and has no free slot.
    #[inline(always)]
    pub fn refill(&self, shape: fn(usize) -> Option<Shape>) -> Option<NonNull<Free>> {
        self.with_chunks(|chunks| chunks.refill(shape))?
    }

    /// Gives a slot back. With `TELL`, giving back the same slot twice in a row is reported.
    ///
    /// # Safety
    /// The slot belongs to this store, and is not used again.
    #[inline(always)]
    pub unsafe fn push<const TELL: bool>(&self, slot: *mut Free) {
        if CALLS {
            // SAFETY: as the caller says.
            self.with_chunks(|chunks| unsafe { chunks.push_by_call(slot) });
            return;
        }
        let newest = self.free.get();
        if TELL && slot == newest {
            return pushed_twice(self.chunks.get(), slot);
        }
        // SAFETY: the slot is free from here on.
        unsafe { (*slot).next = newest };
        self.free.set(slot);
    }

    /// Puts the slots of a new chunk in front of the list, the first of them on top. False: there
    /// is no memory, and nothing changed.
    #[inline(always)]
    pub fn add_chunk(&self, shape: fn(usize) -> Option<Shape>) -> bool {
        self.with_chunks(|chunks| chunks.add_chunk(shape)) == Some(true)
    }

    /// Whether the address is in a slot.
    #[inline]
    pub fn contains(&self, address: usize) -> bool {
        self.chunks_if_any()
            .is_some_and(|chunks| chunks.runs.run_of(address).is_some())
    }

    /// The number of the chunk that contains the address.
    #[inline]
    pub fn chunk_of(&self, address: usize) -> Option<usize> {
        self.chunks_if_any()?.chunk_of(address)
    }

    /// The number of taken slots. It walks the list.
    #[inline]
    pub fn taken(&self) -> usize {
        self.with_chunks(|chunks| chunks.taken()).unwrap_or(0)
    }

    /// If no slot is taken, frees all memory; the store is then as new. The result tells whether it
    /// did.
    #[inline]
    pub fn release(&self) -> bool {
        let released = release(self.free.get(), self.chunks.get());
        if released {
            self.forget();
        }
        released
    }

    /// Leaves the memory until the process ends; the store is then as new.
    #[inline]
    pub fn keep(&self) {
        keep(self.chunks.get());
        self.forget();
    }

    #[inline]
    fn forget(&self) {
        self.free.set(null_mut());
        self.chunks.set(null_mut());
    }

    /// Calls a function with the chunks, which hold the head of the list meanwhile. `None`: the
    /// store is not initialized.
    #[inline(always)]
    fn with_chunks<R>(&self, function: impl FnOnce(&mut Chunks) -> R) -> Option<R> {
        // SAFETY: the store owns them, and there is no other reference to them.
        let chunks = unsafe { self.chunks.get().as_mut() }?;
        chunks.free = self.free.get();
        let result = function(chunks);
        self.free.set(chunks.free);
        Some(result)
    }
}

impl Drop for Store {
    /// Frees all memory if no slot is taken.
    #[inline(always)]
    fn drop(&mut self) {
        end(self.free.get(), self.chunks.get());
    }
}

/// Ends a store, given its two fields.
#[inline(never)]
fn end(free: *mut Free, chunks: *mut Chunks) {
    if !release(free, chunks) {
        keep(chunks);
    }
}

/// Frees all memory of a store if no slot is taken. The result tells whether it did.
#[inline(never)]
fn release(free: *mut Free, chunks: *mut Chunks) -> bool {
    // SAFETY: they belong to a store, which does not use them if this returns true.
    unsafe {
        let Some(known) = chunks.as_mut() else {
            return true;
        };
        known.free = free;
        if known.taken() > 0 {
            return false;
        }
        let pool = known.pool.take();
        drop(Box::from_raw(chunks));
        if let Some(pool) = pool {
            pool.destroy();
        }
    }
    true
}

/// Lets the memory of a store stay until the process ends.
#[inline(never)]
fn keep(chunks: *mut Chunks) {
    if chunks.is_null() {
        return;
    }
    // SAFETY: they belong to a store, which does not use them any more.
    unsafe {
        if let Some(pool) = Box::from_raw(chunks).pool {
            pool.keep();
        }
    }
}

/// The chunks of a [`Store`].
struct Chunks {
    /// The head of the list, during a call.
    free: *mut Free,
    pool: Option<RawPool>,
    out: usize,
    /// For each chunk.
    slots: usize,
    count: usize,
    runs: Runs,
}

impl Chunks {
    #[inline(never)]
    fn new(slots: usize) -> *mut Chunks {
        Box::into_raw(Box::new(Chunks {
            free: null_mut(),
            pool: None,
            out: 0,
            slots,
            count: 0,
            runs: Runs::new(),
        }))
    }

    fn capacity(&self) -> usize {
        self.count * self.slots
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self, shape: fn(usize) -> Option<Shape>) -> Option<NonNull<Free>> {
        if !CALLS {
            return self.add_chunk(shape).then(|| self.pop())?;
        }
        let pool = self.pool_or_new(shape)?;
        let slot = self.take(pool)?;
        if self.out > self.capacity() {
            self.count += 1;
        }
        let (address, bytes) = (slot.as_ptr() as usize, self.slot_bytes()?);
        if self.runs.run_of(address).is_none() {
            self.runs.add(address, address + bytes, bytes);
        }
        Some(slot)
    }

    /// # Safety
    /// As [`Store::push`].
    #[inline(never)]
    unsafe fn push_by_call(&mut self, slot: *mut Free) {
        if let (Some(pool), Some(slot)) = (self.pool, NonNull::new(slot)) {
            // SAFETY: as the caller says.
            unsafe { self.give(pool, slot) }
        }
    }

    #[inline(never)]
    fn chunk_of(&self, address: usize) -> Option<usize> {
        let run = self.runs.run_of(address)?;
        let slot = run.before + (address - run.start) / self.slot_bytes()?;
        // Where each slot is a call, the pool may hold slots back and have carved more of them.
        Some((slot / self.slots).min(self.count.saturating_sub(1)))
    }

    /// The distance in bytes from slot to slot.
    fn slot_bytes(&self) -> Option<usize> {
        // SAFETY: the pool exists, and is this thread's.
        Some(unsafe { self.pool?.slot_size() })
    }

    /// Takes a slot of the list.
    fn pop(&mut self) -> Option<NonNull<Free>> {
        let slot = NonNull::new(self.free)?;
        // SAFETY: it is the first slot of the list.
        self.free = unsafe { Store::behind(slot.as_ptr()) };
        Some(slot)
    }

    /// Takes a slot of the pool.
    fn take(&mut self, pool: RawPool) -> Option<NonNull<Free>> {
        // SAFETY: the pool exists, and is this thread's.
        let slot = unsafe { pool.pop().or_else(|| pool.grow()) }?;
        self.out += 1;
        Some(slot.cast())
    }

    /// Gives a slot back to the pool.
    ///
    /// # Safety
    /// The slot belongs to the pool, and is not used again.
    unsafe fn give(&mut self, pool: RawPool, slot: NonNull<Free>) {
        // The pool reports double frees.
        self.out = self.out.saturating_sub(1);
        // SAFETY: as the caller says; the pool exists, and is this thread's.
        unsafe { pool.push(slot.cast()) }
    }

    /// The pool, which is created with the first chunk. `None`: there is no memory.
    fn pool_or_new(&mut self, shape: fn(usize) -> Option<Shape>) -> Option<RawPool> {
        if self.pool.is_none() {
            self.pool = RawPool::create(&shape(self.slots)?);
        }
        self.pool
    }

    #[inline(never)]
    fn add_chunk(&mut self, shape: fn(usize) -> Option<Shape>) -> bool {
        let Some(pool) = self.pool_or_new(shape) else {
            return false;
        };
        if !CALLS && !self.add_slots(pool) {
            return false;
        }
        self.count += 1;
        true
    }

    fn add_slots(&mut self, pool: RawPool) -> bool {
        // SAFETY: the pool exists, and is this thread's.
        let slot_bytes = unsafe { pool.slot_size() };
        let before = core::mem::replace(&mut self.free, null_mut());
        let mut last: Option<NonNull<Free>> = None;
        let mut fresh: Vec<(usize, usize)> = Vec::new();
        for _ in 0..self.slots {
            let Some(slot) = self.take(pool) else {
                self.give_list(pool);
                self.free = before;
                return false;
            };
            // SAFETY: both slots are ours, and free.
            unsafe {
                (*slot.as_ptr()).next = null_mut();
                match last {
                    Some(last) => (*last.as_ptr()).next = slot.as_ptr(),
                    None => self.free = slot.as_ptr(),
                }
            }
            last = Some(slot);
            let start = slot.as_ptr() as usize;
            match fresh.last_mut() {
                Some((_, end)) if *end == start => *end += slot_bytes,
                _ => fresh.push((start, start + slot_bytes)),
            }
        }
        for (start, end) in fresh {
            self.runs.add(start, end, slot_bytes);
        }
        if let Some(last) = last {
            // SAFETY: the last slot of the new ones.
            unsafe { (*last.as_ptr()).next = before };
        }
        true
    }

    /// Gives the slots of the list back to the pool.
    fn give_list(&mut self, pool: RawPool) {
        while let Some(slot) = self.pop() {
            // SAFETY: a slot of the list belongs to the pool, and is free.
            unsafe { self.give(pool, slot) }
        }
    }

    #[inline(never)]
    fn taken(&self) -> usize {
        let next = |slot: &NonNull<Free>| {
            // SAFETY: a slot of the list begins with the address of the next one.
            NonNull::new(unsafe { (*slot.as_ptr()).next })
        };
        let free = core::iter::successors(NonNull::new(self.free), next);
        // After a double free the list may contain a cycle.
        self.out - free.take(self.out).count()
    }
}

/// Reports that the slot that was given back last is given back again.
#[cold]
#[inline(never)]
fn pushed_twice(chunks: *const Chunks, slot: *mut Free) {
    // SAFETY: they belong to a store, whose pool is this thread's.
    unsafe {
        let pool = chunks.as_ref().and_then(|chunks| chunks.pool);
        if let (Some(pool), Some(slot)) = (pool, NonNull::new(slot)) {
            pool.given_twice(slot.cast());
        }
    }
}
