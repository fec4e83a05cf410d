//! The four macros for per-thread pools. They differ in the kind of pool and in the names that they
//! define.

/// Declares a bounded pool for a type, which each thread builds for itself.
///
/// Use the macro in a module of its own. It defines there:
///
/// - `Allocator`: `builder()`, with `capacity`, `prefault` and `build`; `is_initialized()`,
///   `in_use()`, `capacity()`, `reserve(n)` and `trim()`, all for the calling thread's pool;
/// - `BoxSlot`: a value in a slot, of 8 bytes; `PinnedSlot`, made from it by [`into_pin`]; and
///   `VacantSlot`, a slot that is taken and has no value yet.
///
/// The names are visible in the enclosing module. Write another visibility before the type:
/// `bounded_allocator!(pub super::Order)`.
///
/// ```
/// #[derive(Debug)]
/// pub struct Order { id: u64 }
///
/// mod order_alloc {
///     slabyard::bounded_allocator!(super::Order);
/// }
/// use order_alloc::{Allocator, BoxSlot};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// assert!(!Allocator::is_initialized());
/// Allocator::builder().capacity(1).build()?;
/// let slot = BoxSlot::try_new(Order { id: 1 })?;
/// let refused = BoxSlot::try_new(Order { id: 2 }).unwrap_err();
/// assert_eq!(refused.into_inner().id, 2);
/// assert_eq!(BoxSlot::into_inner(slot).id, 1);
/// # Ok(())
/// # }
/// ```
///
/// [`into_pin`]: crate::Owned::into_pin
#[macro_export]
macro_rules! bounded_allocator {
    ($($type:tt)+) => { $crate::__local_allocator!(Bounded, $($type)+); };
}

/// Declares a growing pool for a type, which each thread builds for itself.
///
/// It is like [`bounded_allocator!`], but the builder has `chunk_size` and `initial_chunks` instead
/// of `capacity`, and `BoxSlot` has `new`.
///
/// ```
/// pub struct Quote(u64);
///
/// mod quote_alloc {
///     slabyard::unbounded_allocator!(super::Quote);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// quote_alloc::Allocator::builder().chunk_size(4096).build()?;
/// let slot = quote_alloc::BoxSlot::new(Quote(1));
/// assert_eq!(slot.0, 1);
/// let leaked: slabyard::LocalStatic<Quote> = slot.leak();
/// assert_eq!(leaked.0, 1);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! unbounded_allocator {
    ($($type:tt)+) => { $crate::__local_allocator!(Unbounded, $($type)+); };
}

/// Declares a bounded pool for values with several owners, which each thread builds for itself.
///
/// It is like [`bounded_allocator!`], and defines `RcSlot` and `WeakSlot` too. `into_rc` turns a
/// `BoxSlot` into an `RcSlot`. Each slot has 12 bytes of counts beside the value.
///
/// ```
/// pub struct Order { filled: u64 }
///
/// mod order_alloc {
///     slabyard::bounded_rc_allocator!(super::Order);
/// }
/// use order_alloc::{Allocator, RcSlot};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// Allocator::builder().capacity(10).build()?;
/// let order = RcSlot::try_new(Order { filled: 0 })?;
/// let weak = order.downgrade();
/// weak.upgrade().unwrap().borrow_mut().filled += 1;
/// assert_eq!(order.borrow().filled, 1);
/// drop(order);
/// assert!(weak.upgrade().is_none());
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! bounded_rc_allocator {
    ($($type:tt)+) => { $crate::__local_allocator!(BoundedRc, $($type)+); };
}

