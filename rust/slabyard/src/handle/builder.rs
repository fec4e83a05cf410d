//! The builder of [`HandleMap`]s.

use alloc::ffi::CString;
use core::marker::PhantomData;

use super::key::Key;
use super::map::HandleMap;
#[cfg(not(miri))]
use super::movable::MovableMap;
use crate::cache::ALIGN_MAX;
use crate::raw::handle::{Cache, Config};
use crate::type_name::short_name;
use crate::CreateError;

/// Makes a [`HandleMap`] with a name and a limit.
///
/// ```
/// use slabyard::HandleMap;
/// let map: HandleMap<u32> = HandleMap::builder().name("ports").limit(2).exact().build()?;
/// let first = map.insert(1);
/// map.insert(2);
/// assert_eq!(map.try_insert(3).unwrap_err().into_inner(), 3);
/// map.remove(first);
/// assert!(map.try_insert(3).is_ok());
/// # Ok::<(), slabyard::CreateError>(())
/// ```
#[must_use]
pub struct HandleMapBuilder<T, K: Key = super::DefaultKey> {
    name: Option<CString>,
    limit: usize,
    exact: bool,
    _makes: PhantomData<fn() -> HandleMap<T, K>>,
}

impl<T, K: Key> HandleMapBuilder<T, K> {
    pub(super) const fn new() -> Self {
        Self {
            name: None,
            limit: 0,
            exact: false,
            _makes: PhantomData,
        }
    }

    /// The name in reports and statistics; the first 31 bytes are kept. The default is the name of
    /// the type.
    pub fn name(mut self, name: &str) -> Self {
        let bytes = name.bytes().take_while(|it| *it != 0).collect();
        self.name = CString::new::<alloc::vec::Vec<u8>>(bytes).ok();
        self
    }

    /// The maximum number of values; 0 means no limit. An insertion may be refused earlier, because
    /// up to an eighth of the places can wait in the magazines of other threads, unless the limit
    /// is [`exact`](Self::exact).
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Counts values exactly for the limit. This costs a lock at each insertion and removal. Without
    /// a limit, [`build`](Self::build) returns an error.
    pub fn exact(mut self) -> Self {
        self.exact = true;
        self
    }

    /// Makes the map.
    ///
    /// # Errors
    /// [`CreateError`]: `T` is aligned to more than 2 MiB, an exact limit was requested without a
    /// limit, or there is no memory.
    pub fn build(self) -> Result<HandleMap<T, K>, CreateError> {
        self.create(false).map(HandleMap::of_cache)
    }

    /// Makes a map whose values move, so that memory follows what is live.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    ///
    /// ```
    /// use slabyard::{HandleMap, MovableMap};
    /// let sessions: MovableMap<String> = HandleMap::builder().name("session").build_movable()?;
    /// # Ok::<(), slabyard::CreateError>(())
    /// ```
    #[cfg(not(miri))]
    pub fn build_movable(self) -> Result<MovableMap<T, K>, CreateError>
    where
        T: Send,
    {
        self.create(true).map(MovableMap::of_cache)
    }

    fn create(self, moves: bool) -> Result<Cache, CreateError> {
        if align_of::<T>() > ALIGN_MAX || (self.exact && self.limit == 0) {
            return Err(CreateError::Unsupported);
        }
        let name = self
            .name
            .unwrap_or_else(|| CString::new(short_name::<T>()).unwrap_or_default());
        let config = Config {
            name: &name,
            size: size_of::<T>(),
            align: align_of::<T>(),
            limit: self.limit,
            exact: self.exact,
            moves,
        };
        Cache::create(&config).ok_or(CreateError::NoMemory)
    }
}
