//! `except` and `intersect`: how often each row is on either side.

use super::bag::{Bag, ByBytes};
use crate::{algebra::SetKind, store::KeyBytes};
use hashbrown::HashMap;
use tidegate_wire::model::{Order, Row, key::encode_cell};

/// Counts by row; rows that compare equal are one.
#[derive(Debug, Default)]
pub(super) struct Counts {
    rows: HashMap<KeyBytes, (ByBytes, i64, i64)>,
}

impl Counts {
    /// What the operation changes.
    pub(super) fn advance(&mut self, kind: SetKind, all: bool, left: &Bag, right: &Bag) -> Bag {
        let mut before: HashMap<KeyBytes, (Row, i64)> = HashMap::new();
        for (changes, is_left) in [(left, true), (right, false)] {
            for (row, weight) in changes {
                let mut key = Vec::new();
                row.cells().for_each(|cell| encode_cell(cell, Order::ASC, &mut key));
                let key = KeyBytes::from_slice(&key);
                let found = self.rows.entry(key.clone()).or_insert_with(|| (ByBytes(row.clone()), 0, 0));
                let standing = times(kind, all, found.1, found.2);
                before.entry(key).or_insert_with(|| (found.0.0.clone(), standing));
                *(if is_left { &mut found.1 } else { &mut found.2 }) += weight;
            }
        }
        let mut out = Bag::new();
        for (key, (row, before)) in before {
            let Some((_, left, right)) = self.rows.get(&key) else { continue };
            let after = times(kind, all, *left, *right);
            if (*left, *right) == (0, 0) {
                self.rows.remove(&key);
            }
            if before != after {
                out.push((row, after - before));
            }
        }
        out
    }

    /// Appends the rows that stand.
    pub(super) fn tell(&self, kind: SetKind, all: bool, out: &mut Bag) {
        for (row, left, right) in self.rows.values() {
            let times = times(kind, all, *left, *right);
            if times != 0 {
                out.push((row.0.clone(), times));
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn absorb(&mut self, other: Self) {
        self.rows.extend(other.rows);
    }

    pub(super) fn retain(&mut self, keep: &dyn Fn(&Row) -> bool) {
        self.rows.retain(|_, (row, ..)| keep(&row.0));
    }
}

/// How often a row stands that is so often on the sides.
fn times(kind: SetKind, all: bool, left: i64, right: i64) -> i64 {
    match (kind, all) {
        (SetKind::Except, true) => (left - right).max(0),
        (SetKind::Except, false) => i64::from(left > 0 && right == 0),
        (SetKind::Intersect, true) => left.min(right),
        (SetKind::Intersect, false) => i64::from(left > 0 && right > 0),
    }
}
