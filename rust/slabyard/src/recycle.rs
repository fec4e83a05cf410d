//! [`RecycleCache`]: objects that stay constructed while they are free. The next owner gets what
//! they hold, such as the capacity of a buffer or an open connection.
//!
//! A slot of such a cache holds an `Option<T>`. The library's constructor writes `None` and runs no
//! code of the program. When a program takes an object that is `None`, [`Recycle::create`] is
//! called outside of the constructor, so it may panic and use this cache. The destructor drops the
//! value. It runs inside the library, in the thread that returns the memory. So values must be
//! `Send` and `'static`, panics are caught, and [`within`](crate::reclaim::within) disables the
//! functions that the library forbids there.
//!
//! What safe code of the program can do to it:
//!
//! - *`create`* may panic, or take objects from this cache. Meanwhile the slot holds `None`. If
//!   `create` panics, the slot is freed in this state.
//! - *`recycle`* may panic, or use this cache. After a panic the slot is set to `None`, then the
//!   value is dropped.
//! - *A value's drop* may be the last owner of a cache, even of this one. The library then
//!   postpones the destruction of this cache until it has left the destructor (`sy_cache_destroy`).
//! - *A value stays* for the next owner. So the cache is invariant in `T`: a value of a type with a
//!   shorter lifetime, or of a function type that requires more, cannot be left for others.

use core::borrow::{Borrow, BorrowMut};
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::{fmt, mem};
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::cache::no_room;
use crate::raw::cache::{self as raw, Lifecycle, OwnedCache, RawCache};
use crate::{reclaim, CacheBuilder, CacheStats, CreateError};

/// An object that can be reused: see [`RecycleCache`].
pub trait Recycle: Send + 'static {
    /// Creates an object, for its first owner.
    fn create() -> Self;

    /// Called when an owner drops the object. It resets the object and keeps what is worth keeping.
    /// If it panics, the object is dropped instead.
    fn recycle(&mut self);
}

impl<E: Send + 'static> Recycle for alloc::vec::Vec<E> {
    fn create() -> Self {
        Self::new()
    }

    fn recycle(&mut self) {
        self.clear();
    }
}

impl Recycle for alloc::string::String {
    fn create() -> Self {
        Self::new()
    }

    fn recycle(&mut self) {
        self.clear();
    }
}

/// A cache of objects that are created once and used again and again.
///
/// Free objects are dropped when their memory is returned: by a trim, automatically when they are
/// unused, or with the cache. Their `drop` may run in any thread. A panic of it is caught and
/// ignored. There, [`thread_idle`](crate::thread_idle), [`trim`](crate::trim) and similar functions
/// do nothing.
///
/// Thread rule: all functions may be called from any thread.
///
/// ```
/// use slabyard::RecycleCache;
///
/// let buffers = RecycleCache::<Vec<u8>>::new("buffer");
/// let mut buffer = buffers.get();
/// buffer.extend_from_slice(&[1; 1000]);
/// drop(buffer);
/// let again = buffers.get();
/// assert!(again.is_empty() && again.capacity() >= 1000);
/// ```
pub struct RecycleCache<T: Recycle> {
    owned: OwnedCache,
    /// An owner leaves its value for the next one, so the cache is invariant in `T`.
    kind: PhantomData<fn(T) -> T>,
}

// SAFETY: values are Send, and only the owner of an object accesses its value.
unsafe impl<T: Recycle> Send for RecycleCache<T> {}
// SAFETY: the same.
unsafe impl<T: Recycle> Sync for RecycleCache<T> {}

unsafe extern "C" fn construct<T>(object: *mut c_void, _: *mut c_void) -> c_int {
    // SAFETY: memory for an object of the cache.
    unsafe { object.cast::<Option<T>>().write(None) };
    0
}

unsafe extern "C" fn destruct<T>(object: *mut c_void, _: *mut c_void) {
    let object = object.cast::<Option<T>>();
    reclaim::within(|| {
        contain(|| {
            // SAFETY: it was constructed, is free, and not used again.
            unsafe { object.drop_in_place() }
        });
    });
}

/// Runs code that may panic and catches the panic, which must not unwind into the library.
fn contain(work: impl FnOnce()) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(work)) else {
        return;
    };
    // Dropping the payload of the panic may panic too; the payload of that panic is leaked.
    if let Err(second) = catch_unwind(AssertUnwindSafe(move || drop(panic))) {
        mem::forget(second);
    }
}

impl<T: Recycle> RecycleCache<T> {
    /// Creates a cache without a limit. The name is for reports and statistics.
    ///
    /// # Panics
    /// If there is no memory for the cache, or `T` is aligned to more than 2 MiB.
    #[track_caller]
    pub fn new(name: &str) -> Self {
        match Self::build(CacheBuilder::new().name(name)) {
            Ok(cache) => cache,
            Err(error) => panic!("cache {name:?}: {error}"),
        }
    }

    /// Creates a cache with the builder's settings. With [`Checks::POISON`](crate::Checks::POISON),
    /// `ZERO` and other checks that overwrite free objects, objects are dropped when they are
    /// freed.
    pub fn build(builder: CacheBuilder<'_, Option<T>>) -> Result<Self, CreateError> {
        let lifecycle = Lifecycle {
            construct: construct::<T>,
            destruct: destruct::<T>,
        };
        let owned = OwnedCache(builder.create(Some(lifecycle))?);
        Ok(RecycleCache {
            owned,
            kind: PhantomData,
        })
    }

