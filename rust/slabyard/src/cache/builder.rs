//! The builder of caches.

use core::fmt;
use core::marker::PhantomData;
use core::mem::{align_of, size_of};

use super::{Cache, Checks};
use crate::raw::cache::{self as raw, Config, Lifecycle, OwnedCache, RawCache};

/// The settings of a cache; [`Cache::builder`] starts one. All its methods but `build` are `const`,
/// so that static caches can use it too.
///
/// ```
/// use slabyard::{Cache, Full};
///
/// let pairs = Cache::builder().name("pair").limit(2).exact().build()?;
/// let (_first, _second) = (pairs.insert((1, 2)), pairs.insert((3, 4)));
/// let Err(Full(third)) = pairs.try_insert((5, 6)) else { panic!() };
/// assert_eq!(third, (5, 6));
/// # Ok::<(), slabyard::CreateError>(())
/// ```
pub struct CacheBuilder<'n, T> {
    name: &'n str,
    limit: usize,
    flags: u32,
    reserve: usize,
    kind: PhantomData<fn() -> T>,
}

impl<T> Clone for CacheBuilder<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for CacheBuilder<'_, T> {}

impl<T> Default for CacheBuilder<'_, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'n, T> CacheBuilder<'n, T> {
    /// A cache without a name, without a limit and without checks.
    pub const fn new() -> Self {
        CacheBuilder {
            name: "",
            limit: 0,
            flags: 0,
            reserve: 0,
            kind: PhantomData,
        }
    }

    /// The name in reports and statistics. The first 31 bytes are kept.
    pub const fn name(self, name: &'n str) -> Self {
        CacheBuilder { name, ..self }
    }

    /// The maximum number of live objects; 0 means no limit. An allocation may be refused earlier,
    /// because up to an eighth of the objects can wait in the magazines of other threads, unless
    /// the limit is [`exact`](Self::exact).
    pub const fn limit(self, limit: usize) -> Self {
        CacheBuilder { limit, ..self }
    }

    /// Counts live objects exactly for the limit. This costs a lock at each operation. Without a
    /// limit, [`build`](Self::build) returns an error.
    pub const fn exact(self) -> Self {
        self.flag(slabyard_sys::SY_LIMIT_EXACT)
    }

    /// The checks of the cache.
    pub const fn checks(self, checks: Checks) -> Self {
        self.flag(checks.0)
    }

    /// Objects that are allocated in an [`Epoch`](crate::Epoch) lie in slabs of their own. Each
    /// free is then a function call.
    pub const fn epochs(self) -> Self {
        self.flag(slabyard_sys::SY_EPOCHS)
    }

    /// Lets slabs begin at different cache lines. This costs the space of one object in each slab.
    pub const fn coloured(self) -> Self {
        self.flag(slabyard_sys::SY_COLOUR)
    }

    /// Provides memory for this number of objects when the cache is created.
    pub const fn reserve(self, count: usize) -> Self {
        CacheBuilder {
            reserve: count,
            ..self
        }
    }

    const fn flag(self, flag: u32) -> Self {
        CacheBuilder {
            flags: self.flags | flag,
            ..self
        }
    }

    /// Creates the cache.
    pub fn build(self) -> Result<Cache<T>, CreateError> {
        let owned = OwnedCache(self.create(None)?);
        Ok(Cache {
            owned,
            kind: PhantomData,
        })
    }

    /// Creates a cache with slots for a `T`. With `lifecycle`, the cache constructs its objects
    /// with it.
    pub(crate) fn create(self, lifecycle: Option<Lifecycle>) -> Result<RawCache, CreateError> {
        let exact = self.flags & slabyard_sys::SY_LIMIT_EXACT != 0;
        if align_of::<T>() > ALIGN_MAX || (exact && self.limit == 0) {
            return Err(CreateError::Unsupported);
        }
        let config = Config {
            name: self.name,
            size: size_of::<T>().max(1),
            align: align_of::<T>(),
            limit: self.limit,
            flags: self.flags,
            lifecycle,
        };
        let cache = raw::create(&config).ok_or(CreateError::NoMemory)?;
        if self.reserve > 0 && !raw::reserve(cache, self.reserve) {
            // SAFETY: no other code knows the cache yet.
            unsafe { raw::destroy(cache) };
            return Err(CreateError::NoMemory);
        }
        Ok(cache)
    }
}

/// `SY_CACHE_ALIGN_MAX`
pub(crate) const ALIGN_MAX: usize = 2 << 20;

impl<T> fmt::Debug for CacheBuilder<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheBuilder")
            .field("name", &self.name)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// Why a cache could not be created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CreateError {
    /// Objects are aligned to more than 2 MiB, or an exact limit was requested without a limit.
    Unsupported,
    /// There is no memory, or there are too many caches.
    NoMemory,
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CreateError::Unsupported => "there are no caches of this kind",
            CreateError::NoMemory => "there is no memory for a cache",
        })
    }
}

impl core::error::Error for CreateError {}
