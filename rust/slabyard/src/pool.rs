//! [`Pool`]: objects of one type for one thread.

use crate::home::{In, PoolMemory};
use crate::pool_functions::{no_room, pool_functions};
use crate::{Full, Slot, Vacant};
use core::alloc::Layout;
use core::marker::PhantomData;

/// Objects of one type for one thread at a time, in slots of one size.
///
/// The slot freed last is taken next, while it is still in the processor's cache. Taking and
/// freeing a slot are a few inlined instructions, for any number of objects. Objects have no
/// headers. Slots borrow the pool, so it outlives them.
///
/// Thread rule: a pool that is not borrowed may be sent to another thread. It cannot be shared.
///
/// ```
/// use slabyard::Pool;
///
/// #[derive(Debug)]
/// struct Order { id: u64, price: f64 }
///
/// let orders = Pool::bounded(2);
/// let first = orders.try_insert(Order { id: 1, price: 100.0 })?;
/// let second = orders.try_insert(Order { id: 2, price: 99.5 })?;
/// let refused = orders.try_insert(Order { id: 3, price: 99.0 });
/// assert_eq!(refused.unwrap_err().into_inner().id, 3);
/// drop(first);
/// assert_eq!(orders.in_use(), 1);
/// # Ok::<(), slabyard::Full<Order>>(())
/// ```
///
/// Objects may refer to other objects of the same pool:
///
/// ```
/// use slabyard::{Pool, Slot};
/// struct Node<'p> { next: Option<Slot<'p, Node<'p>>> }
/// let pool = Pool::unbounded();
/// let last = pool.insert(Node { next: None });
/// let first = pool.insert(Node { next: Some(last) });
/// assert!(first.next.is_some());
/// ```
pub struct Pool<T> {
    memory: PoolMemory,
    holds: PhantomData<fn() -> T>,
}

// SAFETY: a pool that is sent is not borrowed, so nothing on this thread uses it.
unsafe impl<T: Send> Send for Pool<T> {}

pool_functions!([T] Pool<T>, Layout::new::<T>());

impl<T> Pool<T> {
    /// Claims a slot, in which a value can be built. `None`: the pool is bounded and full, or there
    /// is no memory.
    #[inline(always)]
    pub fn claim(&self) -> Option<Vacant<'_, T>> {
        // SAFETY: the objects of this pool are made for T.
        unsafe { Vacant::take(In::new(&self.memory)) }
    }

    /// Puts a value into a slot.
    ///
    /// # Errors
    /// [`Full`], with the value: the pool is bounded and full, or there is no memory.
    #[inline]
    pub fn try_insert(&self, value: T) -> Result<Slot<'_, T>, Full<T>> {
        match self.claim() {
            Some(vacant) => Ok(vacant.write(value)),
            None => Err(Full(value)),
        }
    }

    /// Puts a value into a slot.
    ///
    /// # Panics
    /// If the pool is bounded and full, or there is no memory.
    #[inline]
    #[track_caller]
    pub fn insert(&self, value: T) -> Slot<'_, T> {
        match self.claim() {
            Some(vacant) => vacant.write(value),
            None => no_room(),
        }
    }
}
