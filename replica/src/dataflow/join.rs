//! Joins: each input's changes are completed by look-ups in the others; inputs before it are read as they are after the
//! step, those behind it as they were before.

use super::{
    Step,
    bag::{Arrangement, Bag, NoExists, encode_key},
};
use crate::{
    expr::{Condition, EvalError, Scalar},
    pipeline::read::Reader,
    plan::{Input, Join, Lookup, LookupAccess, Path, Source},
    query::shape::Access,
    store::TableId,
};
use tidegate_wire::model::Row;

/// What a join changes. `depends` says that some input depends on the slots.
pub(super) fn advance(
    arrangements: &mut [Vec<Arrangement>],
    join: &Join,
    step: &Step<'_>,
    changes: &[Bag],
    depends: bool,
) -> Result<Bag, EvalError> {
    let mut out = Bag::new();
    if step.is_first {
        // Whatever depends on slots has no rows yet.
        let start = (!depends).then(|| smallest(join, step, changes));
        for (number, input) in join.inputs.iter().enumerate() {
            if let Source::Node(node) = input.source {
                arrange(&mut arrangements[number], input, &changes[node])?;
            }
        }
        if let Some(start) = start {
            let completion = Completion { arrangements, join, step, start: None };
            completion.all_rows(start, changes, &mut out)?;
        }
        return Ok(out);
    }
    for (number, input) in join.inputs.iter().enumerate() {
        let completion = Completion { arrangements, join, step, start: Some(number) };
        let path = &join.paths[number];
        match &input.source {
            Source::Table { table, used } => {
                for (old, new) in step.changed(*table, used) {
                    for (row, weight) in [(old, -1), (new, 1)] {
                        if let Some(row) = row
                            && completion.passes(&input.filter, row, Some(*table))?
                        {
                            completion.complete(path, 0, row, weight, &mut out)?;
                        }
                    }
                }
            }
            Source::Node(node) => {
                for (row, weight) in &changes[*node] {
                    if completion.passes(&input.filter, row, None)? {
                        completion.complete(path, 0, row, *weight, &mut out)?;
                    }
                }
                arrange(&mut arrangements[number], input, &changes[*node])?;
            }
        }
    }
    Ok(out)
}

/// The input from which a join is computed whole: the one with the fewest rows.
fn smallest(join: &Join, step: &Step<'_>, changes: &[Bag]) -> usize {
    let size = |input: &Input| match input.source {
        Source::Table { table, .. } => step.after.snapshot.table(table).map_or(0, |table| table.rows().len()),
        Source::Node(node) => changes[node].len(),
    };
    (0..join.inputs.len()).min_by_key(|&number| size(&join.inputs[number])).unwrap_or(0)
}

/// Brings an input's arrangements up to date.
pub(super) fn arrange(
    arrangements: &mut [Arrangement],
    input: &Input,
    changes: &Bag,
) -> Result<(), EvalError> {
    let mut key = Vec::new();
    for (row, weight) in changes {
        if !is_true(&input.filter, row)? {
            continue;
        }
        for (arrangement, keys) in arrangements.iter_mut().zip(&input.arrangements) {
            key.clear();
            encode_key(keys, &[], row, &mut key)?;
            arrangement.add(&key, row, *weight);
        }
    }
    Ok(())
}

/// Whether a row satisfies a condition.
pub(super) fn is_true(condition: &Condition, row: &Row) -> Result<bool, EvalError> {
    Ok(*condition == Condition::Constant(Some(true)) || condition.test(row, &NoExists)? == Some(true))
}

