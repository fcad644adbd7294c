//! `except` and `intersect`: how often each row is on either side.

use super::{bag::Bag, spellings::Spellings};
use crate::{algebra::SetKind, store::KeyBytes};
use hashbrown::HashMap;
use tidegate_wire::model::{Order, Row, key::encode_cell};

/// Counts by row; rows that compare equal are one.
#[derive(Debug, Default)]
pub(super) struct Counts {
    rows: HashMap<KeyBytes, Count>,
}

#[derive(Debug)]
struct Count {
    /// Of the rows on the left, without which none stands.
    spellings: Spellings,
    left: i64,
    right: i64,
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
                let count = self.rows.entry(key.clone()).or_insert_with(|| Count {
                    spellings: Spellings::of(row.clone()),
                    left: 0,
                    right: 0,
                });
                before.entry(key).or_insert_with(|| count.standing(kind, all));
                if is_left {
                    count.spellings.add(row.cells(), *weight, count.left);
                    count.left += weight;
                } else {
                    count.right += weight;
                }
            }
        }
        let mut out = Bag::new();
        for (key, (row, before)) in before {
            let Some(count) = self.rows.get(&key) else { continue };
            let (now, after) = count.standing(kind, all);
            if row.as_bytes() == now.as_bytes() {
                out.push((row, after - before));
            } else {
                out.extend([(row, -before), (now, after)]);
            }
            if (count.left, count.right) == (0, 0) {
                self.rows.remove(&key);
            }
        }
        out.retain(|(_, weight)| *weight != 0);
        out
    }

    /// Appends the rows that stand.
    pub(super) fn tell(&self, kind: SetKind, all: bool, out: &mut Bag) {
        out.extend(
            self.rows.values().map(|count| count.standing(kind, all)).filter(|(_, times)| *times != 0),
        );
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn absorb(&mut self, other: Self) {
        self.rows.extend(other.rows);
    }

    pub(super) fn retain(&mut self, keep: &dyn Fn(&Row) -> bool) {
        self.rows.retain(|_, count| keep(count.spellings.row()));
    }
}

impl Count {
    /// The row, and how often it stands.
    fn standing(&self, kind: SetKind, all: bool) -> (Row, i64) {
        let (left, right) = (self.left, self.right);
        let times = match (kind, all) {
            (SetKind::Except, true) => (left - right).max(0),
            (SetKind::Except, false) => i64::from(left > 0 && right == 0),
            (SetKind::Intersect, true) => left.min(right),
            (SetKind::Intersect, false) => i64::from(left > 0 && right > 0),
        };
        (self.spellings.row().clone(), times)
    }
}
