//! Caches: objects of one kind, for all threads.
//!
//! [`Cache`] is a value; [`StaticCache`] exists for the whole program. Both are a [`CacheHome`] of
//! objects. An object in a home is owned by a [`CacheBox`](boxed) or shared by
//! [`CacheArc`](shared)s; a [`CacheVacant`] is a slot that is not written yet.
//!
//! All of this relies on one rule: a cache with a live object is never destroyed. If a program
//! forgets a box, it leaks the object and the cache's memory; nothing else happens.
//!
//! What safe code of the program can do to a cache:
//!
//! - *A value's drop* may panic, or use the cache. The memory is freed after the drop, by a drop
//!   guard, and is no longer reachable through the box.
//! - *A value's clone* (`Clone`, [`make_mut`](crate::ObjectArc::make_mut)) gets a shared reference.
//!   It returns before a slot is taken for the clone. After it, the owner is read again.
//! - *Closures* (`insert_with`, `new_cyclic_in`) run while a slot is claimed. If they panic, the
//!   slot is freed. The watcher that `new_cyclic_in` passes can be upgraded only once the value is
//!   written.
//! - *`Eq`, `Ord`, `Hash`, `Debug`, `Future`* of a value are forwarded; nothing depends on their
//!   answers.
//! - *Homes and static caches* are unsafe traits: an implementation of [`CacheHome`] or
//!   [`StaticCache`](crate::StaticCache) must keep their contract. A setting of
//!   [`static_cache!`](crate::static_cache) is an expression of the program; it can only make
//!   another builder for the same type.

pub(crate) mod boxed;
mod builder;
mod checks;
mod counts;
pub(crate) mod shared;
pub(crate) mod statics;
pub(crate) mod unsized_box;
mod vacant;

use core::marker::PhantomData;
use core::ptr::NonNull;

use crate::raw::cache::{self as raw, OwnedCache};
use crate::{CacheBox, CacheStats, Counted, Full, ObjectArc, ObjectBox};

/// The atomics of `counts`; the models replace them with loom's.
mod atomic {
    pub(super) use core::hint::spin_loop as spin;
    pub(super) use core::sync::atomic::{AtomicUsize, Ordering};
}

pub(crate) use builder::ALIGN_MAX;
pub use builder::{CacheBuilder, CreateError};
pub use checks::Checks;
pub use vacant::CacheVacant;

/// Where objects of type `T` are allocated and freed: `&Cache<T>`, or the name of a static cache.
///
/// # Safety
/// [`take`](CacheHome::take) gives memory for a `T` that no other code uses until it is given back
/// to an equal home, even if the home itself is dropped earlier.
pub unsafe trait CacheHome<T>: Copy {
    /// Allocates memory for an object. `None`: there is no room.
    fn take(self) -> Option<NonNull<T>>;

    /// Frees the memory of an object.
    ///
    /// # Safety
    /// The memory was taken from this home, was not given back, and is not used again.
    unsafe fn give(self, object: NonNull<T>);

    /// The cache behind the home, which exists if an object was taken from it.
    #[doc(hidden)]
    fn cache_of_object(self) -> raw::RawCache;
}

