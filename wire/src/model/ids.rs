//! Newtypes for ids and versions, so that one cannot be passed for another.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl $name {
            /// The id or version that follows this one.
            ///
            /// # Panics
            /// When the 64-bit range is exhausted, which no running system reaches.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0.checked_add(1).expect("64-bit id space is exhausted"))
            }
        }
    };
}

id!(
    /// Commit version: a commit's place in the order, from 1. 0 is the empty database.
    Cv
);
id!(
    /// The life of one subscription between two (re)hydrations; never reused by a server process.
    Epoch
);
id!(
    /// A batch's number within its epoch: 0, 1, 2, … without a gap.
    Seq
);
id!(
    /// The number a client gives one of its subscriptions, 1 or more. 0 is the client's own mutation row.
    SubId
);

/// The places of a query's result tree where a row stands: bit `i` is place `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PlaceMask(pub u32);

impl PlaceMask {
    /// Most places one query can have; bounded by the mask's width.
    pub const PLACES_MAX: usize = 32;

    /// The mask of one place.
    ///
    /// # Panics
    /// When `place` is [`Self::PLACES_MAX`] or more.
    #[must_use]
    pub fn of(place: usize) -> Self {
        assert!(place < Self::PLACES_MAX, "place {place} is beyond the mask");
        Self(1 << place)
    }

    /// Whether the row stands at `place`.
    #[must_use]
    pub fn contains(self, place: usize) -> bool {
        place < Self::PLACES_MAX && self.0 & (1 << place) != 0
    }

    /// Whether the row stands nowhere.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The places of the mask, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..Self::PLACES_MAX).filter(move |&place| self.contains(place))
    }
}

/// Fingerprint of a query's tables, columns, types, keys, places and the comparison rules. Equal fingerprints mean
/// that rows held under one can be continued under the other. Travels as 16 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub u64);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl std::str::FromStr for Fingerprint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() != 16 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err("a fingerprint is 16 hexadecimal digits");
        }
        u64::from_str_radix(text, 16).map(Fingerprint).map_err(|_| "a fingerprint is 16 hexadecimal digits")
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}
