//! From a parsed commit line to a draft. The reference for what is refused and how it is said.

use super::{CommitLimits, Draft, DraftOp, KeyValues};
use crate::expr::cast::to_precision;
use crate::store::{CommitError, CommitProblem, KeyBytes, Snapshot, TableId, key::row_key, system_tables};
use crate::suggestion;
use tidegate_wire::model::{
    ColumnSchema, Given, GivenRow, Order, Row, TableSchema, Value,
    commit::{CommitLine, RowOp},
    key::encode_cell,
};

pub(super) fn resolve(
    line: &CommitLine,
    snapshot: &Snapshot,
    limits: &CommitLimits,
) -> Result<Draft, CommitError> {
    let CommitLimits { ops_max, .. } = *limits;
    if line.ops.len() > ops_max {
        return Err(CommitProblem::TooManyOps { ops: line.ops.len(), ops_max }.into());
    }
    let mut ops = Vec::with_capacity(line.ops.len());
    for (index, op) in line.ops.iter().enumerate() {
        ops.push(resolve_op(op, snapshot, limits).map_err(|error| error.at_op(index))?);
    }
    Ok(Draft { at: line.at, ops })
}

fn resolve_op(op: &RowOp, snapshot: &Snapshot, limits: &CommitLimits) -> Result<DraftOp, CommitError> {
    let name = match op {
        RowOp::Insert(op) => &op.insert,
        RowOp::Update(op) => &op.update,
        RowOp::Delete(op) => &op.delete,
    };
    let (table, schema) = lookup(name, snapshot).map_err(|problem| {
        let error = CommitError::new(problem).in_table(name);
        match op {
            RowOp::Insert(_) => error,
            RowOp::Update(op) => error.of_key(&json_text(&op.key)),
            RowOp::Delete(op) => error.of_key(&json_text(&op.key)),
        }
    })?;
    let resolved = match op {
        RowOp::Insert(op) => insert(table, schema, &op.row, limits)
            .map_err(|error| error.of_key(&json_text(&key_members(schema, &op.row)))),
        RowOp::Update(op) => key(schema, &op.key, limits)
            .and_then(|(key, key_values)| {
                Ok(DraftOp::Update { table, key, key_values, set: set(schema, &op.set)? })
            })
            .map_err(|error| error.of_key(&json_text(&op.key))),
        RowOp::Delete(op) => key(schema, &op.key, limits)
            .map(|(key, key_values)| DraftOp::Delete { table, key, key_values })
            .map_err(|error| error.of_key(&json_text(&op.key))),
    };
    resolved.map_err(|error| error.in_table(name))
}

fn lookup<'a>(name: &str, snapshot: &'a Snapshot) -> Result<(TableId, &'a TableSchema), CommitProblem> {
    if snapshot.view(name).is_some() {
        return Err(CommitProblem::ReservedTable);
    }
    let id = snapshot
        .table_id(name)
        .ok_or_else(|| CommitProblem::UnknownTable { instead: suggestion::of_table(name, snapshot) })?;
    if id == system_tables::CLIENT_MUTATIONS {
        return Err(CommitProblem::ReservedTable);
    }
    let table = snapshot.table(id).expect("a snapshot's names are its tables'");
    Ok((id, table.schema()))
}

fn column(schema: &TableSchema, name: &str) -> Result<usize, CommitError> {
    schema.column(name).ok_or_else(|| unknown_column(schema, name))
}

fn unknown_column(schema: &TableSchema, name: &str) -> CommitError {
    let instead = suggestion::of_column(name, schema);
    CommitError::new(CommitProblem::UnknownColumn { instead }).of_column(name)
}

fn value(schema: &TableSchema, column: usize, given: &Given) -> Result<Value, CommitError> {
    let column = &schema.columns[column];
    let value = given.to_value(column.ty).map_err(|error| {
        let problem = CommitProblem::TypeMismatch { expected: error.expected, found: error.found };
        CommitError::new(problem).of_column(&column.name)
    })?;
    if value.is_null() && !column.nullable {
        return Err(CommitError::new(CommitProblem::NullNotAllowed).of_column(&column.name));
    }
    if let Some((precision, scale)) = column.precision {
        return to_precision(value.as_ref(), precision, scale).map_err(|_| {
            let (expected, found) = (format!("numeric({precision},{scale})"), value.to_json().to_string());
            CommitError::new(CommitProblem::TypeMismatch { expected, found }).of_column(&column.name)
        });
    }
    Ok(value)
}

