//! Pools of the C core, on which [`crate::pool`] and the other pools are built.
//!
//! Taking and giving back use the inline functions of `slabyard/pool.h`. With debug assertions, or
//! the feature `checked`, they are calls, which find misuse if the pool checks for it
//! (`SLABYARD=check`).

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;
use slabyard_sys::{sy_pool, sy_pool_word};

/// Whether taking and giving back are calls.
pub const CALLS: bool = cfg!(all(not(miri), any(feature = "checked", debug_assertions)));

/// The settings of a pool: a typed `sy_pool_config`.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Size and alignment of an object.
    pub slot: Layout,
    /// The maximum number of objects; 0 for an unbounded pool.
    pub capacity: usize,
    /// The minimum growth in bytes, or 0.
    pub chunk_bytes: usize,
    /// Memory is touched when it is taken from the system.
    pub prefault: bool,
    /// Memory is asked for in huge pages.
    pub huge: bool,
    /// The name in reports.
    pub name: Name,
}

/// The name in reports: a C string, cut to the length that the library keeps.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(miri, allow(dead_code))]
pub struct Name([u8; 32]);

impl Name {
    /// The first 31 bytes of `name`.
    pub fn new(name: &str) -> Name {
        let mut kept = [0; 32];
        for (to, from) in kept[..31].iter_mut().zip(name.bytes()) {
            *to = from;
        }
        Name(kept)
    }
}

/// A pool of the C core: a pointer. Another struct owns the pool.
#[derive(Clone, Copy, Debug)]
pub struct RawPool(NonNull<sy_pool>);

impl RawPool {
    /// Takes an object with undefined content, if the pool need not grow.
    ///
    /// # Safety
    /// The pool exists, and is this thread's.
    #[inline(always)]
    pub unsafe fn pop(self) -> Option<NonNull<u8>> {
        // SAFETY: as the caller says.
        NonNull::new(unsafe { slabyard_sys::sy_pool_pop(self.0.as_ptr()) }.cast())
    }

    /// The word that is kept with the pool.
    ///
    /// # Safety
    /// The pool exists for as long as the reference does, and is this thread's.
    #[inline(always)]
    pub(crate) unsafe fn word<'a>(self) -> &'a Cell<usize> {
        // SAFETY: as the caller says; only this function gives access to the word.
        unsafe { &*sy_pool_word(self.0.as_ptr()).cast::<Cell<usize>>() }
    }
}

#[cfg(not(miri))]
impl RawPool {
    /// Creates a pool. `None`: there is not enough memory.
    pub fn create(shape: &Shape) -> Option<RawPool> {
        let named = shape.name.0[0] != 0;
        let flag = |said: bool, flag| if said { flag } else { 0 };
        let config = slabyard_sys::sy_pool_config {
            size: shape.slot.size().max(1),
            align: shape.slot.align(),
            chunk_bytes: shape.chunk_bytes,
            capacity: shape.capacity,
            flags: flag(shape.prefault, slabyard_sys::SY_POOL_PREFAULT)
                | flag(shape.huge, slabyard_sys::SY_POOL_HUGE),
            name: if named {
                shape.name.0.as_ptr().cast()
            } else {
                core::ptr::null()
            },
            reserved: [0; 3],
        };
        // SAFETY: the configuration is complete, and its name is a C string or null.
        NonNull::new(unsafe { slabyard_sys::sy_pool_create(&config) }).map(RawPool)
    }

    /// Grows the pool and takes an object, after [`RawPool::pop`] found none.
    ///
    /// # Safety
    /// The pool exists and is this thread's.
    pub unsafe fn grow(self) -> Option<NonNull<u8>> {
        // SAFETY: as the caller says.
        NonNull::new(unsafe { slabyard_sys::sy_pool_grow(self.0.as_ptr()) }.cast())
    }

    /// Gives an object back.
    ///
    /// # Safety
    /// The object belongs to the pool, which is this thread's, and is not used again.
    #[inline(always)]
    pub unsafe fn push(self, object: NonNull<u8>) {
        let object = object.as_ptr().cast();
        // SAFETY: as the caller says.
        unsafe {
            if CALLS {
                slabyard_sys::sy_pool_free(self.0.as_ptr(), object);
            } else {
                slabyard_sys::sy_pool_free_inline(self.0.as_ptr(), object);
            }
        }
    }

    /// Reports that an object was given back twice in a row.
    ///
    /// # Safety
    /// The pool exists and is this thread's.
    #[cold]
    #[inline(never)]
    pub unsafe fn given_twice(self, object: NonNull<u8>) {
        // SAFETY: as the caller says; the object is not accessed.
        unsafe { slabyard_sys::sy_pool_freed_twice(self.0.as_ptr(), object.as_ptr().cast()) }
    }

    /// # Safety
    /// The pool exists and is this thread's. Neither the pool nor its objects are used again.
    pub unsafe fn destroy(self) {
        // SAFETY: as the caller says.
        unsafe { slabyard_sys::sy_pool_destroy(self.0.as_ptr()) }
    }

    /// Declares that the pool stays until the process ends.
    ///
    /// # Safety
    /// The pool exists, and is not used again, except for objects that are out.
    pub unsafe fn keep(self) {}

    /// The number of objects that are out.
    ///
    /// # Safety
    /// The pool exists and is this thread's. The same holds for the functions below.
    pub(crate) unsafe fn in_use(self) -> usize {
        // SAFETY: as the caller says.
        unsafe { slabyard_sys::sy_pool_in_use(self.0.as_ptr()) }
    }

    /// The distance in bytes from one object to the next, or less if something lies between them.
    ///
    /// # Safety
    /// As [`RawPool::in_use`].
    pub unsafe fn slot_size(self) -> usize {
        // SAFETY: as the caller says.
        unsafe { slabyard_sys::sy_pool_slot_size(self.0.as_ptr()) }
    }

    /// The number of objects that fit without growing.
    ///
    /// # Safety
    /// As [`RawPool::in_use`].
    pub(crate) unsafe fn capacity(self) -> usize {
        // SAFETY: as the caller says.
        unsafe { slabyard_sys::sy_pool_capacity(self.0.as_ptr()) }
    }

    /// If no object is out, returns memory to the system. The result is the number of bytes.
    ///
    /// # Safety
    /// As [`RawPool::in_use`].
    pub(crate) unsafe fn trim(self) -> usize {
        // SAFETY: as the caller says.
        unsafe { slabyard_sys::sy_pool_trim(self.0.as_ptr()) }
    }
}

#[cfg(miri)]
#[path = "pool_model.rs"]
mod model;
