//! Joins: each input's changes are completed by look-ups in the others; inputs before it are read as they are after the
//! step, those behind it as they were before.

use super::{
    Step,
    bag::{Arrangement, Bag, encode_key},
};
use crate::{
    expr::{Beside, Cells, Condition, EvalError, NoExists, Scalar},
    pipeline::read::Reader,
    plan::{Input, Join, Lookup, LookupAccess, Path, Source, Step as PlannedStep, estimate},
    query::shape::Access,
    store::TableId,
};
use tidegate_wire::model::{Order, Row, key::encode_cell, row::RowEncoder};

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
        let start = (!depends).then(|| cheapest(join, step, changes));
        for (number, input) in join.inputs.iter().enumerate() {
            if let Source::Node(node) = input.source {
                arrange(&mut arrangements[number], input, &changes[node])?;
            }
        }
        if let Some(start) = start {
            let hashed = hashed(join, start, step, changes)?;
            let completion = Completion { arrangements, join, step, start: None, hashed };
            completion.all_rows(start, changes, &mut out)?;
        }
        return Ok(out);
    }
    for (number, input) in join.inputs.iter().enumerate() {
        let completion = Completion { arrangements, join, step, start: Some(number), hashed: Vec::new() };
        let path = &join.paths[number];
        match &input.source {
            Source::Table { table, used } => {
                for (old, new) in step.changed(*table, used) {
                    for (row, weight) in [(old, -1), (new, 1)] {
                        if let Some(row) = row
                            && completion.passes(&input.filter, row, Some(*table))?
                        {
                            completion.complete(path, 0, &Beside::one(row), weight, &mut out)?;
                        }
                    }
                }
            }
            Source::Node(node) => {
                for (row, weight) in &changes[*node] {
                    if completion.passes(&input.filter, row, None)? {
                        completion.complete(path, 0, &Beside::one(row), *weight, &mut out)?;
                    }
                }
                arrange(&mut arrangements[number], input, &changes[*node])?;
            }
        }
    }
    Ok(out)
}

/// How many rows an input has.
fn rows(input: &Input, step: &Step<'_>, changes: &[Bag]) -> f64 {
    match input.source {
        Source::Table { table, .. } => table_rows(table, step),
        Source::Node(node) => changes[node].len() as f64,
    }
}

fn table_rows(table: TableId, step: &Step<'_>) -> f64 {
    step.after.snapshot.table(table).map_or(0.0, |table| table.rows().len() as f64)
}

/// Calls `each` with how many look-ups a path makes at each of its steps, and how many rows it has in the end.
fn expect(join: &Join, start: usize, rows: f64, each: &mut dyn FnMut(&PlannedStep, f64)) -> f64 {
    let mut expected = rows * join.inputs[start].share.0;
    for step in &join.paths[start].steps {
        each(step, expected);
        expected *= step.found.0;
    }
    expected
}

/// The input from which it costs least to compute a join whole.
fn cheapest(join: &Join, step: &Step<'_>, changes: &[Bag]) -> usize {
    let cost = |start: usize| {
        let rows = rows(&join.inputs[start], step, changes);
        let mut cost = rows;
        let made = expect(join, start, rows, &mut |next, look_ups| {
            let table = match join.inputs[next.input].source {
                Source::Table { table, .. } => Some(table_rows(table, step)),
                Source::Node(_) => None,
            };
            cost += estimate::look_ups(table, look_ups) + look_ups * next.found.0;
        });
        cost + made
    };
    let costs: Vec<f64> = (0..join.inputs.len()).map(cost).collect();
    (0..costs.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).unwrap_or(0)
}

/// Per step of a path, its table's rows by their key where they are looked up so often that hashing them all costs less.
fn hashed(
    join: &Join,
    start: usize,
    step: &Step<'_>,
    changes: &[Bag],
) -> Result<Vec<Option<Arrangement>>, EvalError> {
    let mut worth = Vec::new();
    expect(join, start, rows(&join.inputs[start], step, changes), &mut |next, look_ups| {
        let source = &join.inputs[next.input].source;
        worth.push(matches!(source, Source::Table { table, .. } if estimate::is_worth_hashing(table_rows(*table, step), look_ups)));
    });
    let steps = join.paths[start].steps.iter().zip(worth);
    steps.map(|(next, worth)| worth.then(|| hash(&join.inputs[next.input], next, step)).transpose()).collect()
}

