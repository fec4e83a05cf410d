//! Pools that belong to a thread: an allocator for a type, by name, with slots of 8 bytes.
//!
//! [`bounded_allocator!`](crate::bounded_allocator) and its kin, each in a module of its own, make
//! an `Allocator` and the slots of it. Each thread builds its own pool, once, and each slot goes
//! back to the pool of the thread, which it cannot leave.
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
//! When a thread ends, its pools go, after the destructors of its other thread-local variables. A
//! pool of which a slot is still taken then, by a value that was leaked, forgotten or pinned and
//! forgotten, keeps its memory until the process ends. The main thread's pools stay.

mod builder;
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
/// A name of a slot in the pool of this thread that does not keep its value.
pub type WeakSlot<T, A> = crate::Weak<T, Here<T, A>>;
/// A slot in the pool of this thread that is taken and has no value yet.
pub type VacantSlot<T, A> = crate::Claim<T, Here<T, A>>;

/// What the macros implement: a type `A` names one pool of `T` in each thread.
///
/// # Safety
/// The key is of a `thread_local!` whose value is `const { LocalPool::new() }`.
pub unsafe trait LocalAllocator<T: 'static>: Sized + 'static {
    /// What kind of pool it is.
    type Kind: Kind;
    /// Where the thread's pool is noted.
    const KEY: &'static LocalKey<LocalPool<T, Self>>;
}

/// A thread's pool, if it has been built, and free slots of it.
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

/// What kind of pool a thread has. There are four.
pub trait Kind: kinds::Sealed {}
/// Kinds of at most so many objects.
pub trait IsBounded: Kind {}
/// Kinds that grow.
pub trait IsUnbounded: Kind {}
/// Kinds with counts beside the values.
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
    /// Of [`bounded_allocator!`](crate::bounded_allocator).
    Bounded, true, false, IsBounded);
kind!(
    /// Of [`unbounded_allocator!`](crate::unbounded_allocator).
    Unbounded, false, false, IsUnbounded);
kind!(
    /// Of [`bounded_rc_allocator!`](crate::bounded_rc_allocator).
    BoundedRc, true, true, IsBounded IsCounted);
kind!(
    /// Of [`unbounded_rc_allocator!`](crate::unbounded_rc_allocator).
    UnboundedRc, false, true, IsUnbounded IsCounted);

/// The home of slots of this thread's pool that `A` names.
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

// SAFETY: the key is a constant, so each thread has one pool for T and A, from when it is built to
// the thread's end and longer if an object is out. The slots of it stay on the thread.
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

/// There is nothing to take: that is the answer, unless there is no pool.
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

/// Is there a pool on this thread?
#[doc(hidden)]
pub fn is_initialized<T: 'static, A: LocalAllocator<T>>() -> bool {
    A::KEY.with(|local| local.hand.pool().is_some())
}

/// Slots that are taken on this thread; 0 without a pool.
#[doc(hidden)]
pub fn in_use<T: 'static, A: LocalAllocator<T>>() -> usize {
    A::KEY.with(|local| local.hand.in_use())
}

/// Objects that fit on this thread without growing; 0 without a pool.
#[doc(hidden)]
pub fn capacity<T: 'static, A: LocalAllocator<T>>() -> usize {
    A::KEY.with(|local| local.hand.capacity())
}

/// Provides memory on this thread for so many more; whether there is room.
#[doc(hidden)]
pub fn reserve<T: 'static, A: LocalAllocator<T>>(more: usize) -> bool {
    A::KEY.with(|local| local.hand.reserve(more))
}

/// Gives this thread's memory back if no slot is taken; bytes.
#[doc(hidden)]
pub fn trim<T: 'static, A: LocalAllocator<T>>() -> usize {
    A::KEY.with(|local| local.hand.trim())
}
