//! The limit of the process, in bytes of slabs and large objects.

use alloc::boxed::Box;
use core::ffi::c_void;
use core::ptr::null_mut;

/// How much memory the process may use for slabs and large objects, in bytes. Tables of the library and
/// free units of its chunks do not count.
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

    /// Never more than this is taken: what needs more is refused, after free memory was brought
    /// together and the callback, if there is one, was called. 0: none.
    pub fn hard(self, bytes: usize) -> Self {
        Limit {
            hard: bytes,
            ..self
        }
    }

    /// From here on `callback` is called with what is in use, in a thread that allocates, at the end of
    /// the allocation; and again when it has fallen by more than an eighth and come back. Several
    /// threads may be in it at a time; it may free, and allocate. A panic of it ends the process.
    pub fn soft(self, bytes: usize, callback: impl Fn(usize) + Send + Sync + 'static) -> Self {
        Limit {
            soft: bytes,
            callback: Some(Box::new(callback)),
            ..self
        }
    }

    /// From now on, in place of the limit before. Callbacks stay in memory for ever, as a thread may be
    /// in one: this is not for every request.
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
        // SAFETY: a valid limit, whose callback may be called by any thread, for ever.
        if unsafe { slabyard_sys::sy_set_limit(&limit) } == 0 {
            return Ok(());
        }
        if !arg.is_null() {
            // SAFETY: it came from a box, and was not set.
            drop(unsafe { Box::from_raw(arg.cast::<Callback>()) });
        }
        Err(LimitError)
    }
}

unsafe extern "C" fn call(arg: *mut c_void, used: usize, _soft: usize) {
    // SAFETY: set() gave it, and it stays.
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

/// The soft limit is above the hard one, or the library cannot start; nothing was set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LimitError;

impl core::fmt::Display for LimitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the limit cannot be set: soft above hard, or no memory")
    }
}

impl core::error::Error for LimitError {}

/// Bytes that count for the limit of the process now.
pub fn memory_used() -> usize {
    // SAFETY: any thread.
    unsafe { slabyard_sys::sy_limit_used() }
}
