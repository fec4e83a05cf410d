//! Free memory goes back: on request, within a time, by itself; and what a thread has at hand.

use core::time::Duration;

/// Whether this thread is in a destructor that the library runs, where the doors of this file are
/// forbidden. Without the standard library no destructors are run.
#[cfg(feature = "std")]
mod inside {
    use core::cell::Cell;

    std::thread_local!(static DEPTH: Cell<usize> = const { Cell::new(0) });

    pub(super) fn depth() -> usize {
        DEPTH.get()
    }

    pub(crate) fn within(work: impl FnOnce()) {
        DEPTH.set(DEPTH.get() + 1);
        work();
        DEPTH.set(DEPTH.get() - 1);
    }
}

#[cfg(not(feature = "std"))]
mod inside {
    pub(super) fn depth() -> usize {
        0
    }
}

/// Runs a destructor of the program's; it does not panic.
#[cfg(feature = "std")]
pub(crate) use inside::within;

/// What `work` returns; in a destructor that the library runs, `otherwise`.
pub(crate) fn unless_within<R>(work: impl FnOnce() -> R, otherwise: R) -> R {
    if inside::depth() == 0 {
        work()
    } else {
        otherwise
    }
}

/// Gives the free memory of all caches, of the heap and of the library itself back to the system, and
/// says how many bytes. Takes as long as it takes. Any thread.
///
/// ```
/// let cache = slabyard::Cache::new("frame");
/// drop((0..1000).map(|_| cache.insert([0u8; 4096])).collect::<Vec<_>>());
/// slabyard::thread_flush();
/// assert!(slabyard::trim() > 1000 * 4096 / 2);
/// ```
pub fn trim() -> usize {
    // SAFETY: any thread.
    unless_within(|| unsafe { slabyard_sys::sy_trim() }, 0)
}

/// The same, until so many bytes have gone back or so much time has passed; goes on where the last
/// one has stopped.
pub fn trim_some(bytes: usize, time: Duration) -> usize {
    let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: any thread.
    unless_within(|| unsafe { slabyard_sys::sy_trim_some(bytes, time) }, 0)
}

/// Free memory that nobody uses goes back by itself within two to four times `decay`; `None`: never.
/// At first a second. Counted in milliseconds, at least one.
pub fn set_decay(decay: Option<Duration>) {
    let milliseconds = decay.map_or(0, |decay| {
        u64::try_from(decay.as_millis()).unwrap_or(u64::MAX).max(1)
    });
    // SAFETY: any thread.
    unsafe { slabyard_sys::sy_set_decay(milliseconds) }
}

/// This thread expects to be idle: others may take the free objects that it has at hand until its next
/// allocation or free.
pub fn thread_idle() {
    // SAFETY: not from a destructor of the library's.
    unless_within(|| unsafe { slabyard_sys::sy_thread_idle() }, ());
}

/// Gives the free objects that this thread has at hand back to their slabs.
pub fn thread_flush() {
    // SAFETY: not from a destructor of the library's.
    unless_within(|| unsafe { slabyard_sys::sy_thread_flush() }, ());
}

/// Starts a thread that gives memory back by itself, which slow paths do otherwise. False: the system
/// does not give one.
pub fn start_maintenance() -> bool {
    // SAFETY: any thread.
    unsafe { slabyard_sys::sy_maintenance_start() == 0 }
}

/// Ends that thread. In a destructor that it runs itself, nothing happens.
pub fn stop_maintenance() {
    // SAFETY: not from a destructor of the library's.
    unless_within(|| unsafe { slabyard_sys::sy_maintenance_stop() }, ());
}

/// Looks through all the library knows for damage to objects and to itself, and says how often it was
/// found: 0 when all is well. Each is reported. Slow; any thread.
pub fn verify() -> usize {
    // SAFETY: any thread.
    unsafe { slabyard_sys::sy_verify() }
}
