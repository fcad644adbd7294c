//! Window functions, and the rows around the current one that they see.

use super::Aggregate;
use crate::expr::Scalar;
use tidegate_wire::model::{ColumnType, Order, Value};

/// A window function.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFunction {
    /// Which.
    pub kind: WindowKind,
    /// Its result's type.
    pub ty: ColumnType,
}

/// The window functions.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowKind {
    /// `row_number()`
    RowNumber,
    /// `rank()`
    Rank,
    /// `dense_rank()`
    DenseRank,
    /// `lag(value, offset, default)`; a negative offset leads.
    Lag {
        /// The value.
        value: Scalar,
        /// How many rows back.
        offset: i64,
        /// The value where there is no such row.
        default: Value,
    },
    /// `percent_rank()`
    PercentRank,
    /// `cume_dist()`
    CumeDist,
    /// `ntile(buckets)`, of at least one.
    Ntile(u64),
    /// `nth_value(value, number)` over the frame; numbers count from 1.
    NthValue(Scalar, u64, Frame),
    /// `first_value` over the frame.
    FirstValue(Scalar, Frame),
    /// `last_value` over the frame.
    LastValue(Scalar, Frame),
    /// An aggregate over the frame.
    Aggregate(Aggregate, Frame),
}

/// The rows around the current one that a window function sees.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// How bounds count.
    pub unit: FrameUnit,
    /// Where it starts.
    pub start: Bound,
    /// Where it ends.
    pub end: Bound,
}

/// How a frame's bounds count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnit {
    /// Single rows.
    Rows,
    /// Rows that are equal in the window's order. `Preceding` and `Following` are not used with it, `Limit` is.
    Range,
    /// Groups of rows that are equal in the window's order.
    Groups,
}

/// One end of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// The partition's beginning or end.
    Unbounded,
    /// So many before the current row.
    Preceding(u64),
    /// The current row (`Range`, `Groups`: with its equals).
    Current,
    /// So many after the current row.
    Following(u64),
    /// `Range` alone: as far as a value goes.
    Limit(Box<Limit>),
}

/// A frame's end that lies a distance from the current row in the values of the order, which is of one column.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The last value that is in the frame, computed of the current row. NULL bounds the frame by the NULLs.
    pub value: Scalar,
    /// What stands for a value that is out of its type's range: the first or last of the type.
    pub extreme: Value,
    /// Whether it is behind the current row (`following`).
    pub is_behind: bool,
    /// The order of the column.
    pub order: Order,
}
