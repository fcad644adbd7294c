//! Scalar subqueries: at most one row for each outer one.

use super::bag::Bag;
use crate::{
    expr::EvalError,
    store::{KeyBytes, key::row_key},
};
use hashbrown::HashMap;
use tidegate_wire::model::Row;

/// How many rows there are by their first columns.
#[derive(Debug, Default)]
pub(super) struct Singles {
    counts: HashMap<KeyBytes, (Row, i64)>,
}

impl Singles {
    /// The changes as they are.
    ///
    /// # Errors
    /// When there are then several rows where one may be.
    pub(super) fn advance(&mut self, keys: usize, changes: &Bag) -> Result<Bag, EvalError> {
        let columns: Vec<usize> = (0..keys).collect();
        let mut touched = Vec::with_capacity(changes.len());
        for (row, weight) in changes {
            let key = row_key(row, &columns);
            self.counts.entry(key.clone()).or_insert_with(|| (row.clone(), 0)).1 += weight;
            touched.push(key);
        }
        for key in touched {
            match self.counts.get(&key).map(|(_, count)| *count) {
                Some(0) => {
                    self.counts.remove(&key);
                }
                Some(count) if count > 1 => return Err(EvalError::ManyRows),
                _ => {}
            }
        }
        Ok(changes.clone())
    }

    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    pub(super) fn absorb(&mut self, other: Self) {
        self.counts.extend(other.counts);
    }

    pub(super) fn retain(&mut self, keep: &dyn Fn(&Row) -> bool) {
        self.counts.retain(|_, (row, _)| keep(row));
    }
}
