//! `slabyard/fault.h`: what happens when misuse is seen that means corruption.

use crate::{c_char, c_uint, c_void};

/// What was seen; the numbers of `sy_fault_kind`.
pub type sy_fault_kind = c_uint;
/// Freed, but no memory of Slabyard, or not in use.
pub const SY_FAULT_FOREIGN_POINTER: sy_fault_kind = 1;
/// Inside a slab of the cache, but not the start of an object.
pub const SY_FAULT_MISALIGNED_POINTER: sy_fault_kind = 2;
/// An object of another cache, or of the heap.
pub const SY_FAULT_WRONG_CACHE: sy_fault_kind = 3;
/// An object that is free already.
pub const SY_FAULT_DOUBLE_FREE: sy_fault_kind = 4;
/// A sized free with a size of another class.
pub const SY_FAULT_WRONG_SIZE: sy_fault_kind = 5;
/// Freed to an arena, but no segment allocated there.
pub const SY_FAULT_NOT_ALLOCATED: sy_fault_kind = 6;
/// Freed to an arena with another size than it was allocated.
pub const SY_FAULT_SEGMENT_SIZE: sy_fault_kind = 7;
/// The red zone behind an object was written to.
pub const SY_FAULT_OVERFLOW: sy_fault_kind = 8;
/// The one before it.
pub const SY_FAULT_UNDERFLOW: sy_fault_kind = 9;
/// A free object was written to.
pub const SY_FAULT_WRITE_AFTER_FREE: sy_fault_kind = 10;
/// The edge of a slab was written to.
pub const SY_FAULT_SLAB_EDGE: sy_fault_kind = 11;
/// An access hit the guard page behind an object.
pub const SY_FAULT_GUARD_OVERFLOW: sy_fault_kind = 12;
/// The one before it.
pub const SY_FAULT_GUARD_UNDERFLOW: sy_fault_kind = 13;
/// An access hit an object on a page of its own after it was freed.
pub const SY_FAULT_USE_AFTER_FREE: sy_fault_kind = 14;
/// A handle was unpinned that has no pin.
pub const SY_FAULT_NOT_PINNED: sy_fault_kind = 15;
/// An access by a pointer that was read from a free object.
pub const SY_FAULT_FREED_POINTER: sy_fault_kind = 16;
/// An access by a pointer that was read from an object that was not written to.
pub const SY_FAULT_UNWRITTEN_POINTER: sy_fault_kind = 17;

/// Whether an access was a read or a write; the numbers of `sy_access`.
pub type sy_access = c_uint;
/// The processor did not say it.
pub const SY_ACCESS_UNKNOWN: sy_access = 0;
/// A read.
pub const SY_ACCESS_READ: sy_access = 1;
/// A write.
pub const SY_ACCESS_WRITE: sy_access = 2;

/// Who did something to an object, as far as it was noted.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sy_trace {
    /// Return addresses, the innermost first.
    pub frames: *const *const c_void,
    /// Number of them; 0: not noted.
    pub depth: usize,
    /// The system's number for the thread; 0: not noted.
    pub thread: c_uint,
    /// Nanoseconds since then.
    pub age: u64,
}

/// One misuse that was seen.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sy_fault {
    /// `SY_FAULT_...`.
    pub kind: sy_fault_kind,
    /// Name of the cache, heap or arena that was asked to free.
    pub cache: *const c_char,
    /// Bytes of its objects, 0 for the heap; of an arena: the size given.
    pub object_size: usize,
    /// What was freed, or the first byte that was damaged or accessed.
    pub address: *const c_void,
    /// For [`SY_FAULT_WRONG_CACHE`] whose it is; else null.
    pub found_cache: *const c_char,
    /// Of the object concerned the size asked for, or of the segment allocated there; 0: not known.
    pub found_size: usize,
    /// For [`SY_FAULT_WRONG_SIZE`] of a checked object what the free said; else 0.
    pub told_size: usize,
    /// Start of the object concerned; null: not known.
    pub object: *const c_void,
    /// Bytes from it to `address`.
    pub offset: isize,
    /// What is there now; null: nothing was damaged.
    pub damage: *const c_void,
    /// Of it, from the first damaged byte to the last.
    pub damage_bytes: usize,
    /// When the object was allocated last.
    pub allocated: sy_trace,
    /// When it was freed last.
    pub freed: sy_trace,
    /// What faulted: `SY_ACCESS_...`.
    pub access: sy_access,
    /// For a pointer that was read from a pattern the register that has it; else null.
    pub held_in: *const c_char,
}

/// Called without any lock held, in the thread that saw the fault.
pub type sy_fault_handler = Option<unsafe extern "C" fn(fault: *const sy_fault)>;

extern "C" {
    /// Sets the fault handler of the process and gives the one before; `None`: the fault is
    /// reported.
    ///
    /// # Safety
    /// The handler may be called from any thread.
    pub fn sy_set_fault_handler(handler: sy_fault_handler) -> sy_fault_handler;

    /// Writes the report of a fault where it would go without a handler.
    ///
    /// # Safety
    /// `fault` is what a handler was given.
    pub fn sy_report_fault(fault: *const sy_fault);
}
