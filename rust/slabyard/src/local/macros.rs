//! The four macros, which differ in a kind and in the names that they give.

/// A pool for a type in each thread that builds it, of at most so many objects.
///
/// Use it in a module of its own. It makes there
///
/// - `Allocator`: `builder()`, with `capacity`, `prefault` and `build`; `is_initialized()`,
///   `in_use()`, `capacity()`, `reserve(n)`, `trim()`, all of the current thread;
/// - `BoxSlot`: a value in a slot, 8 bytes; `PinnedSlot`, which [`into_pin`] makes of it; and
///   `VacantSlot`, a slot that is taken and empty.
///
/// The names are visible to the module around, or as far as is said before the type:
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

/// A pool for a type in each thread that builds it, which grows.
///
/// As [`bounded_allocator!`], but the builder has `chunk_size` and `initial_chunks` instead of
/// `capacity`, and `BoxSlot` has `new`.
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

/// A pool of at most so many objects in each thread that builds it, of values that may have several
/// owners.
///
/// As [`bounded_allocator!`], with `RcSlot` and `WeakSlot` beside `BoxSlot`, which becomes an
/// `RcSlot` by `into_rc`. In each slot are 12 bytes of counts beside the value.
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

/// A pool that grows in each thread that builds it, of values that may have several owners.
///
/// As [`bounded_rc_allocator!`], with the builder and the `new` of [`unbounded_allocator!`].
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
        /// This module's pool of the current thread.
        #[derive(Debug)]
        $($vis)* struct Allocator;

        #[allow(dead_code, private_interfaces)]
        impl Allocator {
            /// Builds the pool of this thread.
            pub fn builder() -> $crate::local::Builder<$type, Allocator> {
                $crate::local::Builder::new()
            }

            /// Has this thread built it?
            pub fn is_initialized() -> bool {
                $crate::local::is_initialized::<$type, Allocator>()
            }

            /// Slots of this thread's pool that are taken, exact; counts those that are free.
            pub fn in_use() -> usize {
                $crate::local::in_use::<$type, Allocator>()
            }

            /// Objects that this thread's pool can hold without growing.
            pub fn capacity() -> usize {
                $crate::local::capacity::<$type, Allocator>()
            }

            /// Provides memory on this thread, each page of it touched, for so many more objects;
            /// whether there is room, and a pool. What was provided stays until `trim`.
            pub fn reserve(more: usize) -> bool {
                $crate::local::reserve::<$type, Allocator>(more)
            }

            /// Gives the memory of this thread's pool back to the system, if no slot of it is
            /// taken; bytes. Counts those that are free.
            pub fn trim() -> usize {
                $crate::local::trim::<$type, Allocator>()
            }
        }

        // SAFETY: the key is made as it has to be.
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
        /// A name of a slot of this thread's pool that does not keep its value.
        #[allow(dead_code, private_interfaces)]
        $($vis)* type WeakSlot = $crate::local::WeakSlot<$type, Allocator>;
    };
}
