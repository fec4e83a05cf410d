//! A [`Store`] whose slots hold values of one type.
//!
//! Above: the slabs of the crates with the interfaces of nexus-slab. A bounded slab is one chunk;
//! an unbounded one adds a chunk when no slot is free. Here, a slot is the address of its value.
//! The crates define their own raw slots, and the functions of raw slots.

use super::store::{Free, Store};
use crate::raw::pool::{Name, Shape, CALLS};
use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

/// The maximum number of bytes that the pool itself takes of its first chunk.
const POOL_BYTES: usize = 192;

/// A kind of slabs: bounded or unbounded, of one of the crates.
pub trait Kind: 'static {
    /// Whether it adds chunks.
    #[doc(hidden)]
    const GROWS: bool;

    /// Whether freeing a slot twice in a row is reported even where frees are not calls. It costs a
    /// compare and a branch. Where safe code cannot free a slot twice, it is of little use.
    #[doc(hidden)]
    const TELLS: bool = true;
}

/// The kind of slabs with one chunk.
#[derive(Debug)]
pub enum Bounded {}

impl Kind for Bounded {
    const GROWS: bool = false;
}

/// The kind of slabs with as many chunks as are needed.
#[derive(Debug)]
pub enum Unbounded {}

impl Kind for Unbounded {
    const GROWS: bool = true;
}

/// A slot: a value, or the address of the next free slot in the same bytes.
#[allow(dead_code)] // for its size and alignment
union Place<T> {
    next: *mut Free,
    value: ManuallyDrop<T>,
}

/// Slots for values of one type, for one thread at a time.
///
/// When it is dropped, it frees its memory if no slot is taken. If a slot is taken, it may be read
/// later, so the memory stays until the process ends.
pub struct TypedStore<T, K: Kind> {
    /// Untyped: freeing the memory of a slab does not access values, not even when the slab is
    /// dropped. So values may borrow from variables that are dropped before the slab.
    store: Store,
    holds: PhantomData<fn(T) -> T>,
    kind: PhantomData<K>,
}

impl<T, K: Kind> TypedStore<T, K> {
    /// A store without memory; it must be initialized.
    #[allow(clippy::new_without_default)] // only for constants and slabs
    #[inline]
    pub const fn new() -> Self {
        TypedStore {
            store: Store::new(),
            holds: PhantomData,
            kind: PhantomData,
        }
    }

    /// The untyped slots.
    #[inline(always)]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Adds a chunk. False: there is no memory.
    #[inline(always)]
    pub fn add_chunk(&self) -> bool {
        self.store.add_chunk(Self::shape)
    }

    /// Takes a slot with undefined content. `None`: the slab is bounded and full, or not
    /// initialized, or there is no memory.
    #[inline(always)]
    pub fn take(&self) -> Option<NonNull<T>> {
        match self.store.pop() {
            Some(slot) => Some(slot.cast()),
            None if CALLS || K::GROWS => self.store.refill(Self::shape).map(NonNull::cast),
            None => None,
        }
    }

