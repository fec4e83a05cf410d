//! Ends a thread's pools when the thread ends.
//!
//! Other thread-local variables of the thread may own values in slots, and the order of their
//! destructors is not known here. So the pools are ended by the destructor of a pthread key, which
//! runs after the destructors of thread-local variables. On systems where these use keys too,
//! destructors run in rounds; the first round is then skipped. A pool with a taken slot waits for a
//! later round. If a slot is still taken in the last round, the pool stays until the process ends.
//!
//! The key's value is a list of the thread's pools, each a [`Record`].

use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::{null_mut, NonNull};
use std::sync::OnceLock;

/// The number of rounds used. Every system runs at least 4 (POSIX). Under ThreadSanitizer the last
/// one is not used: it ends ThreadSanitizer's own data of the thread, and instrumented code crashes
/// after that.
const ROUNDS: u32 = if cfg!(slabyard_tsan) { 3 } else { 4 };

/// Ends a pool of this thread. The argument tells whether this is the last round. False: not ended
/// yet.
pub type End = fn(bool) -> bool;

/// A pool that is ended when the thread ends.
struct Record {
    next: *mut Record,
    end: End,
    /// In the first record of the list: how often the destructor ran.
    rounds: u32,
}

impl Record {
    /// `None`: there is no memory.
    fn new(record: Record) -> Option<NonNull<Record>> {
        // SAFETY: a record has more than 0 bytes, and its memory is written before it is read.
        unsafe {
            let place = NonNull::new(alloc(Layout::new::<Record>()))?.cast();
            place.write(record);
            Some(place)
        }
    }

    /// # Safety
    /// `new` made the record, and it is not used again.
    unsafe fn free(record: *mut Record) {
        // SAFETY: as the caller says.
        unsafe { dealloc(record.cast(), Layout::new::<Record>()) }
    }
}

/// The key. `None`: the system has no more keys.
fn key() -> Option<libc::pthread_key_t> {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the destructor gets the list that `set` stores.
        let error = unsafe { libc::pthread_key_create(&mut key, Some(end_all)) };
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

/// Registers a pool to be ended with the thread. False: there is no memory, and nothing changed.
pub fn register(end: End) -> bool {
    let Some(key) = key() else { return false };
    let next = first(key);
    // A destructor of another key may build a pool while the thread ends. The count of rounds goes
    // on then.
    // SAFETY: null, or the first record of this thread's list.
    let rounds = unsafe { next.as_ref() }.map_or(0, |first| first.rounds);
    let Some(record) = Record::new(Record { next, end, rounds }) else {
        return false;
    };
    if set(key, record.as_ptr()) {
        return true;
    }
    // SAFETY: made above, and not in the list.
    unsafe { Record::free(record.as_ptr()) }
    false
}

pub use register as at_thread_end;

/// Removes the last registration of this thread.
pub(super) fn unregister() {
    let Some(key) = key() else { return };
    let record = first(key);
    // SAFETY: there is a record, as the caller says. It is removed from the list before it is
    // freed.
    unsafe {
        set(key, (*record).next);
        Record::free(record);
    }
}

/// The destructor of the key.
unsafe extern "C" fn end_all(list: *mut c_void) {
    let Some(key) = key() else { return };
    let mut record: *mut Record = list.cast();
    // SAFETY: a list of records, the first of which counts rounds. No other thread uses it.
    unsafe {
        let rounds = (*record).rounds + 1;
        let mut left: *mut Record = null_mut();
        while !record.is_null() {
            let next = (*record).next;
            if rounds == 1 || !((*record).end)(rounds >= ROUNDS) {
                (*record).next = left;
                left = record;
            } else {
                Record::free(record);
            }
            record = next;
        }
        if !left.is_null() {
            (*left).rounds = rounds;
            set(key, left);
        }
    }
}
