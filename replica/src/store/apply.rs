//! A draft's operations on an editor: the part of a commit that depends on which rows exist. Store thread.

use super::{
    CommitError, CommitLimits, CommitProblem, Draft, DraftOp, Reference, Relation, Snapshot, SnapshotEditor,
    TableId,
    constraint::{Moved, settle},
    key::row_key,
};
use std::sync::Arc;
use tidegate_wire::model::{Row, TableRules, TableSchema, Value, ValueRef};

/// The edits of a draft on a fresh editor, or its refusal.
pub(super) fn apply(
    draft: &Draft,
    from: &Arc<Snapshot>,
    limits: &CommitLimits,
) -> Result<SnapshotEditor, CommitError> {
    let mut editor = SnapshotEditor::new(Arc::clone(from));
    apply_to(draft, &mut editor, limits)?;
    Ok(editor)
}

/// Edits by a draft; when it is refused, none of its edits remains.
pub(super) fn apply_to(
    draft: &Draft,
    editor: &mut SnapshotEditor,
    limits: &CommitLimits,
) -> Result<(), CommitError> {
    let mark = editor.mark();
    for (index, op) in draft.ops.iter().enumerate() {
        if let Err(problem) = apply_op(op, editor, limits) {
            editor.roll_back(mark);
            return Err(name(problem, index, op, editor.snapshot()));
        }
    }
    settle(editor, mark, &Moved::new(), limits).map_err(|violation| {
        editor.roll_back(mark);
        let is_it = |op: &DraftOp| violation.row.as_deref() == Some(&(op.table(), op.key().clone()));
        match draft.ops.iter().rposition(is_it) {
            Some(index) => violation.error.at_op(index),
            None => violation.error,
        }
    })
}

/// A row with the number that its table gives it; the row itself where rows are not numbered.
pub(crate) fn numbered(table: &Relation, row: Row) -> Row {
    if !table.schema().rules.row_id {
        return row;
    }
    with(&row, &[(row.len() - 1, Value::Int8(table.last_row_id() + 1))])
}

fn apply_op(op: &DraftOp, editor: &mut SnapshotEditor, limits: &CommitLimits) -> Result<(), CommitProblem> {
    let snapshot = editor.snapshot();
    let relation = snapshot.table(op.table()).ok_or(CommitProblem::TableChanged)?;
    match op {
        DraftOp::Insert { table, key, row } => {
            if row.len() != relation.schema().columns.len() {
                return Err(CommitProblem::ForeignDraft);
            }
            if relation.schema().rules.row_id {
                let row = numbered(relation, row.clone());
                let key = row_key(&row, &relation.schema().primary_key);
                editor.set(*table, &key, Some(row));
                return Ok(());
            }
            match editor.set(*table, key, Some(row.clone())) {
                None => Ok(()),
                Some(_) => Err(CommitProblem::RowExists),
            }
        }
        DraftOp::Update { table, key, set, .. } => {
            let old = relation.get(key).ok_or(CommitProblem::RowMissing)?;
            if set.last().is_some_and(|(column, _)| *column >= old.len()) {
                return Err(CommitProblem::ForeignDraft);
            }
            let new = with(old, set);
            let (bytes, bytes_max) = (new.as_bytes().len(), limits.row_bytes_max);
            if bytes > bytes_max {
                return Err(CommitProblem::RowTooLarge { bytes, bytes_max });
            }
            editor.set(*table, key, Some(new));
            Ok(())
        }
        DraftOp::Delete { table, key, .. } => match editor.set(*table, key, None) {
            Some(_) => Ok(()),
            None => Err(CommitProblem::RowMissing),
        },
    }
}

/// The row with other values in some columns, which ascend.
pub(super) fn with(row: &Row, set: &[(usize, Value)]) -> Row {
    let mut set = set.iter().peekable();
    Row::encode((0..row.len()).map(|column| match set.next_if(|(changed, _)| *changed == column) {
        Some((_, value)) => value.as_ref(),
        None => row.cell(column),
    }))
}

/// Adds operation, table and key to a problem.
fn name(problem: CommitProblem, index: usize, op: &DraftOp, snapshot: &Snapshot) -> CommitError {
    let error = CommitError::new(problem).at_op(index);
    let Some(relation) = snapshot.table(op.table()) else { return error };
    let schema = relation.schema();
    let key = match op {
        DraftOp::Insert { row, .. } if row.len() != schema.columns.len() => String::new(),
        DraftOp::Insert { row, .. } => {
            key_text(schema, schema.primary_key.iter().map(|&column| row.cell(column)))
        }
        DraftOp::Update { key_values, .. } | DraftOp::Delete { key_values, .. } => {
            key_text(schema, key_values.iter().map(Value::as_ref))
        }
    };
    error.in_table(&schema.name).of_key(&key)
}

