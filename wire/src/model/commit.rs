//! Commits and table declarations in the JSON form of a commit stream, before names and types are looked up.

use super::{GivenRow, TableSchema};
use crate::maps_only::{MapsOnly, maps_only};
use serde::{Deserialize, Deserializer, Serialize, de};

/// The head of a commit stream: the tables it writes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct TablesLine {
    /// The tables.
    pub tables: Vec<TableSchema>,
}

/// One commit, applied whole or not at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct CommitLine {
    /// When it happened, milliseconds since 1970; paces a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// The operations in order.
    pub ops: Vec<RowOp>,
}

maps_only!(TablesLine, CommitLine);

/// One operation. Exactly one of the three shapes; anything else is refused when it is parsed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RowOp {
    /// A new row; its key must not exist.
    Insert(Insert),
    /// New values for some non-key columns of an existing row.
    Update(Update),
    /// The end of an existing row.
    Delete(Delete),
}

/// See [`RowOp::Insert`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Insert {
    /// The table's name.
    pub insert: String,
    /// The row; a column left out is NULL.
    pub row: GivenRow,
}

/// See [`RowOp::Update`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Update {
    /// The table's name.
    pub update: String,
    /// The key's columns.
    pub key: GivenRow,
    /// The columns to change.
    pub set: GivenRow,
}

/// See [`RowOp::Delete`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Delete {
    /// The table's name.
    pub delete: String,
    /// The key's columns.
    pub key: GivenRow,
}

const FORMS: &str = "an operation is {\"insert\":table,\"row\":{…}}, {\"update\":table,\"key\":{…},\"set\":{…}} or {\"delete\":table,\"key\":{…}}";

impl RowOp {
    /// The operation with its cells taken to have the JSON form of their types, whatever encoding they came in.
    #[must_use]
    pub fn in_json_form(self) -> Self {
        match self {
            Self::Insert(Insert { insert, row }) => Self::Insert(Insert { insert, row: row.in_json_form() }),
            Self::Update(Update { update, key, set }) => {
                Self::Update(Update { update, key: key.in_json_form(), set: set.in_json_form() })
            }
            Self::Delete(Delete { delete, key }) => Self::Delete(Delete { delete, key: key.in_json_form() }),
        }
    }
}

impl<'de> Deserialize<'de> for RowOp {
    // By hand, as serde reads untagged enums by way of a buffer that forgets which encoding it came from.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, expecting = "an operation as a map")]
        struct Members {
            insert: Option<String>,
            update: Option<String>,
            delete: Option<String>,
            row: Option<GivenRow>,
            key: Option<GivenRow>,
            set: Option<GivenRow>,
        }
        let members = Members::deserialize(MapsOnly(deserializer)).map_err(|error| {
            // The place follows from outside; two would be one too many.
            let error = error.to_string();
            let what = error.split(" at line ").next().unwrap_or_default();
            de::Error::custom(format_args!("{FORMS} ({what})"))
        })?;
        let Members { insert, update, delete, row, key, set } = members;
        match (insert, update, delete, row, key, set) {
            (Some(insert), None, None, Some(row), None, None) => Ok(Self::Insert(Insert { insert, row })),
            (None, Some(update), None, None, Some(key), Some(set)) => {
                Ok(Self::Update(Update { update, key, set }))
            }
            (None, None, Some(delete), None, Some(key), None) => Ok(Self::Delete(Delete { delete, key })),
            _ => Err(de::Error::custom(FORMS)),
        }
    }
}