    /// An object: a reused one, or a new one.
    ///
    /// # Panics
    /// If the limit of the cache is reached, or [`Recycle::create`] panics; then the cache stays
    /// unchanged. If there is no memory, this fails as `Box::new` does.
    #[inline]
    #[track_caller]
    pub fn get(&self) -> RecycleBox<'_, T> {
        match self.try_get() {
            Some(object) => object,
            None => no_room::<T>(),
        }
    }

    /// An object: a reused one, or a new one. `None`: there is no room.
    ///
    /// # Panics
    /// If [`Recycle::create`] panics; then the cache stays unchanged.
    #[inline]
    #[track_caller]
    pub fn try_get(&self) -> Option<RecycleBox<'_, T>> {
        let object = self.owned.0.take()?.cast::<Option<T>>();
        // Frees the slot, as None, if create() panics.
        let mut taken = RecycleBox {
            object,
            cache: self,
        };
        // SAFETY: the object is constructed and ours.
        let slot = unsafe { taken.object.as_mut() };
        if slot.is_none() {
            *slot = Some(create());
        }
        Some(taken)
    }

    /// The number of objects in use. It is exact while no other thread uses the cache.
    pub fn in_use(&self) -> usize {
        raw::in_use(self.owned.0)
    }

    /// Drops free objects and returns their memory to the system; the result is the number of
    /// bytes.
    pub fn trim(&self) -> usize {
        reclaim::unless_within(|| raw::trim(self.owned.0), 0)
    }

    /// Provides memory for `count` more values, which are not created yet. False: there is not
    /// enough memory, or it is called in a function of [`Recycle`].
    pub fn reserve(&self, count: usize) -> bool {
        reclaim::unless_within(|| raw::reserve(self.owned.0, count), false)
    }

    /// Statistics of the cache.
    pub fn stats(&self) -> CacheStats {
        CacheStats::of(self.owned.0)
    }
}

#[cold]
#[inline(never)]
fn create<T: Recycle>() -> T {
    T::create()
}

impl<T: Recycle> fmt::Debug for RecycleCache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::stats::describe::<T>(f, "RecycleCache", self.owned.0)
    }
}

/// Owns an object of a [`RecycleCache`]. Dropping it recycles the object and gives it back.
pub struct RecycleBox<'c, T: Recycle> {
    object: NonNull<Option<T>>,
    cache: &'c RecycleCache<T>,
}

// SAFETY: the box is the only owner of its object, and values are Send.
unsafe impl<T: Recycle> Send for RecycleBox<'_, T> {}
// SAFETY: a reference gives references to the value.
unsafe impl<T: Recycle + Sync> Sync for RecycleBox<'_, T> {}

impl<T: Recycle> RecycleBox<'_, T> {
    /// Moves the value out. The next owner of the slot gets a new value.
    pub fn into_inner(mut this: Self) -> T {
        // SAFETY: the box owns the slot.
        let value = unsafe { this.object.as_mut() }.take();
        // SAFETY: a box that is given out holds a value.
        unsafe { value.unwrap_unchecked() }
    }
}

impl<T: Recycle> Deref for RecycleBox<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the box owns the slot, and a box that is given out holds a value.
        unsafe { self.object.as_ref().as_ref().unwrap_unchecked() }
    }
}

impl<T: Recycle> DerefMut for RecycleBox<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in deref.
        unsafe { self.object.as_mut().as_mut().unwrap_unchecked() }
    }
}

impl<T: Recycle> AsRef<T> for RecycleBox<'_, T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: Recycle> AsMut<T> for RecycleBox<'_, T> {
    fn as_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: Recycle> Borrow<T> for RecycleBox<'_, T> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T: Recycle> BorrowMut<T> for RecycleBox<'_, T> {
    fn borrow_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: Recycle> Drop for RecycleBox<'_, T> {
    #[inline]
    fn drop(&mut self) {
        /// Frees the slot. If recycling panicked, drops the value first.
        struct Leaving<T> {
            object: NonNull<Option<T>>,
            raw: RawCache,
            recycled: bool,
        }

        impl<T> Drop for Leaving<T> {
            #[inline]
            fn drop(&mut self) {
                /// Frees the slot even if the value's drop panics too.
                struct Slot(NonNull<u8>, RawCache);

                impl Drop for Slot {
                    #[inline]
                    fn drop(&mut self) {
                        // SAFETY: the slot was taken from this cache, and holds an Option.
                        unsafe { self.1.give(self.0) }
                    }
                }

                let _slot = Slot(self.object.cast(), self.raw);
                if !self.recycled {
                    // SAFETY: the slot is owned; it holds None before the value is dropped.
                    drop(unsafe { self.object.as_mut() }.take());
                }
            }
        }

        let mut leaving = Leaving {
            object: self.object,
            raw: self.cache.owned.0,
            recycled: false,
        };
        // SAFETY: the box owns the slot.
        if let Some(value) = unsafe { leaving.object.as_mut() } {
            value.recycle();
        }
        leaving.recycled = true;
    }
}

impl<T: Recycle + fmt::Debug> fmt::Debug for RecycleBox<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}
