//! Serialization of keys and maps with serde.
//!
//! A key is written as its number. A [`LocalHandleMap`] is written as its slots, each with a
//! generation and a value; a vacant slot has the generation of its next value. So after reading,
//! valid keys are still valid and stale keys still stale. The other maps are written as lists of
//! keys and values.
//!
//! The text that is read may be hostile, and so may the program's (de)serializers:
//!
//! - *A size that the text claims* is not trusted: serde's vectors grow with what was read.
//! - *A place that a key claims* is accepted within bounds only ([`SecondaryMap`]), so memory stays
//!   in proportion to the text.
//! - *Generations and values* are compared and never used as addresses. At worst a key leads to a
//!   value that the writer put there.
//! - *A panic* of the program's code leaves vectors and maps consistent.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Error, SeqAccess, Unexpected, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::guard::Ref;
use super::key::{Key, RawKey};
use super::local::{FromSlots, LocalHandleMap};
use super::map::HandleMap;
use super::secondary::SecondaryMap;

impl Serialize for RawKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.to_bits())
    }
}

impl<'de> Deserialize<'de> for RawKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bits = u64::deserialize(deserializer)?;
        Self::from_bits(bits).ok_or_else(|| {
            let expected = "a key, with a generation from 1 up in its upper 32 bits";
            D::Error::invalid_value(Unexpected::Unsigned(bits), &expected)
        })
    }
}

impl<T: Serialize, K: Key> Serialize for LocalHandleMap<T, K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let slots: Vec<(u32, Option<&T>)> = self.to_slots().collect();
        let mut whole = serializer.serialize_struct("LocalHandleMap", 2)?;
        whole.serialize_field("start", &self.start_generation())?;
        whole.serialize_field("slots", &slots)?;
        whole.end()
    }
}

/// The serialized form of a map.
#[derive(Deserialize)]
struct Whole<T> {
    start: u32,
    slots: Vec<(u32, Option<T>)>,
}

impl<'de, T: Deserialize<'de>, K: Key> Deserialize<'de> for LocalHandleMap<T, K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let whole = Whole::deserialize(deserializer)?;
        Self::from_slots(whole.start, whole.slots).map_err(|error| {
            D::Error::custom(match error {
                FromSlots::NoStart => "`start` is 0: generations begin with 1",
                FromSlots::NoGeneration => "a value has generation 0: generations begin with 1",
                FromSlots::TooMany => "a map has at most 2^32 - 1 slots",
            })
        })
    }
}

impl<T: Serialize, K: Key + Serialize> Serialize for HandleMap<T, K> {
    /// All keys and values that [`iter`](HandleMap::iter) visits. It holds guards of all of them
    /// until they are written.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let held: Vec<(K, Ref<'_, T, K>)> = self.iter().collect();
        serializer.collect_seq(held.iter().map(|(key, value)| (*key, &**value)))
    }
}

/// A [`HandleMap`] that was read back, with the old and the new key of each value.
///
/// The places of a `HandleMap` are numbers of the whole process, so values that are read back get
/// new keys. The program must replace the old keys that it stores elsewhere, also those in other
/// values.
///
/// ```
/// use slabyard::handle::Restored;
/// use slabyard::{DefaultKey, HandleMap};
///
/// let map = HandleMap::<String>::new();
/// let alice = map.insert("alice".into());
/// let text = serde_json::to_string(&map)?;
///
/// let restored: Restored<String> = serde_json::from_str(&text)?;
/// let (_, now) = restored.keys.iter().find(|(before, _)| *before == alice).unwrap();
/// assert_eq!(*restored.map.get(*now).unwrap(), "alice");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[non_exhaustive]
pub struct Restored<T, K: Key = super::DefaultKey> {
    /// The map with the values.
    pub map: HandleMap<T, K>,
    /// For each value its old key and its new key.
    pub keys: Vec<(K, K)>,
}

/// Puts keys and values into a map as they are read.
struct Restoring<T, K: Key>(PhantomData<fn() -> (T, K)>);

impl<'de, T: Deserialize<'de>, K: Key + Deserialize<'de>> Visitor<'de> for Restoring<T, K> {
    type Value = Restored<T, K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of keys with their values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let map = HandleMap::builder().build().map_err(A::Error::custom)?;
        let mut keys = Vec::new();
        while let Some((before, value)) = list.next_element::<(K, T)>()? {
            let now = map.try_insert(value).map_err(A::Error::custom)?;
            keys.push((before, now));
        }
        Ok(Restored { map, keys })
    }
}

impl<'de, T: Deserialize<'de>, K: Key + Deserialize<'de>> Deserialize<'de> for Restored<T, K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Restoring(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>, K: Key + Deserialize<'de>> Deserialize<'de> for HandleMap<T, K> {
    /// The values, with new keys. Read a [`Restored`] to get the new keys.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Restored::deserialize(deserializer).map(|restored| restored.map)
    }
}

impl<K: Key + Serialize, V: Serialize> Serialize for SecondaryMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// How many places for each value a [`SecondaryMap`] that is read may have. Places within
/// `FREE_BYTES` are always accepted.
const PLACES_A_VALUE: usize = 16;
const FREE_BYTES: usize = 1 << 20;

impl<'de, K: Key + Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for SecondaryMap<K, V> {
    /// In addition to errors of the format: a key's place is so high that the memory would be out
    /// of proportion to the text. [`SparseSecondaryMap`](super::SparseSecondaryMap) can read the
    /// same text.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all: Vec<(RawKey, V)> = Vec::<(K, V)>::deserialize(deserializer)?
            .into_iter()
            .map(|(key, value)| (key.into(), value))
            .collect();
        let places = all.iter().map(|(key, _)| key.ordinal() as usize + 1).max();
        let places = places.unwrap_or(0);
        if places > all.len() * PLACES_A_VALUE && places * Self::PLACE_BYTES > FREE_BYTES {
            return Err(D::Error::custom(format_args!(
                "{} values for keys of up to {places} places: a SparseSecondaryMap can hold these",
                all.len()
            )));
        }
        let mut map = Self::new();
        for (key, value) in all {
            map.insert_raw(key, value);
        }
        Ok(map)
    }
}

#[cfg(feature = "std")]
impl<K: Key + Serialize, V: Serialize> Serialize for super::SparseSecondaryMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(feature = "std")]
impl<'de, K: Key + Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de>
    for super::SparseSecondaryMap<K, V>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut map = Self::new();
        map.extend(Vec::<(K, V)>::deserialize(deserializer)?);
        Ok(map)
    }
}
