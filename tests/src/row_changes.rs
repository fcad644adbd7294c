//! Changes of rows whose tables are known beforehand, in the forms in which the engine and PostgreSQL take them.

use serde_json::{Map, Value as Json, json};
use tidegate_wire::model::{Numeric, Row, TableSchema, Value, ValueRef};

/// One key's old and new row in one commit; one of them is there, or both.
#[derive(Clone, Debug)]
pub struct RowChange {
    /// The table, by its position.
    pub table: usize,
    /// The row that goes.
    pub old: Option<Row>,
    /// The row that comes.
    pub new: Option<Row>,
}

impl RowChange {
    /// A row that comes.
    #[must_use]
    pub fn insert(table: usize, row: Row) -> Self {
        Self { table, old: None, new: Some(row) }
    }

    /// A row that goes.
    #[must_use]
    pub fn delete(table: usize, row: Row) -> Self {
        Self { table, old: Some(row), new: None }
    }

    /// A row that becomes another of the same key.
    #[must_use]
    pub fn update(table: usize, old: Row, new: Row) -> Self {
        Self { table, old: Some(old), new: Some(new) }
    }
}

/// The tables that a JSON text describes.
///
/// # Panics
/// When it describes none.
#[must_use]
pub fn schemas(tables: &Json) -> Vec<TableSchema> {
    serde_json::from_value(tables["tables"].clone()).expect("the tables are well formed")
}

/// The commit `{"ops":[…]}` that makes changes.
#[must_use]
pub fn commit(schemas: &[TableSchema], changes: &[RowChange]) -> Json {
    let ops: Vec<Json> = changes
        .iter()
        .filter_map(|change| {
            let schema = &schemas[change.table];
            let members = |row: &Row, columns: &[usize]| -> Json {
                let members =
                    columns.iter().map(|&at| (schema.columns[at].name.clone(), row.cell(at).to_json()));
                Json::Object(members.collect::<Map<_, _>>())
            };
            let all: Vec<usize> = (0..schema.columns.len()).collect();
            Some(match (&change.old, &change.new) {
                (None, None) => return None,
                (None, Some(new)) => json!({"insert": schema.name, "row": members(new, &all)}),
                (Some(old), None) => json!({"delete": schema.name, "key": members(old, &schema.primary_key)}),
                (Some(old), Some(new)) => {
                    let set: Vec<usize> = all.into_iter().filter(|&at| !old.same_cells(new, &[at])).collect();
                    let key = members(old, &schema.primary_key);
                    json!({"update": schema.name, "key": key, "set": members(new, &set)})
                }
            })
        })
        .collect();
    json!({ "ops": ops })
}

/// Appends a row as PostgreSQL's `copy` reads it. Texts must be without tabs, line ends and backslashes.
pub fn copy_line(row: &Row, out: &mut String) {
    for (at, cell) in row.cells().enumerate() {
        if at > 0 {
            out.push('\t');
        }
        match cell.to_json() {
            Json::Null => out.push_str("\\N"),
            Json::String(text) => out.push_str(&text),
            other => out.push_str(&other.to_string()),
        }
    }
    out.push('\n');
}

/// A number of cents as a `numeric` with two decimals.
#[must_use]
pub fn cents(cents: i64) -> Value {
    let (sign, cents) = (if cents < 0 { "-" } else { "" }, cents.abs());
    let text = format!("{sign}{}.{:02}", cents / 100, cents % 100);
    let numeric: Numeric = text.parse().expect("a number");
    Value::Numeric(numeric.into())
}

/// The row with one cell replaced.
#[must_use]
pub fn with_cell(row: &Row, column: usize, value: &Value) -> Row {
    Row::encode(row.cells().enumerate().map(|(at, cell)| if at == column { value.as_ref() } else { cell }))
}

/// The integer in a cell.
///
/// # Panics
/// When it holds none.
#[must_use]
pub fn integer(row: &Row, column: usize) -> i64 {
    match row.cell(column) {
        ValueRef::Int8(value) => value,
        other => panic!("column {column} holds {other:?}, not an integer"),
    }
}
