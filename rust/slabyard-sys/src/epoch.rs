//! `slabyard/epoch.h`: places the objects of one phase together.

use crate::{c_char, c_int, c_uint, c_void};

/// An epoch; used only behind a pointer.
#[repr(C)]
pub struct sy_epoch {
    _opaque: [u8; 0],
    _neither_send_nor_moved: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// Bytes of an epoch's name that are kept.
pub const SY_EPOCH_NAME_MAX: usize = 31;

/// Statistics of an epoch.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sy_epoch_stats {
    /// Its name.
    pub name: [c_char; SY_EPOCH_NAME_MAX + 1],
    /// Its number in the order of creation.
    pub number: u64,
    /// Nanoseconds since its creation.
    pub age_ns: u64,
    /// Nanoseconds since it was closed; 0: it is open.
    pub closed_ns: u64,
    /// The number of threads that are in it.
    pub threads: c_uint,
    /// The number of its live objects.
    pub objects: usize,
    /// The number of its slabs.
    pub slabs: usize,
    /// The bytes of its slabs.
    pub bytes: usize,
}

/// Called for each epoch, until it returns another value than 0.
pub type sy_epoch_visit =
    unsafe extern "C" fn(arg: *mut c_void, stats: *const sy_epoch_stats) -> c_int;

extern "C" {
    /// Opens an epoch; null with `ENOMEM`.
    ///
    /// # Safety
    /// `name` is null or a C string.
    pub fn sy_epoch_create(name: *const c_char) -> *mut sy_epoch;

    /// Enters the epoch: the calling thread allocates from it from now on. Null: from no epoch.
    ///
    /// # Safety
    /// `epoch` is null or not closed yet, or this thread is in it.
    pub fn sy_epoch_begin(epoch: *mut sy_epoch) -> c_int;

    /// Leaves the innermost epoch of the calling thread, which must be this one.
    ///
    /// # Safety
    /// Any thread; `epoch` is only compared.
    pub fn sy_epoch_end(epoch: *mut sy_epoch) -> c_int;

    /// The innermost epoch of the calling thread, or null.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_epoch_current() -> *mut sy_epoch;

    /// Ends the phase; returns the number of objects that count as live.
    ///
    /// # Safety
    /// `epoch` is null, or open and owned by the caller.
    pub fn sy_epoch_close(epoch: *mut sy_epoch) -> usize;

    /// Calls `visit` for open epochs, and for closed ones that still have slabs or threads.
    ///
    /// # Safety
    /// `visit` may be called with `arg`.
    pub fn sy_epoch_each(visit: sy_epoch_visit, arg: *mut c_void) -> c_int;

    /// Writes a line for each epoch that was closed at least `ns` nanoseconds ago and is stuck;
    /// returns their number.
    ///
    /// # Safety
    /// None beyond the rules of the crate.
    pub fn sy_epoch_report_stuck(ns: u64) -> usize;
}
