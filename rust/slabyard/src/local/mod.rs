//! Per-thread pools: a named allocator for a type, with slots of 8 bytes.
//!
//! [`bounded_allocator!`](crate::bounded_allocator) and the three similar macros, each used in a
//! module of its own, define an `Allocator` and its slots. Each thread builds its own pool, once. A
//! slot cannot leave its thread, and goes back to the pool of this thread.
//!
//! ```
//! pub struct Order { id: u64, price: f64 }
//!
//! mod order_alloc {
//!     slabyard::bounded_allocator!(super::Order);
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! order_alloc::Allocator::builder().capacity(10_000).build()?;
//! let slot = order_alloc::BoxSlot::try_new(Order { id: 1, price: 100.0 })?;
//! assert_eq!(slot.id, 1);
//! assert_eq!(size_of::<Option<order_alloc::BoxSlot>>(), 8);
//! # Ok(())
//! # }
//! ```
//!
//! When a thread ends, its pools are freed, after the destructors of its other thread-local
//! variables. If a slot of a pool is still taken then, because a value was leaked or forgotten, the
//! pool keeps its memory until the process ends. The main thread's pools stay.
//!
//! On Windows a pool is freed among the thread-local variables, in no certain order. If the destructor of
//! another one drops a slot later, the pool keeps its memory until the process ends; if it makes a slot
//! later, it finds no pool.

mod builder;
#[cfg(not(windows))]
pub(crate) mod end;
#[cfg(windows)]
#[path = "end_windows.rs"]
pub(crate) mod end;
mod hand;
mod leaked;
mod macros;
mod slots;

pub use builder::Builder;
pub use leaked::LocalStatic;
#[doc(hidden)]
pub use std::thread_local;

use crate::home::sealed;
use crate::home::Home;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use hand::Hand;
use std::thread::LocalKey;

/// A value with one owner in the pool of this thread.
pub type BoxSlot<T, A> = crate::Owned<T, Here<T, A>>;
/// A pinned value in the pool of this thread.
pub type PinnedSlot<T, A> = crate::Pinned<T, Here<T, A>>;
/// An owner among several of a value in the pool of this thread.
pub type RcSlot<T, A> = crate::Shared<T, Here<T, A>>;
/// A weak reference to a slot in the pool of this thread: it does not keep the value.
pub type WeakSlot<T, A> = crate::Weak<T, Here<T, A>>;
/// A slot in the pool of this thread that is taken and has no value yet.
pub type VacantSlot<T, A> = crate::Claim<T, Here<T, A>>;

/// Implemented by the macros: a type `A` names one pool of `T` in each thread.
///
/// # Safety
/// `key` is a `thread_local!` whose value is `const { LocalPool::new() }`.
pub unsafe trait LocalAllocator<T: 'static>: Sized + 'static {
    /// The kind of the pool.
    type Kind: Kind;
    /// The thread-local variable that holds the thread's pool.
    const KEY: &'static LocalKey<LocalPool<T, Self>>;
}

/// A thread's pool, if it has been built, and some of its free slots.
pub struct LocalPool<T, A> {
    hand: Hand,
    names: PhantomData<fn() -> (T, A)>,
}

impl<T, A> LocalPool<T, A> {
    /// No pool yet.
    #[doc(hidden)]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        LocalPool {
            hand: Hand::new(),
            names: PhantomData,
        }
    }
}

impl<T, A> fmt::Debug for LocalPool<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalPool(..)")
    }
}

/// The kind of a thread's pool. There are four kinds.
pub trait Kind: kinds::Sealed {}
/// Kinds of pools that are bounded.
pub trait IsBounded: Kind {}
/// Kinds of pools that grow.
pub trait IsUnbounded: Kind {}
/// Kinds of pools with counts beside the values.
pub trait IsCounted: Kind {}

mod kinds {
    pub trait Sealed: 'static {
        const BOUNDED: bool;
        const COUNTED: bool;
    }
}

