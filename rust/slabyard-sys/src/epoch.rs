//! `slabyard/epoch.h`: objects of one phase together.

use crate::{c_char, c_int};

/// An epoch; only ever behind a pointer.
#[repr(C)]
pub struct sy_epoch {
    _opaque: [u8; 0],
    _neither_send_nor_moved: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

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
}
