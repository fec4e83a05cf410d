//! The four macros. Each one declares, in the module where it is used, the type `Allocator` and the
//! types for its slots.

use std::error::Error;
use std::fmt;

/// The error of a second `build()` on one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlreadyInitialized;

impl fmt::Display for AlreadyInitialized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("allocator already initialized")
    }
}

impl Error for AlreadyInitialized {}

/// Declares a bounded allocator for a type, which each thread builds for itself.
///
/// It defines `Allocator`, with `builder()`, and `BoxSlot`; `Builder` is the builder's type.
///
/// ```
/// pub struct Order { id: u64, price: f64 }
///
/// mod order_alloc {
///     nexus_slab::bounded_allocator!(super::Order);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// order_alloc::Allocator::builder().capacity(10_000).build()?;
/// let slot = order_alloc::BoxSlot::try_new(Order { id: 1, price: 100.0 })?;
/// assert_eq!((slot.id, slot.price), (1, 100.0));
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! bounded_allocator {
    ($item:ty) => {
        $crate::__allocator!($item, $crate::bounded::Bounded, BoundedBuilder);
    };
}

/// Declares a growing allocator for a type, which each thread builds for itself.
///
/// It is like [`bounded_allocator!`]; `BoxSlot` has `new`, and the builder has `chunk_size` and
/// `initial_chunks`.
///
/// ```
/// pub struct Quote(u64);
///
/// mod quote_alloc {
///     nexus_slab::unbounded_allocator!(super::Quote);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// quote_alloc::Allocator::builder().chunk_size(4096).build()?;
/// assert_eq!(quote_alloc::BoxSlot::new(Quote(1)).0, 1);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! unbounded_allocator {
    ($item:ty) => {
        $crate::__allocator!($item, $crate::unbounded::Unbounded, UnboundedBuilder);
    };
}

/// Declares a bounded allocator for values with several owners.
///
/// It is like [`bounded_allocator!`], with `RcSlot` and `WeakSlot`. Each slot has eight bytes of
/// counts.
///
/// ```
/// mod order_alloc {
///     nexus_slab::bounded_rc_allocator!(String);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// order_alloc::Allocator::builder().capacity(10_000).build()?;
/// let order = order_alloc::RcSlot::try_new("buy".to_string())?;
/// let (weak, other) = (order.downgrade(), order.clone());
/// drop(order);
/// assert_eq!((weak.upgrade().is_some(), &**other), (true, "buy"));
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! bounded_rc_allocator {
    ($item:ty) => {
        $crate::bounded_allocator!($crate::RcInner<$item>);
        $crate::__counted!($item);
    };
}

/// Declares a growing allocator for values with several owners.
///
/// It is like [`unbounded_allocator!`], with `RcSlot` and `WeakSlot`. Each slot has eight bytes of
/// counts.
///
/// ```
/// mod node_alloc {
///     nexus_slab::unbounded_rc_allocator!(Vec<u32>);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// node_alloc::Allocator::builder().build()?;
/// let mut node = node_alloc::RcSlot::new(vec![1]);
/// node.make_mut().push(2);
/// assert_eq!(*node, [1, 2]);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! unbounded_rc_allocator {
    ($item:ty) => {
        $crate::unbounded_allocator!($crate::RcInner<$item>);
        $crate::__counted!($item);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __allocator {
    ($item:ty, $kind:ty, $builder:ident) => {
        /// The allocator of the calling thread.
        #[derive(Clone, Copy)]
        pub struct Allocator;

        /// Builds the allocator of the calling thread.
        pub type Builder = $crate::local::$builder<Allocator>;

        impl Allocator {
            /// Starts building the allocator of the calling thread.
            #[inline]
            pub fn builder() -> Builder {
                Builder::new()
            }
        }

        // SAFETY: the key is a `thread_local!` with the required value.
        unsafe impl $crate::local::Local for Allocator {
            type Item = $item;
            type Kind = $kind;
            const SLAB: &'static ::std::thread::LocalKey<$crate::local::LocalSlab<$item, $kind>> = {
                $crate::local::thread_local! {
                    static SLAB: $crate::local::LocalSlab<$item, $kind> =
                        const { $crate::local::LocalSlab::new() };
                }
                &SLAB
            };
        }

        /// A value in a slot.
        pub type BoxSlot = $crate::alloc::BoxSlot<$item, Allocator>;
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __counted {
    ($item:ty) => {
        /// One of several owners of a value in a slot.
        pub type RcSlot = $crate::alloc::RcSlot<$item, Allocator>;
        /// A weak reference to a slot, which does not keep its value.
        pub type WeakSlot = $crate::alloc::WeakSlot<$item, Allocator>;
        /// A value that stays until the process ends.
        pub type LocalStatic = $crate::alloc::LocalStatic<$item>;
    };
}
