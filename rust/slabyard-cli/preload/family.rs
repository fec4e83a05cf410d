//! The malloc family of a library to be preloaded, over one allocator's functions.
//!
//! These libraries are only for measurements: programs run on them for real, and `slabyard compare`
//! replays on the same builds of the same allocators.

/// Exports `malloc` and its kin. `$ready` runs before each call that may be a thread's first.
macro_rules! family {
    ($ready:expr, $malloc:path, $calloc:path, $realloc:path, $aligned:path, $free:path, $usable:path) => {
        use core::ffi::{c_int, c_void};

        const PAGE: usize = 4096;

        #[no_mangle]
        unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
            $ready();
            unsafe { $malloc(size) }
        }

        #[no_mangle]
        unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
            $ready();
            unsafe { $calloc(count, size) }
        }

        #[no_mangle]
        unsafe extern "C" fn realloc(object: *mut c_void, size: usize) -> *mut c_void {
            $ready();
            unsafe { $realloc(object, size) }
        }

        #[no_mangle]
        unsafe extern "C" fn reallocarray(
            object: *mut c_void,
            count: usize,
            size: usize,
        ) -> *mut c_void {
            match count.checked_mul(size) {
                Some(bytes) => unsafe { realloc(object, bytes) },
                None => core::ptr::null_mut(),
            }
        }

        #[no_mangle]
        unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
            $ready();
            unsafe { $aligned(align, size) }
        }

        #[no_mangle]
        unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
            unsafe { aligned_alloc(align, size) }
        }

        #[no_mangle]
        unsafe extern "C" fn posix_memalign(
            place: *mut *mut c_void,
            align: usize,
            size: usize,
        ) -> c_int {
            let object = unsafe { aligned_alloc(align, size) };
            if object.is_null() {
                return libc::ENOMEM;
            }
            // SAFETY: the caller's own place.
            unsafe { place.write(object) };
            0
        }

        #[no_mangle]
        unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
            unsafe { aligned_alloc(PAGE, size) }
        }

        #[no_mangle]
        unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
            unsafe { aligned_alloc(PAGE, size.next_multiple_of(PAGE)) }
        }

        #[no_mangle]
        unsafe extern "C" fn free(object: *mut c_void) {
            unsafe { $free(object) }
        }

        #[no_mangle]
        unsafe extern "C" fn malloc_usable_size(object: *mut c_void) -> usize {
            if object.is_null() {
                return 0;
            }
            unsafe { $usable(object) }
        }
    };
}

/// For allocators that need no call before a thread's first allocation.
#[allow(dead_code)]
#[inline(always)]
pub fn always_ready() {}
