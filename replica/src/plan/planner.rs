//! From algebra to operators.

use super::{
    Estimate, Identity, Input, Join, Lookup, LookupAccess, Mark, Node, Operator, Plan, Recursive, Source,
    join::{Equality, Pieces, equality, join, table_access},
};
use crate::{
    algebra::{
        Aggregate, Column, JoinKind, Select,
        flat::{Flat, On},
        key::{Keyed, keyed},
        positions::{Positions, all, conjuncts},
        unnest,
    },
    expr::{Condition, Scalar, beside},
    store::Snapshot,
};
use std::{collections::HashMap, sync::Arc};
use tidegate_wire::model::{ColumnType, Value};

/// Plans a select, and gives the types of its result rows.
#[must_use]
pub fn plan(select: &Select, snapshot: &Snapshot) -> (Plan, Vec<ColumnType>) {
    let slots = select.slots.len();
    let width = select.rel.types().len();
    let rel = unnest(select);
    let (rel, key) = match keyed(&rel) {
        Some(Keyed { rel, key }) => (rel, Some(key)),
        None => (rel, None),
    };
    let types = rel.types();
    let mut result: Vec<usize> = (slots..slots + width).collect();
    let identity = match key {
        None => Identity::Numbered,
        Some(key) => {
            let mut own = Vec::new();
            for column in key.into_iter().filter(|column| *column >= slots) {
                let at = result.iter().position(|at| *at == column).unwrap_or_else(|| {
                    result.push(column);
                    result.len() - 1
                });
                own.push(at);
            }
            if own.is_empty() { Identity::Single } else { Identity::Key(own) }
        }
    };
    let mut result_types: Vec<ColumnType> = result.iter().map(|&column| types[column]).collect();
    if !matches!(identity, Identity::Key(_)) {
        result_types.push(ColumnType::Int8);
    }
    let mut planner = Planner { snapshot, nodes: Vec::new(), done: HashMap::new(), kept: Vec::new() };
    let root = planner.node(&rel);
    let mut nodes = planner.nodes;
    // The root is last, also when it was met before as a part of another.
    if root + 1 != nodes.len() {
        let columns = (0..types.len()).map(Scalar::Column).collect();
        let depends = nodes[root].depends;
        let operator = Operator::Join(join(Pieces::of_node(root, types), columns, snapshot));
        nodes.push(Node { operator, depends, is_looped: false });
    }
    (Plan { nodes: nodes.into(), slots, result, identity }, result_types)
}

struct Planner<'s> {
    snapshot: &'s Snapshot,
    nodes: Vec<Node>,
    /// Operators by what they compute, by address.
    done: HashMap<*const Flat, usize>,
    /// What the addresses in `done` belong to.
    kept: Vec<Arc<Flat>>,
}

