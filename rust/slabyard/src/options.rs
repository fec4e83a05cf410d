//! What can be set without compiling anything again.

use alloc::ffi::CString;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ffi::{c_char, c_int, c_void, CStr};
use core::fmt;

/// Sets options, written as in the environment variable `SLABYARD`: with commas between, each `name`
/// or `name=value`. Those that say how objects lie bind a cache when it is created, and the heap when it
/// is first used: set them first. Any thread.
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
/// An option is unknown or has no such value; nothing was changed.
pub fn set_options(text: &str) -> Result<(), OptionError> {
    let text = CString::new(text).map_err(|_| OptionError)?;
    // SAFETY: a C string.
    match unsafe { slabyard_sys::sy_set_options(text.as_ptr()) } {
        0 => Ok(()),
        _ => Err(OptionError),
    }
}

/// The value of an option, as [`set_options`] takes it; `None`: there is no such option.
pub fn get_option(name: &str) -> Option<String> {
    let name = CString::new(name).ok()?;
    let mut value: Vec<c_char> = vec![0; 4096];
    // SAFETY: a C string, and a buffer of that size.
    let length =
        unsafe { slabyard_sys::sy_get_option(name.as_ptr(), value.as_mut_ptr(), value.len()) };
    let length = usize::try_from(length).ok()?;
    let bytes: Vec<u8> = value[..length].iter().map(|byte| *byte as u8).collect();
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// An option that there is; all are in `docs/options.md`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OptionInfo {
    /// Before the `=`.
    pub name: &'static str,
    /// What may be said after it, for people.
    pub values: &'static str,
    /// What the name alone means; `None`: a value is needed.
    pub bare: Option<&'static str>,
    /// The value when nothing was said.
    pub initial: &'static str,
    /// A sentence.
    pub meaning: &'static str,
}

/// All options.
///
/// ```
/// assert!(slabyard::options().iter().any(|option| option.name == "check"));
/// ```
pub fn options() -> Vec<OptionInfo> {
    unsafe extern "C" fn add(list: *mut c_void, option: *const slabyard_sys::sy_option) -> c_int {
        // SAFETY: below a list is passed; the library passes an option of constant strings.
        let (list, option) = unsafe { (&mut *list.cast::<Vec<OptionInfo>>(), &*option) };
        // SAFETY: the same.
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
    unsafe { slabyard_sys::sy_each_option(add, (&raw mut list).cast()) };
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

/// An option is unknown, or has no such value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OptionError;

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an option is unknown, or has no such value")
    }
}

impl core::error::Error for OptionError {}
