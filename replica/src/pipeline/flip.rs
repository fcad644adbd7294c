//! EXISTS answers that a delta flips, and the rows whose condition that may change.
//!
//! An answer depends on the key alone, so only keys of changed inner rows, and of inner rows whose own nested
//! EXISTS flipped, can flip. Each such key is answered before and after; where the answers differ, the outer rows
//! under the key are the candidates.

use super::read::{Reader, encode_converted};
use crate::{
    expr::EvalError,
    query::shape::{Exists, Filter},
    store::{Delta, KeyBytes, TableId, key::row_key},
};
use hashbrown::HashMap;
use tidegate_wire::model::{Order, Row, ValueRef, key::encode_cell};

/// The unchanged rows of a table for which an EXISTS of the filter flipped, by primary key.
pub(super) fn flipped_rows(
    table: TableId,
    filter: &Filter,
    delta: &Delta,
    before: &Reader<'_>,
    after: &Reader<'_>,
) -> Result<HashMap<KeyBytes, Row>, EvalError> {
    let mut rows = HashMap::new();
    for exists in &filter.exists {
        for outer_key in flipped_keys(exists, delta, before, after)? {
            let changed = delta.table(table);
            let primary_key = &after.schema(table).primary_key;
            after.outer_rows(table, exists, &outer_key, |row| {
                let key = row_key(row, primary_key);
                if changed.binary_search_by(|change| change.key.cmp(&key)).is_err() {
                    rows.insert(key, row.clone());
                }
                Ok(())
            })?;
        }
    }
    Ok(rows)
}

/// The keys, encoded by the outer columns, for which the answer differs between the two snapshots.
fn flipped_keys(
    exists: &Exists,
    delta: &Delta,
    before: &Reader<'_>,
    after: &Reader<'_>,
) -> Result<Vec<KeyBytes>, EvalError> {
    let mut candidates: HashMap<KeyBytes, Option<KeyBytes>> = HashMap::new();
    for change in delta.table(exists.table) {
        // An inner row whose own EXISTS may flip in the same commit is a candidate whatever changed in it.
        if let (Some(old), Some(new), true) = (&change.old, &change.new, exists.filter.exists.is_empty())
            && old.same_cells(new, &exists.used)
        {
            continue;
        }
        for row in change.old.iter().chain(&change.new) {
            add_candidate(exists, row, &mut candidates);
        }
    }
    if !exists.filter.exists.is_empty() {
        for row in flipped_rows(exists.table, &exists.filter, delta, before, after)?.values() {
            add_candidate(exists, row, &mut candidates);
        }
    }
    let mut flipped = Vec::new();
    for (inner_key, outer_key) in candidates {
        let Some(outer_key) = outer_key else { continue };
        // An error counts as a flip: the outer rows it concerns meet it when they are tested, and it is theirs.
        let answers = (before.exists_under(exists, &inner_key), after.exists_under(exists, &inner_key));
        match answers {
            (Err(error), _) | (_, Err(error)) if error.is_of_step() => return Err(error),
            (Ok(before), Ok(after)) if before == after => {}
            _ => flipped.push(outer_key),
        }
    }
    Ok(flipped)
}

/// Notes an inner row's key, encoded both by the inner columns (to look up the answer) and by the outer ones (to
/// look up the rows it concerns).
fn add_candidate(exists: &Exists, row: &Row, candidates: &mut HashMap<KeyBytes, Option<KeyBytes>>) {
    let differs = |&(column, ref value): &(usize, tidegate_wire::model::Value)| {
        let cell: ValueRef<'_> = row.cell(column);
        cell.is_null() || cell.compare(value.as_ref()).is_ne()
    };
    if exists.constants.iter().any(differs) {
        return;
    }
    let mut inner_key = Vec::with_capacity(9 * exists.on.len());
    for pair in &exists.on {
        let cell = row.cell(pair.inner);
        if cell.is_null() {
            return;
        }
        encode_cell(cell, Order::ASC, &mut inner_key);
    }
    for (_, value) in &exists.constants {
        encode_cell(value.as_ref(), Order::ASC, &mut inner_key);
    }
    candidates.entry(KeyBytes::from_slice(&inner_key)).or_insert_with(|| {
        let mut outer_key = Vec::with_capacity(9 * exists.on.len());
        for pair in &exists.on {
            encode_converted(row.cell(pair.inner), pair.inner_ty, pair.outer_ty, &mut outer_key)?;
        }
        Some(KeyBytes::from_slice(&outer_key))
    });
}
