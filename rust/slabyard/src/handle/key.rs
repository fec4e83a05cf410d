//! Keys: names of values that stay invalid once their value is removed.

use core::fmt;
use core::hash::Hash;
use core::num::NonZeroU64;

/// The 64 bits of a key: the ordinal is the place of the value, and the generation tells which of
/// the values at that place is meant. The generation is never 0.
///
/// Use this type to store a key elsewhere as a number ([`RawKey::to_bits`]). Any number may be
/// turned into a key: a map only compares it and never uses it as an address.
///
/// ```
/// use slabyard::{DefaultKey, LocalHandleMap, RawKey};
/// let mut map = LocalHandleMap::new();
/// let key: DefaultKey = map.insert("first");
/// let bits = RawKey::from(key).to_bits();
/// let same = RawKey::from_bits(bits).map(DefaultKey::from);
/// assert_eq!(same, Some(key));
/// assert_eq!(RawKey::from_bits(0), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct RawKey(NonZeroU64);

impl RawKey {
    /// A key made of these parts. `None`: the generation is 0, which no key has.
    #[inline]
    pub const fn new(ordinal: u32, generation: u32) -> Option<Self> {
        Self::from_bits(((generation as u64) << 32) | ordinal as u64)
    }

    /// The key with these bits. `None`: no key has them.
    #[inline]
    pub const fn from_bits(bits: u64) -> Option<Self> {
        if bits >> 32 == 0 {
            return None;
        }
        match NonZeroU64::new(bits) {
            Some(bits) => Some(Self(bits)),
            None => None,
        }
    }

    /// The key as a number, which is never 0.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.0.get()
    }

    /// The place of the value: in a [`LocalHandleMap`](crate::LocalHandleMap) an index, in a
    /// [`HandleMap`](crate::HandleMap) a number that no other live value of the process has.
    #[inline]
    pub const fn ordinal(self) -> u32 {
        self.0.get() as u32
    }

    /// Which of the values at this place is meant; at least 1.
    #[inline]
    pub const fn generation(self) -> u32 {
        (self.0.get() >> 32) as u32
    }

    /// A key whose generation the caller knows not to be 0.
    #[inline(always)]
    pub(crate) const fn of_parts(ordinal: u32, generation: u32) -> Self {
        debug_assert!(generation != 0);
        let bits = ((generation as u64) << 32) | ordinal as u64;
        match NonZeroU64::new(bits) {
            Some(bits) => Self(bits),
            None => panic!("a generation is never 0"),
        }
    }
}

impl RawKey {
    /// # Safety
    /// The generation is not 0.
    #[inline(always)]
    pub(crate) const unsafe fn of_parts_unchecked(ordinal: u32, generation: u32) -> Self {
        debug_assert!(generation != 0);
        let bits = ((generation as u64) << 32) | ordinal as u64;
        // SAFETY: the upper half is not 0.
        Self(unsafe { NonZeroU64::new_unchecked(bits) })
    }
}

impl fmt::Debug for RawKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}v{}", self.ordinal(), self.generation())
    }
}

/// As [`Debug`](fmt::Debug): ordinal, `v`, generation.
impl fmt::Display for RawKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The bits.
impl fmt::LowerHex for RawKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

impl From<RawKey> for u64 {
    #[inline]
    fn from(key: RawKey) -> Self {
        key.to_bits()
    }
}

/// As [`RawKey::from_bits`].
impl TryFrom<u64> for RawKey {
    type Error = NoKey;

    #[inline]
    fn try_from(bits: u64) -> Result<Self, NoKey> {
        Self::from_bits(bits).ok_or(NoKey)
    }
}

/// No key has these bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NoKey;

impl fmt::Display for NoKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no key has these bits")
    }
}

impl core::error::Error for NoKey {}

/// A type of keys: [`DefaultKey`], or a type made by [`new_key_type!`](crate::new_key_type). With a
/// key type of its own, the keys of one map cannot be used with another by mistake.
///
/// Conversion from and to [`RawKey`] must keep the bits. If a type does not, its maps give wrong
/// answers, but stay memory-safe: a map converts a key once and works with the result.
pub trait Key: Copy + Eq + Ord + Hash + fmt::Debug + From<RawKey> + Into<RawKey> {}

/// Declares types of keys.
///
/// ```
/// use slabyard::{new_key_type, LocalHandleMap};
/// new_key_type! {
///     /// Names an order.
///     pub struct OrderKey;
///     struct TradeKey;
/// }
/// let mut orders = LocalHandleMap::<f64, OrderKey>::with_key();
/// let mut trades = LocalHandleMap::<f64, TradeKey>::with_key();
/// let order = orders.insert(99.5);
/// let trade = trades.insert(99.5);
/// assert_eq!(orders[order], trades[trade]);
/// assert_eq!(size_of::<Option<OrderKey>>(), 8);
/// ```
///
/// A key of one type cannot be used with a map of another key type:
///
/// ```compile_fail
/// # use slabyard::{new_key_type, LocalHandleMap};
/// # new_key_type! { struct OrderKey; struct TradeKey; }
/// let mut orders = LocalHandleMap::<f64, OrderKey>::with_key();
/// let trades = LocalHandleMap::<f64, TradeKey>::with_key();
/// let order = orders.insert(99.5);
/// trades.get(order);
/// ```
#[macro_export]
macro_rules! new_key_type {
    ($($(#[$about:meta])* $visible:vis struct $name:ident;)*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        $visible struct $name($crate::RawKey);

        impl ::core::convert::From<$crate::RawKey> for $name {
            #[inline(always)]
            fn from(raw: $crate::RawKey) -> Self {
                Self(raw)
            }
        }

        impl ::core::convert::From<$name> for $crate::RawKey {
            #[inline(always)]
            fn from(key: $name) -> Self {
                key.0
            }
        }

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(::core::concat!(::core::stringify!($name), "("))?;
                ::core::fmt::Debug::fmt(&self.0, f)?;
                f.write_str(")")
            }
        }

        impl $crate::Key for $name {}
        $crate::__serde_for_key!($name);
    )*};
}

/// Keys are serialized as their bits.
#[cfg(feature = "serde")]
#[doc(hidden)]
#[macro_export]
macro_rules! __serde_for_key {
    ($name:ident) => {
        impl $crate::__serde::Serialize for $name {
            fn serialize<S: $crate::__serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                $crate::__serde::Serialize::serialize(&self.0, serializer)
            }
        }

        impl<'de> $crate::__serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::__serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                <$crate::RawKey as $crate::__serde::Deserialize>::deserialize(deserializer)
                    .map(Self)
            }
        }
    };
}

/// Without serde, this does nothing.
#[cfg(not(feature = "serde"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __serde_for_key {
    ($name:ident) => {};
}

new_key_type! {
    /// The key type of maps that do not declare one.
    ///
    /// If a program has several maps, give each a type of its own with
    /// [`new_key_type!`](crate::new_key_type).
    pub struct DefaultKey;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_parts() {
        let key = RawKey::new(7, 3).unwrap();
        assert_eq!((key.ordinal(), key.generation()), (7, 3));
        assert_eq!(RawKey::from_bits(key.to_bits()), Some(key));
        assert_eq!(size_of::<Option<DefaultKey>>(), 8);
        assert_eq!(
            alloc::format!("{:?}", DefaultKey::from(key)),
            "DefaultKey(7v3)"
        );
    }

    #[test]
    fn no_key_has_generation_0() {
        assert_eq!(RawKey::from_bits(7), None);
        assert_eq!(RawKey::new(7, 0), None);
        assert!(RawKey::new(0, 1).is_some());
    }
}
