//! Keys as bytes whose order is the comparator's order.

use smallvec::SmallVec;
use tidegate_wire::model::{Order, Row, key::encode_cell};

/// An encoded key. Most keys are inline: two integers or one UUID and a flag fit.
pub type KeyBytes = SmallVec<[u8; 24]>;

/// The encoding of the row's cells in `columns`, ascending, as it stands in primary trees and index prefixes.
#[must_use]
pub fn row_key(row: &Row, columns: &[usize]) -> KeyBytes {
    let mut out = Vec::with_capacity(9 * columns.len());
    for &column in columns {
        encode_cell(row.cell(column), Order::ASC, &mut out);
    }
    KeyBytes::from_slice(&out)
}

/// Like [`row_key`], or `None` when one of the cells is NULL: an equality with NULL is never true, so such a row
/// has no place under any correlation key.
#[must_use]
pub fn correlation_key(row: &Row, columns: &[usize]) -> Option<KeyBytes> {
    let mut out = Vec::with_capacity(9 * columns.len());
    for &column in columns {
        let cell = row.cell(column);
        if cell.is_null() {
            return None;
        }
        encode_cell(cell, Order::ASC, &mut out);
    }
    Some(KeyBytes::from_slice(&out))
}
