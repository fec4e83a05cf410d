//! Objects that stay built while they are free: what they hold, the capacity of a buffer or an open
//! connection, is there for the next owner.
//!
//! A slot of such a cache holds an `Option<T>`. The library's constructor writes `None`, and runs
//! nothing of the program's: [`Recycle::create`] is called outside of it, by whoever takes an object that
//! is `None`, so that it may panic, and use this very cache. The destructor drops what is there; it
//! runs inside of the library, in the thread that gives memory back, so values are `Send` and
//! `'static`, panics are caught, and [`within`](crate::reclaim::within) keeps the doors out that the
//! library forbids there.
//!
//! What safe code of the program can do to it:
//!
//! - *`create`* may panic, or take from this cache: the slot holds `None` meanwhile, and goes back so.
//! - *`recycle`* may panic, or use this cache: the value is dropped then, and the slot holds `None` before.
//! - *A value's drop* may be the last owner of a cache, this one included: the library puts such an end off
//!   until it has left the destructor (`sy_cache_destroy`).
//! - *A value stays* for the next owner: so the cache is invariant in `T`, and a value of a type that lives
//!   shorter, or of a function that asks for more, cannot be left for others.

use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::{fmt, mem};
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::cache::no_room;
use crate::raw::cache::{self as raw, Lifecycle, OwnedCache, RawCache};
use crate::{reclaim, CacheBuilder, CacheStats, CreateError};

/// What can be used again: see [`RecycleCache`].
pub trait Recycle: Send + 'static {
    /// A new one, for its first owner.
    fn create() -> Self;

    /// Called when an owner gives it back: makes it as good as new, and keeps what is worth keeping. If
    /// it panics, the object is dropped instead.
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
/// Free objects are dropped when their memory goes back: by a trim, by itself when nobody wants them,
/// or with the cache. Then their `drop` runs in any thread; a panic of it is caught and goes no
/// further, and calls of [`thread_idle`](crate::thread_idle), [`trim`](crate::trim) and their kin do
/// nothing there.
///
/// Thread rule: all of it from any thread.
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
    /// Values that one owner leaves are the next one's: so it is invariant.
    kind: PhantomData<fn(T) -> T>,
}

// SAFETY: values are Send; nobody reaches them by way of the cache but who takes them.
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

/// Runs what may panic, and lets no panic out: it would unwind into the library.
fn contain(work: impl FnOnce()) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(work)) else {
        return;
    };
    // Dropping what it carries may panic too; what that carries is kept for ever.
    if let Err(second) = catch_unwind(AssertUnwindSafe(move || drop(panic))) {
        mem::forget(second);
    }
}

impl<T: Recycle> RecycleCache<T> {
    /// A cache without a limit. The name is for reports and statistics.
    ///
    /// # Panics
    /// If there is no memory for it, or `T` is aligned to more than 2 MiB.
    #[track_caller]
    pub fn new(name: &str) -> Self {
        match Self::build(CacheBuilder::new().name(name)) {
            Ok(cache) => cache,
            Err(error) => panic!("cache {name:?}: {error}"),
        }
    }

    /// A cache with the builder's settings; with [`Checks::POISON`](crate::Checks::POISON), `ZERO` and
    /// others that overwrite free objects, these are dropped when they are freed.
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

    /// An object, used before or new.
    ///
    /// # Panics
    /// If the limit of the cache is reached, and where [`Recycle::create`] does; then the cache is as
    /// before. Where there is no memory, it does as `Box::new`.
    #[inline]
    #[track_caller]
    pub fn get(&self) -> RecycleBox<'_, T> {
        match self.try_get() {
            Some(object) => object,
            None => no_room::<T>(),
        }
    }

    /// An object, used before or new; `None`: there is no room.
    ///
    /// # Panics
    /// Where [`Recycle::create`] does; then the cache is as before.
    #[inline]
    #[track_caller]
    pub fn try_get(&self) -> Option<RecycleBox<'_, T>> {
        let object = self.owned.0.take()?.cast::<Option<T>>();
        // Gives the slot back, as None, should create() panic.
        let mut taken = RecycleBox {
            object,
            cache: self,
        };
        // SAFETY: constructed, and ours.
        let slot = unsafe { taken.object.as_mut() };
        if slot.is_none() {
            *slot = Some(create());
        }
        Some(taken)
    }

    /// Objects that owners have: exact while no other thread uses the cache.
    pub fn in_use(&self) -> usize {
        raw::in_use(self.owned.0)
    }

    /// Drops free objects and gives their memory back to the system; says how many bytes.
    pub fn trim(&self) -> usize {
        reclaim::unless_within(|| raw::trim(self.owned.0), 0)
    }

    /// Provides memory for so many more values, which are not created yet; whether it could be had.
    /// False in [`Recycle`]'s functions, too.
    pub fn reserve(&self, count: usize) -> bool {
        reclaim::unless_within(|| raw::reserve(self.owned.0, count), false)
    }

    /// Where the memory is.
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

/// Owns an object of a [`RecycleCache`]: recycles it, and gives it back.
pub struct RecycleBox<'c, T: Recycle> {
    object: NonNull<Option<T>>,
    cache: &'c RecycleCache<T>,
}

// SAFETY: it owns its object alone, and values are Send.
unsafe impl<T: Recycle> Send for RecycleBox<'_, T> {}
// SAFETY: a reference gives references to the value.
unsafe impl<T: Recycle + Sync> Sync for RecycleBox<'_, T> {}

impl<T: Recycle> RecycleBox<'_, T> {
    /// Keeps the value for good; the next owner of the slot has a new one.
    pub fn into_inner(mut this: Self) -> T {
        // SAFETY: it is owned.
        let value = unsafe { this.object.as_mut() }.take();
        // SAFETY: a box that is given out holds a value.
        unsafe { value.unwrap_unchecked() }
    }
}

impl<T: Recycle> Deref for RecycleBox<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: it is owned, and a box that is given out holds a value.
        unsafe { self.object.as_ref().as_ref().unwrap_unchecked() }
    }
}

impl<T: Recycle> DerefMut for RecycleBox<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the same.
        unsafe { self.object.as_mut().as_mut().unwrap_unchecked() }
    }
}

impl<T: Recycle> Drop for RecycleBox<'_, T> {
    #[inline]
    fn drop(&mut self) {
        /// Gives the slot back; if recycling panicked, without the value.
        struct Leaving<T> {
            object: NonNull<Option<T>>,
            raw: RawCache,
            recycled: bool,
        }

        impl<T> Drop for Leaving<T> {
            #[inline]
            fn drop(&mut self) {
                /// The slot alone, should the value's drop panic too.
                struct Slot(NonNull<u8>, RawCache);

                impl Drop for Slot {
                    #[inline]
                    fn drop(&mut self) {
                        // SAFETY: it was taken from there, and holds an Option.
                        unsafe { self.1.give(self.0) }
                    }
                }

                let _slot = Slot(self.object.cast(), self.raw);
                if !self.recycled {
                    // SAFETY: it is owned; the slot holds None before the value is dropped.
                    drop(unsafe { self.object.as_mut() }.take());
                }
            }
        }

        let mut leaving = Leaving {
            object: self.object,
            raw: self.cache.owned.0,
            recycled: false,
        };
        // SAFETY: it is owned.
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
