//! Grouping: one row per key with aggregates of its rows.

use super::{
    accumulator::Accumulator,
    bag::{Bag, encode_order},
    join::is_true,
};
use crate::{
    algebra::Aggregate,
    expr::{EvalError, NoExists, scalar::Computed},
    store::KeyBytes,
};
use hashbrown::HashMap;
use smallvec::SmallVec;
use tidegate_wire::model::{Order, Row, Value, key::encode_cell};

/// The groups by their key.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: HashMap<KeyBytes, Group>,
}

#[derive(Debug)]
struct Group {
    /// The key's columns, as the first row had them.
    key: Row,
    rows: i64,
    accumulators: Vec<Accumulator>,
    /// The row that was told last.
    told: Option<Row>,
    is_touched: bool,
}

impl Groups {
    /// What the groups' rows change. With `always`, there is a group for the empty key whatever comes.
    pub(super) fn advance(
        &mut self,
        keys: usize,
        aggregates: &[Aggregate],
        changes: &Bag,
        always: bool,
    ) -> Result<Bag, EvalError> {
        let mut touched: Vec<KeyBytes> = Vec::new();
        let mut encoded = Vec::new();
        if always {
            let group = Group::new(Row::from_values(&[]), aggregates);
            self.groups.insert(KeyBytes::new(), Group { is_touched: true, ..group });
            touched.push(KeyBytes::new());
        }
        for (row, weight) in changes {
            encoded.clear();
            for column in 0..keys {
                encode_cell(row.cell(column), Order::ASC, &mut encoded);
            }
            let group = self
                .groups
                .entry_ref(encoded.as_slice())
                .or_insert_with(|| Group::new(Row::encode(row.cells().take(keys)), aggregates));
            if !std::mem::replace(&mut group.is_touched, true) {
                touched.push(KeyBytes::from_slice(&encoded));
            }
            group.rows += weight;
            for (aggregate, accumulator) in aggregates.iter().zip(&mut group.accumulators) {
                accumulate(aggregate, accumulator, row, *weight)?;
            }
        }
        let mut out = Bag::new();
        for key in touched {
            let Some(group) = self.groups.get_mut(&key) else { continue };
            group.is_touched = false;
            let is_there = group.rows > 0 || keys == 0;
            let row = if is_there { Some(group.row(aggregates)?) } else { None };
            if row != group.told {
                out.extend(std::mem::replace(&mut group.told, row.clone()).map(|row| (row, -1)));
                out.extend(row.map(|row| (row, 1)));
            }
            if !is_there {
                self.groups.remove(&key);
            }
        }
        Ok(out)
    }

    /// The groups' rows.
    pub(super) fn told(&self) -> impl Iterator<Item = &Row> {
        self.groups.values().filter_map(|group| group.told.as_ref())
    }

    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn absorb(&mut self, other: Self) {
        self.groups.extend(other.groups);
    }

    pub(super) fn retain(&mut self, keep: &dyn Fn(&Row) -> bool) {
        self.groups.retain(|_, group| keep(&group.key));
    }
}

/// Adds a row to an accumulator so many times, if it counts.
pub(crate) fn accumulate(
    aggregate: &Aggregate,
    accumulator: &mut Accumulator,
    row: &Row,
    weight: i64,
) -> Result<(), EvalError> {
    if let Some(filter) = &aggregate.filter
        && !is_true(filter, row)?
    {
        return Ok(());
    }
    let values = aggregate
        .arguments
        .iter()
        .map(|argument| argument.scalar.value(row, &NoExists))
        .collect::<Result<SmallVec<[_; 2]>, _>>()?;
    let values: SmallVec<[_; 2]> = values.iter().map(Computed::as_ref).collect();
    let mut order = Vec::new();
    encode_order(&aggregate.order, row, &mut order)?;
    accumulator.add(aggregate.function, &values, &order, weight);
    Ok(())
}

impl Group {
    fn new(key: Row, aggregates: &[Aggregate]) -> Self {
        let accumulators = aggregates.iter().map(Accumulator::new).collect();
        Self { key, rows: 0, accumulators, told: None, is_touched: false }
    }

    /// The group's row.
    fn row(&self, aggregates: &[Aggregate]) -> Result<Row, EvalError> {
        let values = self
            .accumulators
            .iter()
            .zip(aggregates)
            .map(|(accumulator, aggregate)| accumulator.value(aggregate))
            .collect::<Result<Vec<Value>, _>>()?;
        Ok(Row::encode(self.key.cells().chain(values.iter().map(Value::as_ref))))
    }
}