impl Planner<'_> {
    /// The operator that computes some rows.
    fn node(&mut self, rel: &Arc<Flat>) -> usize {
        if let Some(&node) = self.done.get(&Arc::as_ptr(rel)) {
            return node;
        }
        let operator = self.operator(rel);
        let depends = match &operator {
            Operator::Parameters => true,
            Operator::Working { depends, .. } => *depends,
            operator => operator.inputs().any(|input| self.nodes[input].depends),
        };
        self.nodes.push(Node { operator, depends, is_looped: false });
        let node = self.nodes.len() - 1;
        self.done.insert(Arc::as_ptr(rel), node);
        self.kept.push(Arc::clone(rel));
        node
    }

    fn operator(&mut self, rel: &Arc<Flat>) -> Operator {
        match &**rel {
            Flat::Parameters { .. } => Operator::Parameters,
            Flat::Values { rows, .. } => Operator::Values(rows.clone()),
            Flat::Working { types, depends } => Operator::Working { width: types.len(), depends: *depends },
            Flat::Recursive { base, step, working, all } => self.recursive(base, step, working, *all),
            Flat::Join { kind: JoinKind::Left | JoinKind::Full, .. } => self.outer_join(rel),
            Flat::Table { .. } | Flat::Filter { .. } | Flat::Project { .. } | Flat::Join { .. } => {
                let (mut pieces, columns) = self.pieces(rel);
                // Slot values are few, and each asks once: a table is rather read for them than held arranged.
                let asks = |node: usize| !matches!(self.nodes[node].operator, Operator::Parameters);
                for input in pieces.found_by_computing(asks) {
                    let table = pieces.take_out(input, self.nodes.len());
                    let columns = (0..table.types.len()).map(Scalar::Column).collect();
                    let operator = Operator::Join(join(table, columns, self.snapshot));
                    self.nodes.push(Node { operator, depends: false, is_looped: false });
                }
                let columns = columns.into_iter().map(|column| column.scalar).collect();
                Operator::Join(join(pieces, columns, self.snapshot))
            }
            Flat::Mark { left, right, on, condition, is_two_valued } => {
                Operator::Mark(Box::new(self.mark(left, right, on, condition, *is_two_valued)))
            }
            Flat::Single { input, keys } => Operator::Single { input: self.node(input), keys: *keys },
            Flat::Aggregate { input, keys, aggregates } => self.aggregate(input, keys, aggregates),
            Flat::Concat { inputs } => {
                Operator::Concat(inputs.iter().map(|input| self.node(input)).collect())
            }
            Flat::SetOperation { kind, all, left, right } => Operator::SetOperation {
                kind: *kind,
                all: *all,
                left: self.node(left),
                right: self.node(right),
            },
            Flat::Top { input, partition, order, offset, limit } => Operator::Top {
                input: self.node(input),
                partition: partition.clone(),
                order: order.clone(),
                offset: *offset,
                limit: *limit,
            },
            Flat::Window { input, partition, order, functions } => Operator::Window {
                input: self.node(input),
                partition: partition.clone(),
                order: order.clone(),
                functions: functions.clone(),
            },
        }
    }

    fn recursive(&mut self, base: &Arc<Flat>, step: &Arc<Flat>, working: &Arc<Flat>, all: bool) -> Operator {
        let base = self.node(base);
        let working = self.node(working);
        let step = self.node(step);
        let mut looped = vec![working];
        for at in working + 1..self.nodes.len() {
            if self.nodes[at].operator.inputs().any(|input| looped.contains(&input)) {
                looped.push(at);
            }
        }
        looped.iter().for_each(|&at| self.nodes[at].is_looped = true);
        Operator::Recursive(Recursive { base, step, looped, all })
    }

    /// The inputs, conditions and columns of nested inner joins, filters and projections.
    fn pieces(&mut self, rel: &Arc<Flat>) -> (Pieces, Vec<Column>) {
        match &**rel {
            Flat::Table { table, types, .. } => {
                (Pieces::of_table(*table, types.clone()), Flat::identity(types))
            }
            Flat::Filter { input, condition } => {
                let (mut pieces, columns) = self.pieces(input);
                let condition = condition.map(&mut |at| columns[at].scalar.clone());
                conjuncts(&condition, &mut pieces.conditions);
                (pieces, columns)
            }
            Flat::Project { input, columns } => {
                let (pieces, inner) = self.pieces(input);
                let columns = columns.map(&mut |at| inner[at].scalar.clone());
                (pieces, columns)
            }
            Flat::Join { kind: JoinKind::Inner, left, right, condition } => {
                let (mut pieces, mut columns) = self.pieces(left);
                let (right, right_columns) = self.pieces(right);
                let by = pieces.types.len();
                columns.extend(right_columns.moved(by));
                pieces.append(right);
                let condition = condition.map(&mut |at| columns[at].scalar.clone());
                conjuncts(&condition, &mut pieces.conditions);
                (pieces, columns)
            }
            _ => {
                let types = rel.types();
                let columns = Flat::identity(&types);
                (Pieces::of_node(self.node(rel), types), columns)
            }
        }
    }

    /// An outer join: the pairs, and the rows without a partner padded with NULLs.
    fn outer_join(&mut self, rel: &Arc<Flat>) -> Operator {
        let Flat::Join { kind, left, right, condition } = &**rel else {
            unreachable!("called with a join only");
        };
        let (left_types, right_types) = (left.types(), right.types());
        let pair = Arc::new(Flat::Join {
            kind: JoinKind::Inner,
            left: Arc::clone(left),
            right: Arc::clone(right),
            condition: condition.clone(),
        });
        let mut inputs = vec![self.node(&pair)];
        let null = |ty: ColumnType| Column { scalar: Scalar::Constant(Value::Null), ty };
        let own = Flat::identity(&left_types);
        let padding: Vec<Column> = right_types.iter().copied().map(null).collect();
        let padded = unmatched(left, right, condition.clone(), [own, padding].concat());
        inputs.push(self.node(&padded));
        if *kind == JoinKind::Full {
            let (l, r) = (left_types.len(), right_types.len());
            let swapped = condition.map(&mut |at| Scalar::Column(if at < l { at + r } else { at - l }));
            let padding: Vec<Column> = left_types.iter().copied().map(null).collect();
            let padded = unmatched(right, left, swapped, [padding, Flat::identity(&right_types)].concat());
            inputs.push(self.node(&padded));
        }
        Operator::Concat(inputs)
    }

    fn aggregate(&mut self, input: &Arc<Flat>, keys: &[Column], aggregates: &[Aggregate]) -> Operator {
        // What is aggregated is computed once per row, before; the order's types are of no interest.
        let mut columns = keys.to_vec();
        let mut column = |scalar: &Scalar, ty: ColumnType| {
            let known = columns.iter().position(|column| column.scalar == *scalar);
            Scalar::Column(known.unwrap_or_else(|| {
                columns.push(Column { scalar: scalar.clone(), ty });
                columns.len() - 1
            }))
        };
        let aggregates = aggregates
            .iter()
            .map(|aggregate| Aggregate {
                arguments: aggregate
                    .arguments
                    .iter()
                    .map(|argument| Column { scalar: column(&argument.scalar, argument.ty), ty: argument.ty })
                    .collect(),
                filter: aggregate.filter.as_ref().map(|filter| {
                    Condition::Truth(column(&Scalar::Condition(Box::new(filter.clone())), ColumnType::Bool))
                }),
                order: aggregate
                    .order
                    .iter()
                    .map(|(scalar, order)| (column(scalar, ColumnType::Text), *order))
                    .collect(),
                ..aggregate.clone()
            })
            .collect();
        let input = Arc::new(Flat::Project { input: Arc::clone(input), columns });
        Operator::Aggregate { input: self.node(&input), keys: keys.len(), aggregates }
    }

    fn mark(
        &mut self,
        left: &Arc<Flat>,
        right: &Arc<Flat>,
        on: &[On],
        condition: &Condition,
        is_two_valued: bool,
    ) -> Mark {
        let (left_types, right_types) = (left.types(), right.types());
        let (mut equalities, mut operands) = (Vec::new(), Vec::new());
        for on in on {
            equalities.push(Equality {
                left: on.left.scalar.clone(),
                right: on.right.scalar.clone(),
                null_agrees: on.null_agrees,
            });
        }
        conjuncts(condition, &mut operands);
        let (mut rest, mut right_only) = (Vec::new(), Vec::new());
        let types = [left_types.clone(), right_types.clone()].concat();
        let border = left_types.len();
        for operand in operands {
            let (mut reads_left, mut reads_right) = (false, false);
            operand.read(&mut |at| *(if at < border { &mut reads_left } else { &mut reads_right }) = true);
            let found = equality(&operand, &types, &|at| usize::from(at >= border));
            match found {
                // A comparison that is NULL may not become one that finds nothing, unless that does not matter.
                Some(found) if is_two_valued => equalities.push(Equality {
                    left: found.left,
                    right: found.right.map(&mut |at| Scalar::Column(at - border)),
                    null_agrees: found.null_agrees,
                }),
                _ if is_two_valued && reads_right && !reads_left => {
                    right_only.push(operand.map(&mut |at| Scalar::Column(at - border)));
                }
                _ => rest.push(operand),
            }
        }
        let right = if right_only.is_empty() {
            Arc::clone(right)
        } else {
            Arc::new(Flat::Filter { input: Arc::clone(right), condition: all(right_only) })
        };
        let (left_keys, right_keys): (Vec<_>, Vec<_>) =
            equalities.iter().map(|equality| (equality.left.clone(), equality.right.clone())).unzip();
        let null_agrees: Vec<bool> = equalities.iter().map(|equality| equality.null_agrees).collect();
        let mut right_used = Vec::new();
        right_keys.read(&mut |at| right_used.push(at));
        rest.read(&mut |at| {
            if at >= border {
                right_used.push(at - border);
            }
        });
        let all_left = (0..left_types.len()).collect();
        let (left, find_left) = self.side(left, left_types.len(), left_keys.clone(), all_left);
        let (right, find_right) = self.side(&right, right_types.len(), right_keys.clone(), right_used);
        // An equality that the look-up cannot take, as its column is taken by another, is tested.
        for (number, equality) in equalities.iter().enumerate() {
            if !find_right.0.contains(&number) {
                let right = equality.right.map(&mut |at| Scalar::Column(at + border));
                rest.push(Condition::equal(equality.left.clone(), right, equality.null_agrees));
            }
        }
        let rest = rest.map(&mut |at| Scalar::Column(if at < border { at } else { beside(1, at - border) }));
        // Keys stand in the order in which the other side is read.
        let asked = |keys: &[Scalar], order: &[usize], access: LookupAccess| Lookup {
            keys: order.iter().map(|&key| keys[key].clone()).collect(),
            null_agrees: order.iter().map(|&key| null_agrees[key]).collect(),
            access,
        };
        Mark {
            find_right: asked(&left_keys, &find_right.0, find_right.1),
            find_left: asked(&right_keys, &find_left.0, find_left.1),
            left,
            right,
            condition: all(rest),
            is_two_valued,
        }
    }

    /// One side of a mark, and in which order its keys are looked up, and how.
    fn side(
        &mut self,
        rel: &Arc<Flat>,
        width: usize,
        keys: Vec<Scalar>,
        mut used: Vec<usize>,
    ) -> (Input, (Vec<usize>, LookupAccess)) {
        let columns: Option<Vec<usize>> = keys
            .iter()
            .map(|key| match key {
                Scalar::Column(at) => Some(*at),
                _ => None,
            })
            .collect();
        if let (Flat::Table { .. } | Flat::Filter { .. }, Some(columns)) = (&**rel, columns) {
            let (pieces, shown) = self.pieces(rel);
            let is_whole = shown.iter().enumerate().all(|(at, column)| column.scalar == Scalar::Column(at));
            if let (Some(table), true) = (pieces.only_table(), is_whole) {
                let filter = all(pieces.conditions);
                filter.read(&mut |at| used.push(at));
                used.sort_unstable();
                used.dedup();
                let (order, access) = table_access(table, &columns, self.snapshot);
                let source = Source::Table { table, used };
                let input = Input { source, filter, share: Estimate(1.0), width, arrangements: Vec::new() };
                return (input, (order, LookupAccess::Table(access)));
            }
        }
        let source = Source::Node(self.node(rel));
        let order = (0..keys.len()).collect();
        let filter = Condition::Constant(Some(true));
        let input = Input { source, filter, share: Estimate(1.0), width, arrangements: vec![keys] };
        (input, (order, LookupAccess::Arrangement(0)))
    }
}

