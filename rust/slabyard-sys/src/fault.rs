//! `slabyard/fault.h`: reports of misuse that means corruption.

use crate::{c_char, c_uint, c_void};

/// The kind of misuse; the numbers of `sy_fault_kind`.
pub type sy_fault_kind = c_uint;
/// Freed memory is not Slabyard's, or not in use.
pub const SY_FAULT_FOREIGN_POINTER: sy_fault_kind = 1;
/// A freed address is inside a slab of the cache, but not at the start of an object.
pub const SY_FAULT_MISALIGNED_POINTER: sy_fault_kind = 2;
/// A freed object belongs to another cache, or to the heap.
pub const SY_FAULT_WRONG_CACHE: sy_fault_kind = 3;
/// A freed object is free already.
pub const SY_FAULT_DOUBLE_FREE: sy_fault_kind = 4;
/// A sized free has a size of another size class.
pub const SY_FAULT_WRONG_SIZE: sy_fault_kind = 5;
/// A range was freed to an arena that did not allocate it.
pub const SY_FAULT_NOT_ALLOCATED: sy_fault_kind = 6;
/// A range was freed to an arena with another size.
pub const SY_FAULT_SEGMENT_SIZE: sy_fault_kind = 7;
/// The red zone behind an object was written to.
pub const SY_FAULT_OVERFLOW: sy_fault_kind = 8;
/// The red zone before an object was written to.
pub const SY_FAULT_UNDERFLOW: sy_fault_kind = 9;
/// A free object was written to.
pub const SY_FAULT_WRITE_AFTER_FREE: sy_fault_kind = 10;
/// The edge of a slab was written to.
pub const SY_FAULT_SLAB_EDGE: sy_fault_kind = 11;
/// An access hit the guard page behind an object.
pub const SY_FAULT_GUARD_OVERFLOW: sy_fault_kind = 12;
/// An access hit the guard page before an object.
pub const SY_FAULT_GUARD_UNDERFLOW: sy_fault_kind = 13;
/// An access hit an object on a page of its own after the object was freed.
pub const SY_FAULT_USE_AFTER_FREE: sy_fault_kind = 14;
/// A handle was unpinned that has no pin.
pub const SY_FAULT_NOT_PINNED: sy_fault_kind = 15;
/// An access used a pointer that was read from a free object.
pub const SY_FAULT_FREED_POINTER: sy_fault_kind = 16;
/// An access used a pointer that was read from an object not written since its allocation.
pub const SY_FAULT_UNWRITTEN_POINTER: sy_fault_kind = 17;

/// Whether an access was a read or a write; the numbers of `sy_access`.
pub type sy_access = c_uint;
/// The processor did not report it.
pub const SY_ACCESS_UNKNOWN: sy_access = 0;
/// A read.
pub const SY_ACCESS_READ: sy_access = 1;
/// A write.
pub const SY_ACCESS_WRITE: sy_access = 2;

/// The code and thread of an operation on an object, if recorded.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sy_trace {
    /// Return addresses, the innermost first.
    pub frames: *const *const c_void,
    /// The number of return addresses; 0: not recorded.
    pub depth: usize,
    /// The system's id of the thread; 0: not recorded.
    pub thread: c_uint,
    /// Nanoseconds since the operation.
    pub age: u64,
}

/// A report of misuse.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sy_fault {
    /// `SY_FAULT_...`.
    pub kind: sy_fault_kind,
    /// The name of the cache, heap or arena that was used.
    pub cache: *const c_char,
    /// Bytes of the objects of the cache, or of `found_cache` if `cache` is a heap; 0: not known; for
    /// an arena: the size of the free.
    pub object_size: usize,
    /// The freed address, or the first byte that was damaged or accessed.
    pub address: *const c_void,
    /// For [`SY_FAULT_WRONG_CACHE`] and [`SY_FAULT_WRONG_SIZE`], the cache that owns the object if
    /// it is not `cache`; otherwise null.
    pub found_cache: *const c_char,
    /// The requested size of the object, or the size of the arena's segment; 0: not known.
    pub found_size: usize,
    /// For [`SY_FAULT_WRONG_SIZE`] of a checked object, the size of the free; otherwise 0.
    pub told_size: usize,
    /// The start of the object concerned; null: not known.
    pub object: *const c_void,
    /// The distance in bytes from the object's start to `address`.
    pub offset: isize,
    /// The current content of the damaged bytes; null: nothing was damaged.
    pub damage: *const c_void,
    /// The number of bytes from the first to the last damaged one.
    pub damage_bytes: usize,
    /// The last allocation of the object.
    pub allocated: sy_trace,
    /// The last free of the object.
    pub freed: sy_trace,
    /// The kind of the access that faulted: `SY_ACCESS_...`.
    pub access: sy_access,
    /// The register that holds the pointer, if the pointer was read from a pattern; otherwise null.
    pub held_in: *const c_char,
}

/// Called without a lock held, on the thread that found the fault.
pub type sy_fault_handler = Option<unsafe extern "C" fn(fault: *const sy_fault)>;

extern "C" {
    /// Sets the fault handler of the process and returns the previous one. `None`: faults are
    /// reported as without a handler.
    ///
    /// # Safety
    /// The handler may be called from any thread.
    pub fn sy_set_fault_handler(handler: sy_fault_handler) -> sy_fault_handler;

    /// Writes the report of a fault to the place where reports are written without a handler.
    ///
    /// # Safety
    /// `fault` is the argument of a running handler.
    pub fn sy_report_fault(fault: *const sy_fault);
}
