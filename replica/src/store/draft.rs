//! A commit with its names looked up and its types checked, so that the store thread only has to look at keys.
//! Made on any thread, against any recent snapshot. One that names a table which has ended since is refused.

mod parse;
mod resolve;
#[cfg(test)]
mod tests;

use super::{
    CommitError, KeyBytes, Snapshot, TableId,
    key::row_key,
    limits::{KEY_BYTES_MAX, ROW_BYTES_MAX},
};
use smallvec::SmallVec;
use tidegate_wire::model::{Row, TableSchema, Value, commit::CommitLine, json_fault};

/// Limits on one commit, checked when it is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitLimits {
    /// Most operations.
    pub ops_max: usize,
    /// Largest encoded row, in bytes; at most [`ROW_BYTES_MAX`].
    pub row_bytes_max: usize,
    /// Longest encoded key, in bytes; at most [`KEY_BYTES_MAX`].
    pub key_bytes_max: usize,
}

impl Default for CommitLimits {
    fn default() -> Self {
        Self { ops_max: 1_000_000, row_bytes_max: ROW_BYTES_MAX, key_bytes_max: KEY_BYTES_MAX }
    }
}

/// The values of a primary key, in key order. Most keys have one column.
pub type KeyValues = SmallVec<[Value; 1]>;

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub enum DraftOp {
    /// A new row.
    Insert {
        /// The table.
        table: TableId,
        /// The row's encoded key.
        key: KeyBytes,
        /// The row: a cell for each of the table's columns, of the column's type.
        row: Row,
    },
    /// New values for some columns of an existing row.
    Update {
        /// The table.
        table: TableId,
        /// The encoded key.
        key: KeyBytes,
        /// The key's values, which an error names.
        key_values: KeyValues,
        /// Columns and their new values: no key column, each column once, ascending.
        set: Vec<(usize, Value)>,
    },
    /// The end of an existing row.
    Delete {
        /// The table.
        table: TableId,
        /// The encoded key.
        key: KeyBytes,
        /// The key's values, which an error names.
        key_values: KeyValues,
    },
}

impl DraftOp {
    /// The insert of a row that fits the schema.
    #[must_use]
    pub fn insert(table: TableId, schema: &TableSchema, row: Row) -> Self {
        Self::Insert { table, key: row_key(&row, &schema.primary_key), row }
    }

    /// The update of the row that has `row`'s key. `set` holds no key column, and each column once.
    #[must_use]
    pub fn update(table: TableId, schema: &TableSchema, row: &Row, mut set: Vec<(usize, Value)>) -> Self {
        set.sort_unstable_by_key(|(column, _)| *column);
        let (key, key_values) = key_of(schema, row);
        Self::Update { table, key, key_values, set }
    }

    /// The delete of the row that has `row`'s key.
    #[must_use]
    pub fn delete(table: TableId, schema: &TableSchema, row: &Row) -> Self {
        let (key, key_values) = key_of(schema, row);
        Self::Delete { table, key, key_values }
    }

    /// The encoded key of the row it writes; empty for a row that its table is to number.
    #[must_use]
    pub fn key(&self) -> &KeyBytes {
        match self {
            Self::Insert { key, .. } | Self::Update { key, .. } | Self::Delete { key, .. } => key,
        }
    }

    /// The table it writes.
    #[must_use]
    pub fn table(&self) -> TableId {
        match self {
            Self::Insert { table, .. } | Self::Update { table, .. } | Self::Delete { table, .. } => *table,
        }
    }
}

fn key_of(schema: &TableSchema, row: &Row) -> (KeyBytes, KeyValues) {
    let values = schema.primary_key.iter().map(|&column| row.cell(column).to_value()).collect();
    (row_key(row, &schema.primary_key), values)
}

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    /// When it happened, milliseconds since 1970, where the source says so.
    pub at: Option<i64>,
    /// The operations in order; each sees what those before it did.
    pub ops: Vec<DraftOp>,
}

impl Draft {
    /// Parses one commit line and resolves it. The same as parsing a [`CommitLine`] and [`Draft::resolve`], several
    /// times as fast for a line in which each operation names its table first.
    ///
    /// # Errors
    /// Every refusal that does not depend on which rows exist; `bad_message` for a line that is not a commit.
    pub fn parse(line: &[u8], snapshot: &Snapshot, limits: &CommitLimits) -> Result<Self, CommitError> {
        match parse::parse(line, snapshot, limits) {
            Some(draft) => Ok(draft),
            None => Self::parse_carefully(line, snapshot, limits),
        }
    }

    /// Parses by way of a [`CommitLine`]: slower, and says what is wrong.
    fn parse_carefully(line: &[u8], snapshot: &Snapshot, limits: &CommitLimits) -> Result<Self, CommitError> {
        let line: CommitLine = serde_json::from_slice(line)
            .map_err(|error| CommitError::new(super::CommitProblem::Malformed(json_fault(&error))))?;
        Self::resolve(&line, snapshot, limits)
    }

    /// Looks up names and checks types.
    ///
    /// # Errors
    /// Every refusal that does not depend on which rows exist.
    pub fn resolve(
        line: &CommitLine,
        snapshot: &Snapshot,
        limits: &CommitLimits,
    ) -> Result<Self, CommitError> {
        resolve::resolve(line, snapshot, limits)
    }
}