/// The rows of one side that have no partner, as other columns.
fn unmatched(side: &Arc<Flat>, other: &Arc<Flat>, condition: Condition, columns: Vec<Column>) -> Arc<Flat> {
    let marked = Arc::new(Flat::Mark {
        left: Arc::clone(side),
        right: Arc::clone(other),
        on: Vec::new(),
        condition,
        is_two_valued: true,
    });
    let mark = Scalar::Column(side.types().len());
    let filtered =
        Flat::Filter { input: marked, condition: Condition::Not(Box::new(Condition::Truth(mark))) };
    Arc::new(Flat::Project { input: Arc::new(filtered), columns })
}

impl Operator {
    /// The operators it reads.
    pub fn inputs(&self) -> impl Iterator<Item = usize> {
        let of = |input: &Input| match input.source {
            Source::Node(node) => Some(node),
            Source::Table { .. } => None,
        };
        let inputs: Vec<usize> = match self {
            Self::Parameters | Self::Values(_) | Self::Working { .. } => Vec::new(),
            Self::Recursive(recursive) => vec![recursive.base, recursive.step],
            Self::Join(Join { inputs, .. }) => inputs.iter().filter_map(of).collect(),
            Self::Mark(mark) => [&mark.left, &mark.right].into_iter().filter_map(of).collect(),
            Self::Single { input, .. }
            | Self::Aggregate { input, .. }
            | Self::Top { input, .. }
            | Self::Window { input, .. } => vec![*input],
            Self::Concat(inputs) => inputs.clone(),
            Self::SetOperation { left, right, .. } => vec![*left, *right],
        };
        inputs.into_iter()
    }
}
