//! How pools that are values are made.

use crate::home::PoolMemory;
use crate::raw::pool::{Name, RawPool, Shape};
use crate::BuildError;
use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;

/// Makes a [`Pool`](crate::Pool), a [`BytePool`](crate::BytePool) or an
/// [`RcPool`](crate::RcPool), from the `builder` of which it comes.
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

/// What a builder can make.
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

    /// At most so many objects at a time; the address space for all of them is taken at once.
    pub fn bounded(mut self, capacity: usize) -> Self {
        self.bounded = true;
        self.shape.capacity = capacity;
        self
    }

    /// Grow by so many bytes at least, rounded up to pages; without it, by 64 KiB. No use for
    /// bounded pools.
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        self.shape.chunk_bytes = bytes;
        self
    }

    /// Touch memory when it is taken from the system, so that no insertion waits for a page: all of
    /// a bounded pool now, each chunk of another when it grows.
    pub fn prefault(mut self, yes: bool) -> Self {
        self.shape.prefault = yes;
        self
    }

    /// Ask the system for huge pages; chunks are then 2 MiB at least.
    pub fn huge_pages(mut self, yes: bool) -> Self {
        self.shape.huge = yes;
        self
    }

    /// The name in reports, of which 31 bytes are kept, up to the first zero.
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
    /// The pool.
    ///
    /// # Errors
    /// [`BuildError::NoCapacity`]: bounded, at no object. [`BuildError::NoMemory`].
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
