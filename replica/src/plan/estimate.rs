//! How many rows a planner expects: shares that filters keep, rows that a look-up finds.

use crate::{
    expr::{Compare, Condition, Scalar},
    store::Relation,
};

/// Share of rows that satisfy a condition of which nothing is known.
const SHARE_UNKNOWN: f64 = 0.33;
/// Share of rows that satisfy a pattern.
const SHARE_PATTERN: f64 = 0.1;

/// The share of a table's rows that satisfy a condition.
pub(super) fn share(condition: &Condition, table: &Relation) -> f64 {
    let one_of = |scalar: &Scalar, values: usize| match scalar {
        Scalar::Column(column) => (values as f64 / table.distinct(&[*column])).min(1.0),
        _ => SHARE_UNKNOWN,
    };
    let is_constant = |scalar: &Scalar| matches!(scalar, Scalar::Constant(_));
    match condition {
        Condition::Constant(truth) => f64::from(*truth == Some(true)),
        Condition::And(operands) => operands.iter().map(|operand| share(operand, table)).product(),
        Condition::Or(operands) => operands.iter().map(|operand| share(operand, table)).sum::<f64>().min(1.0),
        Condition::Not(operand) => 1.0 - share(operand, table),
        Condition::Compare(Compare::Equal, value, other) if is_constant(other) => one_of(value, 1),
        Condition::Compare(Compare::Equal, other, value) if is_constant(other) => one_of(value, 1),
        Condition::Compare(Compare::NotEqual, value, other) if is_constant(other) => 1.0 - one_of(value, 1),
        Condition::In(value, members) => one_of(value, members.len()),
        Condition::Matches(..) | Condition::Regex(..) => SHARE_PATTERN,
        _ => SHARE_UNKNOWN,
    }
}

/// How many rows of a table a look-up by some of its columns finds; without columns it finds all.
pub(super) fn found(table: &Relation, columns: &[usize]) -> f64 {
    let rows = table.rows().len() as f64;
    let mut columns = columns.to_vec();
    columns.sort_unstable();
    columns.dedup();
    if columns.is_empty() {
        rows
    } else if table.schema().primary_key.iter().all(|part| columns.contains(part)) {
        1.0
    } else {
        (rows / table.distinct(&columns)).max(1.0)
    }
}

/// What a look-up in a table costs, in rows read one after the other.
const LOOK_UP: f64 = 4.0;
/// What hashing one row of a table costs.
const HASH: f64 = 3.0;

/// What reading a row by a secondary index costs, in rows read in the order in which they are kept.
const ROW_BY_INDEX: f64 = 4.0;

/// What reading so many rows that look-ups find costs.
pub(crate) fn rows(rows: f64, is_by_index: bool) -> f64 {
    if is_by_index { rows * ROW_BY_INDEX } else { rows }
}

/// Whether it costs less to hash a table's rows than to look them up so many times.
pub(crate) fn is_worth_hashing(rows: f64, look_ups: f64) -> bool {
    rows * HASH + look_ups < look_ups * LOOK_UP
}

/// What so many look-ups in a table or in an operator's rows cost, hashed if that is worth it.
pub(crate) fn look_ups(table_rows: Option<f64>, look_ups: f64) -> f64 {
    table_rows.map_or(look_ups, |rows| (rows * HASH + look_ups).min(look_ups * LOOK_UP))
}
