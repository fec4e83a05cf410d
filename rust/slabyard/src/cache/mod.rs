//! Caches: objects of one kind, for all threads.
//!
//! [`Cache`] is a value, [`StaticCache`] one that is there for the whole program. Both are a [`CacheHome`]
//! of objects, and what is in a home is held by a [`CacheBox`](boxed), counted by a
//! [`CacheArc`](shared), or waits to be written as a [`CacheVacant`].
//!
//! What all of it stands on: a cache with an object that is live is never destroyed. Whoever
//! forgets a box leaks the object and keeps the cache's memory, and no more.
//!
//! What safe code of the program can do to it:
//!
//! - *A value's drop* may panic, or use the cache: the memory goes back after it, behind a drop guard, and
//!   is no more reached through the box.
//! - *A value's clone* (`Clone`, [`make_mut`](crate::ObjectArc::make_mut)) sees a shared reference, and returns before
//!   there is a place for what it made; the owner is looked at anew after it.
//! - *Closures* (`insert_with`, `new_cyclic_in`) run while the place is claimed; it goes back if they panic. A
//!   watcher that `new_cyclic_in` lends upgrades only once the value is written.
//! - *`Eq`, `Ord`, `Hash`, `Debug`, `Future`* of a value are passed on, and nothing depends on their answers.
//! - *Homes and static caches* are unsafe traits: who implements [`CacheHome`] or [`StaticCache`](crate::StaticCache) promises. A setting
//!   of [`static_cache!`](crate::static_cache) is an expression of the program; it can do no more than
//!   make another builder for the same type.

pub(crate) mod boxed;
mod builder;
mod checks;
mod counts;
pub(crate) mod shared;
pub(crate) mod statics;
mod vacant;

use core::marker::PhantomData;
use core::ptr::NonNull;

use crate::raw::cache::{self as raw, OwnedCache};
use crate::{CacheBox, CacheStats, Counted, Full, ObjectArc, ObjectBox};

/// What the counts are made of.
mod atomic {
    pub(super) use core::hint::spin_loop as spin;
    pub(super) use core::sync::atomic::{AtomicUsize, Ordering};
}

pub(crate) use builder::ALIGN_MAX;
pub use builder::{CacheBuilder, CreateError};
pub use checks::Checks;
pub use vacant::CacheVacant;

/// Where objects of type `T` come from and go back to: `&Cache<T>`, or the name of a static cache.
///
/// # Safety
/// What [`take`](CacheHome::take) gives is memory for a `T` of which nobody else has a part, until it is
/// given back to an equal home; even if the home itself ends before.
pub unsafe trait CacheHome<T>: Copy {
    /// Memory for an object; `None`: there is no room.
    fn take(self) -> Option<NonNull<T>>;

    /// Gives the memory back.
    ///
    /// # Safety
    /// It was taken from this home and not given back, and is not used again.
    unsafe fn give(self, object: NonNull<T>);
}

/// A cache of objects of type `T`: any thread allocates, any thread frees.
///
/// An allocation is a handful of instructions, without a lock, an atomic read-modify-write or a
/// call, as long as this thread has objects at hand; so is a free. The object freed last is the one
/// that is given out next. The cache grows with what is live in it; its free memory goes to other
/// caches and back to the system by itself.
///
/// The boxes borrow the cache. Dropping it gives up all of its memory, unless boxes were leaked or
/// forgotten: then they, and the cache's memory with them, stay for ever.
///
/// What is in a cache may hold boxes of the same cache, as the nodes of a list or a tree do.
///
/// Thread rule: all of it from any thread. A `Cache<T>` is `Send` and `Sync` whatever `T` is; boxes
/// are if `T` is.
///
/// ```
/// use slabyard::Cache;
///
/// struct Order { id: u64, price: f64 }
///
/// let orders = Cache::new("order");
/// let order = orders.insert(Order { id: 1, price: 100.0 });
/// assert_eq!((order.id, orders.in_use()), (1, 1));
/// std::thread::scope(|scope| {
///     scope.spawn(move || assert_eq!(order.price, 100.0)); // dropped there
/// });
/// assert_eq!(orders.in_use(), 0);
/// ```
pub struct Cache<T> {
    owned: OwnedCache,
    kind: PhantomData<fn() -> T>,
}

impl<T> Cache<T> {
    /// A cache without a limit. The name is for reports and statistics.
    ///
    /// # Panics
    /// If there is no memory for it, or `T` is aligned to more than 2 MiB.
    #[track_caller]
    pub fn new(name: &str) -> Self {
        match Self::builder().name(name).build() {
            Ok(cache) => cache,
            Err(error) => panic!("cache {name:?}: {error}"),
        }
    }

