//! Functions of the slots of per-thread pools that other slots do not have.

use super::{BoxSlot, Here, IsCounted, IsUnbounded, LocalAllocator, LocalStatic};
use super::{RcSlot, VacantSlot};
use crate::pool_functions::no_room;
use crate::rc::adopt;
use crate::{Claim, Full, Owned, Shared};

impl<T: 'static, A: LocalAllocator<T>> Owned<T, Here<T, A>> {
    /// Puts a value into a slot of this thread's pool.
    ///
    /// # Errors
    /// [`Full`], with the value: the pool is bounded and full, or there is no memory.
    ///
    /// # Panics
    /// If this thread has not built the pool.
    #[inline]
    #[track_caller]
    pub fn try_new(value: T) -> Result<Self, Full<T>> {
        match Self::claim() {
            Some(claim) => Ok(claim.write(value)),
            None => Err(Full(value)),
        }
    }

    /// Puts a value into a slot of this thread's pool, which grows if needed.
    ///
    /// # Panics
    /// If this thread has not built the pool, or there is no memory.
    #[inline]
    #[track_caller]
    pub fn new(value: T) -> Self
    where
        A::Kind: IsUnbounded,
    {
        match Self::claim() {
            Some(claim) => claim.write(value),
            None => no_room(),
        }
    }

    /// Claims a slot of this thread's pool, in which a value can be built. `None`: the pool is
    /// bounded and full, or there is no memory.
    ///
    /// # Panics
    /// If this thread has not built the pool.
    #[inline(always)]
    #[track_caller]
    pub fn claim() -> Option<VacantSlot<T, A>> {
        // SAFETY: the pool named A is one for T.
        unsafe { Claim::take(Here::new()) }
    }

    /// Leaks the value: it stays until the process ends and is never dropped. The memory of the
    /// pool stays too, even when this thread ends.
    #[inline]
    pub fn leak(self) -> LocalStatic<T> {
        let (object, _) = self.into_parts();
        // SAFETY: a pool with an object that is out stays, and this object is never given back.
        unsafe { LocalStatic::new(object) }
    }

    /// Makes the owner one that can be cloned. The value is not moved.
    #[inline]
    pub fn into_rc(self) -> RcSlot<T, A>
    where
        A::Kind: IsCounted,
    {
        let (object, home) = self.into_parts();
        // SAFETY: the slot is ours, holds the value, and belongs to a pool for nodes.
        unsafe { adopt(object, home) }
    }
}

impl<T: 'static, A: LocalAllocator<T>> Shared<T, Here<T, A>>
where
    A::Kind: IsCounted,
{
    /// Puts a value into a slot of this thread's pool.
    ///
    /// # Errors
    /// [`Full`], with the value: the pool is bounded and full, or there is no memory.
    ///
    /// # Panics
    /// If this thread has not built the pool.
    #[inline]
    #[track_caller]
    pub fn try_new(value: T) -> Result<Self, Full<T>> {
        BoxSlot::<T, A>::try_new(value).map(Owned::into_rc)
    }

    /// Puts a value into a slot of this thread's pool, which grows if needed.
    ///
    /// # Panics
    /// If this thread has not built the pool, or there is no memory.
    #[inline]
    #[track_caller]
    pub fn new(value: T) -> Self
    where
        A::Kind: IsUnbounded,
    {
        BoxSlot::<T, A>::new(value).into_rc()
    }
}
