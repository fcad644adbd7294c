//! Constraints: what every write has to leave true, and what foreign keys do to the rows that refer to one that goes.
//!
//! They are looked at when all of a commit's operations are done, or all of a statement's, over what these came to: so
//! one commit may insert a row before the one it refers to, and swap two unique values.

use super::{
    CommitError, CommitLimits, CommitProblem, KeyBytes, Reference, Relation, Snapshot, SnapshotEditor,
    TableChanges, TableId,
    apply::{key_text, with},
    key::{correlation_key, row_key},
    tree::Tree,
};
use crate::query::shape::Access;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use tidegate_wire::model::{
    Order, Row, TableSchema, Value, key::encode_cell, table_rules::ReferentialAction,
};

/// Rows that got another primary key: by table and old key, the row that each is now. To the store it is a row that
/// went and one that came.
pub type Moved = HashMap<(TableId, KeyBytes), Row>;

type Result<T> = std::result::Result<T, Violation>;

/// A constraint that a write leaves false: the error, and the row whose change did it.
#[derive(Debug)]
pub struct Violation {
    /// What is wrong, with its place but for the operation.
    pub error: CommitError,
    /// The table and the key of the row.
    pub row: Option<Box<(TableId, KeyBytes)>>,
}

/// Follows the foreign keys of what has been written since a mark, and checks it all.
///
/// # Errors
/// When a constraint is violated, or more than `limits.ops_max` edits follow from it; the edits stay, for the caller to
/// undo.
pub fn settle(editor: &mut SnapshotEditor, mark: usize, moved: &Moved, limits: &CommitLimits) -> Result<()> {
    if !editor.is_ruled_since(mark) {
        return Ok(());
    }
    let mut due = due(editor, mark, moved);
    while let Some(next) = due.pop() {
        let before = editor.len();
        follow(editor, &next)?;
        // What follows from that comes before what else is due, as it is when rows are deleted one by one.
        due.extend(self::due(editor, before, &Moved::new()));
        let ops = editor.len() - mark;
        if ops > limits.ops_max {
            let problem = CommitProblem::TooManyOps { ops, ops_max: limits.ops_max };
            return Err(Violation { error: problem.into(), row: None });
        }
    }
    for TableChanges { table, rows } in editor.changes_since(mark) {
        let snapshot = editor.snapshot();
        let Some(relation) = snapshot.table(table) else { continue };
        for change in &rows {
            if let Some(new) = &change.new {
                check_row(snapshot, table, relation, change.old.as_ref(), new)?;
            }
        }
    }
    Ok(())
}

/// Checks all rows of a table, as when a constraint comes to it.
///
/// # Errors
/// With the first row that violates one.
pub fn check_table(snapshot: &Snapshot, table: TableId) -> std::result::Result<(), CommitError> {
    let Some(relation) = snapshot.table(table) else { return Ok(()) };
    let schema = relation.schema();
    let strict: Vec<usize> =
        (0..schema.columns.len()).filter(|&column| !schema.columns[column].nullable).collect();
    let idle = relation.rules().is_empty() && snapshot.references(table).is_empty();
    for (_, row) in relation.rows().iter() {
        if let Some(&column) = strict.iter().find(|&&column| row.cell(column).is_null()) {
            return Err(null_in(schema, row, column));
        }
        if !idle {
            check_row(snapshot, table, relation, None, row).map_err(|violation| violation.error)?;
        }
    }
    Ok(())
}

/// The error of a row that holds NULL where it may not.
#[must_use]
pub fn null_in(schema: &TableSchema, row: &Row, column: usize) -> CommitError {
    let error = CommitError::new(CommitProblem::NullNotAllowed).in_table(&schema.name);
    error.of_key(&key_of(schema, row)).of_column(&schema.columns[column].name)
}

/// A row that has changed and that rows of another table may refer to.
struct Due {
    reference: Arc<Reference>,
    old: Row,
    /// What it has become, under whichever key.
    new: Option<Row>,
    /// The keys of the rows that refer to it. Looked up before anything is followed: rows that change places must not be
    /// taken for each other's.
    children: Vec<KeyBytes>,
}

