//! [`BytePool`]: pools of values of mixed types, in slots of a fixed number of bytes.

use crate::home::{In, PoolMemory};
use crate::pool_functions::{no_room, pool_functions};
use crate::{Full, Slot, Vacant};
use core::alloc::Layout;
use core::marker::PhantomData;

/// A value of any type that fits, in a slot of a [`BytePool`].
pub type ByteSlot<'p, T> = Slot<'p, T>;

/// Slots of `N` bytes aligned to `ALIGN`, for values of any type that fits. A type that does not
/// fit is a compile-time error. Otherwise it is like a [`Pool`](crate::Pool).
///
/// ```
/// use slabyard::BytePool;
///
/// let pool: BytePool<32> = BytePool::unbounded();
/// let name = pool.insert(String::from("a"));
/// let numbers = pool.insert([1u64, 2, 3]);
/// assert_eq!((name.as_str(), numbers[2]), ("a", 3));
/// ```
///
/// ```compile_fail
/// let pool: slabyard::BytePool<32> = slabyard::BytePool::unbounded();
/// let _ = pool.insert([0u8; 33]);
/// ```
pub struct BytePool<const N: usize, const ALIGN: usize = 16> {
    memory: PoolMemory,
    holds: PhantomData<[u8; N]>,
}

// SAFETY: a pool that is sent is not borrowed, so nothing on this thread uses it. Values that were
// forgotten in it cannot be reached, and are not dropped.
unsafe impl<const N: usize, const ALIGN: usize> Send for BytePool<N, ALIGN> {}

pool_functions!([const N: usize, const ALIGN: usize] BytePool<N, ALIGN>, Self::LAYOUT);

impl<const N: usize, const ALIGN: usize> BytePool<N, ALIGN> {
    const LAYOUT: Layout = match Layout::from_size_align(N, ALIGN) {
        Ok(layout) => layout,
        Err(_) => panic!("ALIGN is not a power of two, or N too large"),
    };

    /// Claims a slot, in which a value can be built. `None`: the pool is bounded and full, or there
    /// is no memory.
    #[inline(always)]
    pub fn claim<T>(&self) -> Option<Vacant<'_, T>> {
        const {
            assert!(size_of::<T>() <= N, "the type is larger than the slots");
            assert!(
                align_of::<T>() <= ALIGN,
                "the type needs a larger alignment than the slots have"
            );
        }
        // SAFETY: the objects of this pool fit a T, as was just asserted.
        unsafe { Vacant::take(In::new(&self.memory)) }
    }

    /// Puts a value into a slot.
    ///
    /// # Errors
    /// [`Full`], with the value: the pool is bounded and full, or there is no memory.
    #[inline]
    pub fn try_insert<T>(&self, value: T) -> Result<ByteSlot<'_, T>, Full<T>> {
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
    pub fn insert<T>(&self, value: T) -> ByteSlot<'_, T> {
        match self.claim() {
            Some(vacant) => vacant.write(value),
            None => no_room(),
        }
    }
}
