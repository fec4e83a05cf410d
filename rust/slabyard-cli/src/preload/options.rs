//! Checks options for SLABYARD before a program starts with them. The library, which is linked into
//! this tool too, knows all options.

use anyhow::{bail, Result};
use core::ffi::{c_int, c_void, CStr};
use slabyard_sys as sys;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStringExt;

/// An option as the library describes it.
struct Known {
    name: String,
    values: String,
    needs_value: bool,
}

unsafe extern "C" fn note(list: *mut c_void, option: *const sys::sy_option) -> c_int {
    // SAFETY: `list` is the one that the caller of `sy_option_each` below passed; the strings are
    // constants.
    unsafe {
        let text = |text| CStr::from_ptr(text).to_string_lossy().into_owned();
        let option = &*option;
        (*list.cast::<Vec<Known>>()).push(Known {
            name: text(option.name),
            values: text(option.values),
            needs_value: option.bare.is_null(),
        });
    }
    0
}

fn known() -> Vec<Known> {
    let mut list: Vec<Known> = Vec::new();
    // SAFETY: `note` receives a list of the type that it expects.
    unsafe { sys::sy_option_each(note, (&raw mut list).cast()) };
    list
}

/// Refuses unknown options and values that the library does not accept.
///
/// The library parses them in this process, which does not use the library, so they have no effect
/// here. The library reads SLABYARD first and would report mistakes in it, as the program does
/// later; the caller removes SLABYARD from the environment before.
pub fn check(options: &str) -> Result<()> {
    let known = known();
    for part in options.split(',').filter(|part| !part.trim().is_empty()) {
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (part.trim(), None),
        };
        let Some(option) = known.iter().find(|option| option.name == name) else {
            let names: Vec<&str> = known.iter().map(|option| option.name.as_str()).collect();
            bail!("there is no option {name}; there are {}", names.join(", "));
        };
        let said = CString::new(part)?;
        // SAFETY: a string that ends in NUL.
        if unsafe { sys::sy_set_options(said.as_ptr()) } == 0 {
            continue;
        }
        match value {
            Some(value) => bail!("{name}={value}: the values of {name} are {}", option.values),
            None if option.needs_value => bail!("{name} needs a value: {}", option.values),
            None => bail!("{name} is not understood"),
        }
    }
    Ok(())
}

/// Joins the options in SLABYARD with `more`. If both set an option, `more` wins.
pub fn joined(before: Option<OsString>, more: &str) -> Option<OsString> {
    match before.filter(|before| !before.is_empty()) {
        Some(before) if !more.is_empty() => Some([before, more.into()].join(OsStr::new(","))),
        None if !more.is_empty() => Some(more.into()),
        before => before,
    }
}

/// The options in SLABYARD except the one called `name`.
pub fn without(name: &str, options: Option<OsString>) -> Option<OsString> {
    let options = options?.into_vec();
    let is_kept = |option: &&[u8]| {
        let said = option
            .split(|&byte| byte == b'=')
            .next()
            .unwrap_or_default();
        said.trim_ascii() != name.as_bytes()
    };
    let kept: Vec<&[u8]> = options
        .split(|&byte| byte == b',')
        .filter(is_kept)
        .collect();
    let kept = kept.join(&b',');
    (!kept.is_empty()).then(|| OsString::from_vec(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_the_library() {
        for fine in [
            "",
            "check",
            "check, redzone = 128 ,",
            "only=order+heap-*,decay=500ms",
        ] {
            assert!(check(fine).is_ok(), "{fine}");
        }
        for (wrong, why) in [
            (
                "check,chekc",
                "there is no option chekc; there are debug, check, redzone",
            ),
            (
                "redzone=7",
                "redzone=7: the values of redzone are BYTES, 16 to 64K",
            ),
            ("check=", "check=: the values of check are yes|no"),
            ("limit", "limit needs a value: BYTES"),
            ("=yes", "there is no option ;"),
        ] {
            let said = check(wrong).unwrap_err().to_string();
            assert!(said.starts_with(why), "{said}");
        }
    }

    #[test]
    fn options_are_added_to_those_that_are_there() {
        let joined = |before: Option<&str>, more| {
            let all = joined(before.map(OsString::from), more);
            all.map(|all| all.into_string().unwrap())
        };
        assert_eq!(joined(None, ""), None);
        assert_eq!(joined(None, "check").as_deref(), Some("check"));
        assert_eq!(joined(Some(""), "check").as_deref(), Some("check"));
        assert_eq!(joined(Some("zero"), "").as_deref(), Some("zero"));
        assert_eq!(
            joined(Some("zero"), "zero=no").as_deref(),
            Some("zero,zero=no")
        );
    }

    #[test]
    fn one_option_can_be_left_out() {
        let without = |options: &str| {
            without("tools", Some(OsString::from(options))).map(|all| all.into_string().unwrap())
        };
        assert_eq!(without(""), None);
        assert_eq!(without("tools"), None);
        assert_eq!(without(" tools = malloc"), None);
        assert_eq!(without("toolset=1").as_deref(), Some("toolset=1"));
        assert_eq!(
            without("check,tools=off,zero,tools").as_deref(),
            Some("check,zero")
        );
        assert_eq!(super::without("tools", None), None);
    }
}
