//! What is known of a table beyond its rows: about how many different values some columns have. Found when a plan asks,
//! from a sample, and kept for the table's later versions until its size has changed much. Any thread asks.

use super::{key::row_key, tree::Tree};
use parking_lot::Mutex;
use std::collections::HashMap;
use tidegate_wire::model::Row;

/// Rows looked at; a table with no more is looked at whole.
const SAMPLE_ROWS: usize = 1_000;
/// By which factor a table grows or shrinks before it is looked at again.
const CHANGE_FACTOR: usize = 2;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    /// By columns: the table's size when it was looked at, and how many different values there were.
    distinct: Mutex<HashMap<Vec<usize>, (usize, f64)>>,
}

impl Statistics {
    /// About how many different values the columns have together; 1 for an empty table.
    pub(super) fn distinct(&self, rows: &Tree<Row>, columns: &[usize]) -> f64 {
        let is_near = |size: usize| {
            size.max(SAMPLE_ROWS) <= CHANGE_FACTOR * rows.len().max(SAMPLE_ROWS)
                && rows.len() <= CHANGE_FACTOR * size
        };
        let known = self.distinct.lock().get(columns).copied();
        if let Some((_, distinct)) = known.filter(|(size, _)| is_near(*size)) {
            return distinct;
        }
        let distinct = estimate(rows, columns);
        self.distinct.lock().insert(columns.to_vec(), (rows.len(), distinct));
        distinct
    }
}

fn estimate(rows: &Tree<Row>, columns: &[usize]) -> f64 {
    let mut times: HashMap<_, usize> = HashMap::new();
    let mut note = |row: &Row| *times.entry(row_key(row, columns)).or_default() += 1;
    if rows.len() <= SAMPLE_ROWS {
        rows.iter().for_each(|(_, row)| note(row));
        return times.len().max(1) as f64;
    }
    rows.sample(SAMPLE_ROWS).for_each(&mut note);
    // Haas and Stokes' estimator, as PostgreSQL's `analyze` has it: values met once say how many are not met.
    let (all, looked_at) = (rows.len() as f64, SAMPLE_ROWS as f64);
    let (met, once) = (times.len() as f64, times.values().filter(|times| **times == 1).count() as f64);
    let estimate = looked_at * met / (looked_at - once + once * looked_at / all);
    estimate.clamp(met, all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_wire::model::Value;

    fn table(rows: i64, values: i64) -> Tree<Row> {
        let row = |id: i64| Row::from_values(&[Value::Int8(id), Value::Int8(id * 7_919 % values)]);
        Tree::from_sorted((0..rows).map(|id| (row_key(&row(id), &[0]), row(id))))
    }

    #[test]
    fn a_small_table_is_counted() {
        let statistics = Statistics::default();
        assert_eq!(statistics.distinct(&table(900, 17), &[1]), 17.0);
        assert_eq!(Statistics::default().distinct(&table(0, 1), &[1]), 1.0);
    }

    #[test]
    fn a_large_table_is_estimated() {
        for values in [10, 1_000, 40_000] {
            let estimate = Statistics::default().distinct(&table(80_000, values), &[1]);
            let error = estimate / values as f64;
            assert!((0.4..2.5).contains(&error), "{estimate} for {values}");
        }
    }

    #[test]
    fn a_table_that_grew_is_looked_at_again() {
        let statistics = Statistics::default();
        assert_eq!(statistics.distinct(&table(0, 1), &[1]), 1.0);
        assert_eq!(statistics.distinct(&table(900, 17), &[1]), 17.0);
        assert_eq!(statistics.distinct(&table(1_000, 500), &[1]), 17.0, "not looked at again");
    }
}
