//! [`Limit`]: the memory limit of the process, in bytes of slabs and large objects.

use alloc::boxed::Box;
use core::ffi::c_void;
use core::ptr::null_mut;

/// The number of bytes that the process may use for slabs and large objects. Tables of the library
/// and free units of its chunks do not count.
///
/// ```
/// use slabyard::Limit;
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
///
/// static SEEN: AtomicUsize = AtomicUsize::new(0);
/// Limit::new().hard(1 << 40).soft(1 << 20, |used| SEEN.store(used, Relaxed)).set()?;
/// let blocks: Vec<_> = {
///     let cache: &_ = Box::leak(Box::new(slabyard::Cache::new("block")));
///     (0..1000).map(|_| cache.insert([0u8; 4096])).collect()
/// };
/// assert!(SEEN.load(Relaxed) >= 1 << 20 && slabyard::memory_used() >= 1000 * 4096);
/// Limit::new().set()?; // none any more
/// # drop(blocks);
/// # Ok::<(), slabyard::LimitError>(())
/// ```
#[derive(Default)]
#[must_use = "it holds when it is set"]
pub struct Limit {
    hard: usize,
    soft: usize,
    callback: Option<Callback>,
}

type Callback = Box<dyn Fn(usize) + Send + Sync>;

impl Limit {
    /// No limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// The hard limit. If an allocation would exceed it, free memory is collected and the callback,
    /// if set, is called. If this does not help, the allocation is refused. 0: no limit.
    pub fn hard(self, bytes: usize) -> Self {
        Limit {
            hard: bytes,
            ..self
        }
    }

    /// The soft limit. When the memory in use reaches it, `callback` is called with the number of
    /// bytes, on the allocating thread, at the end of the allocation. It is called again if the use
    /// fell by more than an eighth and reached the limit again. Several threads may be in the
    /// callback at a time. It may allocate and free. If it panics, the process ends.
    pub fn soft(self, bytes: usize, callback: impl Fn(usize) + Send + Sync + 'static) -> Self {
        Limit {
            soft: bytes,
            callback: Some(Box::new(callback)),
            ..self
        }
    }

    /// Sets the limit, which replaces the previous one. Memory of callbacks is never freed, because
    /// a thread may be running one: do not call this for every request.
    pub fn set(self) -> Result<(), LimitError> {
        if self.hard > 0 && self.soft > self.hard {
            return Err(LimitError);
        }
        let arg: *mut c_void = match self.callback {
            Some(callback) if self.soft > 0 => Box::into_raw(Box::new(callback)).cast(),
            _ => null_mut(),
        };
        let limit = slabyard_sys::sy_limit {
            hard: self.hard,
            soft: self.soft,
            callback: if arg.is_null() { None } else { Some(call) },
            arg,
            reserved: [0; 4],
        };
        // SAFETY: a valid limit, whose callback may be called by any thread, at any time.
        if unsafe { slabyard_sys::sy_set_limit(&limit) } == 0 {
            return Ok(());
        }
        if !arg.is_null() {
            // SAFETY: the pointer came from a box, and was not set.
            drop(unsafe { Box::from_raw(arg.cast::<Callback>()) });
        }
        Err(LimitError)
    }
}

unsafe extern "C" fn call(arg: *mut c_void, used: usize, _soft: usize) {
    // SAFETY: set() passed this pointer, which is never freed.
    let callback = unsafe { &*arg.cast::<Callback>() };
    callback(used);
}

impl core::fmt::Debug for Limit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Limit")
            .field("hard", &self.hard)
            .field("soft", &self.soft)
            .finish_non_exhaustive()
    }
}

/// The soft limit is above the hard limit, or the library cannot start. Nothing was set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LimitError;

impl core::fmt::Display for LimitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the limit cannot be set: soft above hard, or no memory")
    }
}

impl core::error::Error for LimitError {}

/// The number of bytes that count for the process limit now.
pub fn memory_used() -> usize {
    // SAFETY: any thread may call this.
    unsafe { slabyard_sys::sy_limit_used() }
}
