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

        impl<K: Key, V> Extend<(K, V)> for $map<K, V> {
            fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, all: I) {
                for (key, value) in all {
                    self.insert(key, value);
                }
            }
        }
    };
}

pub(super) use secondary;
