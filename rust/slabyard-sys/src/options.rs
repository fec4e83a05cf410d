//! `slabyard/options.h`: what can be set without compiling anything again.

use crate::{c_char, c_int, c_void};

/// One option that there is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sy_option {
    /// Before the `=`.
    pub name: *const c_char,
    /// What may be said after it, for people.
    pub values: *const c_char,
    /// What the name alone means; null: a value is needed.
    pub bare: *const c_char,
    /// The value when nothing was said.
    pub initial: *const c_char,
    /// A sentence.
    pub meaning: *const c_char,
}

/// Visits one option; anything but 0 ends the walk.
pub type sy_option_visit =
    unsafe extern "C" fn(arg: *mut c_void, option: *const sy_option) -> c_int;

extern "C" {
    /// Sets options, written as in `SLABYARD`; -1 with `EINVAL`, and nothing is changed, if one is
    /// unknown or has no such value.
    ///
    /// # Safety
    /// `text` is a C string.
    pub fn sy_set_options(text: *const c_char) -> c_int;

    /// The value of an option as a C string; its length, or -1 with `EINVAL` or `ERANGE`.
    ///
    /// # Safety
    /// `name` is a C string, and `value` has `room` bytes.
    pub fn sy_get_option(name: *const c_char, value: *mut c_char, room: usize) -> c_int;

    /// Calls `visit` for each option until it returns something else than 0; returns that.
    ///
    /// # Safety
    /// `visit` may be called with `arg`.
    pub fn sy_each_option(visit: sy_option_visit, arg: *mut c_void) -> c_int;
}
