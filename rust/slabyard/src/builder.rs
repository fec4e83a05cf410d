//! The builder of pools that are values.

use crate::home::PoolMemory;
use crate::raw::pool::{Name, RawPool, Shape};
use crate::BuildError;
use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;

/// The settings of a [`Pool`](crate::Pool), a [`BytePool`](crate::BytePool) or an
/// [`RcPool`](crate::RcPool): the type whose `builder` function was called.
///
/// ```
/// let pool: slabyard::Pool<u64> = slabyard::Pool::builder()
///     .bounded(1000)
///     .prefault(true)
///     .name("numbers")
///     .build()?;
/// assert_eq!(pool.capacity(), 1000);
/// # Ok::<(), slabyard::BuildError>(())
/// ```
#[must_use = "a builder does nothing until build is called"]
pub struct PoolBuilder<P> {
    shape: Shape,
    bounded: bool,
    makes: PhantomData<fn() -> P>,
}

/// A pool that a builder can make.
pub(crate) trait FromMemory {
    fn from_memory(memory: PoolMemory) -> Self;
}

impl<P> PoolBuilder<P> {
    pub(crate) fn new(slot: Layout) -> PoolBuilder<P> {
        PoolBuilder {
            shape: Shape {
                slot,
                capacity: 0,
                chunk_bytes: 0,
                prefault: false,
                huge: false,
                name: Name::default(),
            },
            bounded: false,
            makes: PhantomData,
        }
    }

    /// Limits the pool to this number of objects. The address space for all of them is reserved at
    /// once.
    pub fn bounded(mut self, capacity: usize) -> Self {
        self.bounded = true;
        self.shape.capacity = capacity;
        self
    }

    /// The minimum number of bytes by which the pool grows, rounded up to pages. The default is 64
    /// KiB. Bounded pools ignore it.
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        self.shape.chunk_bytes = bytes;
        self
    }

    /// Touches memory when it is taken from the system, so that no insertion waits for a page
    /// fault: all memory of a bounded pool when it is built, each chunk of an unbounded pool when
    /// the pool grows.
    pub fn prefault(mut self, yes: bool) -> Self {
        self.shape.prefault = yes;
        self
    }

    /// Asks the system for huge pages; chunks are then at least 2 MiB.
    pub fn huge_pages(mut self, yes: bool) -> Self {
        self.shape.huge = yes;
        self
    }

    /// The name in reports. The first 31 bytes are kept, up to the first zero byte.
    pub fn name(mut self, name: &str) -> Self {
        self.shape.name = Name::new(name);
        self
    }

    pub(crate) fn memory(self) -> Result<PoolMemory, BuildError> {
        if self.bounded && self.shape.capacity == 0 {
            return Err(BuildError::NoCapacity);
        }
        RawPool::create(&self.shape)
            .map(PoolMemory)
            .ok_or(BuildError::NoMemory)
    }
}

#[allow(private_bounds)]
impl<P: FromMemory> PoolBuilder<P> {
    /// Builds the pool.
    ///
    /// # Errors
    /// [`BuildError::NoCapacity`]: the pool is bounded to 0 objects. [`BuildError::NoMemory`]:
    /// there is not enough memory.
    pub fn build(self) -> Result<P, BuildError> {
        self.memory().map(P::from_memory)
    }
}

impl<P> fmt::Debug for PoolBuilder<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolBuilder")
            .field("shape", &self.shape)
            .finish()
    }
}
