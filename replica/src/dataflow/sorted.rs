//! Values in an order, each with how often it is there. Few are a list, which takes no more memory than they need; many are
//! a tree.

use crate::store::KeyBytes;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use tidegate_wire::model::{Value, ValueRef};

/// An aggregate's arguments, and how often they are there.
pub(super) type Entry = (SmallVec<[Value; 1]>, i64);

/// See the module's description.
#[derive(Debug)]
pub(super) enum Sorted {
    Few(Vec<(KeyBytes, Entry)>),
    Many(BTreeMap<KeyBytes, Entry>),
}

/// Values that are a list.
const FEW_MAX: usize = 16;

impl Default for Sorted {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Sorted {
    /// Adds to how often values are there, by their key in the order.
    pub(super) fn add(&mut self, key: &[u8], values: &[ValueRef<'_>], weight: i64) {
        let owned = || values.iter().map(|value| value.to_value()).collect();
        match self {
            Self::Few(list) => match list.binary_search_by(|(known, _)| known.as_slice().cmp(key)) {
                Ok(at) => {
                    list[at].1.1 += weight;
                    if list[at].1.1 == 0 {
                        list.remove(at);
                    }
                }
                Err(at) => {
                    list.insert(at, (KeyBytes::from_slice(key), (owned(), weight)));
                    if list.len() > FEW_MAX {
                        *self = Self::Many(std::mem::take(list).into_iter().collect());
                    }
                }
            },
            Self::Many(tree) => {
                let entry = tree.entry(KeyBytes::from_slice(key)).or_insert_with(|| (owned(), 0));
                entry.1 += weight;
                if entry.1 == 0 {
                    tree.remove(key);
                }
            }
        }
    }

    /// Adds what another holds.
    pub(super) fn merge(&mut self, other: &Self) {
        for (key, (values, count)) in other.entries() {
            let values: SmallVec<[ValueRef<'_>; 2]> = values.iter().map(Value::as_ref).collect();
            self.add(key, &values, *count);
        }
    }

    /// All of them in the order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries().map(|(_, entry)| entry)
    }

    /// The first of them.
    pub(super) fn first(&self) -> Option<&Entry> {
        self.iter().next()
    }

    /// The last of them.
    pub(super) fn last(&self) -> Option<&Entry> {
        match self {
            Self::Few(list) => list.last().map(|(_, entry)| entry),
            Self::Many(tree) => tree.last_key_value().map(|(_, entry)| entry),
        }
    }

    fn entries(&self) -> impl Iterator<Item = (&KeyBytes, &Entry)> {
        let (few, many) = match self {
            Self::Few(list) => (Some(list), None),
            Self::Many(tree) => (None, Some(tree)),
        };
        let few = few.into_iter().flatten().map(|(key, entry)| (key, entry));
        few.chain(many.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a tree, with few and with many values.
        #[test]
        fn values_are_counted_in_their_order(
            steps in prop::collection::vec((0_i64..60, prop_oneof![Just(1_i64), Just(-1)]), 0..200),
            cut in 0_usize..200,
        ) {
            let (mut one, mut other, mut expected) = (Sorted::default(), Sorted::default(), BTreeMap::new());
            for (at, (value, weight)) in steps.into_iter().enumerate() {
                let part = if at < cut { &mut one } else { &mut other };
                part.add(&value.to_be_bytes(), &[ValueRef::Int8(value)], weight);
                *expected.entry(value).or_insert(0) += weight;
            }
            one.merge(&other);
            expected.retain(|_, count| *count != 0);
            let expected: Vec<_> = expected.into_iter().map(|(value, count)| (Value::Int8(value), count)).collect();
            let shown: Vec<_> = one.iter().map(|(values, count)| (values[0].clone(), *count)).collect();
            prop_assert_eq!(&shown, &expected);
            prop_assert_eq!(one.first().map(|(_, count)| *count), expected.first().map(|(_, count)| *count));
            prop_assert_eq!(one.last().map(|(values, _)| values[0].clone()), expected.last().map(|(value, _)| value.clone()));
        }
    }
}
