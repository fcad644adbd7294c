//! Rows of partitions, in an order: what operators hold that look at a partition's rows in sequence.

use super::bag::{Bag, consolidate, encode_key, encode_order};
use crate::{
    expr::{EvalError, Scalar},
    store::KeyBytes,
};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use tidegate_wire::model::{Order, Row, key::encode_cell};

/// Where a row stands in its partition: its key in the order, then the whole row, so that the order is total.
pub(super) type At = (KeyBytes, KeyBytes);

/// A partition's rows in order, each with how often it is there.
pub(super) type Rows = BTreeMap<At, (Row, i64)>;

/// All rows by partition.
#[derive(Debug, Default)]
pub(super) struct Ordered {
    partitions: HashMap<KeyBytes, Rows>,
}

impl Ordered {
    /// Takes changes in, and gives what they change of what `show` makes of each partition, with a sign.
    pub(super) fn advance(
        &mut self,
        partition: &[Scalar],
        order: &[(Scalar, Order)],
        changes: &Bag,
        mut show: impl FnMut(&Rows, i64, &mut Bag) -> Result<(), EvalError>,
    ) -> Result<Bag, EvalError> {
        let mut by_partition: HashMap<KeyBytes, Vec<(At, &Row, i64)>> = HashMap::new();
        for (row, weight) in changes {
            let (mut key, mut at, mut tie) = (Vec::new(), Vec::new(), Vec::new());
            encode_key(partition, &[], row, &mut key)?;
            encode_order(order, row, &mut at)?;
            row.cells().for_each(|cell| encode_cell(cell, Order::ASC, &mut tie));
            tie.extend(row.as_bytes());
            let at = (KeyBytes::from_slice(&at), KeyBytes::from_slice(&tie));
            by_partition.entry(KeyBytes::from_slice(&key)).or_default().push((at, row, *weight));
        }
        let mut out = Bag::new();
        for (key, changes) in by_partition {
            let rows = self.partitions.entry(key.clone()).or_default();
            show(rows, -1, &mut out)?;
            for (at, row, weight) in changes {
                let found = rows.entry(at.clone()).or_insert_with(|| (row.clone(), 0));
                found.1 += weight;
                if found.1 == 0 {
                    rows.remove(&at);
                }
            }
            show(rows, 1, &mut out)?;
            if rows.is_empty() {
                self.partitions.remove(&key);
            }
        }
        consolidate(&mut out);
        Ok(out)
    }

    /// The partitions.
    pub(super) fn partitions(&self) -> impl Iterator<Item = &Rows> {
        self.partitions.values()
    }

    pub(super) fn len(&self) -> usize {
        self.partitions.values().map(BTreeMap::len).sum()
    }

    pub(super) fn absorb(&mut self, other: Self) {
        self.partitions.extend(other.partitions);
    }

    pub(super) fn retain(&mut self, keep: &dyn Fn(&Row) -> bool) {
        self.partitions.retain(|_, rows| rows.values().next().is_some_and(|(row, _)| keep(row)));
    }
}
