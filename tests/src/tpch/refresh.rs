//! The commits that change the tables.

use super::{CUSTOMER, PART, PARTSUPP, SUPPLIER, Tpch, of_order, rows};
use crate::row_changes::{RowChange, with_cell};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use tidegate_wire::model::Value;

/// How a value is made.
type Make = fn(&mut ChaCha8Rng) -> Value;

/// What may change of rows that stay: table, column, and how a value of it is made.
const UPDATES: &[(usize, usize, Make)] = &[
    (CUSTOMER, 5, rows::balance),
    (CUSTOMER, 6, rows::segment),
    (PART, 5, rows::size),
    (SUPPLIER, 5, rows::balance),
    (SUPPLIER, 3, |random| Value::Int8(random.random_range(0..25))),
    (PARTSUPP, 2, rows::available),
    (PARTSUPP, 3, rows::cost),
];

impl Tpch {
    /// One commit: some orders come and some go, each with its lines, and now and then other rows change.
    pub fn refresh(&mut self) -> Vec<RowChange> {
        let mut changes = Vec::new();
        for _ in 0..self.random.random_range(0..=2) {
            changes.extend(self.insert_order());
        }
        for _ in 0..self.random.random_range(0..=2) {
            changes.extend(self.delete_order());
        }
        if changes.is_empty() || self.random.random_range(0..3) == 0 {
            changes.extend(self.update());
        }
        changes
    }

    /// A new order with its lines.
    pub fn insert_order(&mut self) -> Vec<RowChange> {
        let key = self.order();
        let (order, lines) = self.orders[&key].clone();
        of_order(order, lines, RowChange::insert).collect()
    }

    /// An order goes, with its lines.
    pub fn delete_order(&mut self) -> Vec<RowChange> {
        let from = self.random.random_range(0..self.next_order);
        let Some(key) = self.orders.range(from..).next().map(|(key, _)| *key) else { return Vec::new() };
        let (order, lines) = self.orders.remove(&key).expect("it was found");
        of_order(order, lines, RowChange::delete).collect()
    }

    fn update(&mut self) -> Vec<RowChange> {
        let (table, column, value) = UPDATES[self.random.random_range(0..UPDATES.len())];
        let at = self.random.random_range(0..self.rows[table].len());
        let new = with_cell(&self.rows[table][at], column, &value(&mut self.random));
        let old = std::mem::replace(&mut self.rows[table][at], new.clone());
        if old.as_bytes() == new.as_bytes() { Vec::new() } else { vec![RowChange::update(table, old, new)] }
    }
}
