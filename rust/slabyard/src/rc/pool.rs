//! [`RcPool`]: pools of values with several owners.

use super::{adopt, Node, RcSlot};
use crate::home::{In, PoolMemory};
use crate::in_place::Zeroable;
use crate::pool_functions::{no_room, pool_functions};
use crate::slot::{Claim, Owned};
use crate::Full;
use core::alloc::Layout;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

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
    /// Claims a slot, in which a value can be built. `None`: the pool is bounded and full, or there
    /// is no memory.
    #[inline]
    pub fn claim(&self) -> Option<RcVacant<'_, T>> {
        // SAFETY: the objects of this pool are made for nodes of T, which begin with the T.
        unsafe { Claim::take(In::new(&self.memory)) }.map(RcVacant)
    }

    /// Puts a value into a slot.
    ///
    /// # Errors
    /// [`Full`], with the value: the pool is bounded and full, or there is no memory.
    #[inline]
    pub fn try_insert(&self, value: T) -> Result<RcSlot<'_, T>, Full<T>> {
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
    pub fn insert(&self, value: T) -> RcSlot<'_, T> {
        match self.try_insert(value) {
            Ok(slot) => slot,
            Err(_) => no_room(),
        }
    }
}

/// A slot of an [`RcPool`] that is taken and has no value yet. Dropping it frees the slot.
///
/// ```
/// let pool = slabyard::RcPool::<[u64; 1 << 20]>::bounded(1);
/// let table = pool.claim().unwrap().fill_with(|at| at as u64);
/// assert_eq!(table.clone().borrow()[7], 7);
/// ```
#[must_use = "a slot that is dropped goes back at once"]
#[derive(Debug)]
pub struct RcVacant<'p, T>(Claim<T, In<'p>>);

impl<'p, T> RcVacant<'p, T> {
    /// Writes the value and returns its first owner.
    #[inline]
    pub fn write(self, value: T) -> RcSlot<'p, T> {
        Self::own(self.0.write(value))
    }

    /// The memory of the slot, for a value that is built piece by piece.
    #[inline]
    pub fn as_uninit(&mut self) -> &mut MaybeUninit<T> {
        self.0.as_uninit()
    }

    /// The first owner of the value that was written through [`as_uninit`](Self::as_uninit).
    ///
    /// # Safety
    /// All of the value was written.
    #[inline]
    pub unsafe fn assume_init(self) -> RcSlot<'p, T> {
        // SAFETY: as the caller says.
        Self::own(unsafe { self.0.assume_init() })
    }

    #[inline]
    fn own(slot: Owned<T, In<'p>>) -> RcSlot<'p, T> {
        let (object, home) = slot.into_parts();
        // SAFETY: the slot is ours, has room for a node, and holds the value.
        unsafe { adopt(object, home) }
    }
}

impl<'p, E, const N: usize> RcVacant<'p, [E; N]> {
    /// Builds an array in the slot, element by element. If the function panics, the slot is freed.
    #[inline]
    pub fn fill_with(self, element: impl FnMut(usize) -> E) -> RcSlot<'p, [E; N]> {
        Self::own(self.0.fill_with(element))
    }
}

impl<'p, T: Zeroable> RcVacant<'p, T> {
    /// Makes the value of zeros in the slot.
    #[inline]
    pub fn zeroed(self) -> RcSlot<'p, T> {
        Self::own(self.0.zeroed())
    }
}
