//! What happens to a thread's pools when it ends.
//!
//! Values in slots may be owned by other thread-local variables of the thread, whose destructors
//! come in an order that nobody here chooses. So the pools go in the destructor of a pthread key:
//! those run after the destructors of thread-local variables, or, on systems where these are made
//! of keys too, in rounds, of which the first is let pass. A pool of which a slot is taken waits
//! for a later round; after the last one it stays for ever.
//!
//! The key's value is a list of the thread's pools, each a [`Record`].

use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::{null_mut, NonNull};
use std::sync::OnceLock;

/// Rounds that every system grants a key (POSIX: at least 4). In the last one ThreadSanitizer ends its
/// own account of the thread, and code that it has instrumented crashes after that.
const ROUNDS: u32 = if cfg!(slabyard_tsan) { 3 } else { 4 };

/// Ends a pool of this thread; the argument says whether it is the last time. False: not yet.
pub type End = fn(bool) -> bool;

/// A pool that goes when the thread ends.
struct Record {
    next: *mut Record,
    end: End,
    /// Of the first in the list: how often the destructor ran.
    rounds: u32,
}

impl Record {
    /// `None`: there is no memory.
    fn new(record: Record) -> Option<NonNull<Record>> {
        // SAFETY: a record is no type of 0 bytes; its place is written before it is read.
        unsafe {
            let place = NonNull::new(alloc(Layout::new::<Record>()))?.cast();
            place.write(record);
            Some(place)
        }
    }

    /// # Safety
    /// It is one that `new` made, and not used again.
    unsafe fn free(record: *mut Record) {
        // SAFETY: as the caller says.
        unsafe { dealloc(record.cast(), Layout::new::<Record>()) }
    }
}

/// The key; `None` where there are no more.
fn key() -> Option<libc::pthread_key_t> {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the destructor takes what `set` puts in.
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

/// From here on the thread's end ends a pool. False, and nothing happened: there is no memory.
pub fn register(end: End) -> bool {
    let Some(key) = key() else { return false };
    let next = first(key);
    // A destructor of another key may build a pool while the thread ends: the count goes on.
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

/// Takes back what was registered last on this thread.
pub(super) fn unregister() {
    let Some(key) = key() else { return };
    let record = first(key);
    // SAFETY: there is a record, as the caller says; it is in the list no more when it goes.
    unsafe {
        set(key, (*record).next);
        Record::free(record);
    }
}

/// The destructor of the key.
unsafe extern "C" fn end_all(list: *mut c_void) {
    let Some(key) = key() else { return };
    let mut record: *mut Record = list.cast();
    // SAFETY: a list of records, the first of which counts rounds; it is this thread's alone.
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
