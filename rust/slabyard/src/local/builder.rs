//! The builder of a thread's pool.

use super::{end, kinds::Sealed, IsBounded, IsUnbounded, LocalAllocator};
use crate::raw::pool::{Name, RawPool, Shape};
use crate::rc::Node;
use crate::BuildError;
use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;

/// The default number of objects by which an unbounded allocator grows.
const CHUNK_SLOTS: usize = 4096;

/// The maximum number of bytes of a chunk without objects: the first chunk contains the pool
/// itself.
const OWN_BYTES: usize = 192;

/// Builds the pool named `A` of the calling thread. See [`crate::local`].
#[must_use = "a builder does nothing until build is called"]
pub struct Builder<T, A> {
    slots: usize,
    chunk_slots: usize,
    initial_chunks: usize,
    prefault: bool,
    names: PhantomData<fn() -> (T, A)>,
}

impl<T: 'static, A: LocalAllocator<T>> Builder<T, A> {
    #[doc(hidden)]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Builder {
            slots: 0,
            chunk_slots: CHUNK_SLOTS,
            initial_chunks: 0,
            prefault: false,
            names: PhantomData,
        }
    }

    /// Limits the pool of this thread to this number of objects. It must be set.
    pub fn capacity(mut self, slots: usize) -> Self
    where
        A::Kind: IsBounded,
    {
        self.slots = slots;
        self
    }

    /// The minimum number of objects by which the pool grows; the default is 4096. It is also the
    /// minimum number in the first chunk. Each chunk is larger by the data of the pool itself, and
    /// is rounded up to pages. The more chunks a pool has, the larger its next chunk may be.
    pub fn chunk_size(mut self, slots: usize) -> Self
    where
        A::Kind: IsUnbounded,
    {
        self.chunk_slots = slots;
        self
    }

    /// Allocates memory for this number of chunks of [`chunk_size`](Self::chunk_size) objects when
    /// the pool is built, and touches each page. The default is none.
    pub fn initial_chunks(mut self, chunks: usize) -> Self
    where
        A::Kind: IsUnbounded,
    {
        self.initial_chunks = chunks;
        self
    }

    /// Touches memory when it is taken from the system, so that no allocation waits for a page
    /// fault.
    pub fn prefault(mut self, yes: bool) -> Self {
        self.prefault = yes;
        self
    }

    /// Builds the pool of the calling thread.
    ///
    /// # Errors
    /// [`BuildError::AlreadyBuilt`], [`BuildError::NoCapacity`], [`BuildError::NoMemory`]. The
    /// thread is then unchanged.
    pub fn build(self) -> Result<(), BuildError> {
        if super::is_initialized::<T, A>() {
            return Err(BuildError::AlreadyBuilt);
        }
        let pool = RawPool::create(&self.shape()?).ok_or(BuildError::NoMemory)?;
        A::KEY.with(|local| local.hand.begin(pool));
        if !end::register(end_on_this_thread::<T, A>) {
            end_on_this_thread::<T, A>(true);
            return Err(BuildError::NoMemory);
        }
        if !self.make_room() {
            end::unregister();
            end_on_this_thread::<T, A>(true);
            return Err(BuildError::NoMemory);
        }
        Ok(())
    }

    fn shape(&self) -> Result<Shape, BuildError> {
        if A::Kind::BOUNDED && self.slots == 0 {
            return Err(BuildError::NoCapacity);
        }
        let slot = if A::Kind::COUNTED {
            Layout::new::<Node<T>>()
        } else {
            Layout::new::<T>()
        };
        let stride = slot.pad_to_align().size().max(8);
        Ok(Shape {
            slot,
            capacity: self.slots,
            chunk_bytes: stride
                .checked_mul(self.chunk_slots)
                .and_then(|bytes| bytes.checked_add(OWN_BYTES))
                .filter(|bytes| *bytes <= isize::MAX as usize)
                .ok_or(BuildError::NoMemory)?,
            prefault: self.prefault,
            huge: false,
            name: Name::new(core::any::type_name::<T>()),
        })
    }

    /// Takes the slots of the initial chunks, and gives them back so that the first one is on top.
    fn make_room(&self) -> bool {
        let slots = self.chunk_slots.checked_mul(self.initial_chunks);
        slots.is_some_and(super::reserve::<T, A>)
    }
}

/// Ends the pool named `A` of this thread; see [`super::hand::Hand::end`].
fn end_on_this_thread<T: 'static, A: LocalAllocator<T>>(last: bool) -> bool {
    A::KEY
        .try_with(|local| local.hand.end(last))
        .unwrap_or(true)
}

impl<T, A> fmt::Debug for Builder<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("capacity", &self.slots)
            .field("chunk_size", &self.chunk_slots)
            .finish_non_exhaustive()
    }
}
