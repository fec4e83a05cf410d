//! The model of a pool for Miri: the struct of the C core, with chunks from the global allocator.
//! The inline functions are those of the crate `slabyard-sys`.

use super::{RawPool, Shape};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ptr::{null_mut, NonNull};
use core::sync::atomic::{AtomicPtr, Ordering};
use slabyard_sys::sy_pool;

const CHUNK_SLOTS: usize = 8;

#[repr(C)]
struct Model {
    pool: sy_pool,
    word: usize,
    align: usize,
    chunks: Vec<(*mut u8, Layout)>,
    slots: usize,
    kept: *mut Model,
}

/// Pools that stay, in a list so that Miri does not report them as leaked.
static KEPT: AtomicPtr<Model> = AtomicPtr::new(null_mut());

impl Model {
    fn add_chunk(&mut self, slots: usize) -> Option<()> {
        let bytes = self.pool.stride.checked_mul(slots)?;
        let layout = Layout::from_size_align(bytes, self.align).ok()?;
        // SAFETY: a stride is 8 bytes at least, and there is at least one.
        let chunk = unsafe { alloc::alloc::alloc(layout) };
        if chunk.is_null() {
            return None;
        }
        self.chunks.push((chunk, layout));
        self.slots += slots;
        self.pool.bump = chunk;
        // SAFETY: the end of the chunk.
        self.pool.limit = unsafe { chunk.add(bytes) };
        Some(())
    }
}

impl RawPool {
    fn model(self) -> *mut Model {
        self.0.as_ptr().cast()
    }

    pub fn create(shape: &Shape) -> Option<RawPool> {
        let align = shape.slot.align().max(8);
        let mut model = Box::new(Model {
            // SAFETY: numbers and pointers.
            pool: unsafe { core::mem::zeroed::<sy_pool>() },
            word: 0,
            align,
            chunks: Vec::new(),
            slots: 0,
            kept: null_mut(),
        });
        model.pool.stride = shape.slot.size().max(1).next_multiple_of(align);
        model.pool.capacity = shape.capacity;
        if shape.capacity != 0 {
            model.add_chunk(shape.capacity)?;
        }
        NonNull::new(Box::into_raw(model).cast()).map(RawPool)
    }

    pub unsafe fn grow(self) -> Option<NonNull<u8>> {
        // SAFETY: the pool exists and is this thread's.
        unsafe {
            if (*self.model()).pool.capacity != 0 {
                return None;
            }
            (*self.model()).add_chunk(CHUNK_SLOTS)?;
            self.pop()
        }
    }

    pub unsafe fn push(self, object: NonNull<u8>) {
        // SAFETY: as the caller says.
        unsafe { slabyard_sys::sy_pool_free_inline(self.0.as_ptr(), object.as_ptr().cast()) }
    }

    pub unsafe fn given_twice(self, object: NonNull<u8>) {
        panic!("double free of {object:?}");
    }

    pub unsafe fn destroy(self) {
        // SAFETY: made by create, and not used again.
        let model = unsafe { Box::from_raw(self.model()) };
        for (chunk, layout) in &model.chunks {
            // SAFETY: the chunk was allocated with this layout.
            unsafe { alloc::alloc::dealloc(*chunk, *layout) };
        }
    }

    pub unsafe fn keep(self) {
        let mut first = KEPT.load(Ordering::Relaxed);
        loop {
            // SAFETY: the pool exists, and its owner is giving it up.
            unsafe { (*self.model()).kept = first };
            match KEPT.compare_exchange(first, self.model(), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    pub(crate) unsafe fn in_use(self) -> usize {
        // SAFETY: the pool exists; a free slot's first word leads to the next.
        unsafe {
            let model = &*self.model();
            let left = (model.pool.limit as usize - model.pool.bump as usize) / model.pool.stride;
            let (mut free, mut slot) = (0, model.pool.free);
            while !slot.is_null() {
                free += 1;
                slot = *slot.cast();
            }
            model.slots - left - free
        }
    }

    pub unsafe fn slot_size(self) -> usize {
        // SAFETY: the pool exists.
        unsafe { (*self.model()).pool.stride }
    }

    pub(crate) unsafe fn capacity(self) -> usize {
        // SAFETY: the pool exists.
        unsafe { (*self.model()).slots }
    }

    pub(crate) unsafe fn trim(self) -> usize {
        0
    }
}
