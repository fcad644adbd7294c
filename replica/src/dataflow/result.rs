//! From the last operator's rows to changes of bindings' results.

use super::{
    bag::{Bag, ByBytes},
    slot_key,
};
use crate::{
    pipeline::StepFault,
    plan::{Identity, Plan},
    store::KeyBytes,
    worker::{BindingId, Change},
};
use hashbrown::HashMap;
use tidegate_wire::model::{Row, ValueRef};

/// The bindings by their slot values, and how often each numbered row stands.
#[derive(Debug, Default)]
pub(super) struct Results {
    bindings: HashMap<KeyBytes, BindingId>,
    numbered: HashMap<BindingId, HashMap<ByBytes, i64>>,
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
        self.numbered.remove(&binding);
        self.rows.remove(&binding);
    }

    /// How many rows a binding's result has.
    pub(super) fn rows(&self, binding: BindingId) -> usize {
        self.rows.get(&binding).map_or(0, |rows| usize::try_from(*rows).unwrap_or(0))
    }

    /// Takes over another's bindings.
    pub(super) fn absorb(&mut self, other: Self) {
        self.bindings.extend(other.bindings);
        self.numbered.extend(other.numbered);
        self.rows.extend(other.rows);
    }

    /// Appends what rows that come and go change, each row of the plan's result once.
    pub(super) fn tell(&mut self, plan: &Plan, rows: Bag, out: &mut Vec<Change>) -> Result<(), StepFault> {
        let mut entering = Vec::new();
        for (row, weight) in rows {
            // A binding that has just gone takes its rows along.
            let Some(&binding) = self.bindings.get(&slot_key(&row, plan.slots)) else { continue };
            *self.rows.entry(binding).or_default() += weight;
            let shown = plan.result.iter().map(|&column| row.cell(column));
            let (mut from, by, is_numbered) = match plan.identity {
                Identity::Key(_) => (0, weight, false),
                Identity::Single => (0, weight, true),
                Identity::Numbered => {
                    let standing = self.numbered.entry(binding).or_default();
                    let count = standing.entry(ByBytes(Row::encode(shown.clone()))).or_default();
                    let from = *count;
                    *count += weight;
                    if *count == 0 {
                        standing.remove(&ByBytes(Row::encode(shown.clone())));
                    }
                    (from, weight, true)
                }
            };
            for _ in 0..by.abs() {
                // Numbers count from 1; the last one goes first.
                let number = if by > 0 { from + 1 } else { from };
                from += by.signum();
                let number = if plan.identity == Identity::Single { 1 } else { number };
                let last = is_numbered.then_some(ValueRef::Int8(number));
                let row = Row::encode(shown.clone().chain(last));
                if by > 0 {
                    entering.push(Change { binding, place: 0, old: None, new: Some(row) });
                } else {
                    out.push(Change { binding, place: 0, old: Some(row), new: None });
                }
            }
        }
        out.append(&mut entering);
        Ok(())
    }
}
