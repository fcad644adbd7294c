//! A total: the value that an aggregated place shows under one correlation key, kept by the changes of its rows.

use super::group::GroupChange;
use crate::{
    algebra::AggregateFunction,
    dataflow::{Accumulator, accumulate},
    expr::EvalError,
    query::shape::TotalOf,
};
use bigdecimal::{BigDecimal, Zero as _};
use std::sync::Arc;
use tidegate_wire::model::{Numeric, Row, Value, ValueRef};

/// See the module's description.
pub(super) struct Total {
    accumulator: Accumulator,
    /// The correlation columns, once there was a row to take them from.
    key: Vec<Value>,
    /// What is shown; nothing where the value is that of no rows.
    row: Option<Row>,
}

impl Total {
    /// The total of rows.
    pub(super) fn of(total: &TotalOf, rows: &[Row]) -> Result<Self, EvalError> {
        let mut own = Self { accumulator: Accumulator::new(&total.aggregate), key: Vec::new(), row: None };
        for row in rows {
            own.add(total, row, 1)?;
        }
        own.row = own.shown(total)?;
        Ok(own)
    }

    /// What is shown.
    pub(super) fn row(&self) -> Option<&Row> {
        self.row.as_ref()
    }

    /// Folds the rows' changes in; returns what is shown differently.
    pub(super) fn advance(
        &mut self,
        total: &TotalOf,
        changes: &[GroupChange],
    ) -> Result<Vec<GroupChange>, EvalError> {
        for (old, new) in changes {
            if let Some(old) = old {
                self.add(total, old, -1)?;
            }
            if let Some(new) = new {
                self.add(total, new, 1)?;
            }
        }
        let row = self.shown(total)?;
        if row == self.row {
            return Ok(Vec::new());
        }
        let before = std::mem::replace(&mut self.row, row.clone());
        Ok(vec![(before, row)])
    }

    fn add(&mut self, total: &TotalOf, row: &Row, weight: i64) -> Result<(), EvalError> {
        if self.key.is_empty() {
            self.key = total.on.iter().map(|&column| canonical(row.cell(column))).collect();
        }
        accumulate(&total.aggregate, &mut self.accumulator, row, weight, &mut Vec::new())
    }

    fn shown(&self, total: &TotalOf) -> Result<Option<Row>, EvalError> {
        let value = self.accumulator.value(&total.aggregate)?;
        let is_of_nothing = match total.aggregate.function {
            AggregateFunction::Count => value == Value::Int8(0),
            _ => value.is_null(),
        };
        let cells = self.key.iter().map(Value::as_ref).chain([value.as_ref()]);
        Ok((!is_of_nothing).then(|| Row::encode(cells)))
    }
}

/// One spelling for all values that are equal, so that the key does not depend on which row came first.
fn canonical(cell: ValueRef<'_>) -> Value {
    match cell {
        ValueRef::Float8(0.0) => Value::Float8(0.0),
        ValueRef::Float8(value) if value.is_nan() => Value::Float8(f64::NAN),
        ValueRef::Numeric(value) => Value::Numeric(Arc::new(match value.to_numeric() {
            Numeric::Finite(value) if value.is_zero() => Numeric::Finite(BigDecimal::zero()),
            Numeric::Finite(value) => Numeric::Finite(value.normalized()),
            other => other,
        })),
        cell => cell.to_value(),
    }
}
