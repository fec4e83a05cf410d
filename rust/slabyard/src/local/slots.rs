//! What the slots of a thread's pool can do beside what all slots can.

use super::{BoxSlot, Here, IsCounted, IsUnbounded, LocalAllocator, LocalStatic};
use super::{RcSlot, VacantSlot};
use crate::pool_doors::no_room;
use crate::rc::adopt;
use crate::{Claim, Full, Owned, Shared};

impl<T: 'static, A: LocalAllocator<T>> Owned<T, Here<T, A>> {
    /// Puts the value into a slot of this thread's pool.
    ///
    /// # Errors
    /// [`Full`], with the value: the pool is bounded and full, or there is no memory.
    ///
    /// # Panics
    /// The allocator was not built on this thread.
    #[inline]
    #[track_caller]
    pub fn try_new(value: T) -> Result<Self, Full<T>> {
        match Self::claim() {
            Some(claim) => Ok(claim.write(value)),
            None => Err(Full(value)),
        }
    }

    /// Puts the value into a slot of this thread's pool, which grows.
    ///
    /// # Panics
    /// The allocator was not built on this thread, or there is no memory.
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

    /// Takes a slot of this thread's pool, for a value to be built in. `None`: it is bounded and
    /// full, or there is no memory.
    ///
    /// # Panics
    /// The allocator was not built on this thread.
    #[inline(always)]
    #[track_caller]
    pub fn claim() -> Option<VacantSlot<T, A>> {
        // SAFETY: the pool that A names is one for T.
        unsafe { Claim::take(Here::new()) }
    }

    /// The value stays until the process ends, and so does the memory of the pool when this thread
    /// ends. It is never dropped.
    #[inline]
    pub fn leak(self) -> LocalStatic<T> {
        let (object, _) = self.into_parts();
        // SAFETY: a pool of which an object is out stays, and this one does not come back.
        unsafe { LocalStatic::new(object) }
    }

    /// The value with an owner that may have others beside it. Nothing is moved.
    #[inline]
    pub fn into_rc(self) -> RcSlot<T, A>
    where
        A::Kind: IsCounted,
    {
        let (object, home) = self.into_parts();
        // SAFETY: the slot is ours, holds the value, and is one of a pool for nodes.
        unsafe { adopt(object, home) }
    }
}

impl<T: 'static, A: LocalAllocator<T>> Shared<T, Here<T, A>>
where
    A::Kind: IsCounted,
{
    /// Puts the value into a slot of this thread's pool.
    ///
    /// # Errors
    /// [`Full`], with the value: the pool is bounded and full, or there is no memory.
    ///
    /// # Panics
    /// The allocator was not built on this thread.
    #[inline]
    #[track_caller]
    pub fn try_new(value: T) -> Result<Self, Full<T>> {
        BoxSlot::<T, A>::try_new(value).map(Owned::into_rc)
    }

    /// Puts the value into a slot of this thread's pool, which grows.
    ///
    /// # Panics
    /// The allocator was not built on this thread, or there is no memory.
    #[inline]
    #[track_caller]
    pub fn new(value: T) -> Self
    where
        A::Kind: IsUnbounded,
    {
        BoxSlot::<T, A>::new(value).into_rc()
    }
}