/// A cache of objects of type `T`: any thread allocates, any thread frees.
///
/// The usual allocation or free is a few inlined instructions, without a lock, an atomic
/// read-modify-write or a call. The object freed last is allocated next. The cache grows with the
/// number of live objects. Its free memory goes to other caches and back to the system
/// automatically.
///
/// The boxes borrow the cache. Dropping the cache frees all of its memory. If boxes were leaked or
/// forgotten, all of its memory is leaked instead.
///
/// Objects of a cache may hold boxes of the same cache, as the nodes of a list or a tree do.
///
/// Thread rule: all functions may be called from any thread. A `Cache<T>` is `Send` and `Sync` for
/// every `T`; its boxes are if `T` is.
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
    /// Creates a cache without a limit. The name is for reports and statistics.
    ///
    /// # Panics
    /// If there is no memory for the cache, or `T` is aligned to more than 2 MiB.
    #[track_caller]
    pub fn new(name: &str) -> Self {
        match Self::builder().name(name).build() {
            Ok(cache) => cache,
            Err(error) => panic!("cache {name:?}: {error}"),
        }
    }

    /// Starts the settings of a cache with a limit, with checks, or with other options.
    pub const fn builder<'n>() -> CacheBuilder<'n, T> {
        CacheBuilder::new()
    }

    /// Puts a value into the cache.
    ///
    /// # Panics
    /// If the limit of the cache is reached. If there is no memory, this fails as `Box::new` does.
    #[inline]
    #[track_caller]
    pub fn insert(&self, value: T) -> CacheBox<'_, T> {
        ObjectBox::new_in(value, self)
    }

    /// Puts a value into the cache. If the limit is reached or there is no memory, the value is
    /// returned.
    #[inline]
    pub fn try_insert(&self, value: T) -> Result<CacheBox<'_, T>, Full<T>> {
        ObjectBox::try_new_in(value, self)
    }

    /// Puts the value that the function returns into the cache, as [`CacheVacant::write_with`]
    /// does. If the function panics, the cache stays unchanged.
    ///
    /// The value is returned on the stack first, unless the compiler avoids it. For a value that is
    /// larger than the stack, use [`claim`](Self::claim) and [`CacheVacant::fill_with`] or
    /// [`CacheVacant::zeroed`].
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

    /// Claims a slot for one object, which the caller then writes in place. `None`: the limit is
    /// reached, or there is no memory.
    #[inline]
    pub fn claim(&self) -> Option<CacheVacant<T, &Self>> {
        CacheVacant::claim_in(self)
    }

    /// The number of live objects. It is exact while no other thread uses the cache, otherwise a
    /// snapshot. This reads the counts of each thread.
    pub fn in_use(&self) -> usize {
        raw::in_use(self.owned.0)
    }

    /// The distance in bytes from one object to the next; with red zones, the size of an object.
    pub fn slot_size(&self) -> usize {
        raw::slot_size(self.owned.0)
    }

    /// Provides memory for `count` more objects, counted over all threads. False: there is not
    /// enough memory; the part that was provided stays.
    pub fn reserve(&self, count: usize) -> bool {
        raw::reserve(self.owned.0, count)
    }

    /// Provides `count` objects for the calling thread, which it then allocates without a slow
    /// path. The maximum is what two magazines hold ([`CacheStats::magazine_items`]). False:
    /// `count` is larger, or there is no memory.
    pub fn thread_reserve(&self, count: usize) -> bool {
        raw::thread_reserve(self.owned.0, count)
    }

    /// The former name of [`thread_reserve`](Self::thread_reserve).
    #[deprecated(since = "0.3.0", note = "it is called `thread_reserve`, as in C")]
    pub fn reserve_for_thread(&self, count: usize) -> bool {
        self.thread_reserve(count)
    }

    /// Returns free memory to the system; the result is the number of bytes. Free objects in the
    /// magazines of running threads are returned by a later call.
    pub fn trim(&self) -> usize {
        raw::trim(self.owned.0)
    }

    /// Statistics: where the memory is, and how often slow paths ran.
    pub fn stats(&self) -> CacheStats {
        CacheStats::of(self.owned.0)
    }

    #[cfg(not(miri))]
    pub(crate) fn as_sys(&self) -> *mut slabyard_sys::sy_cache {
        self.owned.0.pointer.as_ptr()
    }
}

/// A cache of values with reference counts: see [`ObjectArc`].
impl<T> Cache<Counted<T>> {
    /// Puts a value into the cache and returns its first owner.
    ///
    /// # Panics
    /// As [`insert`](Cache::insert).
    #[inline]
    #[track_caller]
    pub fn insert_arc(&self, value: T) -> ObjectArc<T, &Self> {
        ObjectArc::new_in(value, self)
    }

    /// Puts a value into the cache and returns its first owner. If there is no room, the value is
    /// returned.
    #[inline]
    pub fn try_insert_arc(&self, value: T) -> Result<ObjectArc<T, &Self>, Full<T>> {
        ObjectArc::try_new_in(value, self)
    }
}

// SAFETY: the library keeps a cache and its mapped memory while an object of it is live. Objects
// have the size and alignment of the builder's type T.
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

    #[inline]
    fn cache_of_object(self) -> raw::RawCache {
        self.owned.0
    }
}

impl<T> core::fmt::Debug for Cache<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        crate::stats::describe::<T>(f, "Cache", self.owned.0)
    }
}

/// The panic of functions without `try`: a limit is reached, or there is no memory.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn no_room<T>() -> ! {
    if crate::refusal::last_was_a_limit() {
        let reason = crate::last_refusal().unwrap_or(crate::Refusal::CacheLimit);
        panic!(
            "no room in the cache of {}: {reason}",
            core::any::type_name::<T>()
        );
    }
    alloc::alloc::handle_alloc_error(core::alloc::Layout::new::<T>())
}
