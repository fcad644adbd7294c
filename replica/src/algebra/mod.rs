//! Relational algebra: what a `select` means, before it is planned. A [`Rel`] is a tree (a graph, where a common table
//! expression is read twice) whose columns are referred to by position and whose names and types are resolved.
//!
//! Rows are bags: a row may occur several times. Subqueries stand where their value is needed, as [`Rel::Mark`],
//! [`Rel::Lookup`] and [`Rel::Lateral`]; what they read of the outer row goes through their *domain*: the subquery's
//! scalars refer to the domain's columns as [`domain`] positions, and [`Subquery::domain`] says what of the outer row
//! each stands for. Parameters are the domain of the whole query.

pub mod aggregate;
mod equalities;
pub mod flat;
pub mod key;
mod lax_marks;
pub(crate) mod positions;
pub mod recursion;
mod semi_join;
pub mod unnest;
pub mod window;

pub use aggregate::{Aggregate, AggregateFunction};
pub use unnest::unnest;
pub use window::{Bound, Frame, FrameUnit, Limit, WindowFunction, WindowKind};

use crate::{
    expr::{Condition, Scalar},
    store::TableId,
};
use std::sync::Arc;
use tidegate_wire::model::{ColumnType, Order, Value};

/// Positions from here on refer to the domain instead of the input.
const DOMAIN_BASE: usize = 1 << 24;

/// The position that refers to the domain's column of a number.
#[must_use]
pub fn domain(column: usize) -> usize {
    DOMAIN_BASE + column
}

/// The domain's column that a position refers to, or `None` when it refers to the input.
#[must_use]
pub fn domain_column(position: usize) -> Option<usize> {
    position.checked_sub(DOMAIN_BASE)
}

/// A scalar with the type of its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// What it computes from the input's row.
    pub scalar: Scalar,
    /// Its type.
    pub ty: ColumnType,
}

/// See the module's description.
#[derive(Clone, Debug, PartialEq)]
pub enum Rel {
    /// The rows of a table, all its columns.
    Table {
        /// The table.
        table: TableId,
        /// Its columns' types.
        types: Vec<ColumnType>,
        /// Its primary key's columns.
        key: Vec<usize>,
    },
    /// Constant rows; their scalars read no input, but may read the domain.
    Values {
        /// The columns' types.
        types: Vec<ColumnType>,
        /// The rows, each with one scalar per column.
        rows: Vec<Vec<Scalar>>,
    },
    /// The rows for which a condition is true.
    Filter {
        /// What is filtered.
        input: Arc<Rel>,
        /// The condition over its rows.
        condition: Condition,
    },
    /// Computed columns.
    Project {
        /// What is projected.
        input: Arc<Rel>,
        /// The columns.
        columns: Vec<Column>,
    },
    /// Pairs of rows; the left one's columns come first. A full join pads either side with NULLs.
    Join {
        /// What becomes of rows without a partner.
        kind: JoinKind,
        /// The left side.
        left: Arc<Rel>,
        /// The right side.
        right: Arc<Rel>,
        /// The condition over both.
        condition: Condition,
    },
    /// The input's rows with one boolean column more: what a subquery says about the row.
    Mark {
        /// The outer rows.
        input: Arc<Rel>,
        /// The subquery.
        subquery: Subquery,
        /// What is asked of its rows.
        test: Test,
    },
    /// The input's rows with one column more: the value of a scalar subquery, which has one column; NULL when it has no
    /// row, an error when it has several.
    Lookup {
        /// The outer rows.
        input: Arc<Rel>,
        /// The subquery.
        subquery: Subquery,
    },
    /// The input's rows, each with the rows of a subquery that reads it.
    Lateral {
        /// `Inner` or `Left`.
        kind: JoinKind,
        /// The outer rows.
        input: Arc<Rel>,
        /// The subquery.
        subquery: Subquery,
        /// The condition over both.
        condition: Condition,
    },
    /// One row per group: the keys, then the aggregates. Without keys it is one row, also over no rows.
    Aggregate {
        /// What is grouped.
        input: Arc<Rel>,
        /// What makes a group; NULLs are equal.
        keys: Vec<Column>,
        /// What is computed of each.
        aggregates: Vec<Aggregate>,
    },
    /// Each row once.
    Distinct {
        /// The rows.
        input: Arc<Rel>,
    },
    /// The rows of all inputs (`union all`), which have the same columns.
    Concat {
        /// The inputs.
        inputs: Vec<Arc<Rel>>,
    },
    /// `except` and `intersect` of inputs with the same columns.
    SetOperation {
        /// Which.
        kind: SetKind,
        /// Whether duplicates count.
        all: bool,
        /// The left side.
        left: Arc<Rel>,
        /// The right side.
        right: Arc<Rel>,
    },
    /// Per partition the rows from `offset` on, at most `limit`, in an order that ends with the whole row.
    Top {
        /// The rows.
        input: Arc<Rel>,
        /// What makes a partition; none for all rows together.
        partition: Vec<Scalar>,
        /// The order.
        order: Vec<(Scalar, Order)>,
        /// Rows passed over.
        offset: u64,
        /// Most rows.
        limit: Option<u64>,
    },
    /// The input's rows with one column more per window function.
    Window {
        /// The rows.
        input: Arc<Rel>,
        /// What makes a partition.
        partition: Vec<Scalar>,
        /// The order inside it.
        order: Vec<(Scalar, Order)>,
        /// The functions, all over this window.
        functions: Vec<WindowFunction>,
    },
    /// The rows of `base`, and what `step` yields of the rows found so far, until that is nothing new.
    Recursive {
        /// The rows that are there from the start.
        base: Arc<Rel>,
        /// What is found from rows found before; it reads those as [`Rel::Working`] in one place, and so that more of them
        /// never yield less ([`recursion::misuse`]).
        step: Arc<Rel>,
        /// The number that the step knows them by.
        working: usize,
        /// Whether a row counts as often as it is found (`union all`); else once.
        all: bool,
    },
    /// In the step of the [`Rel::Recursive`] of a number, the rows found so far.
    Working {
        /// The number.
        working: usize,
        /// The columns' types.
        types: Vec<ColumnType>,
    },
}