/// What is to be followed of the rows that have changed since a mark; the first to be looked at comes last.
fn due(editor: &SnapshotEditor, mark: usize, moved: &Moved) -> Vec<Due> {
    let snapshot = editor.snapshot();
    let mut changed: Vec<(TableId, KeyBytes, Row, Option<Row>)> = Vec::new();
    for TableChanges { table, rows } in editor.changes_since(mark) {
        if !snapshot.referrers(table).is_empty() {
            let rows = rows.into_iter();
            changed.extend(rows.filter_map(|change| Some((table, change.key, change.old?, change.new))));
        }
    }
    let known: HashSet<(TableId, KeyBytes)> =
        changed.iter().map(|(table, key, ..)| (*table, key.clone())).collect();
    // A row in whose place an equal one has come is no change, and has moved all the same.
    for (table, key) in moved.keys().filter(|place| !known.contains(*place)) {
        let standing = snapshot.table(*table).and_then(|relation| relation.get(key));
        changed.extend(standing.map(|row| (*table, key.clone(), row.clone(), Some(row.clone()))));
    }
    changed.sort_by(|(a, key, ..), (b, other, ..)| a.cmp(b).then_with(|| key.cmp(other)));
    let mut due = Vec::new();
    for (table, key, old, new) in changed {
        let moved_to = moved.get(&(table, key));
        for reference in snapshot.referrers(table) {
            let children = correlation_key(&old, &reference.key).map_or_else(Vec::new, |in_child| {
                under(snapshot, reference.child, &reference.child_access, &in_child)
            });
            let child_key = snapshot.table(reference.child).map(|child| child.schema().primary_key.clone());
            let child_key = child_key.unwrap_or_default();
            due.push(Due {
                reference: Arc::clone(reference),
                old: old.clone(),
                new: moved_to.cloned().or_else(|| new.clone()),
                children: children.iter().map(|row| row_key(row, &child_key)).collect(),
            });
        }
    }
    due.reverse();
    due
}

/// Does what a foreign key asks when a row that rows of another table may refer to changes.
fn follow(editor: &mut SnapshotEditor, due: &Due) -> Result<()> {
    let Due { reference, old, new, children } = due;
    // A NULL in a key refers to nothing.
    let Some(in_child) = correlation_key(old, &reference.key) else { return Ok(()) };
    if new.as_ref().is_some_and(|new| old.same_cells(new, &reference.key)) {
        return Ok(());
    }
    let parent_columns: Vec<usize> = reference.parent_order.iter().map(|&at| reference.key[at]).collect();
    let in_parent = row_key(old, &parent_columns);
    let action = if new.is_some() { reference.on_update } else { reference.on_delete };
    let is_checked = matches!(action, ReferentialAction::Restrict | ReferentialAction::NoAction);
    if action != ReferentialAction::Restrict
        // Another row that has come to stand in the place of an updated one is not what its children refer to.
        && (is_checked || new.is_none())
        && first(editor.snapshot(), reference.parent, &reference.parent_access, &in_parent).is_some()
    {
        return Ok(());
    }
    let standing = editor.snapshot().table(reference.child);
    let children: Vec<Row> = match standing {
        Some(child) if !is_checked => children.iter().filter_map(|key| child.get(key).cloned()).collect(),
        _ => under(editor.snapshot(), reference.child, &reference.child_access, &in_child),
    };
    let Some(schema) = editor.snapshot().table(reference.child).map(|child| Arc::clone(child.schema()))
    else {
        return Ok(());
    };
    match action {
        _ if children.is_empty() => {}
        ReferentialAction::Restrict | ReferentialAction::NoAction => {
            return Err(still_referred(editor.snapshot(), reference, old));
        }
        ReferentialAction::Cascade if new.is_none() => {
            for row in children {
                editor.set(reference.child, &row_key(&row, &schema.primary_key), None);
            }
        }
        ReferentialAction::Cascade | ReferentialAction::SetNull | ReferentialAction::SetDefault => {
            let mut set: Vec<(usize, Value)> = reference
                .columns
                .iter()
                .zip(&reference.key)
                .map(|(&column, &key)| {
                    let value = match (action, new.as_ref()) {
                        (ReferentialAction::Cascade, Some(new)) => new.cell(key).to_value(),
                        (ReferentialAction::SetDefault, _) => schema.columns[column].default_value(),
                        _ => Value::Null,
                    };
                    (column, value)
                })
                .collect();
            set.sort_unstable_by_key(|(column, _)| *column);
            for row in children {
                replace(editor, reference.child, &schema, &row, with(&row, &set))?;
            }
            // The defaults may be the very values that are there no longer.
            let refers =
                first(editor.snapshot(), reference.child, &reference.child_access, &in_child).is_some();
            if action == ReferentialAction::SetDefault && refers {
                return Err(still_referred(editor.snapshot(), reference, old));
            }
        }
    }
    Ok(())
}

/// Puts a row in the place of another one, which may have another key.
fn replace(
    editor: &mut SnapshotEditor,
    table: TableId,
    schema: &TableSchema,
    old: &Row,
    new: Row,
) -> Result<()> {
    let (old_key, key) = (row_key(old, &schema.primary_key), row_key(&new, &schema.primary_key));
    let strict = (0..schema.columns.len())
        .find(|&column| !schema.columns[column].nullable && new.cell(column).is_null());
    if let Some(column) = strict {
        return Err(Violation { error: null_in(schema, &new, column), row: None });
    }
    if old_key != key {
        editor.set(table, &old_key, None);
        if editor.snapshot().table(table).is_some_and(|table| table.get(&key).is_some()) {
            return Err(Violation { error: key_taken(schema, &new), row: None });
        }
    }
    editor.set(table, &key, Some(new));
    Ok(())
}

