//! [`Epoch`]: places the objects of one phase together, so that their slabs become free when it is
//! over.

use alloc::ffi::CString;
use core::fmt;
use core::ptr::NonNull;

use crate::reclaim;

/// A phase of the program: a request, a frame, a generation of a table. Objects that are allocated
/// in it from caches with [`epochs`](crate::CacheBuilder::epochs) lie in slabs of their own. When
/// these objects are freed, their slabs are empty and can be used for anything else.
///
/// Closing an epoch frees no object: boxes are dropped one by one, before or after. Entering and
/// leaving an epoch takes some tens of nanoseconds a cache.
///
/// Thread rule: any number of threads may be in an epoch, and a thread may be in up to 32 nested
/// epochs.
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

// SAFETY: the functions of epochs may be called from any thread.
unsafe impl Send for Epoch {}
// SAFETY: as above.
unsafe impl Sync for Epoch {}

impl Epoch {
    /// Opens an epoch. `None`: there is no memory. The first 31 bytes of the name are kept.
    pub fn new(name: &str) -> Option<Self> {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: a C string, which is copied.
        let epoch = NonNull::new(unsafe { slabyard_sys::sy_epoch_create(name.as_ptr()) })?;
        Some(Epoch { epoch })
    }

    /// Runs `work` in the epoch, on this thread, and leaves the epoch also if `work` panics.
    /// `None`: `work` was not run, because the thread is in 32 epochs already, or in a destructor
    /// that the library runs.
    pub fn scope<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        /// Leaves the innermost epoch of this thread, which is this one, because scopes nest.
        struct End(*mut slabyard_sys::sy_epoch);

        impl Drop for End {
            fn drop(&mut self) {
                // SAFETY: any thread may call this.
                unsafe { slabyard_sys::sy_epoch_end(self.0) };
            }
        }

        let epoch = self.epoch.as_ptr();
        // SAFETY: the epoch is open while it is borrowed, and this is not called in a destructor.
        let begun = reclaim::unless_within(|| unsafe { slabyard_sys::sy_epoch_begin(epoch) }, -1);
        if begun != 0 {
            return None;
        }
        let _end = End(epoch);
        Some(work())
    }

    /// Ends the phase: empty slabs are released at once, the others as soon as they are empty. The
    /// result is the number of objects that count as live, including free ones in the magazines of
    /// other threads. Dropping the epoch does the same.
    pub fn close(self) -> usize {
        let epoch = core::mem::ManuallyDrop::new(self);
        // SAFETY: the epoch is open and ours, and is not used again.
        unsafe { slabyard_sys::sy_epoch_close(epoch.epoch.as_ptr()) }
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        // SAFETY: as in close.
        unsafe { slabyard_sys::sy_epoch_close(self.epoch.as_ptr()) };
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Epoch")
    }
}
