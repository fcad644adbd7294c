//! Values in an order, each with how often it is there. Few are a list, which takes no more memory than they need; many are
//! a tree.

use std::{borrow::Borrow, collections::BTreeMap};

/// See the module's description: values by their key in the order.
#[derive(Debug)]
pub(super) enum Sorted<K, V> {
    Few(Vec<(K, (V, i64))>),
    Many(BTreeMap<K, (V, i64)>),
}

/// Bytes of a list, of which adding to it moves half.
const FEW_BYTES_MAX: usize = 1_200;

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl<K: Ord, V> Sorted<K, V> {
    /// Values that are a list.
    const FEW_MAX: usize = FEW_BYTES_MAX / size_of::<(K, (V, i64))>();

    /// Adds to how often a value is there; `make` makes what is held of it, when it is new.
    pub(super) fn add<Q: Ord + ?Sized>(&mut self, key: &Q, make: impl FnOnce() -> (K, V), weight: i64)
    where
        K: Borrow<Q>,
    {
        match self {
            Self::Few(list) => match list.binary_search_by(|(known, _)| known.borrow().cmp(key)) {
                Ok(at) => {
                    list[at].1.1 += weight;
                    if list[at].1.1 == 0 {
                        list.remove(at);
                    }
                }
                Err(at) => {
                    let (key, value) = make();
                    list.insert(at, (key, (value, weight)));
                    if list.len() > Self::FEW_MAX {
                        *self = Self::Many(std::mem::take(list).into_iter().collect());
                    }
                }
            },
            Self::Many(tree) => match tree.get_mut(key) {
                Some((_, count)) => {
                    *count += weight;
                    if *count == 0 {
                        tree.remove(key);
                    }
                }
                None => {
                    let (key, value) = make();
                    tree.insert(key, (value, weight));
                }
            },
        }
    }

    /// Adds what another holds.
    pub(super) fn merge(&mut self, other: Self)
    where
        K: Clone,
        V: Clone,
    {
        for (key, value, count) in other.iter() {
            self.add(key, || (key.clone(), value.clone()), count);
        }
    }

    /// The first value.
    pub(super) fn first(&self) -> Option<(&K, &V)> {
        self.iter().next().map(|(key, value, _)| (key, value))
    }

    /// The last value.
    pub(super) fn last(&self) -> Option<(&K, &V)> {
        match self {
            Self::Few(list) => list.last().map(|(key, (value, _))| (key, value)),
            Self::Many(tree) => tree.last_key_value().map(|(key, (value, _))| (key, value)),
        }
    }

    /// All values in the order, each with how often it is there.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V, i64)> {
        let (few, many) = match self {
            Self::Few(list) => (Some(list), None),
            Self::Many(tree) => (None, Some(tree)),
        };
        let few = few.into_iter().flatten().map(|(key, (value, count))| (key, value, *count));
        few.chain(many.into_iter().flatten().map(|(key, (value, count))| (key, value, *count)))
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
            steps in prop::collection::vec((0_i64..120, prop_oneof![Just(1_i64), Just(-1)]), 0..400),
            cut in 0_usize..400,
        ) {
            let (mut one, mut other, mut expected) = (Sorted::default(), Sorted::default(), BTreeMap::new());
            for (at, (value, weight)) in steps.into_iter().enumerate() {
                let part: &mut Sorted<i64, String> = if at < cut { &mut one } else { &mut other };
                part.add(&value, || (value, value.to_string()), weight);
                *expected.entry(value).or_insert(0) += weight;
            }
            one.merge(other);
            expected.retain(|_, count| *count != 0);
            let shown: BTreeMap<i64, i64> = one.iter().map(|(key, _, count)| (*key, count)).collect();
            prop_assert_eq!(&shown, &expected);
            prop_assert!(one.iter().is_sorted_by_key(|(key, ..)| *key));
            prop_assert!(one.iter().all(|(key, value, _)| *value == key.to_string()));
            prop_assert_eq!(one.first().map(|(key, _)| key), expected.keys().next());
            prop_assert_eq!(one.last().map(|(key, _)| key), expected.keys().last());
        }
    }
}
