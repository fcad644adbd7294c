//! Some rows of each partition, in an order.

use super::{bag::Bag, ordered::Rows};

/// Appends the shown rows of a partition, with `sign` times their weight.
pub(super) fn show(rows: &Rows, offset: u64, limit: Option<u64>, sign: i64, out: &mut Bag) {
    let from = i64::try_from(offset).unwrap_or(i64::MAX);
    let to = limit.map_or(i64::MAX, |limit| from.saturating_add(i64::try_from(limit).unwrap_or(i64::MAX)));
    let mut passed = 0_i64;
    for (row, weight) in rows.values() {
        if passed >= to {
            break;
        }
        let shown = (passed + weight).min(to) - passed.max(from);
        if shown > 0 {
            out.push((row.clone(), sign * shown));
        }
        passed += weight;
    }
}