macro_rules! kind {
    ($(#[$doc:meta])* $kind:ident, $bounded:literal, $counted:literal, $($is:ident)*) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $kind {}
        impl kinds::Sealed for $kind {
            const BOUNDED: bool = $bounded;
            const COUNTED: bool = $counted;
        }
        impl Kind for $kind {}
        $(impl $is for $kind {})*
    };
}

kind!(
    /// Declared by [`bounded_allocator!`](crate::bounded_allocator).
    Bounded, true, false, IsBounded);
kind!(
    /// Declared by [`unbounded_allocator!`](crate::unbounded_allocator).
    Unbounded, false, false, IsUnbounded);
kind!(
    /// Declared by [`bounded_rc_allocator!`](crate::bounded_rc_allocator).
    BoundedRc, true, true, IsBounded IsCounted);
kind!(
    /// Declared by [`unbounded_rc_allocator!`](crate::unbounded_rc_allocator).
    UnboundedRc, false, true, IsUnbounded IsCounted);

/// The home of slots of this thread's pool named `A`.
pub struct Here<T, A>(PhantomData<fn() -> (T, A)>);

impl<T, A> Here<T, A> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Here(PhantomData)
    }
}

impl<T, A> Copy for Here<T, A> {}
impl<T, A> Clone for Here<T, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: 'static, A: LocalAllocator<T>> Home for Here<T, A> {}

// SAFETY: the key is a constant, so each thread has one pool for T and A. It exists from when it is
// built to the thread's end, and longer if an object is out. Its slots stay on the thread.
unsafe impl<T: 'static, A: LocalAllocator<T>> sealed::Home for Here<T, A> {
    #[inline(always)]
    #[track_caller]
    fn take(self) -> Option<NonNull<u8>> {
        match A::KEY.with(|local| local.hand.take()) {
            Some(object) => Some(object),
            None => nothing::<T, A>(),
        }
    }

    #[inline(always)]
    unsafe fn give(self, object: NonNull<u8>) {
        // SAFETY: as the caller says.
        A::KEY.with(|local| unsafe { local.hand.give(object) })
    }

    #[inline(always)]
    fn pins(&self) -> Option<&Cell<usize>> {
        None
    }
}

/// Answers that there is no room; panics if this thread has not built its pool.
#[cold]
#[inline(never)]
#[track_caller]
fn nothing<T: 'static, A: LocalAllocator<T>>() -> Option<NonNull<u8>> {
    if !is_initialized::<T, A>() {
        panic!(
            "the allocator was not built on this thread: call builder() of the one for {} first",
            core::any::type_name::<T>()
        );
    }
    None
}

/// Whether this thread has built the pool.
#[doc(hidden)]
pub fn is_initialized<T: 'static, A: LocalAllocator<T>>() -> bool {
    A::KEY.with(|local| local.hand.pool().is_some())
}

/// The number of taken slots on this thread; 0 without a pool.
#[doc(hidden)]
pub fn in_use<T: 'static, A: LocalAllocator<T>>() -> usize {
    A::KEY.with(|local| local.hand.in_use())
}

/// The number of objects that fit on this thread without growing; 0 without a pool.
#[doc(hidden)]
pub fn capacity<T: 'static, A: LocalAllocator<T>>() -> usize {
    A::KEY.with(|local| local.hand.capacity())
}

/// Provides memory for `more` objects on this thread. False: there is no room.
#[doc(hidden)]
pub fn reserve<T: 'static, A: LocalAllocator<T>>(more: usize) -> bool {
    A::KEY.with(|local| local.hand.reserve(more))
}

/// If no slot is taken, returns this thread's memory to the system. The result is the number of
/// bytes.
#[doc(hidden)]
pub fn trim<T: 'static, A: LocalAllocator<T>>() -> usize {
    A::KEY.with(|local| local.hand.trim())
}
