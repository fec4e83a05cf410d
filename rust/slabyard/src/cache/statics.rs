//! Static caches: caches for the whole program, named by a type, with boxes of 8 bytes.
//!
//! A static cache is created at its first use. Until then its offset is 0. The slot at offset 0 is
//! shut in every thread, so the first operation takes the slow path, and the fast path needs no
//! test of its own.

use core::ptr::{null_mut, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::shared::ObjectWeak;
use super::{no_room, CacheBuilder, CacheHome, CacheVacant};
use crate::raw::cache::{self as raw, Opaque, RawCache};
use crate::{CacheStats, Counted, Full, ObjectArc, ObjectBox};

/// The state of a static cache; [`static_cache!`](crate::static_cache) declares one.
pub struct StaticState {
    offset: AtomicUsize, // 0, or that of `cache`
    cache: AtomicPtr<Opaque>,
}

impl StaticState {
    #[doc(hidden)]
    #[allow(clippy::new_without_default)] // only in statics
    pub const fn new() -> Self {
        StaticState {
            offset: AtomicUsize::new(0),
            cache: AtomicPtr::new(null_mut()),
        }
    }

    /// The cache, if it was created already.
    fn get(&self) -> Option<RawCache> {
        // Acquire: with the release of make().
        let pointer = NonNull::new(self.cache.load(Ordering::Acquire))?;
        Some(RawCache {
            pointer,
            offset: self.offset.load(Ordering::Relaxed),
        })
    }

    /// The cache of an object that this thread owns, so the cache exists.
    pub(crate) fn of_object(&self) -> RawCache {
        self.get().expect("a cache with an object exists")
    }

    /// The cache, created if needed. If several threads create it at once, one of them wins.
    #[cold]
    fn get_or_make<T>(&self, builder: CacheBuilder<'_, T>) -> Option<RawCache> {
        if let Some(cache) = self.get() {
            return Some(cache);
        }
        let made = builder.create(None).ok()?;
        let placed = self.cache.compare_exchange(
            null_mut(),
            made.pointer.as_ptr(),
            Ordering::Release,
            Ordering::Relaxed,
        );
        if placed.is_err() {
            // SAFETY: no other code knows it.
            unsafe { raw::destroy(made) };
            return self.get();
        }
        // A thread that still reads 0 takes the slow path, and finds the pointer.
        self.offset.store(made.offset, Ordering::Relaxed);
        Some(made)
    }
}

/// A cache for the whole program, named by this type; [`static_cache!`](crate::static_cache)
/// declares it.
///
/// All functions may be called from any thread, at any time, also in destructors of thread-local
/// values.
///
/// # Safety
/// [`state`](StaticCache::state) gives the same state at each call, and no other type gives this
/// state.
pub unsafe trait StaticCache: Copy {
    /// The type of the objects.
    type Object;

    #[doc(hidden)]
    fn state() -> &'static StaticState;

    #[doc(hidden)]
    fn builder() -> CacheBuilder<'static, Self::Object>;

    #[doc(hidden)]
    const NAME: Self;

    /// Puts a value into the cache.
    ///
    /// # Panics
    /// If the limit of the cache is reached. If there is no memory, this fails as `Box::new` does.
    #[inline]
    #[track_caller]
    fn insert(value: Self::Object) -> StaticBox<Self> {
        ObjectBox::new_in(value, Self::NAME)
    }

    /// Puts a value into the cache. If there is no room, the value is returned.
    #[inline]
    fn try_insert(value: Self::Object) -> Result<StaticBox<Self>, Full<Self::Object>> {
        ObjectBox::try_new_in(value, Self::NAME)
    }

    /// Puts the value that the function returns into the cache. If the function panics, the cache
    /// stays unchanged. The value may be on the stack first, as with
    /// [`Cache::insert_with`](crate::Cache::insert_with).
    ///
    /// # Panics
    /// As [`insert`](StaticCache::insert).
    #[inline]
    #[track_caller]
    fn insert_with(make: impl FnOnce() -> Self::Object) -> StaticBox<Self> {
        match Self::claim() {
            Some(vacant) => vacant.write_with(make),
            None => no_room::<Self::Object>(),
        }
    }

    /// Claims a slot for one object, which the caller then writes in place. `None`: there is no
    /// room.
    #[inline]
    fn claim() -> Option<CacheVacant<Self::Object, Self>> {
        CacheVacant::claim_in(Self::NAME)
    }

    /// Puts a value into the cache and returns its first owner.
    ///
    /// # Panics
    /// As [`insert`](StaticCache::insert).
    #[inline]
    #[track_caller]
    fn insert_arc<T>(value: T) -> ObjectArc<T, Self>
    where
        Self: StaticCache<Object = Counted<T>>,
    {
        ObjectArc::new_in(value, Self::NAME)
    }

    /// Puts a value into the cache and returns its first owner. If there is no room, the value is
    /// returned.
    #[inline]
    fn try_insert_arc<T>(value: T) -> Result<ObjectArc<T, Self>, Full<T>>
    where
        Self: StaticCache<Object = Counted<T>>,
    {
        ObjectArc::try_new_in(value, Self::NAME)
    }

    /// Creates the cache if it does not exist yet. False: there is no memory.
    fn make() -> bool {
        Self::state().get_or_make(Self::builder()).is_some()
    }

    /// The number of live objects. It is exact while no other thread uses the cache.
    fn in_use() -> usize {
        Self::state().get().map_or(0, raw::in_use)
    }

    /// Returns free memory to the system; the result is the number of bytes.
    fn trim() -> usize {
        Self::state().get().map_or(0, raw::trim)
    }

    /// Provides memory for `count` more objects. False: there is not enough memory.
    fn reserve(count: usize) -> bool {
        Self::state()
            .get_or_make(Self::builder())
            .is_some_and(|cache| raw::reserve(cache, count))
    }

    /// Statistics of the cache. `None`: the cache was not used yet.
    fn stats() -> Option<CacheStats> {
        Self::state().get().map(CacheStats::of)
    }
}

/// Owns an object of a static cache. It takes 8 bytes, also in an `Option`.
pub type StaticBox<C> = ObjectBox<<C as StaticCache>::Object, C>;

/// In the cache that the type of the box names.
impl<T: Default, C: StaticCache<Object = T>> Default for ObjectBox<T, C> {
    #[track_caller]
    fn default() -> Self {
        C::insert(T::default())
    }
}

/// Owns an object of a static cache of [`Counted`] values together with other owners.
pub type StaticArc<T, C> = ObjectArc<T, C>;

/// Watches an object of a static cache of [`Counted`] values.
pub type StaticWeak<T, C> = ObjectWeak<T, C>;

#[cold]
#[inline(never)]
fn take_slow<C: StaticCache>() -> Option<NonNull<C::Object>> {
    let cache = C::state().get_or_make(C::builder())?;
    cache.take().map(NonNull::cast)
}

#[cold]
#[inline(never)]
unsafe fn give_slow<C: StaticCache>(object: NonNull<C::Object>) {
    if let Some(cache) = C::state().get() {
        // SAFETY: as the caller says; a thread that does not see the offset yet still sees the
        // pointer.
        unsafe { raw::give_slow(cache.pointer, object.cast()) }
    }
}

// SAFETY: static caches are never destroyed, and one type has one state.
unsafe impl<C: StaticCache<Object = T>, T> CacheHome<T> for C {
    #[inline(always)]
    fn take(self) -> Option<NonNull<T>> {
        match raw::pop(C::state().offset.load(Ordering::Relaxed)) {
            Some(object) => Some(object.cast()),
            None => take_slow::<C>(),
        }
    }

    #[inline(always)]
    unsafe fn give(self, object: NonNull<T>) {
        // SAFETY: as the caller says.
        unsafe {
            if !raw::push(C::state().offset.load(Ordering::Relaxed), object.cast()) {
                give_slow::<C>(object);
            }
        }
    }

    #[inline]
    fn cache_of_object(self) -> RawCache {
        C::state().of_object()
    }
}

/// Declares caches for the whole program. Each is named by a type that implements [`StaticCache`],
/// and that has the functions of this trait itself: so the trait need not be imported, except for
/// `insert_arc` and `try_insert_arc`, and in code that is generic over caches. Settings of a [`CacheBuilder`] may follow
/// after `=>`.
///
/// ```
/// use slabyard::StaticBox;
///
/// pub struct Order { id: u64 }
///
/// slabyard::static_cache! {
///     /// All orders.
///     pub struct Orders: Order;
///     struct Quotes: u64 => limit(1000).exact();
/// }
///
/// let order: StaticBox<Orders> = Orders::insert(Order { id: 7 });
/// assert_eq!(size_of::<Option<StaticBox<Orders>>>(), 8);
/// assert_eq!((order.id, Orders::in_use()), (7, 1));
/// assert_eq!(*Quotes::try_insert(5).unwrap(), 5);
/// ```
#[macro_export]
macro_rules! static_cache {
    ($($(#[$attribute:meta])* $visible:vis struct $name:ident: $object:ty
        $(=> $($setting:ident($($value:expr)?)).+)?;)+) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $visible struct $name;

        #[allow(dead_code)]
        impl $name {
            /// Puts a value into the cache. It panics if the limit of the cache is reached.
            #[inline]
            #[track_caller]
            $visible fn insert(value: $object) -> $crate::StaticBox<Self> {
                <Self as $crate::StaticCache>::insert(value)
            }

            /// Puts a value into the cache. If there is no room, the value is returned.
            #[inline]
            $visible fn try_insert(
                value: $object,
            ) -> ::core::result::Result<$crate::StaticBox<Self>, $crate::Full<$object>> {
                <Self as $crate::StaticCache>::try_insert(value)
            }

            /// Puts the value that the function returns into the cache. It panics if the limit of
            /// the cache is reached.
            #[inline]
            #[track_caller]
            $visible fn insert_with(
                make: impl ::core::ops::FnOnce() -> $object,
            ) -> $crate::StaticBox<Self> {
                <Self as $crate::StaticCache>::insert_with(make)
            }

            /// Claims a slot for one object, which the caller then writes in place. `None`: there
            /// is no room.
            #[inline]
            $visible fn claim() -> ::core::option::Option<$crate::CacheVacant<$object, Self>> {
                <Self as $crate::StaticCache>::claim()
            }

            /// Creates the cache if it does not exist yet. False: there is no memory.
            $visible fn make() -> bool {
                <Self as $crate::StaticCache>::make()
            }

            /// The number of live objects. It is exact while no other thread uses the cache.
            $visible fn in_use() -> usize {
                <Self as $crate::StaticCache>::in_use()
            }

            /// Returns free memory to the system; the result is the number of bytes.
            $visible fn trim() -> usize {
                <Self as $crate::StaticCache>::trim()
            }

            /// Provides memory for `count` more objects. False: there is not enough memory.
            $visible fn reserve(count: usize) -> bool {
                <Self as $crate::StaticCache>::reserve(count)
            }

            /// Statistics of the cache. `None`: the cache was not used yet.
            $visible fn stats() -> ::core::option::Option<$crate::CacheStats> {
                <Self as $crate::StaticCache>::stats()
            }
        }

        // SAFETY: the state is the function's own.
        unsafe impl $crate::StaticCache for $name {
            type Object = $object;
            const NAME: Self = $name;

            #[inline(always)]
            fn state() -> &'static $crate::StaticState {
                static STATE: $crate::StaticState = $crate::StaticState::new();
                &STATE
            }

            fn builder() -> $crate::CacheBuilder<'static, $object> {
                $crate::CacheBuilder::new()
                    .name(::core::stringify!($name))
                    $($(.$setting($($value)?))+)?
            }
        }
    )+};
}
