//! Plans: which operators maintain a query's rows, over which others, by which indexes. Made once per shape; what the
//! operators hold while the query lives is in [`crate::dataflow`].

pub(crate) mod estimate;
mod join;
mod planner;
#[cfg(test)]
mod tests;
pub mod unit;

pub use planner::plan;

use crate::{
    algebra::{Aggregate, SetKind, WindowFunction},
    expr::{Condition, Scalar},
    query::shape::Access,
    store::{IndexSpec, TableId},
};
use std::{fmt, sync::Arc};
use tidegate_wire::model::Order;

/// The operators of a query. Each reads operators before it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The operators.
    pub nodes: Arc<[Node]>,
    /// How many slots there are; the last operator's rows have their values in front.
    pub slots: usize,
    /// The columns of the last operator's rows that make a result row, in order.
    pub result: Vec<usize>,
    /// How result rows are told apart.
    pub identity: Identity,
}

/// How result rows are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// By columns of the result row.
    Key(Vec<usize>),
    /// There is at most one row; a constant column is its key.
    Single,
    /// Equal rows are numbered in a further column.
    Numbered,
}

/// An operator, with whether its rows depend on the query's slots.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it does.
    pub operator: Operator,
    /// Whether its rows depend on the query's slots; if not, it holds the same whatever is bound.
    pub depends: bool,
    /// Whether it is part of a recursion's step, which runs it.
    pub is_looped: bool,
}

/// What an operator does. Inputs are numbers of operators.
#[derive(Clone, Debug)]
pub enum Operator {
    /// The bindings' slot values.
    Parameters,
    /// In the step of a recursion, the rows found so far.
    Working {
        /// How many columns they have.
        width: usize,
        /// Whether they depend on the query's slots.
        depends: bool,
    },
    /// Rows found from rows found before; see [`Recursive`].
    Recursive(Recursive),
    /// Constant rows.
    Values(Vec<Vec<Scalar>>),
    /// Rows of one input, or of several joined; see [`Join`].
    Join(Join),
    /// The left rows with a mark; see [`Mark`].
    Mark(Box<Mark>),
    /// The rows, of which at most one may have the same first columns.
    Single {
        /// The rows.
        input: usize,
        /// How many columns.
        keys: usize,
    },
    /// One row per group. Keys and arguments are columns of the input.
    Aggregate {
        /// The rows.
        input: usize,
        /// How many of the first columns make the group.
        keys: usize,
        /// What is computed; the scalars in it are over the input's rows.
        aggregates: Vec<Aggregate>,
    },
    /// The rows of all inputs.
    Concat(Vec<usize>),
    /// `except`, `intersect`.
    SetOperation {
        /// Which.
        kind: SetKind,
        /// Whether duplicates count.
        all: bool,
        /// The left rows.
        left: usize,
        /// The right rows.
        right: usize,
    },
    /// Some rows of each partition.
    Top {
        /// The rows.
        input: usize,
        /// What makes a partition.
        partition: Vec<Scalar>,
        /// The order.
        order: Vec<(Scalar, Order)>,
        /// Rows passed over.
        offset: u64,
        /// Most rows.
        limit: Option<u64>,
    },
    /// The rows with a column more per function.
    Window {
        /// The rows.
        input: usize,
        /// What makes a partition.
        partition: Vec<Scalar>,
        /// The order.
        order: Vec<(Scalar, Order)>,
        /// The functions.
        functions: Vec<WindowFunction>,
    },
}

/// A recursion: the rows of one operator, and what a step yields of the rows found so far, until that is nothing new.
#[derive(Clone, Debug)]
pub struct Recursive {
    /// The operator whose rows are there from the start.
    pub base: usize,
    /// The step's last operator.
    pub step: usize,
    /// The step's operators that depend on the rows found so far, in order; the first is [`Operator::Working`].
    pub looped: Vec<usize>,
    /// Whether a row counts as often as it is found; else once.
    pub all: bool,
}

/// An inner join of any number of inputs, with the filters and projections around it. It keeps nothing of its own for
/// inputs that are tables: their changes are completed by look-ups in the other inputs, one path for each input.
#[derive(Clone, Debug)]
pub struct Join {
    /// The inputs. The join's conditions and columns number their columns one after the other.
    pub inputs: Vec<Input>,
    /// Per input, how a changed row of it is completed.
    pub paths: Vec<Path>,
}

