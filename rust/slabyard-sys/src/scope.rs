//! `slabyard/scope.h`: places what a thread allocates from the heap together.

use crate::{c_char, c_int, c_void};

/// A scope; used only behind a pointer.
#[repr(C)]
pub struct sy_scope {
    _opaque: [u8; 0],
    _neither_send_nor_moved: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// Bytes of a scope's name that are kept.
pub const SY_SCOPE_NAME_MAX: usize = 31;
/// Scopes that a thread can be in at a time.
pub const SY_SCOPE_DEPTH_MAX: usize = 32;

extern "C" {
    /// Creates a scope; null with `ENOMEM`.
    ///
    /// # Safety
    /// `name` is null or a C string.
    pub fn sy_scope_create(name: *const c_char) -> *mut sy_scope;

    /// Enters the scope: the calling thread allocates in it from now on. Null: in no scope. -1 with
    /// `EAGAIN`, `EBUSY` or `ENOMEM`: the thread is where it was.
    ///
    /// # Safety
    /// `scope` is null or not destroyed.
    pub fn sy_scope_enter(scope: *mut sy_scope) -> c_int;

    /// Leaves the innermost scope of the calling thread, which must be this one; -1 with `EINVAL` or
    /// `EBUSY`.
    ///
    /// # Safety
    /// Any thread; `scope` is only compared.
    pub fn sy_scope_leave(scope: *mut sy_scope) -> c_int;

    /// The innermost scope of the calling thread, or null.
    ///
    /// # Safety
    /// None: any thread may call it.
    pub fn sy_scope_current() -> *mut sy_scope;

    /// Ends the scope; its objects stay. -1 with `EBUSY`: a thread is in it.
    ///
    /// # Safety
    /// `scope` is null, or owned by the caller, and no other thread enters it meanwhile.
    pub fn sy_scope_destroy(scope: *mut sy_scope) -> c_int;

    /// Counts what lives in the scope; `bytes` may be null.
    ///
    /// # Safety
    /// `scope` is not destroyed, and `bytes` may be written unless it is null.
    pub fn sy_scope_live(scope: *mut sy_scope, bytes: *mut usize) -> usize;

    /// Writes the addresses of up to `most` objects that live in the scope; returns how many.
    ///
    /// # Safety
    /// `scope` is not destroyed, and `objects` has room for `most` addresses.
    pub fn sy_scope_list(scope: *mut sy_scope, objects: *mut *mut c_void, most: usize) -> usize;

    /// Writes what lives in the scope to stderr, by size; returns how many objects.
    ///
    /// # Safety
    /// `scope` is not destroyed.
    pub fn sy_scope_report(scope: *mut sy_scope) -> usize;
}