/// The JSON object of a key's values.
pub(super) fn key_text<'a>(schema: &TableSchema, values: impl Iterator<Item = ValueRef<'a>>) -> String {
    let names = schema.key_names().map(str::to_owned);
    let members: serde_json::Map<_, _> = names.zip(values.map(ValueRef::to_json)).collect();
    serde_json::Value::Object(members).to_string()
}

/// Whether two declarations of one table agree; columns may stand in another order. The first difference, if not.
pub(super) fn difference(existing: &TableSchema, declared: &TableSchema) -> Option<String> {
    for column in &declared.columns {
        let name = &column.name;
        let Some(own) = existing.column(name).map(|index| &existing.columns[index]) else {
            return Some(format!("it has no column {name}"));
        };
        if own.ty != column.ty {
            return Some(format!("its column {name} is {}, not {}", own.ty, column.ty));
        }
        if own.nullable != column.nullable {
            let is = if own.nullable { "is" } else { "is not" };
            return Some(format!("its column {name} {is} nullable"));
        }
    }
    if let Some(column) = existing.columns.iter().find(|column| declared.column(&column.name).is_none()) {
        return Some(format!("it has a column {}", column.name));
    }
    let keys: [Vec<&str>; 2] = [existing.key_names().collect(), declared.key_names().collect()];
    if keys[0] != keys[1] {
        return Some(format!("its primary key is ({})", keys[0].join(", ")));
    }
    // A stream that says nothing of constraints does not contradict those there are.
    let says_other = declared.rules != TableRules::default() && declared.rules != existing.rules;
    says_other.then(|| "its constraints or indexes are others".to_owned())
}

/// The tables of a declaration that do not exist yet, made so that each may refer to any of them.
pub(super) fn missing_tables(
    declared: Vec<TableSchema>,
    snapshot: &Snapshot,
) -> Result<Vec<TableSchema>, CommitError> {
    let mut missing: Vec<TableSchema> = Vec::new();
    for schema in declared {
        let name = schema.name.clone();
        let refuse = |problem| Err(CommitError::new(problem).in_table(&name));
        if snapshot.view(&name).is_some() {
            return refuse(CommitProblem::TableDiffers {
                difference: "it is a materialized view".to_owned(),
            });
        }
        let existing = snapshot.table_id(&name).and_then(|id| snapshot.table(id)).map(|own| &**own.schema());
        match existing.or_else(|| missing.iter().find(|other| other.name == name)) {
            Some(existing) => {
                if let Some(difference) = difference(existing, &schema) {
                    return refuse(CommitProblem::TableDiffers { difference });
                }
            }
            None => {
                // The schema is kept as JSON, and a log that does not replay is worse than a refusal.
                match check_schema(&schema) {
                    Ok(()) => missing.push(schema),
                    Err(problem) => return refuse(CommitProblem::BadSchema(problem)),
                }
            }
        }
    }
    Ok(missing)
}

fn check_schema(schema: &TableSchema) -> Result<(), String> {
    let outside = schema.primary_key.iter().any(|&column| column >= schema.columns.len());
    if outside {
        return Err("its primary key is not among its columns".to_owned());
    }
    let json = serde_json::to_string(schema).map_err(|error| error.to_string())?;
    let again: TableSchema = serde_json::from_str(&json).map_err(|error| error.to_string())?;
    if again == *schema { Ok(()) } else { Err("its description is ambiguous".to_owned()) }
}

/// Whether the conditions of a table can be understood and what it refers to is there.
pub(crate) fn check_rules(snapshot: &Snapshot, table: TableId) -> Result<(), CommitError> {
    let Some(relation) = snapshot.table(table) else { return Ok(()) };
    let schema = relation.schema();
    let refuse =
        |problem: String| Err(CommitError::new(CommitProblem::BadSchema(problem)).in_table(&schema.name));
    for check in &relation.rules().checks {
        if let Err(problem) = &check.condition {
            return refuse(format!("check constraint {}: {problem}", check.name));
        }
    }
    for key in &schema.rules.foreign_keys {
        let Some((parent, other)) = snapshot.table_named(&key.references) else {
            return refuse(format!("foreign key {}: there is no table {}", key.name, key.references));
        };
        if let Err(problem) = Reference::new(table, schema, key, parent, other.schema()) {
            return refuse(format!("foreign key {}: {problem}", key.name));
        }
    }
    Ok(())
}
