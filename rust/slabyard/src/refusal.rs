//! Why an allocation was refused.

use core::fmt;

/// Why an allocation was refused: the result of [`last_refusal`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The system gave no memory.
    System,
    /// The limit of the cache is reached.
    CacheLimit,
    /// The limit of a heap is reached.
    HeapLimit,
    /// The limit of the process ([`Limit`](crate::Limit)) is reached.
    ProcessLimit,
    /// A constructor failed.
    Constructor,
    /// The heaps have as many size classes together as they may have.
    Caches,
}

/// Why a cache or heap last refused an allocation of the calling thread. `None`: no allocation of
/// this thread was refused yet.
///
/// ```
/// use slabyard::{Cache, Refusal};
///
/// let one = Cache::builder().limit(1).exact().build().unwrap();
/// let _first = one.insert('a');
/// assert!(one.try_insert('b').is_err());
/// assert_eq!(slabyard::last_refusal(), Some(Refusal::CacheLimit));
/// ```
pub fn last_refusal() -> Option<Refusal> {
    // Under Miri memory does not run out, and only caches have limits.
    if cfg!(miri) {
        return Some(Refusal::CacheLimit);
    }
    // SAFETY: any thread may call this.
    match unsafe { slabyard_sys::sy_last_refusal() } {
        slabyard_sys::SY_REFUSAL_NONE => None,
        slabyard_sys::SY_REFUSAL_CACHE_LIMIT => Some(Refusal::CacheLimit),
        slabyard_sys::SY_REFUSAL_HEAP_LIMIT => Some(Refusal::HeapLimit),
        slabyard_sys::SY_REFUSAL_PROCESS_LIMIT => Some(Refusal::ProcessLimit),
        slabyard_sys::SY_REFUSAL_CONSTRUCTOR => Some(Refusal::Constructor),
        slabyard_sys::SY_REFUSAL_CACHES => Some(Refusal::Caches),
        _ => Some(Refusal::System),
    }
}

/// Whether the last refusal had another reason than missing memory, such as a limit.
pub(crate) fn last_was_a_limit() -> bool {
    last_refusal().is_some_and(|refusal| refusal != Refusal::System)
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::System => "the system gave no memory",
            Refusal::CacheLimit => "the limit of the cache is reached",
            Refusal::HeapLimit => "the limit of the heap is reached",
            Refusal::ProcessLimit => "the limit of the process is reached",
            Refusal::Constructor => "a constructor failed",
            Refusal::Caches => "the heaps have too many size classes",
        })
    }
}

impl core::error::Error for Refusal {}