/// One input of a join or mark.
#[derive(Clone, Debug)]
pub struct Input {
    /// Where its rows come from.
    pub source: Source,
    /// What they must satisfy.
    pub filter: Condition,
    /// The share of them that does, about.
    pub share: Estimate,
    /// How many columns they have.
    pub width: usize,
    /// What they are looked up by, where the source is an operator: one arrangement for each.
    pub arrangements: Vec<Vec<Scalar>>,
}

/// Where rows come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A table.
    Table {
        /// The table.
        table: TableId,
        /// The columns that matter: a change in which none of them differs is nothing.
        used: Vec<usize>,
    },
    /// An operator.
    Node(usize),
}

/// A number that says how fast something is likely to be, not what it computes: it does not show, so that parts of plans
/// are the same whatever was estimated.
#[derive(Clone, Copy)]
pub struct Estimate(pub f64);

impl fmt::Debug for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}

/// How a changed row of one input is completed by those of the others.
#[derive(Clone, Debug)]
pub struct Path {
    /// The look-ups in order; each puts the row found beside those so far.
    pub steps: Vec<Step>,
    /// The join's columns over all rows, side by side in the order in which they were found ([`crate::expr::beside()`]).
    pub columns: Vec<Scalar>,
}

/// One look-up.
#[derive(Clone, Debug)]
pub struct Step {
    /// The input that is looked up.
    pub input: usize,
    /// By which values of the rows so far.
    pub by: Lookup,
    /// What the rows so far must satisfy with the one found.
    pub condition: Condition,
    /// How many rows a look-up finds that satisfy it all, about.
    pub found: Estimate,
}

/// What rows are looked up by.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// The values, over the rows that ask.
    pub keys: Vec<Scalar>,
    /// Per value, whether NULL finds NULL.
    pub null_agrees: Vec<bool>,
    /// How.
    pub access: LookupAccess,
}

impl Lookup {
    /// The columns of the table that the values are compared with, given its primary key.
    pub(crate) fn columns(&self, primary_key: &[usize]) -> Vec<usize> {
        let known = self.keys.len();
        match &self.access {
            LookupAccess::Table(Access::Index(spec)) => {
                spec.columns[..known].iter().map(|(column, _)| *column).collect()
            }
            _ => primary_key[..known].to_vec(),
        }
    }
}

/// How rows are looked up.
#[derive(Clone, Debug)]
pub enum LookupAccess {
    /// In a table.
    Table(Access),
    /// In an input's arrangement of a number.
    Arrangement(usize),
}

/// The left rows with one column more: whether a right row agrees and satisfies the condition.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The rows that are marked.
    pub left: Input,
    /// The rows that are looked for.
    pub right: Input,
    /// How the right rows of a left one are found.
    pub find_right: Lookup,
    /// How the left rows of a right one are found.
    pub find_left: Lookup,
    /// What pairs must satisfy, the right row beside the left one.
    pub condition: Condition,
    /// Whether the mark may be false where it would be NULL.
    pub is_two_valued: bool,
}

impl Plan {
    /// The tables that are read.
    #[must_use]
    pub fn tables(&self) -> Vec<TableId> {
        let mut tables: Vec<TableId> = self
            .inputs()
            .filter_map(|input| match input.source {
                Source::Table { table, .. } => Some(table),
                Source::Node(_) => None,
            })
            .collect();
        tables.sort_unstable();
        tables.dedup();
        tables
    }

    /// The indexes that are read.
    #[must_use]
    pub fn indexes(&self) -> Vec<Arc<IndexSpec>> {
        let mut specs: Vec<Arc<IndexSpec>> = Vec::new();
        let mut add = |lookup: &Lookup| {
            if let LookupAccess::Table(Access::Index(spec)) = &lookup.access
                && !specs.contains(spec)
            {
                specs.push(Arc::clone(spec));
            }
        };
        for node in self.nodes.iter() {
            match &node.operator {
                Operator::Join(join) => {
                    join.paths.iter().flat_map(|path| &path.steps).for_each(|step| add(&step.by));
                }
                Operator::Mark(mark) => [&mark.find_left, &mark.find_right].into_iter().for_each(&mut add),
                _ => {}
            }
        }
        specs
    }

    fn inputs(&self) -> impl Iterator<Item = &Input> {
        self.nodes.iter().flat_map(|node| match &node.operator {
            Operator::Join(join) => join.inputs.iter().collect::<Vec<_>>(),
            Operator::Mark(mark) => vec![&mark.left, &mark.right],
            _ => Vec::new(),
        })
    }
}
