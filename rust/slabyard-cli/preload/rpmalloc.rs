//! rpmalloc, to be preloaded for measurements. It needs a call when a thread begins and when it
//! ends.

#[macro_use]
mod family;

use slabyard_peers::rpmalloc as peer;
use std::sync::OnceLock;

extern "C" {
    fn rpmalloc_is_thread_initialized() -> c_int;
}

unsafe extern "C" fn end_thread(_: *mut c_void) {
    // SAFETY: this thread's key is set where it was initialised.
    unsafe { peer::rpmalloc_thread_finalize(1) };
}

/// Initialises the library once, and gives the key whose destructor runs when a thread ends.
fn key() -> libc::pthread_key_t {
    static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: runs once, before any thread's initialisation.
        unsafe {
            peer::rpmalloc_initialize();
            libc::pthread_key_create(&mut key, Some(end_thread));
        }
        key
    })
}

#[cold]
fn begin_thread() {
    let key = key();
    // SAFETY: the library is initialised, and any value but NULL calls the destructor.
    unsafe {
        peer::rpmalloc_thread_initialize();
        libc::pthread_setspecific(key, core::ptr::without_provenance(1));
    }
}

#[inline(always)]
fn ready() {
    // SAFETY: reads a variable of this thread.
    if unsafe { rpmalloc_is_thread_initialized() } == 0 {
        begin_thread();
    }
}

/// The C library frees NULL after the destructors of keys have run. This free must not initialise
/// the thread again: it would never be finalised, and its heap would be lost.
unsafe fn free_known(object: *mut c_void) {
    if !object.is_null() {
        ready();
        // SAFETY: as the caller of free says.
        unsafe { peer::rpfree(object) };
    }
}

family!(
    ready,
    peer::rpmalloc,
    peer::rpcalloc,
    peer::rprealloc,
    peer::rpaligned_alloc,
    free_known,
    peer::rpmalloc_usable_size
);
