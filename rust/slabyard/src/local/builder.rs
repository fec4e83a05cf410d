//! How a thread gets its pool.

use super::{end, kinds::Sealed, Here, IsBounded, IsUnbounded, LocalAllocator};
use crate::raw::pool::{Name, RawPool, Shape};
use crate::rc::Node;
use crate::slot::Claim;
use crate::BuildError;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;

/// Objects by which an unbounded allocator grows, unless it says another number.
const CHUNK_SLOTS: usize = 4096;

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

    /// Grow by so many objects at least; 4096 unless said.
    pub fn chunk_size(mut self, slots: usize) -> Self
    where
        A::Kind: IsUnbounded,
    {
        self.chunk_slots = slots;
        self
    }

    /// Have room for so many chunks of objects from the start; their memory is touched. None unless
    /// said.
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
                .filter(|bytes| *bytes <= isize::MAX as usize)
                .ok_or(BuildError::NoMemory)?,
            prefault: self.prefault,
            huge: false,
            name: Name::new(core::any::type_name::<T>()),
        })
    }

    /// Takes the slots of the first chunks, and gives them back so that the first is on top.
    fn make_room(&self) -> bool {
        let Some(slots) = self.chunk_slots.checked_mul(self.initial_chunks) else {
            return false;
        };
        let mut taken = Vec::new();
        if taken.try_reserve_exact(slots).is_err() {
            return false;
        }
        for _ in 0..slots {
            // SAFETY: the pool was made for T.
            match unsafe { Claim::<T, Here<T, A>>::take(Here::new()) } {
                Some(claim) => taken.push(claim),
                None => return false,
            }
        }
        while taken.pop().is_some() {}
        true
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
