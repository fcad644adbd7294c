//! What of a query's rows travels: the layout clients get, and where its columns stand in the store's rows.

use tidegate_wire::model::{Fingerprint, Layout};

/// Where a layout table's columns stand in the rows of its store table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputTable {
    /// Per layout column, the store row's column.
    pub columns: Vec<usize>,
    /// The primary key's columns in the store row, in key order.
    pub key: Vec<usize>,
}

/// Shared by all subscribers of one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Tables and places as clients get them.
    pub layout: Layout,
    /// Per layout table, where its columns come from.
    pub tables: Vec<OutputTable>,
    /// The fingerprint clients resume by.
    pub fp: Fingerprint,
}
