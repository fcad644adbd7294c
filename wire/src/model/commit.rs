//! Commits and table declarations in the JSON form of a commit stream, before names and types are looked up.

use super::TableSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// A row as JSON: values by column name.
pub type JsonRow = Map<String, Json>;

/// The head of a commit stream: the tables it writes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TablesLine {
    /// The tables.
    pub tables: Vec<TableSchema>,
}

/// One commit, applied whole or not at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitLine {
    /// When it happened, milliseconds since 1970; paces a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// The operations in order.
    pub ops: Vec<RowOp>,
}

/// One operation. Exactly one of the three shapes; anything else is refused when it is parsed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "an operation is {\"insert\":table,\"row\":{…}}, {\"update\":table,\"key\":{…},\"set\":{…}} or {\"delete\":table,\"key\":{…}}"
)]
pub enum RowOp {
    /// A new row; its key must not exist.
    Insert(Insert),
    /// New values for some non-key columns of an existing row.
    Update(Update),
    /// The end of an existing row.
    Delete(Delete),
}

/// See [`RowOp::Insert`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Insert {
    /// The table's name.
    pub insert: String,
    /// The row; a column left out is NULL.
    pub row: JsonRow,
}

/// See [`RowOp::Update`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Update {
    /// The table's name.
    pub update: String,
    /// The key's columns.
    pub key: JsonRow,
    /// The columns to change.
    pub set: JsonRow,
}

/// See [`RowOp::Delete`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delete {
    /// The table's name.
    pub delete: String,
    /// The key's columns.
    pub key: JsonRow,
}