/// Which rows without a partner a join keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// None.
    Inner,
    /// The left side's.
    Left,
    /// Both sides'.
    Full,
}

/// The set operations beside `union`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetKind {
    /// Rows of the left that are not in the right.
    Except,
    /// Rows of both.
    Intersect,
}

/// A query inside a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Subquery {
    /// What it yields, for one row of its domain.
    pub rel: Arc<Rel>,
    /// What the domain's columns are, over the outer row (or over the outer query's own domain). Empty when the subquery
    /// does not depend on the outer row.
    pub domain: Vec<Column>,
}

/// What a mark asks of a subquery's rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// Whether there is one. Never NULL.
    Exists,
    /// Whether the condition is true of one, as `in` and `any` have it: true when it is for some row, else NULL when it
    /// is NULL for some row, else false. The condition is over the outer row's columns, then the subquery's.
    Any(Condition),
}

/// A whole `select`, ready to be planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// The rows: the named columns, then those that only order the result.
    pub rel: Arc<Rel>,
    /// The names of the columns that show, which are the first ones.
    pub names: Vec<String>,
    /// The order of the result by columns; the whole row breaks ties.
    pub order: Vec<(usize, Order)>,
    /// The query's own domain: constants and parameters of equality conditions, lifted out, so that queries which differ
    /// in them alone share a pipeline. None is NULL.
    pub slots: Vec<(ColumnType, Value)>,
}

impl Rel {
    /// What it reads, subqueries included.
    #[must_use]
    pub fn inputs(&self) -> Vec<&Arc<Self>> {
        match self {
            Self::Table { .. } | Self::Values { .. } | Self::Working { .. } => Vec::new(),
            Self::Filter { input, .. }
            | Self::Project { input, .. }
            | Self::Aggregate { input, .. }
            | Self::Distinct { input }
            | Self::Top { input, .. }
            | Self::Window { input, .. } => vec![input],
            Self::Mark { input, subquery, .. }
            | Self::Lookup { input, subquery }
            | Self::Lateral { input, subquery, .. } => vec![input, &subquery.rel],
            Self::Concat { inputs } => inputs.iter().collect(),
            Self::Join { left, right, .. } | Self::SetOperation { left, right, .. } => vec![left, right],
            Self::Recursive { base, step, .. } => vec![base, step],
        }
    }

    /// The types of the columns.
    #[must_use]
    pub fn types(&self) -> Vec<ColumnType> {
        let with = |input: &Arc<Self>, more: &mut dyn Iterator<Item = ColumnType>| -> Vec<ColumnType> {
            input.types().into_iter().chain(more).collect()
        };
        match self {
            Self::Table { types, .. } | Self::Values { types, .. } | Self::Working { types, .. } => {
                types.clone()
            }
            Self::Recursive { base, .. } => base.types(),
            Self::Filter { input, .. } | Self::Distinct { input } | Self::Top { input, .. } => input.types(),
            Self::Project { columns, .. } => columns.iter().map(|column| column.ty).collect(),
            Self::Join { left, right, .. } => with(left, &mut right.types().into_iter()),
            Self::Mark { input, .. } => with(input, &mut std::iter::once(ColumnType::Bool)),
            Self::Lookup { input, subquery } | Self::Lateral { input, subquery, .. } => {
                with(input, &mut subquery.rel.types().into_iter())
            }
            Self::Aggregate { keys, aggregates, .. } => {
                keys.iter().map(|key| key.ty).chain(aggregates.iter().map(|aggregate| aggregate.ty)).collect()
            }
            Self::Concat { inputs } => inputs.first().map_or_else(Vec::new, |input| input.types()),
            Self::SetOperation { left, .. } => left.types(),
            Self::Window { input, functions, .. } => {
                with(input, &mut functions.iter().map(|function| function.ty))
            }
        }
    }
}