fn insert(
    table: TableId,
    schema: &TableSchema,
    given: &GivenRow,
    limits: &CommitLimits,
) -> Result<DraftOp, CommitError> {
    let mut values: Vec<Value> = schema.columns.iter().map(ColumnSchema::default_value).collect();
    for (name, cell) in given.iter() {
        let column = column(schema, name)?;
        if column >= schema.shown().len() {
            return Err(unknown_column(schema, name));
        }
        values[column] = value(schema, column, cell)?;
    }
    for (column, value) in schema.shown().iter().zip(&values) {
        if value.is_null() && !column.nullable {
            return Err(CommitError::new(CommitProblem::NullNotAllowed).of_column(&column.name));
        }
    }
    let row = Row::from_values(&values);
    check_row(&row, limits)?;
    let key = if schema.rules.row_id { KeyBytes::new() } else { row_key(&row, &schema.primary_key) };
    check_key(&key, limits)?;
    Ok(DraftOp::Insert { table, key, row })
}

fn key(
    schema: &TableSchema,
    given: &GivenRow,
    limits: &CommitLimits,
) -> Result<(KeyBytes, KeyValues), CommitError> {
    for (name, _) in given.iter() {
        let column = column(schema, name)?;
        if !schema.primary_key.contains(&column) {
            return Err(CommitError::new(CommitProblem::NotAKeyColumn).of_column(name));
        }
    }
    let mut values = KeyValues::with_capacity(schema.primary_key.len());
    for &column in &schema.primary_key {
        let name = &schema.columns[column].name;
        let cell = given
            .get(name)
            .ok_or_else(|| CommitError::new(CommitProblem::KeyColumnMissing).of_column(name))?;
        values.push(value(schema, column, cell)?);
    }
    let key = encode_key(&values);
    check_key(&key, limits)?;
    Ok((key, values))
}

fn set(schema: &TableSchema, given: &GivenRow) -> Result<Vec<(usize, Value)>, CommitError> {
    let mut set = Vec::with_capacity(given.iter().len());
    for (name, cell) in given.iter() {
        let column = column(schema, name)?;
        if schema.primary_key.contains(&column) {
            return Err(CommitError::new(CommitProblem::KeyColumnInSet).of_column(name));
        }
        set.push((column, value(schema, column, cell)?));
    }
    set.sort_unstable_by_key(|(column, _)| *column);
    Ok(set)
}

/// The encoding of key values, as [`row_key`] gives it for a row.
pub(super) fn encode_key(values: &[Value]) -> KeyBytes {
    let mut out = Vec::with_capacity(24);
    values.iter().for_each(|value| encode_cell(value.as_ref(), Order::ASC, &mut out));
    KeyBytes::from_slice(&out)
}

pub(super) fn check_row(row: &Row, limits: &CommitLimits) -> Result<(), CommitProblem> {
    let (bytes, bytes_max) = (row.as_bytes().len(), limits.row_bytes_max);
    if bytes > bytes_max { Err(CommitProblem::RowTooLarge { bytes, bytes_max }) } else { Ok(()) }
}

pub(super) fn check_key(key: &[u8], limits: &CommitLimits) -> Result<(), CommitProblem> {
    let (bytes, bytes_max) = (key.len(), limits.key_bytes_max);
    if bytes > bytes_max { Err(CommitProblem::KeyTooLarge { bytes, bytes_max }) } else { Ok(()) }
}

/// The members of a row that are its key, as far as they are there.
fn key_members(schema: &TableSchema, row: &GivenRow) -> GivenRow {
    schema.key_names().filter_map(|name| Some((name.to_owned(), row.get(name)?.clone()))).collect()
}

fn json_text(members: &GivenRow) -> String {
    serde_json::to_string(members).unwrap_or_default()
}