/// A table's rows that pass an input's filter, by the key that a step looks them up by.
fn hash(input: &Input, next: &PlannedStep, step: &Step<'_>) -> Result<Arrangement, EvalError> {
    let mut arrangement = Arrangement::default();
    let Source::Table { table, .. } = input.source else { return Ok(arrangement) };
    let reader = &step.after;
    let relation = reader.snapshot.table(table);
    let columns = next.by.columns(relation.map_or(&[][..], |relation| &relation.schema().primary_key));
    let Some(tree) = reader.tree(table, &Access::Primary)? else { return Ok(arrangement) };
    let mut key = Vec::new();
    read(reader, table, tree.iter(), &mut |row| {
        if is_true(&input.filter, row)? {
            key.clear();
            columns.iter().for_each(|&column| encode_cell(row.cell(column), Order::ASC, &mut key));
            arrangement.add(&key, row, 1);
        }
        Ok(true)
    })?;
    Ok(arrangement)
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
pub(super) fn is_true<R: Cells>(condition: &Condition, row: &R) -> Result<bool, EvalError> {
    Ok(matches!(condition, Condition::Constant(Some(true))) || condition.test(row, &NoExists)? == Some(true))
}

/// Calls `each` with the rows that a look-up finds, with their weights, until it fails or says that it has enough.
/// `is_after` says at which snapshot tables are read.
pub(super) fn look_up<R: Cells>(
    step: &Step<'_>,
    is_after: bool,
    (input, arrangements): (&Input, &[Arrangement]),
    by: &Lookup,
    row: &R,
    each: &mut dyn FnMut(&Row, i64) -> Result<bool, EvalError>,
) -> Result<(), EvalError> {
    match (&by.access, &input.source) {
        (LookupAccess::Table(access), Source::Table { table, .. }) => {
            let reader = step.snapshot_reader(is_after);
            let Some(tree) = reader.tree(*table, access)? else { return Ok(()) };
            let found = step
                .key
                .with(|key| Ok(encode_key(&by.keys, &by.null_agrees, row, key)?.then(|| tree.prefix(key))))?;
            read(reader, *table, found.into_iter().flatten(), &mut |row| {
                Ok(!is_true(&input.filter, row)? || each(row, 1)?)
            })
        }
        (LookupAccess::Arrangement(number), _) => look_up_in(step, &arrangements[*number], by, row, each),
        (LookupAccess::Table(_), Source::Node(_)) => unreachable!("an operator's rows are arranged"),
    }
}

/// As [`look_up`], in an arrangement.
fn look_up_in<R: Cells>(
    step: &Step<'_>,
    arrangement: &Arrangement,
    by: &Lookup,
    row: &R,
    each: &mut dyn FnMut(&Row, i64) -> Result<bool, EvalError>,
) -> Result<(), EvalError> {
    let found = step
        .key
        .with(|key| Ok(encode_key(&by.keys, &by.null_agrees, row, key)?.then(|| arrangement.get(key))))?;
    for (row, weight) in found.into_iter().flatten() {
        step.after.budget.spend()?;
        if !each(row, weight)? {
            break;
        }
    }
    Ok(())
}

/// Calls `each` with rows of a table, until it says that it has enough.
fn read<'r>(
    reader: &Reader<'_>,
    table: TableId,
    rows: impl Iterator<Item = (&'r [u8], &'r Row)>,
    each: &mut dyn FnMut(&Row) -> Result<bool, EvalError>,
) -> Result<(), EvalError> {
    for (_, row) in rows {
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
    /// Per step of the path, what need not be looked up in its table.
    hashed: Vec<Option<Arrangement>>,
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
                let reader = &self.step.after;
                let Some(tree) = reader.tree(*table, &Access::Primary)? else { return Ok(()) };
                read(reader, *table, tree.iter(), &mut |row| {
                    if is_true(&input.filter, row)? {
                        self.complete(path, 0, &Beside::one(row), 1, out)?;
                    }
                    Ok(true)
                })
            }
            Source::Node(node) => {
                for (row, weight) in &changes[*node] {
                    if is_true(&input.filter, row)? {
                        self.complete(path, 0, &Beside::one(row), *weight, out)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Completes rows from a step of their path on.
    fn complete(
        &self,
        path: &Path,
        at: usize,
        rows: &Beside<'_>,
        weight: i64,
        out: &mut Bag,
    ) -> Result<(), EvalError> {
        let Some(next) = path.steps.get(at) else {
            self.step.after.budget.pass()?;
            let whole = if path.steps.is_empty() {
                project(&path.columns, rows.first())?
            } else {
                computed(&path.columns, rows)?
            };
            out.push((whole, weight));
            return Ok(());
        };
        let is_after = self.start.is_none_or(|start| next.input < start);
        let input = (&self.join.inputs[next.input], &self.arrangements[next.input][..]);
        let mut each = |found: &Row, times: i64| {
            let wide = rows.and(found);
            if is_true(&next.condition, &wide)? {
                self.complete(path, at + 1, &wide, weight * times, out)?;
            }
            Ok(true)
        };
        match self.hashed.get(at) {
            Some(Some(arrangement)) => look_up_in(self.step, arrangement, &next.by, rows, &mut each),
            _ => look_up(self.step, is_after, input, &next.by, rows, &mut each),
        }
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
    computed(columns, row)
}

/// A row of columns computed.
fn computed<R: Cells>(columns: &[Scalar], row: &R) -> Result<Row, EvalError> {
    let mut encoder = RowEncoder::default();
    for column in columns {
        match column {
            Scalar::Column(at) => row.copy(*at, &mut encoder),
            computed => encoder.push(computed.value(row, &NoExists)?.as_ref()),
        }
    }
    Ok(encoder.finish())
}
