//! Some rows of each partition, in an order.

use super::bag::{Bag, consolidate, encode_key, encode_order};
use crate::{
    expr::{EvalError, Scalar},
    store::KeyBytes,
};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use tidegate_wire::model::{Order, Row, key::encode_cell};

/// All rows of each partition in order; the shown ones are among the first.
#[derive(Debug, Default)]
pub(super) struct Partitions {
    partitions: HashMap<KeyBytes, BTreeMap<KeyBytes, (Row, i64)>>,
}

impl Partitions {
    /// What the shown rows change.
    pub(super) fn advance(
        &mut self,
        partition: &[Scalar],
        order: &[(Scalar, Order)],
        offset: u64,
        limit: Option<u64>,
        changes: &Bag,
    ) -> Result<Bag, EvalError> {
        let mut by_partition: HashMap<KeyBytes, Vec<(KeyBytes, &Row, i64)>> = HashMap::new();
        for (row, weight) in changes {
            let (mut key, mut at) = (Vec::new(), Vec::new());
            encode_key(partition, &[], row, &mut key)?;
            encode_order(order, row, &mut at)?;
            // The whole row ends the order, so that it is total.
            row.cells().for_each(|cell| encode_cell(cell, Order::ASC, &mut at));
            at.extend(row.as_bytes());
            let entry = (KeyBytes::from_slice(&at), row, *weight);
            by_partition.entry(KeyBytes::from_slice(&key)).or_default().push(entry);
        }
        let mut out = Bag::new();
        for (key, changes) in by_partition {
            let rows = self.partitions.entry(key.clone()).or_default();
            show(rows, offset, limit, -1, &mut out);
            for (at, row, weight) in changes {
                let found = rows.entry(at.clone()).or_insert_with(|| (row.clone(), 0));
                found.1 += weight;
                if found.1 == 0 {
                    rows.remove(&at);
                }
            }
            show(rows, offset, limit, 1, &mut out);
            if rows.is_empty() {
                self.partitions.remove(&key);
            }
        }
        consolidate(&mut out);
        Ok(out)
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

/// Appends the shown rows of a partition, with `sign` times their weight.
fn show(rows: &BTreeMap<KeyBytes, (Row, i64)>, offset: u64, limit: Option<u64>, sign: i64, out: &mut Bag) {
    let from = i64::try_from(offset).unwrap_or(i64::MAX);
    let to = limit.map_or(i64::MAX, |limit| from.saturating_add(i64::try_from(limit).unwrap_or(i64::MAX)));
    let mut passed = 0_i64;
    for (row, weight) in rows.values() {
        if passed >= to {
            break;
        }
        let shown = (passed + weight).min(to) - passed.max(from);
        if shown > 0 {
            out.push((row.clone(), sign * shown));
        }
        passed += weight;
    }
}
