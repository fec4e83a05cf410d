//! Options, which can be set without a rebuild.

use alloc::ffi::CString;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ffi::{c_char, c_int, c_void, CStr};
use core::fmt;

/// Sets options, written as in the environment variable `SLABYARD`: a list of `name` or
/// `name=value`, separated by commas. Options about the layout of objects are read when a cache is
/// created, and for a size of the heap when it is first allocated, so set them first. Any thread
/// may call this.
///
/// In a program whose global allocator is [`Slabyard`](crate::Slabyard), `std` allocates before
/// `main`. So a call in `main` comes too late for the size classes of these allocations. Set such
/// options, as `guard=all`, in the environment.
///
/// ```
/// slabyard::set_options("poison,quarantine=100")?;
/// assert_eq!(slabyard::get_option("quarantine").as_deref(), Some("100"));
/// assert!(slabyard::set_options("poisson").is_err());
/// # slabyard::set_options("poison=no,quarantine=0")?;
/// # Ok::<(), slabyard::OptionError>(())
/// ```
///
/// # Errors
/// An option is unknown or does not have such a value. Nothing was changed.
pub fn set_options(text: &str) -> Result<(), OptionError> {
    let text = CString::new(text).map_err(|_| OptionError)?;
    // SAFETY: a C string.
    match unsafe { slabyard_sys::sy_set_options(text.as_ptr()) } {
        0 => Ok(()),
        _ => Err(OptionError),
    }
}

/// The value of an option, as [`set_options`] takes it. `None`: there is no such option.
pub fn get_option(name: &str) -> Option<String> {
    let name = CString::new(name).ok()?;
    let mut value: Vec<c_char> = vec![0; 4096];
    // SAFETY: a C string, and a buffer of this size.
    let length =
        unsafe { slabyard_sys::sy_get_option(name.as_ptr(), value.as_mut_ptr(), value.len()) };
    let length = usize::try_from(length).ok()?;
    let bytes: Vec<u8> = value[..length].iter().map(|byte| *byte as u8).collect();
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A description of an option. All options are in `docs/options.md`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OptionInfo {
    /// The name, before the `=`.
    pub name: &'static str,
    /// The values that may follow it, for readers.
    pub values: &'static str,
    /// The value that the name alone sets; `None`: a value is required.
    pub bare: Option<&'static str>,
    /// The default value.
    pub initial: &'static str,
    /// What the option does, in one sentence.
    pub meaning: &'static str,
}

/// Descriptions of all options.
///
/// ```
/// assert!(slabyard::options().iter().any(|option| option.name == "check"));
/// ```
pub fn options() -> Vec<OptionInfo> {
    unsafe extern "C" fn add(list: *mut c_void, option: *const slabyard_sys::sy_option) -> c_int {
        // SAFETY: the call below passes a list; the library passes an option with constant strings.
        let (list, option) = unsafe { (&mut *list.cast::<Vec<OptionInfo>>(), &*option) };
        // SAFETY: as above.
        unsafe {
            list.push(OptionInfo {
                name: text(option.name).unwrap_or(""),
                values: text(option.values).unwrap_or(""),
                bare: text(option.bare),
                initial: text(option.initial).unwrap_or(""),
                meaning: text(option.meaning).unwrap_or(""),
            });
        }
        0
    }

    let mut list = Vec::new();
    // SAFETY: the list outlives the call.
    unsafe { slabyard_sys::sy_option_each(add, (&raw mut list).cast()) };
    list
}

/// # Safety
/// `pointer` is null or a constant C string.
unsafe fn text(pointer: *const c_char) -> Option<&'static str> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(pointer) }.to_str().ok()
}

/// An option is unknown, or does not have such a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OptionError;

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an option is unknown, or has no such value")
    }
}

impl core::error::Error for OptionError {}