/// Declares a growing pool for values with several owners, which each thread builds for itself.
///
/// It is like [`bounded_rc_allocator!`], with the builder and the `new` of
/// [`unbounded_allocator!`].
///
/// ```
/// pub struct Node {
///     children: Vec<node_alloc::RcSlot>,
/// }
///
/// mod node_alloc {
///     slabyard::unbounded_rc_allocator!(super::Node);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// node_alloc::Allocator::builder().build()?;
/// let leaf = node_alloc::RcSlot::new(Node { children: vec![] });
/// let root = node_alloc::RcSlot::new(Node { children: vec![leaf.clone(), leaf] });
/// assert_eq!(root.borrow().children[0].strong_count(), 2);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! unbounded_rc_allocator {
    ($($type:tt)+) => { $crate::__local_allocator!(UnboundedRc, $($type)+); };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __local_allocator {
    ($kind:ident, pub($($in:tt)+) $type:ty) => {
        $crate::__local_allocator!(@ $kind, [pub($($in)+)], $type);
    };
    ($kind:ident, pub $type:ty) => {
        $crate::__local_allocator!(@ $kind, [pub], $type);
    };
    ($kind:ident, $type:ty) => {
        $crate::__local_allocator!(@ $kind, [pub(super)], $type);
    };
    (@ $kind:ident, [$($vis:tt)*], $type:ty) => {
        /// This module's pool of the calling thread.
        #[derive(Debug)]
        $($vis)* struct Allocator;

        #[allow(dead_code, private_interfaces)]
        impl Allocator {
            /// Starts building the pool of this thread.
            pub fn builder() -> $crate::local::Builder<$type, Allocator> {
                $crate::local::Builder::new()
            }

            /// Whether this thread has built its pool.
            pub fn is_initialized() -> bool {
                $crate::local::is_initialized::<$type, Allocator>()
            }

            /// The exact number of taken slots of this thread's pool. It walks the list of free
            /// slots.
            pub fn in_use() -> usize {
                $crate::local::in_use::<$type, Allocator>()
            }

            /// The number of objects that this thread's pool can hold without growing.
            pub fn capacity() -> usize {
                $crate::local::capacity::<$type, Allocator>()
            }

            /// Provides memory for `more` objects on this thread, and touches each page. False:
            /// there is no room, or no pool. The memory stays until `trim`.
            pub fn reserve(more: usize) -> bool {
                $crate::local::reserve::<$type, Allocator>(more)
            }

            /// If no slot of this thread's pool is taken, returns its memory to the system. The
            /// result is the number of bytes. It walks the list of free slots.
            pub fn trim() -> usize {
                $crate::local::trim::<$type, Allocator>()
            }
        }

        // SAFETY: the key is a `thread_local!` with the required value.
        unsafe impl $crate::local::LocalAllocator<$type> for Allocator {
            type Kind = $crate::local::$kind;
            const KEY: &'static ::std::thread::LocalKey<
                $crate::local::LocalPool<$type, Allocator>,
            > = {
                $crate::local::thread_local! {
                    static POOL: $crate::local::LocalPool<$type, Allocator> =
                        const { $crate::local::LocalPool::new() };
                }
                &POOL
            };
        }

        /// A value in a slot of this thread's pool.
        #[allow(dead_code, private_interfaces)]
        $($vis)* type BoxSlot = $crate::local::BoxSlot<$type, Allocator>;
        /// A pinned value in a slot of this thread's pool.
        #[allow(dead_code, private_interfaces)]
        $($vis)* type PinnedSlot = $crate::local::PinnedSlot<$type, Allocator>;
        /// A slot of this thread's pool that is taken and has no value yet.
        #[allow(dead_code, private_interfaces)]
        $($vis)* type VacantSlot = $crate::local::VacantSlot<$type, Allocator>;

        $crate::__local_allocator!(# $kind, [$($vis)*], $type);
    };
    (# Bounded, [$($vis:tt)*], $type:ty) => {};
    (# Unbounded, [$($vis:tt)*], $type:ty) => {};
    (# $counted:ident, [$($vis:tt)*], $type:ty) => {
        /// One of several owners of a value in a slot of this thread's pool.
        #[allow(dead_code, private_interfaces)]
        $($vis)* type RcSlot = $crate::local::RcSlot<$type, Allocator>;
        /// A weak reference to a slot of this thread's pool: it does not keep the value.
        #[allow(dead_code, private_interfaces)]
        $($vis)* type WeakSlot = $crate::local::WeakSlot<$type, Allocator>;
    };
}