    /// For a cache with a limit, or with checks.
    pub const fn builder<'n>() -> CacheBuilder<'n, T> {
        CacheBuilder::new()
    }

    /// Puts a value in.
    ///
    /// # Panics
    /// If the limit of the cache is reached. Where there is no memory, it does as `Box::new`.
    #[inline]
    #[track_caller]
    pub fn insert(&self, value: T) -> CacheBox<'_, T> {
        ObjectBox::new_in(value, self)
    }

    /// Puts a value in, or gives it back: the limit is reached, or there is no memory.
    #[inline]
    pub fn try_insert(&self, value: T) -> Result<CacheBox<'_, T>, Full<T>> {
        ObjectBox::try_new_in(value, self)
    }

    /// Puts in what the function returns, as [`CacheVacant::write_with`]. A panic of the function goes on,
    /// and the cache is as before.
    ///
    /// # Panics
    /// As [`insert`](Cache::insert).
    #[inline]
    #[track_caller]
    pub fn insert_with(&self, make: impl FnOnce() -> T) -> CacheBox<'_, T> {
        match self.claim() {
            Some(vacant) => vacant.write_with(make),
            None => no_room::<T>(),
        }
    }

    /// Room for one object, to be written in place; `None`: the limit is reached, or there is no
    /// memory.
    #[inline]
    pub fn claim(&self) -> Option<CacheVacant<T, &Self>> {
        CacheVacant::claim_in(self)
    }

    /// Live objects: exact while no other thread uses the cache, else a snapshot. Takes a look at
    /// each thread.
    pub fn in_use(&self) -> usize {
        raw::in_use(self.owned.0)
    }

    /// Bytes from one object to the next; of a cache with red zones, those of an object.
    pub fn slot_size(&self) -> usize {
        raw::slot_size(self.owned.0)
    }

    /// Provides memory for the next `count` objects beyond what is live, of all threads together.
    /// False: there is not as much; what there is stays.
    pub fn reserve(&self, count: usize) -> bool {
        raw::reserve(self.owned.0, count)
    }

    /// Provides the next `count` objects of this thread, which it then takes without any slow path;
    /// as many as two magazines hold ([`CacheStats::magazine_items`]). False: it is more, or there is
    /// no memory.
    pub fn reserve_for_thread(&self, count: usize) -> bool {
        raw::thread_reserve(self.owned.0, count)
    }

    /// Gives free memory back to the system, and says how many bytes. What running threads have at
    /// hand comes with a later one.
    pub fn trim(&self) -> usize {
        raw::trim(self.owned.0)
    }

    /// Where the memory is, and how often slow paths ran.
    pub fn stats(&self) -> CacheStats {
        CacheStats::of(self.owned.0)
    }

    #[cfg(not(miri))]
    pub(crate) fn as_sys(&self) -> *mut slabyard_sys::sy_cache {
        self.owned.0.pointer.as_ptr()
    }
}

/// A cache of values that are counted: see [`ObjectArc`].
impl<T> Cache<Counted<T>> {
    /// Puts a value in, with a count of one.
    ///
    /// # Panics
    /// As [`insert`](Cache::insert).
    #[inline]
    #[track_caller]
    pub fn insert_arc(&self, value: T) -> ObjectArc<T, &Self> {
        ObjectArc::new_in(value, self)
    }

    /// Puts a value in, with a count of one, or gives it back.
    #[inline]
    pub fn try_insert_arc(&self, value: T) -> Result<ObjectArc<T, &Self>, Full<T>> {
        ObjectArc::try_new_in(value, self)
    }
}

// SAFETY: the library keeps a cache, and what it has mapped, while an object of it is live; and
// objects are as large and aligned as the builder says: for a T.
unsafe impl<T> CacheHome<T> for &Cache<T> {
    #[inline(always)]
    fn take(self) -> Option<NonNull<T>> {
        self.owned.0.take().map(NonNull::cast)
    }

    #[inline(always)]
    unsafe fn give(self, object: NonNull<T>) {
        // SAFETY: as the caller says.
        unsafe { self.owned.0.give(object.cast()) }
    }
}

impl<T> core::fmt::Debug for Cache<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        crate::stats::describe::<T>(f, "Cache", self.owned.0)
    }
}

/// Who asked without a `try` is not told.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn no_room<T>() -> ! {
    if crate::refusal::last_was_a_limit() {
        panic!(
            "the limit of the cache of {} is reached",
            core::any::type_name::<T>()
        );
    }
    alloc::alloc::handle_alloc_error(core::alloc::Layout::new::<T>())
}
