//! [`Limit`]: the memory limit of the process, in bytes of slabs and large objects.

use alloc::boxed::Box;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

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

/// Makes a box that a limit keeps until the process ends. The report of leaks at exit knows the
/// name of this function, and leaves such boxes out (src/report/whose.c).
#[inline(never)]
fn keep_for_limit<T>(value: T) -> Box<T> {
    Box::new(value)
}

impl Limit {
    /// No limit.
    pub const fn new() -> Self {
        Limit {
            hard: 0,
            soft: 0,
            callback: None,
        }
    }

    /// The hard limit. If an allocation would exceed it, free memory is collected and the callback,
    /// if set, is called. If this does not help, the allocation is refused. 0: no limit.
    ///
    /// If [`Slabyard`](crate::Slabyard) is the global allocator, a refused allocation of a `Box`, a
    /// `Vec` or a `String` ends the process, as `std` does whenever there is no memory. Refuse work
    /// before that: by limits of caches and maps, whose `try_insert` returns the value; by
    /// `try_reserve` for large buffers; or in the callback of [`soft`](Self::soft), with a soft
    /// limit some MiB below the hard one.
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
            callback: Some(keep_for_limit(callback)),
            ..self
        }
    }

    /// Sets the limit, which replaces the previous one. The previous callback is dropped, or, if a
    /// thread is running one, by the next call that finds none running.
    pub fn set(self) -> Result<(), LimitError> {
        if self.hard > 0 && self.soft > self.hard {
            return Err(LimitError);
        }
        let callback = self.callback.filter(|_| self.soft > 0);
        let limit = slabyard_sys::sy_limit {
            hard: self.hard,
            soft: self.soft,
            callback: callback.is_some().then_some(call),
            arg: null_mut(),
            reserved: [0; 4],
        };
        let new = callback.map_or(null_mut(), |callback| {
            let next = null_mut();
            Box::into_raw(keep_for_limit(Set { callback, next }))
        });
        let setting = Setting::begin();
        let old = CURRENT.swap(new, Ordering::SeqCst);
        // SAFETY: a valid limit, whose callback may be called by any thread, at any time.
        let done = unsafe { slabyard_sys::sy_set_limit(&limit) } == 0;
        let gone = if done {
            old
        } else {
            CURRENT.swap(old, Ordering::SeqCst)
        };
        let unused = setting.replace(gone);
        drop(setting); // callbacks are dropped by code of the program
                       // SAFETY: no thread can reach them.
        unsafe { drop_all(unused) };
        done.then_some(()).ok_or(LimitError)
    }
}

/// A callback that is set, or was.
struct Set {
    callback: Callback,
    /// The next one of [`REPLACED`].
    next: *mut Set,
}

/// The callback that is set, or null.
static CURRENT: AtomicPtr<Set> = AtomicPtr::new(null_mut());
/// The number of calls that read `CURRENT`, or use what they read.
static CALLS: AtomicUsize = AtomicUsize::new(0);
/// Callbacks that were set before, and that a call may still use. Guarded by `SETTING`.
static REPLACED: AtomicPtr<Set> = AtomicPtr::new(null_mut());
static SETTING: AtomicBool = AtomicBool::new(false);

/// The right to change the callback. It is held for a few loads and stores of this file, and for
/// `sy_set_limit`, which calls nothing of the program.
struct Setting;

impl Setting {
    fn begin() -> Self {
        while SETTING.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        Self
    }

    /// Keeps a callback that is no longer set. Returns all those that no call uses any more.
    ///
    /// Sequentially consistent: a call counts itself, and then reads `CURRENT`. Here `CURRENT` was
    /// changed, and then the calls are read. If there are none, later calls read the new callback.
    fn replace(&self, gone: *mut Set) -> *mut Set {
        let before = REPLACED.load(Ordering::Relaxed);
        let all = match gone.is_null() {
            true => before,
            false => {
                // SAFETY: a callback that was set, and that only this list has now.
                unsafe { (*gone).next = before };
                gone
            }
        };
        let unused = CALLS.load(Ordering::SeqCst) == 0;
        REPLACED.store(if unused { null_mut() } else { all }, Ordering::Relaxed);
        if unused {
            all
        } else {
            null_mut()
        }
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        SETTING.store(false, Ordering::Release);
    }
}

/// # Safety
/// No other code uses the callbacks of this list.
unsafe fn drop_all(mut list: *mut Set) {
    while !list.is_null() {
        // SAFETY: it came from a box, and the list was its only owner.
        let set = unsafe { Box::from_raw(list) };
        list = set.next;
    }
}

unsafe extern "C" fn call(_arg: *mut c_void, used: usize, _soft: usize) {
    CALLS.fetch_add(1, Ordering::SeqCst);
    let set = CURRENT.load(Ordering::SeqCst);
    if !set.is_null() {
        // SAFETY: a callback is not dropped while this call is counted. Only `next` may change.
        let callback = unsafe { &(*set).callback };
        callback(used);
    }
    CALLS.fetch_sub(1, Ordering::SeqCst);
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
