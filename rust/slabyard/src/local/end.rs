//! What happens to a thread's pools when it ends.
//!
//! Values in slots may be owned by other thread-local variables of the thread, whose destructors
//! come in an order that nobody here chooses. So the pools go in the destructor of a pthread key:
//! those run after the destructors of thread-local variables, or, on systems where these are made
//! of keys too, in rounds, of which the first is let pass. A pool of which a slot is taken waits
//! for a later round; after the last one it stays for ever.
//!
//! The key's value is a list of the thread's pools, each a [`Record`].

use crate::raw::pool::RawPool;
use alloc::boxed::Box;
use core::ffi::c_void;
use core::ptr::null_mut;
use std::sync::OnceLock;

/// Rounds that every system grants a key (POSIX: at least 4).
const ROUNDS: u32 = 4;

/// A pool that goes when the thread ends, and what has to be told first.
struct Record {
    next: *mut Record,
    pool: RawPool,
    shut: fn(),
    /// Of the first in the list: how often the destructor ran.
    rounds: u32,
}

/// The key; `None` where there are no more.
fn key() -> Option<libc::pthread_key_t> {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the destructor takes what `set` puts in.
        let error = unsafe { libc::pthread_key_create(&mut key, Some(end)) };
        (error == 0).then_some(key)
    })
}

fn first(key: libc::pthread_key_t) -> *mut Record {
    // SAFETY: the key exists.
    unsafe { libc::pthread_getspecific(key).cast() }
}

fn set(key: libc::pthread_key_t, first: *mut Record) -> bool {
    // SAFETY: the key exists; its values are lists of records, or null.
    unsafe { libc::pthread_setspecific(key, first.cast()) == 0 }
}

/// From here on the pool is this thread's; `shut` is called before it goes. False, and nothing
/// happened: there is no memory.
pub(super) fn register(pool: RawPool, shut: fn()) -> bool {
    let Some(key) = key() else { return false };
    let record = Box::into_raw(Box::new(Record {
        next: first(key),
        pool,
        shut,
        rounds: 0,
    }));
    if set(key, record) {
        return true;
    }
    // SAFETY: made above, and not in the list.
    drop(unsafe { Box::from_raw(record) });
    false
}

/// The pool that was registered last goes, of which no slot is taken.
pub(super) fn unregister(pool: RawPool) {
    let Some(key) = key() else { return };
    // SAFETY: there is a record, as the caller says.
    let record = unsafe { Box::from_raw(first(key)) };
    debug_assert!(record.pool == pool);
    set(key, record.next);
    (record.shut)();
    // SAFETY: nobody can reach it any more.
    unsafe { record.pool.destroy() };
}

/// The destructor of the key.
unsafe extern "C" fn end(list: *mut c_void) {
    let Some(key) = key() else { return };
    let mut record: *mut Record = list.cast();
    // SAFETY: a list of records, the first of which counts rounds; it is this thread's alone.
    unsafe {
        let rounds = (*record).rounds + 1;
        let mut left: *mut Record = null_mut();
        while !record.is_null() {
            let next = (*record).next;
            if !ends(&*record, rounds) {
                (*record).next = left;
                left = record;
            } else {
                drop(Box::from_raw(record));
            }
            record = next;
        }
        if !left.is_null() {
            (*left).rounds = rounds;
            set(key, left);
        }
    }
}

/// True if the pool went, or stays for ever.
fn ends(record: &Record, round: u32) -> bool {
    if round == 1 {
        return false;
    }
    // SAFETY: the pool exists, and is this thread's; it goes if no object is out, after the last
    // way to reach it was shut.
    unsafe {
        if record.pool.in_use() == 0 {
            (record.shut)();
            record.pool.destroy();
            true
        } else if round >= ROUNDS {
            record.pool.keep();
            true
        } else {
            false
        }
    }
}
