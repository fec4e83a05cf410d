//! The C functions of Slabyard, as declared in `include/slabyard/`.
//!
//! The C core is compiled from source and linked statically. Functions that are inline in C
//! (`sy_pool_alloc`, `sy_cache_free` and others) exist twice here: as exported functions of the
//! same names, which cost a call, and as functions `..._inline` with the bodies of the headers. The
//! headers describe what each function takes, returns and reports. Here, only the obligations of
//! the caller are described.
//!
//! Rules common to all functions: pointers to caches and pools must come from their `create` and
//! must not have been destroyed. Errors are a null pointer or -1 with `errno`. No function is
//! async-signal-safe.

#![no_std]
#![allow(non_camel_case_types)]
#![warn(missing_docs)]

use core::ffi::{c_char, c_int, c_uint, c_void};

mod audit;
mod cache;
mod checks;
mod count;
mod epoch;
mod fault;
mod former;
mod handle;
#[cfg(test)]
mod headers;
mod heap;
mod limit;
mod loaded;
mod options;
mod pool;
mod profile;
mod reclaim;
mod scope;
mod stats;

pub use audit::*;
pub use cache::*;
pub use checks::*;
pub use count::*;
pub use epoch::*;
pub use fault::*;
pub use former::*;
pub use handle::*;
pub use heap::*;
pub use limit::*;
pub use loaded::*;
pub use options::*;
pub use pool::*;
pub use profile::*;
pub use reclaim::*;
pub use scope::*;
pub use stats::*;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::ptr::null_mut;

    #[test]
    fn options_are_said_and_told() {
        // SAFETY: C strings, and a buffer of that size.
        unsafe {
            assert_eq!(sy_set_options(c"stack-depth=7".as_ptr()), 0);
            assert_eq!(sy_set_options(c"stack-deep=8".as_ptr()), -1);
            let mut value: [c_char; 10] = [0; 10];
            let length = sy_get_option(c"stack-depth".as_ptr(), value.as_mut_ptr(), value.len());
            assert_eq!((length, value[0] as u8, value[1]), (1, b'7', 0));
        }
    }

    unsafe extern "C" fn third(count: *mut c_void, option: *const sy_option) -> c_int {
        // SAFETY: the test passes a counter, and the library an option.
        unsafe {
            assert!(!(*option).name.is_null() && !(*option).meaning.is_null());
            *count.cast::<c_int>() += 1;
            c_int::from(*count.cast::<c_int>() == 3)
        }
    }

    #[test]
    fn options_are_listed_until_the_visitor_has_enough() {
        let mut count: c_int = 0;
        // SAFETY: the counter outlives the call.
        let ended = unsafe { sy_option_each(third, (&raw mut count).cast()) };
        assert_eq!((ended, count), (1, 3));
    }

    #[test]
    fn what_was_set_is_told() {
        // SAFETY: any thread may call these; the limit has no callback.
        unsafe {
            let mut limit: sy_limit = core::mem::zeroed();
            limit.hard = 1 << 30;
            assert_eq!(sy_set_limit(&limit), 0);
            limit.hard = 0;
            assert_eq!((sy_get_limit(&mut limit), limit.hard), (0, 1 << 30));
            assert_eq!(sy_set_limit(core::ptr::null()), 0);
            sy_set_decay(300);
            sy_set_slack(80);
            assert_eq!((sy_get_decay(), sy_get_slack()), (300, 80));
            sy_set_slack(0);
        }
    }

    #[test]
    fn a_pool_gives_the_object_just_freed() {
        let config = sy_pool_config {
            size: 48,
            capacity: 2,
            ..Default::default()
        };
        // SAFETY: only this thread uses the pool, and each object is freed once.
        unsafe {
            let pool = sy_pool_create(&config);
            assert!(!pool.is_null());
            let (first, second) = (sy_pool_alloc(pool), sy_pool_alloc(pool));
            assert!(!first.is_null() && !second.is_null() && first != second);
            assert!(sy_pool_alloc(pool).is_null());
            assert_eq!((sy_pool_in_use(pool), sy_pool_capacity(pool)), (2, 2));
            sy_pool_free(pool, first);
            assert_eq!(sy_pool_alloc(pool), first);
            sy_pool_reset(pool);
            assert_eq!(sy_pool_in_use(pool), 0);
            sy_pool_free(pool, null_mut());
            assert_eq!(sy_pool_slot_size(pool), 48);
            sy_pool_destroy(pool);
        }
    }

    #[test]
    fn a_cache_counts_what_is_out() {
        let config = sy_cache_config {
            name: c"test".as_ptr(),
            size: 100,
            ..Default::default()
        };
        // SAFETY: every object is freed once, and none is used after.
        unsafe {
            let cache = sy_cache_create(&config);
            assert!(!cache.is_null());
            let mut objects = [null_mut(); 10];
            assert_eq!(sy_cache_alloc_batch(cache, objects.as_mut_ptr(), 10), 10);
            let object = sy_cache_alloc(cache);
            assert_eq!(sy_cache_in_use(cache), 11);
            assert_eq!(sy_cache_destroy(cache), -1);
            sy_cache_free_batch(cache, objects.as_ptr(), 10);
            assert!(!sy_cache_try_free(
                cache,
                (&raw const config).cast_mut().cast()
            ));
            assert!(sy_cache_try_free(cache, object));
            let mut stats: sy_cache_stats = core::mem::zeroed();
            assert_eq!(sy_cache_get_stats(cache, &mut stats), 0);
            assert_eq!((stats.object_size, stats.in_use), (100, 0));
            assert_eq!(stats.slot_size, sy_cache_slot_size(cache));
            sy_thread_flush();
            sy_trim();
            assert_eq!(sy_cache_destroy(cache), 0);
        }
    }

    #[test]
    fn inline_functions_do_what_calls_do() {
        let config = sy_cache_config {
            size: 48,
            ..Default::default()
        };
        // SAFETY: every object is freed once, and none is used after.
        unsafe {
            let cache = sy_cache_create(&config);
            let objects = [(); 1000].map(|()| sy_cache_alloc_inline(cache));
            assert_eq!(sy_cache_in_use(cache), 1000);
            for object in &objects[1..] {
                sy_cache_free_inline(cache, *object);
            }
            assert_eq!(sy_cache_alloc(cache), objects[999]);
            sy_cache_free(cache, objects[0]);
            sy_cache_free_inline(cache, objects[999]);
            assert_eq!(sy_cache_destroy(cache), 0);
        }
    }

    #[test]
    fn inline_functions_of_a_pool_do_what_calls_do() {
        let config = sy_pool_config {
            size: 40,
            ..Default::default()
        };
        // SAFETY: every object is freed once, and none is used after.
        unsafe {
            let pool = sy_pool_create(&config);
            *sy_pool_word(pool) = 42;
            let objects = [(); 5000].map(|()| sy_pool_alloc_inline(pool));
            assert_eq!(sy_pool_in_use(pool), 5000);
            for object in &objects[1..] {
                sy_pool_free_inline(pool, *object);
            }
            assert_eq!(sy_pool_alloc(pool), objects[4999]);
            sy_pool_free(pool, objects[0]);
            assert_eq!(sy_pool_alloc_inline(pool), objects[0]);
            assert_eq!((sy_pool_in_use(pool), *sy_pool_word(pool)), (2, 42));
            sy_pool_free_inline(pool, objects[0]);
            sy_pool_free_inline(pool, objects[4999]);
            assert!(sy_pool_trim(pool) >= 5000 * 40);
            sy_pool_destroy(pool);
        }
    }

    #[test]
    fn who_has_no_cache_yet_finds_a_slot_that_is_shut() {
        if !SY_LOADED_INLINE {
            return;
        }
        // SAFETY: the slot is this thread's, first the shut one and then that of the cache; the
        // object is freed once.
        unsafe {
            assert!(sy_loaded_pop(sy_loaded_slots()).is_none());
            assert!(!sy_loaded_push(sy_loaded_slots(), 8));
            let config = sy_cache_config {
                size: 48,
                ..Default::default()
            };
            let cache = sy_cache_create(&config);
            sy_cache_free_inline(cache, sy_cache_alloc_inline(cache));
            assert_ne!(sy_cache_loaded_offset(cache), 0);
            assert!(sy_loaded_pop(sy_loaded_slots()).is_none());
            assert!(!sy_loaded_push(sy_loaded_slots(), 8));
            assert_eq!(sy_cache_destroy(cache), 0);
        }
    }

    #[test]
    fn handles_are_refused_once_they_are_stale() {
        let config = sy_cache_config {
            size: 24,
            flags: SY_HANDLES,
            ..Default::default()
        };
        // SAFETY: objects are used as long as they are live, and each ordinal is put back once.
        unsafe {
            let cache = sy_cache_create(&config);
            let mut handles = [0; 500];
            for (i, handle) in handles.iter_mut().enumerate() {
                let object = match i % 2 {
                    0 => sy_handle_alloc_inline(cache, handle),
                    _ => sy_handle_alloc(cache, handle),
                };
                assert_eq!(sy_handle_get_inline(cache, *handle), object);
                assert_eq!(sy_handle_of(object), *handle);
            }
            assert!(!sy_handle_pin_inline(cache, handles[7]).is_null());
            assert!(sy_handle_free_inline(cache, handles[7]));
            assert_eq!(sy_cache_in_use(cache), 500);
            sy_handle_unpin_inline(cache, handles[7]);
            assert_eq!(sy_cache_in_use(cache), 499);
            assert!(sy_handle_pin(cache, handles[7]).is_null());
            assert!(!sy_handle_free(cache, handles[7]));
            let ordinal = sy_handle_take_inline(cache).expect("there is memory");
            assert_eq!(sy_cache_in_use(cache), 500);
            sy_handle_put_inline(cache, ordinal);
            assert_eq!(sy_cache_in_use(cache), 499);
            let (mut firsts, mut slots) = ([0; 64], 0);
            let count = sy_handle_slabs(cache, firsts.as_mut_ptr(), 64, &mut slots);
            assert!(count > 0 && count <= 64 && count * slots as usize >= 500);
            assert!(firsts[..count]
                .iter()
                .any(|first| (*first..*first + slots).contains(&(handles[3] as u32))));
            assert_eq!(sy_cache_destroy(cache), -1);
            for handle in handles {
                assert_eq!(sy_handle_free_inline(cache, handle), handle != handles[7]);
            }
            assert_eq!(sy_cache_destroy(cache), 0);
        }
    }

    #[test]
    fn an_epoch_is_one_phase() {
        let config = sy_cache_config {
            size: 100,
            flags: SY_EPOCHS,
            ..Default::default()
        };
        // SAFETY: the object is freed once, and the epoch is not used after its end.
        unsafe {
            let cache = sy_cache_create(&config);
            let epoch = sy_epoch_create(c"test".as_ptr());
            assert!(!cache.is_null() && !epoch.is_null());
            assert_eq!(sy_epoch_begin(epoch), 0);
            assert_eq!(sy_epoch_current(), epoch);
            let object = sy_cache_alloc(cache);
            assert_eq!(sy_epoch_end(null_mut()), -1);
            assert_eq!(sy_epoch_end(epoch), 0);
            assert_eq!(sy_epoch_close(epoch), 1);
            sy_cache_free(cache, object);
            assert_eq!(sy_cache_destroy(cache), 0);
        }
    }

    #[test]
    fn the_heap_resizes() {
        // SAFETY: every object is freed once, and written within its size.
        unsafe {
            let object = sy_malloc(10).cast::<u8>();
            object.write(42);
            let object = sy_realloc(object.cast(), 100_000);
            assert_eq!(object.cast::<u8>().read(), 42);
            assert!(sy_usable_size(object) >= 100_000);
            assert_eq!(sy_good_size(100), 112);
            sy_free_sized(object, 100_000);
            let object = sy_aligned_alloc(4096, 100);
            assert_eq!(object as usize % 4096, 0);
            sy_free(object);
            assert!(sy_calloc(usize::MAX, 2).is_null());
            assert!(sy_reallocarray(null_mut(), usize::MAX, 2).is_null());
            let object = sy_aligned_calloc(64, 25, 4).cast::<u32>();
            assert_eq!((object as usize % 64, object.add(24).read()), (0, 0));
            assert!(sy_expand(object.cast(), 128) && !sy_expand(object.cast(), 129));
            sy_free_sized(object.cast(), 128);
            sy_free_sized(sy_zalloc(10), 10);
            let mut stats = sy_stats::default();
            sy_get_stats(&mut stats);
            assert!(stats.mapped > 0);
        }
    }
}
