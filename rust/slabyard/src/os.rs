//! What differs between systems.

use std::io::{Error, Result};

#[cfg(not(windows))]
pub(crate) use std::os::fd::AsFd as AsFile;
#[cfg(windows)]
pub(crate) use std::os::windows::io::AsHandle as AsFile;

/// The error that the C core has left in errno.
#[cfg(not(windows))]
pub(crate) fn last_error() -> Error {
    Error::last_os_error()
}

/// The same: errno is the C library's, and its numbers are not those of the system.
#[cfg(windows)]
pub(crate) fn last_error() -> Error {
    use std::io::ErrorKind;
    extern "C" {
        fn _errno() -> *mut libc::c_int;
    }
    // SAFETY: each thread has one.
    match unsafe { *_errno() } {
        libc::EINVAL => ErrorKind::InvalidInput.into(),
        libc::ENOMEM => ErrorKind::OutOfMemory.into(),
        libc::ENOTSUP => ErrorKind::Unsupported.into(),
        errno => Error::other(std::format!("errno {errno}")),
    }
}

/// The result of a function of the C core that returns 0, or -1 with errno.
pub(crate) fn result_of(status: i32) -> Result<()> {
    match status {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

/// Calls a function that writes to a descriptor, and returns 0, or -1 with errno.
#[cfg(not(windows))]
pub(crate) fn write(to: impl AsFile, call: impl FnOnce(i32) -> i32) -> Result<()> {
    use std::os::fd::AsRawFd;
    result_of(call(to.as_fd().as_raw_fd()))
}

/// The same, with a descriptor of the C library. To close it closes its handle, too, so it gets one
/// of its own.
#[cfg(windows)]
pub(crate) fn write(to: impl AsFile, call: impl FnOnce(i32) -> i32) -> Result<()> {
    use std::os::windows::io::{FromRawHandle, IntoRawHandle, OwnedHandle};
    let handle = to.as_handle().try_clone_to_owned()?.into_raw_handle();
    // SAFETY: the handle is open, and belongs to the descriptor from now on.
    let file = unsafe { libc::open_osfhandle(handle as isize, libc::O_BINARY) };
    if file < 0 {
        let error = last_error();
        // SAFETY: the handle is open, and no descriptor has it.
        drop(unsafe { OwnedHandle::from_raw_handle(handle) });
        return Err(error);
    }
    let result = result_of(call(file));
    // SAFETY: opened above.
    unsafe { libc::close(file) };
    result
}
