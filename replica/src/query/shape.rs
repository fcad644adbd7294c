//! A shape: a query with names resolved, types checked and its constants in equality conditions lifted out as
//! slots. All queries of one shape share one pipeline; a binding is one tuple of slot values.

use super::Output;
use crate::{
    algebra::Aggregate,
    expr::Condition,
    plan::{Plan, unit::units},
    store::{IndexSpec, TableId},
};
use std::sync::Arc;
use tidegate_wire::model::{ColumnType, Order, Value};

/// See the module's description.
#[derive(Debug)]
pub struct Shape {
    /// Canonical text; equal for queries that can share a pipeline, on every server.
    pub key: String,
    /// The types of the slots' values.
    pub slots: Vec<ColumnType>,
    /// What of the rows travels.
    pub output: Arc<Output>,
    /// How the rows are computed.
    pub body: Body,
}

/// How a shape's rows are computed.
#[derive(Debug)]
pub enum Body {
    /// A nested query's places in preorder; a child's number is above its parent's.
    Nested(Vec<Place>),
    /// A select's operators.
    Flat(Arc<Plan>),
}

/// One place: under each correlation key, the rows of a table that pass a condition, ordered and limited. The
/// root's correlation is with the binding's slots alone.
#[derive(Clone, Debug)]
pub struct Place {
    /// The parent's number; `None` for the root.
    pub parent: Option<usize>,
    /// The children's numbers.
    pub children: Vec<usize>,
    /// The table.
    pub table: TableId,
    /// The columns whose values make up the correlation key, each with where a value to look up comes from.
    pub group: Vec<GroupColumn>,
    /// What rows must satisfy beyond their key.
    pub condition: Filter,
    /// The whole order; ends with the primary key.
    pub order: Vec<(usize, Order)>,
    /// Most rows per key.
    pub limit: Option<usize>,
    /// How the rows under a key are read.
    pub access: Access,
    /// The columns that matter: a change in which none of them differs is nothing to this place.
    pub used: Vec<usize>,
    /// What is shown of the rows in their stead.
    pub total: Option<TotalOf>,
}

/// A value that stands for a place's rows under a key. It travels as a row of its own: the correlation columns, which are
/// its key, then the value. There is none where the value is what the layout says to show without one.
#[derive(Clone, Debug)]
pub struct TotalOf {
    /// What is computed of the rows.
    pub aggregate: Aggregate,
    /// The place's columns that correlate with the parent's, in the order of the query's pairs.
    pub on: Vec<usize>,
}

impl Place {
    /// Whether a child's key depends on the binding, not only on the parent row.
    #[must_use]
    pub fn reads_slots(&self) -> bool {
        self.group.iter().any(|column| matches!(column.source, Source::Slot(_)))
    }
}

/// One column of a correlation key.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupColumn {
    /// The place's own column.
    pub column: usize,
    /// Its type, to which looked-up values are converted.
    pub ty: ColumnType,
    /// Where the value to look up comes from.
    pub source: Source,
}

/// Where a correlation value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A column of the parent place's row.
    Parent(usize),
    /// A slot of the binding.
    Slot(usize),
}

/// What a row must satisfy: a condition, of which the EXISTS parts are queries of their own, and a start.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// The condition.
    pub condition: Condition,
    /// The EXISTS queries that the condition refers to by number.
    pub exists: Vec<Exists>,
    /// The cursor rows must lie beyond.
    pub start: Option<Start>,
}

impl Filter {
    /// Whether every row passes.
    #[must_use]
    pub fn is_trivial(&self) -> bool {
        self.condition == Condition::Constant(Some(true)) && self.start.is_none()
    }
}

/// An EXISTS condition: whether the table has a row under the outer row's key that passes.
#[derive(Clone, Debug, PartialEq)]
pub struct Exists {
    /// The inner table.
    pub table: TableId,
    /// Pairs of outer and inner column that must be equal.
    pub on: Vec<Correlation>,
    /// Inner columns that must equal a constant.
    pub constants: Vec<(usize, Value)>,
    /// What inner rows must satisfy beyond that.
    pub filter: Filter,
    /// How inner rows are read by `on` and `constants`.
    pub inner: Access,
    /// How outer rows are read by the outer columns of `on`, when the answer for a key flips.
    pub outer: Access,
    /// The inner columns that matter.
    pub used: Vec<usize>,
}

/// A pair of columns that must be equal, by the one comparator where their types differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Correlation {
    /// The outer (parent) column.
    pub outer: usize,
    /// Its type.
    pub outer_ty: ColumnType,
    /// The inner (child) column.
    pub inner: usize,
    /// Its type.
    pub inner_ty: ColumnType,
}

/// A cursor: rows whose encoded order columns are above `key` pass, or equal to it when `inclusive`.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The order columns that the cursor has values for.
    pub columns: Vec<(usize, Order)>,
    /// Their values.
    pub values: Vec<Value>,
    /// Their encoded values.
    pub key: Vec<u8>,
    /// Whether equal rows pass.
    pub inclusive: bool,
}

/// How rows under a key are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// The key's columns begin the primary key.
    Primary,
    /// By a secondary index that begins with the key's columns.
    Index(Arc<IndexSpec>),
}

impl Shape {
    /// A nested query's places; none for a select.
    #[must_use]
    pub fn places(&self) -> &[Place] {
        match &self.body {
            Body::Nested(places) => places,
            Body::Flat(_) => &[],
        }
    }

    /// What its operators compute that other queries may compute too.
    #[must_use]
    pub fn units(&self) -> Vec<Arc<str>> {
        match &self.body {
            Body::Nested(_) => Vec::new(),
            Body::Flat(plan) => units(&plan.nodes).into_iter().map(|unit| unit.key).collect(),
        }
    }

    /// The indexes that the shape reads.
    #[must_use]
    pub fn indexes(&self) -> Vec<Arc<IndexSpec>> {
        fn add(access: &Access, out: &mut Vec<Arc<IndexSpec>>) {
            if let Access::Index(spec) = access
                && !out.contains(spec)
            {
                out.push(Arc::clone(spec));
            }
        }
        fn add_filter(filter: &Filter, out: &mut Vec<Arc<IndexSpec>>) {
            for exists in &filter.exists {
                add(&exists.inner, out);
                add(&exists.outer, out);
                add_filter(&exists.filter, out);
            }
        }
        if let Body::Flat(plan) = &self.body {
            return plan.indexes();
        }
        let mut out = Vec::new();
        for place in self.places() {
            add(&place.access, &mut out);
            add_filter(&place.condition, &mut out);
        }
        out
    }

    /// The tables that the shape reads, EXISTS included.
    #[must_use]
    pub fn tables(&self) -> Vec<TableId> {
        fn add_filter(filter: &Filter, out: &mut Vec<TableId>) {
            for exists in &filter.exists {
                out.push(exists.table);
                add_filter(&exists.filter, out);
            }
        }
        if let Body::Flat(plan) = &self.body {
            return plan.tables();
        }
        let mut out = Vec::new();
        for place in self.places() {
            out.push(place.table);
            add_filter(&place.condition, &mut out);
        }
        out.sort_unstable();
        out.dedup();
        out
    }
}
