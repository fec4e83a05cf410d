//! [`RcPool`]: pools of values with several owners.

use super::{adopt, Node, RcSlot};
use crate::home::{In, PoolMemory};
use crate::pool_functions::{no_room, pool_functions};
use crate::slot::Claim;
use crate::Full;
use core::alloc::Layout;
use core::marker::PhantomData;

/// A [`Pool`](crate::Pool) of values with several owners. Each slot has 12 bytes of counts beside
/// the value.
///
/// ```
/// let pool = slabyard::RcPool::bounded(1);
/// let owner = pool.try_insert("a").unwrap();
/// let other = owner.clone();
/// drop(owner);
/// assert!(pool.try_insert("b").is_err());
/// assert_eq!(other.try_into_inner().unwrap(), "a");
/// assert_eq!(pool.in_use(), 0);
/// ```
pub struct RcPool<T> {
    memory: PoolMemory,
    holds: PhantomData<fn() -> T>,
}

// SAFETY: a pool that is sent is not borrowed, so nothing on this thread uses it.
unsafe impl<T: Send> Send for RcPool<T> {}

pool_functions!([T] RcPool<T>, Layout::new::<Node<T>>());

impl<T> RcPool<T> {
    /// Puts a value into a slot.
    ///
    /// # Errors
    /// [`Full`], with the value: the pool is bounded and full, or there is no memory.
    #[inline]
    pub fn try_insert(&self, value: T) -> Result<RcSlot<'_, T>, Full<T>> {
        // SAFETY: the objects of this pool are made for nodes of T.
        match unsafe { Claim::take(In::new(&self.memory)) } {
            Some(claim) => {
                let (object, home) = claim.write(value).into_parts();
                // SAFETY: as above, and the value was written.
                Ok(unsafe { adopt(object, home) })
            }
            None => Err(Full(value)),
        }
    }

    /// Puts a value into a slot.
    ///
    /// # Panics
    /// If the pool is bounded and full, or there is no memory.
    #[inline]
    #[track_caller]
    pub fn insert(&self, value: T) -> RcSlot<'_, T> {
        match self.try_insert(value) {
            Ok(slot) => slot,
            Err(_) => no_room(),
        }
    }
}
