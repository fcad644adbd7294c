//! From the last operator's rows to changes of bindings' results.

use super::{bag::Bag, slot_key};
use crate::{
    plan::{Identity, Plan},
    store::{KeyBytes, key::row_key},
    worker::{BindingId, Change},
};
use hashbrown::HashMap;
use tidegate_wire::model::{Row, ValueRef};

/// The bindings by their slot values, and what is known of their rows.
#[derive(Debug, Default)]
pub(super) struct Results {
    bindings: HashMap<KeyBytes, BindingId>,
    /// Of rows without a key, those that are equal, in the order of their numbers.
    equals: HashMap<BindingId, HashMap<KeyBytes, Vec<Row>>>,
    rows: HashMap<BindingId, i64>,
}

impl Results {
    /// A binding comes, with its slot values.
    pub(super) fn bind(&mut self, binding: BindingId, values: &Row) {
        self.bindings.insert(slot_key(values, values.len()), binding);
    }

    /// A binding goes, with its slot values.
    pub(super) fn unbind(&mut self, binding: BindingId, values: &Row) {
        self.bindings.remove(&slot_key(values, values.len()));
        self.equals.remove(&binding);
        self.rows.remove(&binding);
    }

    /// How many rows a binding's result has.
    pub(super) fn rows(&self, binding: BindingId) -> usize {
        self.rows.get(&binding).map_or(0, |rows| usize::try_from(*rows).unwrap_or(0))
    }

    /// Takes over another's bindings.
    pub(super) fn absorb(&mut self, other: Self) {
        self.bindings.extend(other.bindings);
        self.equals.extend(other.equals);
        self.rows.extend(other.rows);
    }

    /// Appends what rows that come and go change, each row of the plan's result once.
    pub(super) fn tell(&mut self, plan: &Plan, rows: Bag, out: &mut Vec<Change>) {
        let mut touched: HashMap<(BindingId, KeyBytes), Touched> = HashMap::new();
        for (row, weight) in rows {
            // A binding that has just gone takes its rows along.
            let Some(&binding) = self.bindings.get(&slot_key(&row, plan.slots)) else { continue };
            *self.rows.entry(binding).or_default() += weight;
            let shown = Row::encode(plan.result.iter().map(|&column| row.cell(column)));
            for _ in 0..weight.abs() {
                match plan.identity {
                    Identity::Key(_) => out.push(change(binding, shown.clone(), weight > 0)),
                    Identity::Single => out.push(change(binding, numbered(&shown, 0), weight > 0)),
                    Identity::Numbered => {
                        let columns: Vec<usize> = (0..shown.len()).collect();
                        let key = row_key(&shown, &columns);
                        let equals = self.equals.entry(binding).or_default().entry(key.clone()).or_default();
                        let touched = touched.entry((binding, key)).or_default();
                        if weight > 0 { touched.add(equals, &shown) } else { touched.remove(equals, &shown) }
                    }
                }
            }
        }
        for ((binding, key), touched) in touched {
            let Some(groups) = self.equals.get_mut(&binding) else { continue };
            let equals = groups.get(&key).map_or(&[][..], Vec::as_slice);
            for (at, before) in touched.0 {
                let after = equals.get(at);
                if before.as_ref() != after {
                    out.extend(before.map(|row| change(binding, numbered(&row, at), false)));
                    out.extend(after.map(|row| change(binding, numbered(row, at), true)));
                }
            }
            if equals.is_empty() {
                groups.remove(&key);
            }
        }
        // What goes is told first, so that a key that goes and comes is never there twice.
        out.sort_by_key(|change| change.new.is_some());
    }
}

fn change(binding: BindingId, row: Row, is_coming: bool) -> Change {
    let (old, new) = if is_coming { (None, Some(row)) } else { (Some(row), None) };
    Change { binding, place: 0, old, new }
}

/// A row with its number among equal ones, which count from 1.
fn numbered(row: &Row, before: usize) -> Row {
    let number = i64::try_from(before + 1).unwrap_or(i64::MAX);
    Row::encode(row.cells().chain([ValueRef::Int8(number)]))
}

/// Where a row's like end among equal ones.
fn behind(equals: &[Row], row: &Row) -> usize {
    equals.partition_point(|other| other.as_bytes() <= row.as_bytes())
}

/// Of equal rows, those whose numbers were given to others, as they were before.
#[derive(Default)]
struct Touched(HashMap<usize, Option<Row>>);

impl Touched {
    /// Rows that are equal can still read differently (1.0 and 1.00). They are numbered in the order of their bytes, so
    /// that the numbers do not depend on the order in which they came; those behind move.
    fn add(&mut self, equals: &mut Vec<Row>, row: &Row) {
        let at = behind(equals, row);
        self.touch(equals, at);
        self.0.entry(equals.len()).or_insert(None);
        equals.insert(at, row.clone());
    }

    fn remove(&mut self, equals: &mut Vec<Row>, row: &Row) {
        let Some(at) = behind(equals, row).checked_sub(1) else { return };
        self.touch(equals, at);
        equals.remove(at);
    }

    /// Notes the rows from a number on.
    fn touch(&mut self, equals: &[Row], from: usize) {
        for (at, row) in equals.iter().enumerate().skip(from) {
            self.0.entry(at).or_insert_with(|| Some(row.clone()));
        }
    }
}
