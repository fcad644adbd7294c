//! Relational algebra without subqueries: what is planned. Made by [`super::unnest()`].

use super::{Aggregate, Column, JoinKind, SetKind, WindowFunction};
use crate::{
    expr::{Condition, Scalar},
    store::TableId,
};
use std::sync::Arc;
use tidegate_wire::model::{ColumnType, Order};

/// See the module's description. Columns and rows are as in [`super::Rel`]; nothing refers to a domain.
#[derive(Clone, Debug, PartialEq)]
pub enum Flat {
    /// The slot values of each binding, one row for each.
    Parameters {
        /// The slots' types.
        types: Vec<ColumnType>,
    },
    /// The rows of a table.
    Table {
        /// The table.
        table: TableId,
        /// Its columns' types.
        types: Vec<ColumnType>,
        /// Its primary key's columns.
        key: Vec<usize>,
    },
    /// Constant rows.
    Values {
        /// The columns' types.
        types: Vec<ColumnType>,
        /// The rows.
        rows: Vec<Vec<Scalar>>,
    },
    /// The rows for which a condition is true.
    Filter {
        /// The rows.
        input: Arc<Flat>,
        /// The condition.
        condition: Condition,
    },
    /// Computed columns.
    Project {
        /// The rows.
        input: Arc<Flat>,
        /// The columns.
        columns: Vec<Column>,
    },
    /// Pairs of rows.
    Join {
        /// Which rows without a partner stay.
        kind: JoinKind,
        /// The left side.
        left: Arc<Flat>,
        /// The right side.
        right: Arc<Flat>,
        /// The condition over both.
        condition: Condition,
    },
    /// The left rows with one boolean column more.
    Mark {
        /// The rows that are marked.
        left: Arc<Flat>,
        /// The rows that are looked for.
        right: Arc<Flat>,
        /// Values that must agree.
        on: Vec<On>,
        /// The condition over both, of which the mark is the disjunction over the right rows that agree.
        condition: Condition,
        /// Whether the mark may be false where it would be NULL.
        is_two_valued: bool,
    },
    /// The rows, of which at most one may have the same first `keys` columns.
    Single {
        /// The rows.
        input: Arc<Flat>,
        /// How many columns.
        keys: usize,
    },
    /// One row per group; without keys, one row whatever there is.
    Aggregate {
        /// The rows.
        input: Arc<Flat>,
        /// What makes a group.
        keys: Vec<Column>,
        /// What is computed of each.
        aggregates: Vec<Aggregate>,
    },
    /// The rows of all inputs.
    Concat {
        /// The inputs.
        inputs: Vec<Arc<Flat>>,
    },
    /// `except` and `intersect`.
    SetOperation {
        /// Which.
        kind: SetKind,
        /// Whether duplicates count.
        all: bool,
        /// The left side.
        left: Arc<Flat>,
        /// The right side.
        right: Arc<Flat>,
    },
    /// Some rows of each partition.
    Top {
        /// The rows.
        input: Arc<Flat>,
        /// What makes a partition.
        partition: Vec<Scalar>,
        /// The order.
        order: Vec<(Scalar, Order)>,
        /// Rows passed over.
        offset: u64,
        /// Most rows.
        limit: Option<u64>,
    },
    /// The rows with one column more per function.
    Window {
        /// The rows.
        input: Arc<Flat>,
        /// What makes a partition.
        partition: Vec<Scalar>,
        /// The order inside it.
        order: Vec<(Scalar, Order)>,
        /// The functions.
        functions: Vec<WindowFunction>,
    },
    /// The rows of `base`, and what `step` yields of the rows found so far, until that is nothing new.
    Recursive {
        /// The rows that are there from the start.
        base: Arc<Flat>,
        /// What is found from rows found before.
        step: Arc<Flat>,
        /// The [`Flat::Working`] by which the step reads them.
        working: Arc<Flat>,
        /// Whether a row counts as often as it is found.
        all: bool,
    },
    /// In a step, the rows found so far. Told apart by its address.
    Working {
        /// The columns' types.
        types: Vec<ColumnType>,
        /// Whether the rows depend on the query's slots.
        depends: bool,
    },
}

/// Two values that must agree for a mark.
#[derive(Clone, Debug, PartialEq)]
pub struct On {
    /// Over the left row.
    pub left: Column,
    /// Over the right row.
    pub right: Column,
    /// Whether NULL agrees with NULL.
    pub null_agrees: bool,
}

impl Flat {
    /// The types of the columns.
    #[must_use]
    pub fn types(&self) -> Vec<ColumnType> {
        match self {
            Self::Parameters { types }
            | Self::Table { types, .. }
            | Self::Values { types, .. }
            | Self::Working { types, .. } => types.clone(),
            Self::Recursive { base, .. } => base.types(),
            Self::Filter { input, .. } | Self::Single { input, .. } | Self::Top { input, .. } => {
                input.types()
            }
            Self::Project { columns, .. } => columns.iter().map(|column| column.ty).collect(),
            Self::Join { left, right, .. } => [left.types(), right.types()].concat(),
            Self::Mark { left, .. } => [left.types(), vec![ColumnType::Bool]].concat(),
            Self::Aggregate { keys, aggregates, .. } => {
                keys.iter().map(|key| key.ty).chain(aggregates.iter().map(|aggregate| aggregate.ty)).collect()
            }
            Self::Concat { inputs } => inputs.first().map_or_else(Vec::new, |input| input.types()),
            Self::SetOperation { left, .. } => left.types(),
            Self::Window { input, functions, .. } => {
                input.types().into_iter().chain(functions.iter().map(|function| function.ty)).collect()
            }
        }
    }

    /// Columns that stand for themselves.
    #[must_use]
    pub(crate) fn identity(types: &[ColumnType]) -> Vec<Column> {
        types.iter().enumerate().map(|(index, &ty)| Column { scalar: Scalar::Column(index), ty }).collect()
    }
}
