//! Secondary indexes: what one orders by, and its id.

use super::{KeyBytes, TableId};
use tidegate_wire::model::{Order, Row, TableSchema, key::encode_cell};

/// Names an index for as long as the process lives; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexId(pub u64);

impl IndexId {
    /// The indexes that a table keeps by itself, all of them: nobody asks for one of these by its id.
    pub const KEPT: Self = Self(0);
}

/// What an index orders its table's rows by. The primary key ends every index key, so keys are unique.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IndexSpec {
    /// The table.
    pub table: TableId,
    /// The columns, each with its order. Columns looked up by equality come first and are [`Order::ASC`].
    pub columns: Vec<(usize, Order)>,
}

impl IndexSpec {
    /// The row's key in this index.
    #[must_use]
    pub fn key(&self, schema: &TableSchema, row: &Row) -> KeyBytes {
        let mut out = Vec::with_capacity(9 * (self.columns.len() + schema.primary_key.len()));
        self.encode(schema, row, &mut out);
        KeyBytes::from_slice(&out)
    }

    /// Appends the row's key in this index to `out`.
    pub fn encode(&self, schema: &TableSchema, row: &Row, out: &mut Vec<u8>) {
        for &(column, order) in &self.columns {
            encode_cell(row.cell(column), order, out);
        }
        for &column in &schema.primary_key {
            encode_cell(row.cell(column), Order::ASC, out);
        }
    }

    /// Whether two rows of one primary key have the same key in this index.
    #[must_use]
    pub fn same_key(&self, a: &Row, b: &Row) -> bool {
        self.columns.iter().all(|&(column, _)| a.same_cells(b, &[column]))
    }
}
