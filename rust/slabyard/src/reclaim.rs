//! Returning free memory: on request, after a time, or in the background; flushing a thread's
//! magazines.

use core::time::Duration;

/// Whether this thread is in a destructor that the library runs, where the functions of this file
/// are forbidden. Without the standard library, no such destructor exists.
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

/// Runs a destructor of the program, which does not panic.
#[cfg(feature = "std")]
pub(crate) use inside::within;

/// The result of `work`. In a destructor that the library runs, `otherwise`, without running
/// `work`.
pub(crate) fn unless_within<R>(work: impl FnOnce() -> R, otherwise: R) -> R {
    if inside::depth() == 0 {
        work()
    } else {
        otherwise
    }
}

/// Returns the free memory of all caches, of the heap and of the library itself to the system. The
/// result is the number of bytes. There is no limit of time. Any thread may call this.
///
/// ```
/// let cache = slabyard::Cache::new("frame");
/// drop((0..1000).map(|_| cache.insert([0u8; 4096])).collect::<Vec<_>>());
/// slabyard::thread_flush();
/// assert!(slabyard::trim() > 1000 * 4096 / 2);
/// ```
pub fn trim() -> usize {
    // SAFETY: any thread may call this.
    unless_within(|| unsafe { slabyard_sys::sy_trim() }, 0)
}

/// Returns free memory as [`trim`] does, until `bytes` were returned or `time` has passed. The next
/// call continues where this one stopped.
pub fn trim_some(bytes: usize, time: Duration) -> usize {
    let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: any thread may call this.
    unless_within(|| unsafe { slabyard_sys::sy_trim_some(bytes, time) }, 0)
}

/// Sets the decay time: free memory that stays unused is returned automatically after two to four
/// times `decay`, or up to four times later if the program soon uses much of this memory again.
/// `None`: never. The default is 250 milliseconds. It is counted in milliseconds, at least one.
pub fn set_decay(decay: Option<Duration>) {
    let milliseconds = decay.map_or(0, |decay| {
        u64::try_from(decay.as_millis()).unwrap_or(u64::MAX).max(1)
    });
    // SAFETY: any thread may call this.
    unsafe { slabyard_sys::sy_set_decay(milliseconds) }
}

/// The decay time, as it was set by [`set_decay`] or by the option `decay`. `None`: never.
///
/// ```
/// slabyard::set_decay(None); // keep all memory in this phase
/// assert_eq!(slabyard::decay(), None);
/// ```
#[must_use]
pub fn decay() -> Option<Duration> {
    // SAFETY: any thread may call this.
    let milliseconds = unsafe { slabyard_sys::sy_get_decay() };
    (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
}

/// Bounds the memory that Slabyard holds, live and free. The bound is the most that live objects
/// needed at a moment of the last one to two seconds, plus a reserve: `percent` per cent of it, and
/// at least 4 MiB. Pages that hold a live object cannot go, so where such objects are scattered more
/// may be held. A low bound costs page faults. `Some(0)` is taken for one per cent. `None`: no bound, the default.
///
/// ```
/// slabyard::set_slack(Some(50)); // at most 1.5 times what live objects needed lately
/// ```
pub fn set_slack(percent: Option<usize>) {
    // SAFETY: any thread may call this.
    unsafe { slabyard_sys::sy_set_slack(percent.map_or(0, |percent| percent.max(1))) }
}

/// The bound in per cent, as it was set by [`set_slack`] or by the option `slack`. `None`: no bound.
///
/// ```
/// slabyard::set_slack(Some(50));
/// assert_eq!(slabyard::slack(), Some(50));
/// ```
#[must_use]
pub fn slack() -> Option<usize> {
    // SAFETY: any thread may call this.
    Some(unsafe { slabyard_sys::sy_get_slack() }).filter(|percent| *percent > 0)
}

/// Declares that this thread will be idle. Until its next allocation or free, other threads may
/// take the free objects in its magazines.
pub fn thread_idle() {
    // SAFETY: this is not called in a destructor that the library runs.
    unless_within(|| unsafe { slabyard_sys::sy_thread_idle() }, ());
}

/// Gives the free objects in this thread's magazines back to their slabs.
pub fn thread_flush() {
    // SAFETY: this is not called in a destructor that the library runs.
    unless_within(|| unsafe { slabyard_sys::sy_thread_flush() }, ());
}

/// Starts a background thread that returns unused memory, once every decay time. False: the system
/// cannot create a thread.
///
/// Without it, slow paths do this. So a program that allocates nothing, or so little that a thread's
/// magazines serve it, keeps the memory of an earlier peak. Where [`Slabyard`](crate::Slabyard) is
/// the global allocator, the thread starts by itself once 16 MiB are in use. Caches and maps start
/// no thread: a library that uses one must not start a thread in a program that does not know of
/// it. So a program whose caches or maps shrink calls this once, in `main`.
///
/// ```
/// assert!(slabyard::start_maintenance());
/// slabyard::stop_maintenance();
/// ```
pub fn start_maintenance() -> bool {
    // SAFETY: any thread may call this.
    unsafe { slabyard_sys::sy_maintenance_start() == 0 }
}

/// Stops the background thread; it does not start by itself again. In a destructor that this thread
/// runs, nothing happens.
pub fn stop_maintenance() {
    // SAFETY: this is not called in a destructor that the library runs.
    unless_within(|| unsafe { slabyard_sys::sy_maintenance_stop() }, ());
}

/// Prepares for a sandbox: call it before the process forbids itself system calls (seccomp). It
/// ends the background threads; from then on the library asks the system for nothing but memory,
/// the time, random numbers, and to wait. There is no way back. In a destructor that this thread
/// runs, nothing happens.
pub fn enter_sandbox() {
    // SAFETY: this is not called in a destructor that the library runs.
    unless_within(|| unsafe { slabyard_sys::sy_enter_sandbox() }, ());
}

/// Checks all objects and the library's own data for damage. The result is the number of faults
/// found; 0 means that all is well. Each fault is reported. This is slow. Any thread may call it.
pub fn verify() -> usize {
    // SAFETY: any thread may call this.
    unsafe { slabyard_sys::sy_verify() }
}
