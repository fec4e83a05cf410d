//! How a cache is to be, before it is.

use core::fmt;
use core::marker::PhantomData;
use core::mem::{align_of, size_of};

use super::{Cache, Checks};
use crate::raw::cache::{self as raw, Config, Lifecycle, OwnedCache, RawCache};

/// How a cache is to be; [`Cache::builder`] begins one. All of it is constant, so that it serves
/// static caches too.
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
    /// A cache without a name, a limit and checks.
    pub const fn new() -> Self {
        CacheBuilder {
            name: "",
            limit: 0,
            flags: 0,
            reserve: 0,
            kind: PhantomData,
        }
    }

    /// The name in reports and statistics, of which 31 bytes are kept.
    pub const fn name(self, name: &'n str) -> Self {
        CacheBuilder { name, ..self }
    }

    /// Most live objects; 0: no limit. Fewer may be had: up to an eighth of them can wait in the
    /// magazines of other threads, unless the limit is [`exact`](Self::exact).
    pub const fn limit(self, limit: usize) -> Self {
        CacheBuilder { limit, ..self }
    }

    /// The limit counts live objects exactly. Costs a lock for each operation.
    pub const fn exact(self) -> Self {
        self.flag(slabyard_sys::SY_LIMIT_EXACT)
    }

    /// What is looked for.
    pub const fn checks(self, checks: Checks) -> Self {
        self.flag(checks.0)
    }

    /// Objects that are allocated in an [`Epoch`](crate::Epoch) lie in slabs of their own. A free is
    /// a call then.
    pub const fn epochs(self) -> Self {
        self.flag(slabyard_sys::SY_EPOCHS)
    }

    /// Slabs give up an object each, so that they begin at different cache lines.
    pub const fn coloured(self) -> Self {
        self.flag(slabyard_sys::SY_COLOUR)
    }

    /// Provides memory for so many objects at once.
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

    /// The cache.
    pub fn build(self) -> Result<Cache<T>, CreateError> {
        let owned = OwnedCache(self.create(None)?);
        Ok(Cache {
            owned,
            kind: PhantomData,
        })
    }

    /// A cache of objects for a `T`; with `lifecycle`, of such as that makes.
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
            // SAFETY: nobody else knows it yet.
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

/// Why there is no cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CreateError {
    /// Objects aligned to more than 2 MiB, or an exact limit that was not said.
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
