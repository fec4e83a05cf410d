//! How a thread gets its pool.

use super::{end, kinds::Sealed, IsBounded, IsUnbounded, LocalAllocator};
use crate::raw::pool::{Name, RawPool, Shape};
use crate::rc::Node;
use crate::BuildError;
use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;

/// Objects by which an unbounded allocator grows, unless it says another number.
const CHUNK_SLOTS: usize = 4096;

/// Bytes of a chunk that hold no objects, at most: in the first one lies the pool itself.
const OWN_BYTES: usize = 192;

/// Builds the pool of this thread that `A` names. See [`crate::local`].
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

    /// At most so many objects at a time on this thread. It has to be said.
    pub fn capacity(mut self, slots: usize) -> Self
    where
        A::Kind: IsBounded,
    {
        self.slots = slots;
        self
    }

    /// Grow by so many objects at least; 4096 unless said. It is the least room in the first chunk too:
    /// chunks have what the pool itself takes in addition, and are rounded up to pages. The more there
    /// is, the larger the next chunk may be.
    pub fn chunk_size(mut self, slots: usize) -> Self
    where
        A::Kind: IsUnbounded,
    {
        self.chunk_slots = slots;
        self
    }

    /// Have room for so many times [`chunk_size`](Self::chunk_size) objects from the start; each page
    /// of their memory is touched. None unless said.
    pub fn initial_chunks(mut self, chunks: usize) -> Self
    where
        A::Kind: IsUnbounded,
    {
        self.initial_chunks = chunks;
        self
    }

    /// Touch memory when it is taken from the system, so that no allocation waits for a page.
    pub fn prefault(mut self, yes: bool) -> Self {
        self.prefault = yes;
        self
    }

    /// Builds the pool of this thread.
    ///
    /// # Errors
    /// [`BuildError::AlreadyBuilt`], [`BuildError::NoCapacity`], [`BuildError::NoMemory`]; the
    /// thread is as it was.
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

    /// Takes the slots of the first chunks, and gives them back so that the first is on top.
    fn make_room(&self) -> bool {
        let slots = self.chunk_slots.checked_mul(self.initial_chunks);
        slots.is_some_and(super::reserve::<T, A>)
    }
}

/// The pool that `A` names ends; see [`super::hand::Hand::end`].
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
