//! Objects of one phase together, so that its memory comes back when it is over.

use alloc::ffi::CString;
use core::fmt;
use core::ptr::NonNull;

use crate::reclaim;

/// A phase of the program: a request, a frame, a generation of a table. What is allocated in it from
/// caches with [`epochs`](crate::CacheBuilder::epochs) lies in slabs of its own; when its objects are
/// freed, these are empty, whole, and used for anything else.
///
/// Nothing is freed with an epoch: boxes are dropped one by one, before or after. Beginning and ending
/// takes some tens of nanoseconds a cache.
///
/// Thread rule: any number of threads may be in it, and a thread in up to 32, one in the other.
///
/// ```
/// use slabyard::{Cache, Epoch};
///
/// let parts = Cache::builder().name("part").epochs().build().unwrap();
/// let request = Epoch::new("request").unwrap();
/// let live = request.scope(|| (0..100).map(|n| parts.insert(n)).collect::<Vec<_>>()).unwrap();
/// drop(live);
/// request.close(); // its slabs go
/// assert_eq!(parts.in_use(), 0);
/// ```
pub struct Epoch {
    epoch: NonNull<slabyard_sys::sy_epoch>,
}

// SAFETY: its doors may be called from any thread.
unsafe impl Send for Epoch {}
// SAFETY: the same.
unsafe impl Sync for Epoch {}

impl Epoch {
    /// An open epoch; `None`: there is no memory. Of the name 31 bytes are kept.
    pub fn new(name: &str) -> Option<Self> {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: a C string, which is copied.
        let epoch = NonNull::new(unsafe { slabyard_sys::sy_epoch_create(name.as_ptr()) })?;
        Some(Epoch { epoch })
    }

    /// Runs `work` in the epoch, on this thread; ends it also if `work` panics. `None`, without running
    /// it: the thread is in 32 epochs already, or in a destructor that the library runs.
    pub fn scope<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        /// Ends the innermost epoch of this thread, which is this one: scopes nest.
        struct End(*mut slabyard_sys::sy_epoch);

        impl Drop for End {
            fn drop(&mut self) {
                // SAFETY: any thread.
                unsafe { slabyard_sys::sy_epoch_end(self.0) };
            }
        }

        let epoch = self.epoch.as_ptr();
        // SAFETY: it is open as long as this is borrowed, and this is no destructor.
        let begun = reclaim::unless_within(|| unsafe { slabyard_sys::sy_epoch_begin(epoch) }, -1);
        if begun != 0 {
            return None;
        }
        let _end = End(epoch);
        Some(work())
    }

    /// The phase is over: slabs that are empty are given up at once, the others as soon as they are.
    /// Says how many objects count as live, those that other threads have at hand among them. Dropping
    /// it does the same.
    pub fn close(self) -> usize {
        let epoch = core::mem::ManuallyDrop::new(self);
        // SAFETY: open, ours, and not used again.
        unsafe { slabyard_sys::sy_epoch_close(epoch.epoch.as_ptr()) }
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        // SAFETY: the same.
        unsafe { slabyard_sys::sy_epoch_close(self.epoch.as_ptr()) };
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Epoch")
    }
}
