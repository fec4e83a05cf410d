//! `slabyard/options.h`: options, which can be set without a rebuild.

use crate::{c_char, c_int, c_uint, c_void};

/// The description of an option.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sy_option {
    /// The name, before the `=`.
    pub name: *const c_char,
    /// The values that may follow it, for readers.
    pub values: *const c_char,
    /// The value that the name alone sets; null: a value is required.
    pub bare: *const c_char,
    /// The default value.
    pub initial: *const c_char,
    /// What the option does, in one sentence.
    pub meaning: *const c_char,
}

/// Called for each option; a value other than 0 ends the walk.
pub type sy_option_visit =
    unsafe extern "C" fn(arg: *mut c_void, option: *const sy_option) -> c_int;

extern "C" {
    /// Sets options, written as in `SLABYARD`. If an option is unknown or does not have such a
    /// value, returns -1 with `EINVAL` and changes nothing.
    ///
    /// # Safety
    /// `text` is a C string.
    pub fn sy_set_options(text: *const c_char) -> c_int;

    /// Writes the value of an option as a C string; returns its length, or -1 with `EINVAL` or
    /// `ERANGE`.
    ///
    /// # Safety
    /// `name` is a C string, and `value` has `room` bytes.
    pub fn sy_get_option(name: *const c_char, value: *mut c_char, room: usize) -> c_int;

    /// Calls `visit` for each option until it returns a value other than 0, and returns this value.
    ///
    /// # Safety
    /// `visit` may be called with `arg`.
    pub fn sy_option_each(visit: sy_option_visit, arg: *mut c_void) -> c_int;

    /// Whether the platform has a service (`docs/platforms.md`): 1 or 0, or -1 with `EINVAL`.
    ///
    /// # Safety
    /// `service` is a C string.
    pub fn sy_platform_has(service: *const c_char) -> c_int;

    /// The version of the C library: 10203 is 1.2.3.
    pub fn sy_version() -> c_uint;
}

extern "C" {
    /// Makes `maintenance=auto` the default, for a program whose allocator this is. It is a function
    /// of the library's own (`debug/options.h`).
    ///
    /// # Safety
    /// None: any thread may call it.
    #[doc(hidden)]
    pub fn sy_options_auto_maintenance();
}