/// The error of a row whose primary key another one has.
#[must_use]
pub fn key_taken(schema: &TableSchema, row: &Row) -> CommitError {
    let rule = schema.key_constraint().into_owned();
    CommitError::new(CommitProblem::NotUnique { rule }).in_table(&schema.name).of_key(&key_of(schema, row))
}

/// Checks what a row has to satisfy by itself and among others. What is as in `old` is known to hold.
fn check_row(
    snapshot: &Snapshot,
    table: TableId,
    relation: &Relation,
    old: Option<&Row>,
    row: &Row,
) -> Result<()> {
    let schema = relation.schema();
    let fail = |problem| {
        let error = CommitError::new(problem).in_table(&schema.name).of_key(&key_of(schema, row));
        Err(Violation { error, row: Some(Box::new((table, row_key(row, &schema.primary_key)))) })
    };
    let is_known = |columns: &[usize]| old.is_some_and(|old| old.same_cells(row, columns));
    for check in &relation.rules().checks {
        if let Some(fault) = check.fault(row) {
            return fail(CommitProblem::CheckFailed(fault));
        }
    }
    for rule in &relation.rules().unique {
        if is_known(&rule.columns) {
            continue;
        }
        let Some(key) = correlation_key(row, &rule.columns) else { continue };
        if under(snapshot, table, &rule.access, &key).len() > 1 {
            return fail(CommitProblem::NotUnique { rule: rule.name.clone() });
        }
    }
    for reference in snapshot.references(table) {
        if is_known(&reference.columns) || correlation_key(row, &reference.columns).is_none() {
            continue;
        }
        let mut key = Vec::new();
        for &at in &reference.parent_order {
            encode_cell(row.cell(reference.columns[at]), Order::ASC, &mut key);
        }
        if first(snapshot, reference.parent, &reference.parent_access, &key).is_none() {
            let Some(parent) = snapshot.table(reference.parent) else { continue };
            let values = reference.columns.iter().map(|&column| row.cell(column));
            return fail(CommitProblem::NoParent {
                rule: reference.name.clone(),
                parent: parent.schema().name.clone(),
                key: members(parent.schema(), &reference.key, values),
            });
        }
    }
    Ok(())
}

fn still_referred(snapshot: &Snapshot, reference: &Reference, old: &Row) -> Violation {
    let name = |table| snapshot.table(table).map_or("", |table| table.schema().name.as_str());
    let Some(parent) = snapshot.table(reference.parent) else {
        return Violation { error: CommitProblem::TableChanged.into(), row: None };
    };
    let schema = parent.schema();
    let problem = CommitProblem::StillReferred {
        rule: reference.name.clone(),
        child: name(reference.child).to_owned(),
        key: members(schema, &reference.key, reference.key.iter().map(|&column| old.cell(column))),
    };
    let error = CommitError::new(problem).in_table(&schema.name).of_key(&key_of(schema, old));
    Violation { error, row: Some(Box::new((reference.parent, row_key(old, &schema.primary_key)))) }
}

fn key_of(schema: &TableSchema, row: &Row) -> String {
    key_text(schema, schema.primary_key.iter().map(|&column| row.cell(column)))
}

fn members<'a>(
    schema: &TableSchema,
    columns: &[usize],
    values: impl Iterator<Item = tidegate_wire::model::ValueRef<'a>>,
) -> String {
    let names = columns.iter().map(|&column| schema.columns[column].name.clone());
    let members: serde_json::Map<_, _> = names.zip(values.map(|value| value.to_json())).collect();
    serde_json::Value::Object(members).to_string()
}

fn tree<'s>(snapshot: &'s Snapshot, table: TableId, access: &Access) -> Option<&'s Tree<Row>> {
    let relation = snapshot.table(table)?;
    match access {
        Access::Primary => Some(relation.rows()),
        Access::Index(spec) => relation.index_by(spec),
    }
}

fn under(snapshot: &Snapshot, table: TableId, access: &Access, key: &[u8]) -> Vec<Row> {
    let tree = tree(snapshot, table, access);
    tree.map_or_else(Vec::new, |tree| tree.prefix(key).map(|(_, row)| row.clone()).collect())
}

/// A row that a table has under the values of columns, encoded in the order in which they are looked up.
#[must_use]
pub fn first<'s>(snapshot: &'s Snapshot, table: TableId, access: &Access, key: &[u8]) -> Option<&'s Row> {
    tree(snapshot, table, access)?.prefix(key).next().map(|(_, row)| row)
}
