//! Methods that `SecondaryMap` and `SparseSecondaryMap` share. They call only `get`, `insert` and
//! `iter`, and so do not depend on the table in which the values lie.

use core::fmt;

#[cold]
#[inline(never)]
#[track_caller]
pub(super) fn nothing_kept(key: &dyn fmt::Debug) -> ! {
    panic!("nothing is kept for the key {key:?}")
}

/// Implements these methods, `[]` and the usual traits for a map. `$order` is the order of `iter`, for
/// the documentation.
macro_rules! secondary {
    ($map:ident, $order:literal) => {
        impl<K: Key, V> $map<K, V> {
            /// The value for a key, made by `make` if there is none. `None`: the map has a value
            /// for a newer key of the same place.
            #[track_caller]
            pub fn get_or_insert_with(
                &mut self,
                key: K,
                make: impl FnOnce() -> V,
            ) -> Option<&mut V> {
                if !self.contains(key) {
                    self.insert(key, make());
                }
                self.get_mut(key)
            }

            /// Whether there is a value for a key.
            #[inline]
            pub fn contains(&self, key: K) -> bool {
                self.get(key).is_some()
            }

            #[doc = concat!("All keys, ", $order, ".")]
            pub fn keys(&self) -> impl Iterator<Item = K> + '_ {
                self.iter().map(|(key, _)| key)
            }

            #[doc = concat!("All values, ", $order, ".")]
            pub fn values(&self) -> impl Iterator<Item = &V> {
                self.iter().map(|(_, value)| value)
            }

            #[doc = concat!("All values, ", $order, ".")]
            pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
                self.iter_mut().map(|(_, value)| value)
            }
        }

        impl<K: Key, V> core::ops::Index<K> for $map<K, V> {
            type Output = V;

            /// # Panics
            /// If there is no value for the key.
            #[track_caller]
            fn index(&self, key: K) -> &V {
                match self.get(key) {
                    Some(value) => value,
                    None => $crate::handle::kept::nothing_kept(&key),
                }
            }
        }

        impl<K: Key, V> core::ops::IndexMut<K> for $map<K, V> {
            #[track_caller]
            fn index_mut(&mut self, key: K) -> &mut V {
                match self.get_mut(key) {
                    Some(value) => value,
                    None => $crate::handle::kept::nothing_kept(&key),
                }
            }
        }

        impl<K: Key, V> Default for $map<K, V> {
            fn default() -> Self {
                Self::new()
            }
        }

        impl<K: Key, V: core::fmt::Debug> core::fmt::Debug for $map<K, V> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_map().entries(self.iter()).finish()
            }
        }

        impl<K: Key, V> $crate::handle::secondary_entry::sealed::Sealed for $map<K, V> {}

        impl<K: Key, V> $crate::handle::secondary_entry::Secondary for $map<K, V> {
            type Key = K;
            type Value = V;

            fn value(&mut self, key: K) -> Option<&mut V> {
                self.get_mut(key)
            }

            #[track_caller]
            fn put(&mut self, key: K, value: V) -> Option<V> {
                self.insert(key, value)
            }

            fn take(&mut self, key: K) -> Option<V> {
                self.remove(key)
            }
        }

        impl<K: Key, V> $map<K, V> {
            /// The place of a key, with or without a value. `None`: the map has a value for a newer
            /// key of the same place.
            pub fn entry(&mut self, key: K) -> Option<$crate::handle::Entry<'_, Self>> {
                let newer = self.has_newer(key.into());
                (!newer).then(|| $crate::handle::Entry::of(self, key))
            }
        }

        impl<'a, K: Key, V> IntoIterator for &'a $map<K, V> {
            type Item = (K, &'a V);
            type IntoIter = Iter<'a, K, V>;

            fn into_iter(self) -> Self::IntoIter {
                self.iter()
            }
        }

        impl<'a, K: Key, V> IntoIterator for &'a mut $map<K, V> {
            type Item = (K, &'a mut V);
            type IntoIter = IterMut<'a, K, V>;

            fn into_iter(self) -> Self::IntoIter {
                self.iter_mut()
            }
        }

        /// All keys and values, moved out.
        impl<K: Key, V> IntoIterator for $map<K, V> {
            type Item = (K, V);
            type IntoIter = alloc::vec::IntoIter<(K, V)>;

            fn into_iter(mut self) -> Self::IntoIter {
                self.drain().collect::<alloc::vec::Vec<_>>().into_iter()
            }
        }

        impl<K: Key, V> FromIterator<(K, V)> for $map<K, V> {
            fn from_iter<I: IntoIterator<Item = (K, V)>>(all: I) -> Self {
                let mut map = Self::new();
                map.extend(all);
                map
            }
        }

        /// Whether both have values for the same keys, and equal ones.
        impl<K: Key, V: PartialEq> PartialEq for $map<K, V> {
            fn eq(&self, other: &Self) -> bool {
                self.len() == other.len()
                    && self
                        .iter()
                        .all(|(key, value)| other.get(key) == Some(value))
            }
        }

        impl<K: Key, V: Eq> Eq for $map<K, V> {}

        impl<K: Key, V> Extend<(K, V)> for $map<K, V> {
            fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, all: I) {
                for (key, value) in all {
                    self.insert(key, value);
                }
            }
        }
    };
}

/// Defines an iterator over references to the values of a map. `$inner` walks its places, and
/// `$item` makes an item of a place, or skips it.
macro_rules! references {
    ($name:ident, [$($mut:tt)?], $inner:ty, $item:expr, $text:literal) => {
        #[doc = $text]
        pub struct $name<'a, K: Key = DefaultKey, V = ()> {
            places: $inner,
            _keys: PhantomData<fn() -> K>,
        }

        impl<'a, K: Key, V> $name<'a, K, V> {
            fn new(places: $inner) -> Self {
                Self { places, _keys: PhantomData }
            }
        }

        impl<'a, K: Key, V> Iterator for $name<'a, K, V> {
            type Item = (K, &'a $($mut)? V);

            #[inline]
            fn next(&mut self) -> Option<Self::Item> {
                self.places.find_map($item)
            }
        }
    };
}

pub(super) use {references, secondary};
