//! `slabyard/epoch.h`: objects of one phase together.

use crate::{c_char, c_int, c_uint, c_void};

/// An epoch; only ever behind a pointer.
#[repr(C)]
pub struct sy_epoch {
    _opaque: [u8; 0],
    _neither_send_nor_moved: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// Bytes of an epoch's name that are kept.
pub const SY_EPOCH_NAME_MAX: usize = 31;

/// An epoch at one moment.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sy_epoch_stats {
    /// Its name.
    pub name: [c_char; SY_EPOCH_NAME_MAX + 1],
    /// In order of creation.
    pub number: u64,
    /// Since creation.
    pub age_ns: u64,
    /// Since it was closed; 0: it is open.
    pub closed_ns: u64,
    /// That are in it.
    pub threads: c_uint,
    /// That are live.
    pub objects: usize,
    /// Number of.
    pub slabs: usize,
    /// Of the slabs.
    pub bytes: usize,
}

/// Called for each epoch, until it returns something else than 0.
pub type sy_epoch_visit =
    unsafe extern "C" fn(arg: *mut c_void, stats: *const sy_epoch_stats) -> c_int;

extern "C" {
    /// An open epoch, or null with `ENOMEM`.
    ///
    /// # Safety
    /// `name` is null or a C string.
    pub fn sy_epoch_create(name: *const c_char) -> *mut sy_epoch;

    /// From here on the calling thread allocates from the epoch; null: from none.
    ///
    /// # Safety
    /// `epoch` is null, or was not closed yet, or this thread is in it.
    pub fn sy_epoch_begin(epoch: *mut sy_epoch) -> c_int;

    /// Ends the innermost epoch of the calling thread, which has to be this one.
    ///
    /// # Safety
    /// Any thread; `epoch` is only compared.
    pub fn sy_epoch_end(epoch: *mut sy_epoch) -> c_int;

    /// The innermost one of the calling thread, or null.
    ///
    /// # Safety
    /// Any thread.
    pub fn sy_epoch_current() -> *mut sy_epoch;

    /// Ends the phase; returns how many objects count as live.
    ///
    /// # Safety
    /// `epoch` is null, or open and the caller's.
    pub fn sy_epoch_close(epoch: *mut sy_epoch) -> usize;

    /// Calls `visit` for the open epochs, and closed ones that still have something.
    ///
    /// # Safety
    /// `visit` may be called with `arg`.
    pub fn sy_epoch_each(visit: sy_epoch_visit, arg: *mut c_void) -> c_int;

    /// Writes a line for each epoch that was closed so long ago and is stuck; how many.
    ///
    /// # Safety
    /// None beyond the rules of the crate.
    pub fn sy_epoch_report_stuck(ns: u64) -> usize;
}