/// Calls `each` with the rows that a look-up finds, with their weights, until it fails.
pub(super) fn look_up(
    reader: &Reader<'_>,
    input: &Input,
    arrangements: &[Arrangement],
    by: &Lookup,
    row: &Row,
    each: &mut dyn FnMut(&Row, i64) -> Result<bool, EvalError>,
) -> Result<(), EvalError> {
    let mut key = Vec::new();
    if !encode_key(&by.keys, &by.null_agrees, row, &mut key)? {
        return Ok(());
    }
    match (&by.access, &input.source) {
        (LookupAccess::Table(access), Source::Table { table, .. }) => {
            read_table(reader, *table, access, &key, &mut |row| {
                Ok(!is_true(&input.filter, row)? || each(row, 1)?)
            })
        }
        (LookupAccess::Arrangement(number), _) => {
            for (row, weight) in arrangements[*number].get(&key) {
                reader.budget.spend()?;
                if !each(row, weight)? {
                    break;
                }
            }
            Ok(())
        }
        (LookupAccess::Table(_), Source::Node(_)) => unreachable!("an operator's rows are arranged"),
    }
}

/// Calls `each` with a table's rows under a key, until it says that it has enough.
fn read_table(
    reader: &Reader<'_>,
    table: TableId,
    access: &Access,
    key: &[u8],
    each: &mut dyn FnMut(&Row) -> Result<bool, EvalError>,
) -> Result<(), EvalError> {
    let Some(tree) = reader.tree(table, access)? else { return Ok(()) };
    for (_, row) in tree.prefix(key) {
        reader.budget.spend()?;
        let note = |error: &EvalError| {
            if !error.is_of_step() {
                reader.note_failure(table, row);
            }
        };
        if !each(row).inspect_err(note)? {
            break;
        }
    }
    Ok(())
}

/// Completes rows of one input.
struct Completion<'a, 's> {
    arrangements: &'a [Vec<Arrangement>],
    join: &'a Join,
    step: &'a Step<'s>,
    /// The input whose changes are completed; `None` reads every input as it is after the step.
    start: Option<usize>,
}

impl Completion<'_, '_> {
    fn passes(&self, filter: &Condition, row: &Row, table: Option<TableId>) -> Result<bool, EvalError> {
        is_true(filter, row).inspect_err(|_| {
            if let Some(table) = table {
                self.step.after.note_failure(table, row);
            }
        })
    }

    /// Completes all rows of an input.
    fn all_rows(&self, start: usize, changes: &[Bag], out: &mut Bag) -> Result<(), EvalError> {
        let (input, path) = (&self.join.inputs[start], &self.join.paths[start]);
        match &input.source {
            Source::Table { table, .. } => {
                read_table(&self.step.after, *table, &Access::Primary, &[], &mut |row| {
                    if is_true(&input.filter, row)? {
                        self.complete(path, 0, row, 1, out)?;
                    }
                    Ok(true)
                })
            }
            Source::Node(node) => {
                for (row, weight) in &changes[*node] {
                    if is_true(&input.filter, row)? {
                        self.complete(path, 0, row, *weight, out)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Completes a row from a step of its path on.
    fn complete(
        &self,
        path: &Path,
        at: usize,
        row: &Row,
        weight: i64,
        out: &mut Bag,
    ) -> Result<(), EvalError> {
        let Some(next) = path.steps.get(at) else {
            self.step.after.budget.pass()?;
            out.push((project(&path.columns, row)?, weight));
            return Ok(());
        };
        let is_after = self.start.is_none_or(|start| next.input < start);
        let reader = self.step.snapshot_reader(is_after);
        let (input, arrangements) = (&self.join.inputs[next.input], &self.arrangements[next.input]);
        look_up(reader, input, arrangements, &next.by, row, &mut |found, times| {
            let wide = Row::encode(row.cells().chain(found.cells()));
            if is_true(&next.condition, &wide)? {
                self.complete(path, at + 1, &wide, weight * times, out)?;
            }
            Ok(true)
        })
    }
}

/// The columns computed from a row.
pub(super) fn project(columns: &[Scalar], row: &Row) -> Result<Row, EvalError> {
    let is_same = columns.len() == row.len()
        && columns
            .iter()
            .enumerate()
            .all(|(at, column)| matches!(column, Scalar::Column(from) if *from == at));
    if is_same {
        return Ok(row.clone());
    }
    let values =
        columns.iter().map(|column| column.value(row, &NoExists)).collect::<Result<Vec<_>, EvalError>>()?;
    Ok(Row::encode(values.iter().map(crate::expr::scalar::Computed::as_ref)))
}
