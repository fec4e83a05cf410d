//! The loop of a replay thread, which executes operations.
//!
//! An object's pointer is kept in its slot: a 64-bit word with the pointer in the lower 47 bits and
//! the generation above. The thread that allocates publishes the next generation. The thread that
//! frees clears the pointer and leaves the generation. A thread takes an object of another thread
//! only when the slot holds its generation and a pointer.

use super::caches::Caches;
use super::mode::{Call, Mode};
use crate::plan::touch::Touched;
use crate::plan::{Op, OpKind};
use core::ffi::c_void;
use slabyard_peers::Allocator;
use std::sync::atomic::{AtomicU64, Ordering};

const POINTER: u64 = (1 << 48) - 1;
/// The value in a slot of an object that the allocator refused to give.
const REFUSED: u64 = 1;

/// A way to wait: `wait` is called repeatedly until the awaited event has happened.
pub trait Patience {
    fn wait(&mut self);
    /// Called when the awaited event has happened.
    fn done(&mut self);
}

/// The state of one replay thread. Without `CACHED` there are no caches, and operations are not
/// tested for them.
pub struct Player<'a, M, P, const CACHED: bool> {
    pub allocator: Allocator,
    pub caches: Option<&'a Caches>,
    pub slots: &'a [AtomicU64],
    pub mode: M,
    pub patience: P,
    /// The number of allocations that returned NULL.
    pub refused: u64,
}

impl<'a, M: Mode, P: Patience, const CACHED: bool> Player<'a, M, P, CACHED> {
    /// Executes operations one after the other.
    ///
    /// # Safety
    /// The operations are a plan's, in its order, and there are as many slots as the plan says.
    #[inline(never)]
    pub unsafe fn play(&mut self, ops: &[Op]) {
        for op in ops {
            unsafe { self.step(op) };
        }
    }

    #[inline(always)]
    unsafe fn step(&mut self, op: &Op) {
        unsafe {
            match op.kind() {
                OpKind::Malloc => self.malloc(op),
                OpKind::Free => {
                    let object = self.take(op.slot);
                    self.free(op, object);
                }
                OpKind::Realloc => {
                    let object = self.take(op.slot);
                    self.realloc(op, object);
                }
                OpKind::Calloc => self.calloc(op),
                OpKind::FreeForeign => {
                    let object = self.take_foreign(op);
                    self.free(op, object);
                }
                OpKind::ReallocForeign => {
                    let object = self.take_foreign(op);
                    self.realloc(op, object);
                }
                OpKind::Aligned => self.aligned(op),
            }
        }
    }

    #[inline(always)]
    unsafe fn malloc(&mut self, op: &Op) {
        let (malloc, size) = (self.allocator.malloc, op.size());
        let object = match self.cache(op) {
            Some((caches, number)) => self
                .mode
                .call(Call::Allocate, size, || unsafe { caches.alloc(number) }),
            None => self
                .mode
                .call(Call::Allocate, size, || unsafe { malloc(size) }),
        };
        if !object.is_null() {
            unsafe { self.mode.allocated(object, size, 1, op.slot, op.touched()) };
        }
        self.publish(op.slot, object);
    }

    #[inline(always)]
    unsafe fn calloc(&mut self, op: &Op) {
        let (calloc, size) = (self.allocator.calloc, op.size());
        let object = match self.cache(op) {
            Some((caches, number)) => self
                .mode
                .call(Call::Allocate, size, || unsafe { caches.zalloc(number) }),
            None => self
                .mode
                .call(Call::Allocate, size, || unsafe { calloc(1, size) }),
        };
        if !object.is_null() {
            unsafe { self.mode.zeroed(object, size, op.slot, op.touched()) };
        }
        self.publish(op.slot, object);
    }

    unsafe fn aligned(&mut self, op: &Op) {
        let (aligned_alloc, size) = (self.allocator.aligned_alloc, op.size());
        let align = 1usize << op.log2();
        let object = if align <= self.allocator.max_align {
            self.mode.call(Call::Allocate, size, || unsafe {
                aligned_alloc(align, size)
            })
        } else {
            core::ptr::null_mut()
        };
        if !object.is_null() {
            unsafe {
                self.mode
                    .allocated(object, size, align, op.slot, op.touched())
            };
        }
        self.publish(op.slot, object);
    }

    #[inline(always)]
    unsafe fn free(&mut self, op: &Op, object: *mut c_void) {
        if object as u64 == REFUSED {
            return;
        }
        unsafe { self.mode.used(object, op.size(), op.slot) };
        let free = self.allocator.free;
        match self.cache(op) {
            Some((caches, number)) => self.mode.call(Call::Free, op.size(), || unsafe {
                caches.free(number, object)
            }),
            None => self
                .mode
                .call(Call::Free, op.size(), || unsafe { free(object) }),
        }
    }

    /// The caches, and the number of the cache that serves the object of this operation.
    #[inline(always)]
    fn cache(&self, op: &Op) -> Option<(&'a Caches, u32)> {
        if !CACHED || op.cache() == 0 {
            return None;
        }
        self.caches.map(|caches| (caches, op.cache()))
    }

    #[inline(always)]
    unsafe fn realloc(&mut self, op: &Op, object: *mut c_void) {
        let (realloc, size) = (self.allocator.realloc, op.size());
        let refused = object as u64 == REFUSED;
        let old = if refused { 0 } else { 1usize << op.log2() };
        let object = if refused {
            core::ptr::null_mut()
        } else {
            object
        };
        if !refused {
            unsafe { self.mode.used(object, 1, op.slot) };
        }
        // Some allocators free an object that is resized to 0 bytes.
        let asked = size.max(1);
        let moved = self
            .mode
            .call(Call::Reallocate, size, || unsafe { realloc(object, asked) });
        if !moved.is_null() && refused {
            let all = Touched::UNKNOWN;
            unsafe { self.mode.allocated(moved, size, 1, op.second, all) };
        } else if !moved.is_null() {
            let (slots, touched) = ((op.slot, op.second), op.touched());
            unsafe { self.mode.resized(moved, old, size, slots, touched) };
        }
        self.publish(op.second, moved);
    }

    #[inline(always)]
    fn publish(&mut self, slot: u32, object: *mut c_void) {
        let word = &self.slots[slot as usize];
        let generation = (word.load(Ordering::Relaxed) >> 48).wrapping_add(1) << 48;
        let mut pointer = object as u64;
        if pointer == 0 {
            self.refused += 1;
            pointer = REFUSED;
        }
        word.store(generation | pointer, Ordering::Release);
    }

    /// Takes the object of a slot that this thread filled.
    #[inline(always)]
    fn take(&mut self, slot: u32) -> *mut c_void {
        let slot = &self.slots[slot as usize];
        let word = slot.load(Ordering::Relaxed);
        slot.store(word & !POINTER, Ordering::Relaxed);
        (word & POINTER) as *mut c_void
    }

    /// Takes the object of a slot that another thread has filled, or will fill.
    fn take_foreign(&mut self, op: &Op) -> *mut c_void {
        let slot = &self.slots[op.slot as usize];
        let mut word = slot.load(Ordering::Acquire);
        while word >> 48 != op.generation() || word & POINTER == 0 {
            self.patience.wait();
            word = slot.load(Ordering::Acquire);
        }
        self.patience.done();
        slot.store(word & !POINTER, Ordering::Relaxed);
        (word & POINTER) as *mut c_void
    }
}
