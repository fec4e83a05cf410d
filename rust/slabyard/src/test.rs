//! Counts of what a piece of code allocates, for tests.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: slabyard::Slabyard = slabyard::Slabyard;
//!
//! # fn main() {
//! let (words, counted) = slabyard::test::allocations(|| {
//!     let text = String::from("one two three");
//!     text.split(' ').map(str::len).collect::<Vec<_>>()
//! });
//! assert_eq!(counted.allocations, 2); // the text and the vector
//! assert_eq!(counted.live, 1); // the vector is still there
//! assert!(counted.peak_bytes < 1024);
//! # drop(words);
//! # }
//! ```
//!
//! Only the calling thread's allocations are counted, so tests may run side by side. Counted are
//! those of the global allocator, if it is [`Slabyard`](crate::Slabyard), and those of caches; not
//! those of pools, maps and epochs.

use slabyard_sys as sys;

/// What a piece of code allocated. Bytes are those that were asked for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Allocations {
    /// Objects that the thread allocated. A `Vec` that grows allocates each time that it moves.
    pub allocations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frees of these objects, by any thread.
    pub frees: u64,
    /// Objects that are not freed yet at the end, those that `work` has returned included.
    pub live: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// The most bytes of these objects that were live at a time.
    pub peak_bytes: u64,
}

/// Ends the count, also if the code panics.
struct Counting;

impl Counting {
    fn begin() -> Self {
        // SAFETY: a call without conditions.
        if unsafe { sys::sy_count_begin() } == 0 {
            return Counting;
        }
        let error = crate::os::last_error();
        panic!(
            "the allocations of this thread cannot be counted (is it counting already, is malloc \
             preloaded, or are objects checked?): {error}"
        );
    }

    fn end(self) -> Allocations {
        let mut counted = sys::sy_counted::default();
        // SAFETY: the struct is there.
        let result = unsafe { sys::sy_count_end(&mut counted) };
        core::mem::forget(self);
        assert!(result == 0, "there was no memory to count each allocation");
        Allocations {
            allocations: counted.allocations,
            bytes: counted.bytes,
            frees: counted.frees,
            live: counted.live,
            live_bytes: counted.live_bytes,
            peak_bytes: counted.peak_bytes,
        }
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let mut counted = sys::sy_counted::default();
        // SAFETY: the struct is there.
        unsafe { sys::sy_count_end(&mut counted) };
    }
}

/// Runs `work`, and counts what this thread allocates meanwhile.
///
/// # Panics
/// If `work` panics, if it counts itself, or if objects cannot be counted: `malloc` is Slabyard's
/// drop-in, options such as `check` and `guard` say how objects are made, or there is no memory.
pub fn allocations<R>(work: impl FnOnce() -> R) -> (R, Allocations) {
    let counting = Counting::begin();
    let result = work();
    (result, counting.end())
}