    /// Takes a slot that is freed if no value is put in.
    #[inline]
    pub fn take_guarded(&self) -> Option<Taken<'_, T, K>> {
        let slot = self.take()?;
        Some(Taken { slab: self, slot })
    }

    /// Puts the value into a free slot, and calls `done` with it. If there is no free slot without
    /// growing, calls `full` with the value.
    #[inline(always)]
    pub fn insert<R>(
        &self,
        value: T,
        done: impl FnOnce(NonNull<T>) -> R,
        full: impl FnOnce(T) -> R,
    ) -> R {
        // SAFETY: a T fits into its own slot.
        unsafe { self.insert_as(value, done, full) }
    }

    /// Does the same as [`insert`](Self::insert) for a value of another type.
    ///
    /// # Safety
    /// The value is no larger than a slot, and its alignment no greater.
    #[inline(always)]
    pub unsafe fn insert_as<U, R>(
        &self,
        value: U,
        done: impl FnOnce(NonNull<U>) -> R,
        full: impl FnOnce(U) -> R,
    ) -> R {
        // The value is written before the list changes. In the other order, the compiler may take a
        // value of bytes apart on the stack, and reading it back costs ten cycles.
        let Some(head) = NonNull::new(self.store.head()) else {
            // SAFETY: as the caller says.
            return unsafe { self.insert_seldom(value, done, full) };
        };
        let slot = head.cast::<U>();
        // SAFETY: a slot of the list is free. Writing the value runs no code of the program.
        unsafe {
            let list = Store::behind(head.as_ptr());
            slot.write(value);
            self.store.set_list(list);
        }
        done(slot)
    }

    /// The part of `insert_as` for an empty list.
    ///
    /// # Safety
    /// As [`insert_as`](Self::insert_as).
    #[inline(always)]
    unsafe fn insert_seldom<U, R>(
        &self,
        value: U,
        done: impl FnOnce(NonNull<U>) -> R,
        full: impl FnOnce(U) -> R,
    ) -> R {
        if CALLS {
            if let Some(slot) = self.take() {
                let slot = slot.cast::<U>();
                // SAFETY: the slot is ours, and empty.
                unsafe { slot.write(value) };
                return done(slot);
            }
        }
        full(value)
    }

    /// Frees a slot that holds no value.
    ///
    /// # Safety
    /// The slot belongs to this store, and is not used again.
    #[inline(always)]
    pub unsafe fn give(&self, slot: NonNull<T>) {
        // SAFETY: as the caller says.
        unsafe { self.store.push::<true>(slot.as_ptr().cast()) }
    }

    /// Does the same as [`give`](Self::give) for a slot that had a handle of its own.
    ///
    /// # Safety
    /// As for `give`.
    #[inline(always)]
    unsafe fn give_own(&self, slot: NonNull<T>) {
        let slot = slot.as_ptr().cast();
        // SAFETY: as the caller says.
        unsafe {
            if K::TELLS {
                self.store.push::<true>(slot);
            } else {
                self.store.push::<false>(slot);
            }
        }
    }

    /// Returns a guard that frees the slot when it is dropped, also in a panic.
    ///
    /// # Safety
    /// The slot belongs to this store, is not used after the guard's drop, and holds no value then.
    #[inline(always)]
    pub unsafe fn guard(&self, slot: NonNull<T>) -> Taken<'_, T, K> {
        Taken { slab: self, slot }
    }

    /// Drops the value and frees the slot, also if the drop panics.
    ///
    /// # Safety
    /// The slot belongs to this store and holds a value, and there is no reference to the value.
    #[inline(always)]
    pub unsafe fn free(&self, slot: NonNull<T>) {
        // SAFETY: as the caller says.
        unsafe { self.free_as::<T>(slot) }
    }

    /// Does the same as [`free`](Self::free) for a slot with a value of another type.
    ///
    /// # Safety
    /// As for `free`.
    #[inline(always)]
    pub unsafe fn free_as<U>(&self, slot: NonNull<U>) {
        // SAFETY: as the caller says; the slot holds a value, which is not used again.
        unsafe {
            let _taken = self.guard(slot.cast());
            slot.drop_in_place();
        }
    }

    /// Frees the slot and returns the value.
    ///
    /// # Safety
    /// As for [`free`](Self::free).
    #[inline(always)]
    pub unsafe fn remove(&self, slot: NonNull<T>) -> T {
        // SAFETY: as the caller says.
        unsafe { self.remove_as::<T>(slot) }
    }

    /// Does the same as [`remove`](Self::remove) for a slot with a value of another type.
    ///
    /// # Safety
    /// As for `remove`.
    #[inline(always)]
    pub unsafe fn remove_as<U>(&self, slot: NonNull<U>) -> U {
        // SAFETY: as the caller says; the slot holds a value, which is moved out.
        unsafe {
            let value = slot.read();
            self.give_own(slot.cast());
            value
        }
    }

    /// The shape of the pool of a slab with this number of slots in a chunk. `None`: it is too
    /// large.
    fn shape(chunk_slots: usize) -> Option<Shape> {
        let slot = Layout::new::<Place<T>>();
        let chunk_bytes = slot
            .size()
            .checked_mul(chunk_slots)?
            .checked_add(POOL_BYTES)?;
        (chunk_bytes <= isize::MAX as usize).then(|| Shape {
            slot,
            capacity: if K::GROWS { 0 } else { chunk_slots },
            chunk_bytes,
            prefault: true,
            huge: false,
            name: Name::new(core::any::type_name::<T>()),
        })
    }
}

impl<T, K: Kind> fmt::Debug for TypedStore<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

/// A slot that is taken and holds no value. It is freed when this is dropped, also in a panic.
#[derive(Debug)]
pub struct Taken<'a, T, K: Kind> {
    slab: &'a TypedStore<T, K>,
    slot: NonNull<T>,
}

impl<'a, T, K: Kind> Taken<'a, T, K> {
    /// The address of the slot.
    #[inline(always)]
    pub fn slot(&self) -> NonNull<T> {
        self.slot
    }

    /// The slab of the slot.
    #[inline(always)]
    pub fn slab(&self) -> &'a TypedStore<T, K> {
        self.slab
    }

    /// The slot, which is then not freed.
    #[inline(always)]
    pub fn into_slot(self) -> NonNull<T> {
        ManuallyDrop::new(self).slot
    }

    /// Puts the value into the slot.
    #[inline(always)]
    pub fn fill(self, value: T) -> NonNull<T> {
        let slot = self.into_slot();
        // SAFETY: the slot is ours, and empty.
        unsafe { slot.write(value) };
        slot
    }
}

impl<T, K: Kind> Drop for Taken<'_, T, K> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the slot belongs to the slab, and no other code uses it.
        unsafe { self.slab.give_own(self.slot) }
    }
}
