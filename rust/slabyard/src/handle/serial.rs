//! Keys and local maps for serde.
//!
//! A key is its number. A [`LocalHandleMap`] is its slots, each as generation and value, where a
//! vacant one has the generation of its next value: so keys that were good before are good in what
//! is read back, and stale ones stale.

use alloc::vec::Vec;

use serde::de::Error;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::key::{Key, RawKey};
use super::local::{FromSlots, LocalHandleMap};
use super::secondary::SecondaryMap;

impl Serialize for RawKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.to_bits())
    }
}

impl<'de> Deserialize<'de> for RawKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bits = u64::deserialize(deserializer)?;
        Self::from_bits(bits).ok_or_else(|| D::Error::custom("a key's generation is not 0"))
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

/// What is written of a map.
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
                FromSlots::NoGeneration => "a value or new slot has generation 0",
                FromSlots::TooMany => "a map has at most 2^32 - 1 slots",
            })
        })
    }
}

impl<K: Key + Serialize, V: Serialize> Serialize for SecondaryMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, K: Key + Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for SecondaryMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut map = Self::new();
        map.extend(Vec::<(K, V)>::deserialize(deserializer)?);
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
