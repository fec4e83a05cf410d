//! A pointer for each thread, and a function that is called with it when the thread ends, after the
//! destructors of Rust's thread-local variables.

use core::ffi::c_void;

pub use system::{get, set};

/// Called with the thread's pointer, which is null from then on. If it sets another one, it is called
/// again, at least [`super::end::ROUNDS`] times in all.
pub type AtEnd = unsafe extern "C" fn(*mut c_void);

/// Keys of POSIX.
#[cfg(not(windows))]
mod system {
    use super::{c_void, AtEnd};
    use core::ptr::null_mut;
    use std::sync::OnceLock;

    /// The key. `None`: the system has no more keys.
    fn key(at_end: AtEnd) -> Option<libc::pthread_key_t> {
        static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
        *KEY.get_or_init(|| {
            let mut key = 0;
            // SAFETY: the destructor gets what `set` stores.
            let error = unsafe { libc::pthread_key_create(&mut key, Some(at_end)) };
            (error == 0).then_some(key)
        })
    }

    /// The thread's pointer.
    pub fn get(at_end: AtEnd) -> *mut c_void {
        // SAFETY: the key exists.
        key(at_end).map_or(null_mut(), |key| unsafe { libc::pthread_getspecific(key) })
    }

    /// False: the system has no key, or no memory.
    pub fn set(at_end: AtEnd, pointer: *mut c_void) -> bool {
        // SAFETY: the key exists; its destructor takes the pointer.
        key(at_end).is_some_and(|key| unsafe { libc::pthread_setspecific(key, pointer) == 0 })
    }
}

/// A function among those that the loader calls when a thread ends, sorted by the names of their
/// sections: after Rust's (.CRT$XLB) and those of C++ (.CRT$XLD), and before the C core's (.CRT$XLY).
#[cfg(windows)]
mod system {
    use super::{c_void, AtEnd};
    use core::cell::Cell;
    use core::ptr::null_mut;
    use std::sync::OnceLock;

    const THREAD_ENDS: u32 = 3; // DLL_THREAD_DETACH

    #[used]
    #[link_section = ".CRT$XLX"]
    static CALLED: unsafe extern "system" fn(*mut c_void, u32, *mut c_void) = called;

    static AT_END: OnceLock<AtEnd> = OnceLock::new();

    // Without a destructor, so it is there as long as the thread.
    std::thread_local! {
        static POINTER: Cell<*mut c_void> = const { Cell::new(null_mut()) };
    }

    unsafe extern "system" fn called(_module: *mut c_void, reason: u32, _reserved: *mut c_void) {
        let Some(at_end) = AT_END.get().filter(|_| reason == THREAD_ENDS) else {
            return;
        };
        loop {
            let pointer = POINTER.replace(null_mut());
            if pointer.is_null() {
                return;
            }
            // SAFETY: what `set` stored.
            unsafe { at_end(pointer) };
        }
    }

    /// The thread's pointer.
    pub fn get(_at_end: AtEnd) -> *mut c_void {
        POINTER.get()
    }

    /// True: it is set.
    pub fn set(at_end: AtEnd, pointer: *mut c_void) -> bool {
        AT_END.get_or_init(|| at_end);
        POINTER.set(pointer);
        true
    }
}
