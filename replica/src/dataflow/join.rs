//! Joins: each input's changes are completed by look-ups in the others; inputs before it are read as they are after the
//! step, those behind it as they were before.

use super::{
    Step,
    bag::{Arrangement, Bag, encode_key},
    completion::{Completion, Taker},
};
use crate::{
    expr::{Beside, Cells, Condition, EvalError, NoExists},
    pipeline::read::Reader,
    plan::{Input, Join, Lookup, LookupAccess, Source, Step as PlannedStep, estimate},
    query::shape::Access,
    store::{TableId, tree::Tree},
};
use std::cell::RefCell;
use tidegate_wire::model::{Order, Row, key::encode_cell};

/// Gives a taker what a join changes. `depends` says that some input depends on the slots.
pub(super) fn advance(
    arrangements: &mut [Vec<Arrangement>],
    join: &Join,
    step: &Step<'_>,
    changes: &[Bag],
    depends: bool,
    taker: &mut impl Taker,
) -> Result<(), EvalError> {
    if step.is_first {
        // Whatever depends on slots has no rows yet.
        let start = (!depends).then(|| cheapest(join, step, changes));
        for (number, input) in join.inputs.iter().enumerate() {
            if let Source::Node(node) = input.source {
                arrange(&mut arrangements[number], input, &changes[node])?;
            }
        }
        if let Some((start, cost)) = start {
            let hashed = hashed(join, start, step, changes)?;
            let completion = Completion::new(arrangements, join, step, None, &hashed);
            completion.all_rows(start, cost, changes, taker)?;
        }
        return Ok(());
    }
    for (number, input) in join.inputs.iter().enumerate() {
        let completion = Completion::new(arrangements, join, step, Some(number), &[]);
        let path = &join.paths[number];
        match &input.source {
            Source::Table { table, used } => {
                for (old, new) in step.changed(*table, used) {
                    for (row, weight) in [(old, -1), (new, 1)] {
                        if let Some(row) = row
                            && completion.passes(&input.filter, row, Some(*table))?
                        {
                            completion.complete(path, 0, &Beside::one(row), weight, taker)?;
                        }
                    }
                }
            }
            Source::Node(node) => {
                for (row, weight) in &changes[*node] {
                    if completion.passes(&input.filter, row, None)? {
                        completion.complete(path, 0, &Beside::one(row), *weight, taker)?;
                    }
                }
                arrange(&mut arrangements[number], input, &changes[*node])?;
            }
        }
    }
    Ok(())
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

/// The input from which it costs least to compute a join whole, and what that costs.
fn cheapest(join: &Join, step: &Step<'_>, changes: &[Bag]) -> (usize, f64) {
    let cost = |start: usize| {
        let rows = rows(&join.inputs[start], step, changes);
        let mut cost = rows;
        let made = expect(join, start, rows, &mut |next, look_ups| {
            let table = match join.inputs[next.input].source {
                Source::Table { table, .. } => Some(table_rows(table, step)),
                Source::Node(_) => None,
            };
            let is_by_index = matches!(next.by.access, LookupAccess::Table(Access::Index(_)));
            cost +=
                estimate::look_ups(table, look_ups) + estimate::rows(look_ups * next.found.0, is_by_index);
        });
        cost + made
    };
    let costs = (0..join.inputs.len()).map(|start| (start, cost(start)));
    costs.min_by(|(_, a), (_, b)| a.total_cmp(b)).expect("a join has an input")
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

/// What the whole primary key of a table found that was looked up last: rows that follow each other often ask for the
/// same, as a table's changes come in its key's order.
#[derive(Default)]
pub(super) struct LastFound<'s>(RefCell<(Vec<u8>, Option<&'s Row>)>);

impl<'s> LastFound<'s> {
    /// The row of a key, in the table that all keys are looked up in.
    fn get(last: Option<&Self>, rows: &'s Tree<Row>, key: &[u8]) -> Option<&'s Row> {
        let Some(last) = last else { return rows.get(key) };
        let (known, found) = &mut *last.0.borrow_mut();
        // No key is empty, as no primary key has no columns.
        if known != key {
            *found = rows.get(key);
            known.clear();
            known.extend_from_slice(key);
        }
        *found
    }
}

/// Calls `each` with the rows that a look-up finds, with their weights, until it fails or says that it has enough.
/// `is_after` says at which snapshot tables are read, the same for all look-ups with one `last`; without, none is remembered.
pub(super) fn look_up<'s, R: Cells>(
    step: &Step<'s>,
    is_after: bool,
    (input, arrangements): (&Input, &[Arrangement]),
    by: &Lookup,
    last: Option<&LastFound<'s>>,
    row: &R,
    each: &mut dyn FnMut(&Row, i64) -> Result<bool, EvalError>,
) -> Result<(), EvalError> {
    match (&by.access, &input.source) {
        (LookupAccess::Table(access), Source::Table { table, .. }) => {
            let reader = step.snapshot_reader(is_after);
            let mut pass = |row: &Row| Ok(!is_true(&input.filter, row)? || each(row, 1)?);
            let Some(relation) = reader.snapshot.table(*table) else { return Ok(()) };
            if matches!(access, Access::Primary) && by.keys.len() == relation.schema().primary_key.len() {
                let found = step.key.with(|key| {
                    let finds = encode_key(&by.keys, &by.null_agrees, row, key)?;
                    Ok(finds.then(|| LastFound::get(last, relation.rows(), key)).flatten())
                })?;
                return read(reader, *table, found.map(|row| (&[][..], row)).into_iter(), &mut pass);
            }
            let Some(tree) = reader.tree(*table, access)? else { return Ok(()) };
            let found = step
                .key
                .with(|key| Ok(encode_key(&by.keys, &by.null_agrees, row, key)?.then(|| tree.prefix(key))))?;
            read(reader, *table, found.into_iter().flatten(), &mut pass)
        }
        (LookupAccess::Arrangement(number), _) => look_up_in(step, &arrangements[*number], by, row, each),
        (LookupAccess::Table(_), Source::Node(_)) => unreachable!("an operator's rows are arranged"),
    }
}

/// As [`look_up`], in an arrangement.
pub(super) fn look_up_in<R: Cells>(
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
pub(super) fn read<'r>(
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
