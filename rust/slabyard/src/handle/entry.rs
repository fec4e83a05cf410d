//! [`VacantEntry`]: a claimed place in a map, whose key is known before its value exists.

use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;

use super::key::{Key, RawKey};
use super::map::HandleMap;
use super::word::{self, Release};
use crate::in_place::{self, Zeroable};

/// A place in a [`HandleMap`] that is claimed and has no value yet. Look-ups do not find it until
/// the value is inserted. If it is dropped without a value, the place is freed, and its key stays
/// invalid.
///
/// ```
/// use slabyard::{DefaultKey, HandleMap};
/// struct Node { me: DefaultKey }
/// let map = HandleMap::new();
/// let entry = map.vacant_entry();
/// let key = entry.key();
/// assert!(map.get(key).is_none());
/// entry.insert(Node { me: key });
/// assert_eq!(map.get(key).unwrap().me, key);
/// ```
pub struct VacantEntry<'a, T, K: Key> {
    map: &'a HandleMap<T, K>,
    key: RawKey,
}

impl<'a, T, K: Key> VacantEntry<'a, T, K> {
    /// Claims a place from the list of free places that this thread holds.
    #[inline(always)]
    pub(super) fn at_hand(map: &'a HandleMap<T, K>) -> Option<Self> {
        let ordinal = map.cache().take_at_hand()?;
        // SAFETY: the cache gave it.
        Some(unsafe { Self::of_ordinal(map, ordinal) })
    }

    /// Claims a place when this thread holds no free place. `None`: there is no room.
    #[cold]
    #[inline(never)]
    pub(super) fn slow(map: &'a HandleMap<T, K>) -> Option<Self> {
        let ordinal = map.cache().take_slow()?;
        // SAFETY: the cache gave it.
        Some(unsafe { Self::of_ordinal(map, ordinal) })
    }

    #[inline]
    pub(super) fn of(map: &'a HandleMap<T, K>) -> Option<Self> {
        Self::at_hand(map).or_else(|| Self::slow(map))
    }

    /// # Safety
    /// The cache gave the ordinal to this call only.
    #[inline(always)]
    unsafe fn of_ordinal(map: &'a HandleMap<T, K>, ordinal: u32) -> Self {
        // SAFETY: as the caller says. The word is free, and its last generation is not used up.
        unsafe {
            let word = map.cache().word_of(ordinal);
            let key = RawKey::of_parts_unchecked(ordinal, word::next_generation(word));
            Self { map, key }
        }
    }

    /// The key that the value will have.
    #[inline]
    pub fn key(&self) -> K {
        self.key.into()
    }

    /// Inserts the value and returns its key.
    #[inline(always)]
    pub fn insert(self, value: T) -> K {
        let this = ManuallyDrop::new(self);
        let (cache, ordinal) = (this.map.cache(), this.key.ordinal());
        // SAFETY: the ordinal is taken, no other code uses its place, and there is no value.
        unsafe {
            cache.place(ordinal).cast::<T>().write(value);
            word::enliven(
                cache.word_of(ordinal),
                word::live_word(cache, this.key.to_bits()),
            );
        }
        this.key.into()
    }
}

impl<T, K: Key> VacantEntry<'_, T, K> {
    /// The place of the value, which no other code uses.
    #[inline]
    fn place(&self) -> NonNull<T> {
        // SAFETY: the ordinal is taken, and places are not null.
        unsafe { NonNull::new_unchecked(self.map.cache().place(self.key.ordinal()).cast()) }
    }

    /// The memory of the value, for a value that is built piece by piece.
    #[inline]
    pub fn as_uninit(&mut self) -> &mut MaybeUninit<T> {
        // SAFETY: the place is claimed and large enough; its content is never read.
        unsafe { self.place().cast().as_mut() }
    }

    /// Makes the value visible that was written through [`as_uninit`](Self::as_uninit), and returns
    /// its key.
    ///
    /// # Safety
    /// All of the value was written.
    #[inline]
    pub unsafe fn assume_init(self) -> K {
        let this = ManuallyDrop::new(self);
        let cache = this.map.cache();
        // SAFETY: the ordinal is taken, and its place has a value.
        unsafe {
            word::enliven(
                cache.word_of(this.key.ordinal()),
                word::live_word(cache, this.key.to_bits()),
            );
        }
        this.key.into()
    }
}

impl<E, const N: usize, K: Key> VacantEntry<'_, [E; N], K> {
    /// Builds an array in its place, element by element, and returns its key. If the function
    /// panics, the place is freed.
    ///
    /// ```
    /// let tables = slabyard::HandleMap::<[u64; 1 << 20]>::new();
    /// let key = tables.vacant_entry().fill_with(|at| at as u64);
    /// assert_eq!(tables.get(key).unwrap()[7], 7);
    /// ```
    #[inline]
    pub fn fill_with(self, element: impl FnMut(usize) -> E) -> K {
        // SAFETY: the place is claimed, and all elements are written.
        unsafe {
            in_place::fill(self.place(), element);
            self.assume_init()
        }
    }
}

impl<T: Zeroable, K: Key> VacantEntry<'_, T, K> {
    /// Makes the value of zeros in its place, and returns its key.
    #[inline]
    pub fn zeroed(self) -> K {
        // SAFETY: the place is claimed, and zeros are a value.
        unsafe {
            in_place::zero(self.place());
            self.assume_init()
        }
    }
}

impl<T, K: Key> Drop for VacantEntry<'_, T, K> {
    fn drop(&mut self) {
        let (cache, ordinal) = (self.map.cache(), self.key.ordinal());
        // SAFETY: the ordinal is taken, and there is no value. Its generation counts as used,
        // because the program may have stored the key.
        unsafe {
            let word = cache.word_of(ordinal);
            drop(Release::new(cache, word, ordinal, self.key.generation()));
        }
    }
}
