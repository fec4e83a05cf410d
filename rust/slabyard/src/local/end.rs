//! Ends a thread's pools when the thread ends.
//!
//! Other thread-local variables of the thread may own values in slots, and the order of their
//! destructors is not known here. So the pools are ended by a function that runs after the destructors
//! of thread-local variables ([`key`]). On systems where these use keys too, destructors run in rounds;
//! so the first round is skipped. A pool with a taken slot waits for a later round. If a slot is still
//! taken in the last round, the pool stays until the process ends.
//!
//! The thread's pointer is a list of its pools, each a [`Record`].

use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::{null_mut, NonNull};

use super::key;

/// The number of rounds used. Every system runs at least 4 (POSIX). Under ThreadSanitizer the last
/// one is not used: it ends ThreadSanitizer's own data of the thread, and instrumented code crashes
/// after that.
pub(super) const ROUNDS: u32 = if cfg!(slabyard_tsan) { 3 } else { 4 };

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

/// The thread's list.
fn first() -> *mut Record {
    key::get(end_all).cast()
}

fn set(first: *mut Record) -> bool {
    key::set(end_all, first.cast())
}

/// Registers a pool to be ended with the thread. False: there is no memory, and nothing changed.
pub fn register(end: End) -> bool {
    let next = first();
    // A destructor of another key may build a pool while the thread ends. The count of rounds goes
    // on then.
    // SAFETY: null, or the first record of this thread's list.
    let rounds = unsafe { next.as_ref() }.map_or(0, |first| first.rounds);
    let Some(record) = Record::new(Record { next, end, rounds }) else {
        return false;
    };
    if set(record.as_ptr()) {
        return true;
    }
    // SAFETY: made above, and not in the list.
    unsafe { Record::free(record.as_ptr()) }
    false
}

/// Removes the last registration of this thread.
pub(super) fn unregister() {
    let record = first();
    // SAFETY: there is a record, as the caller says. It is removed from the list before it is
    // freed.
    unsafe {
        set((*record).next);
        Record::free(record);
    }
}

/// Called when the thread ends, in rounds.
unsafe extern "C" fn end_all(list: *mut c_void) {
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
            set(left);
        }
    }
}
