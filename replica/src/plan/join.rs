//! Joins: which conditions are keys, and in which order inputs are looked up.

use super::{Estimate, Input, Join, Lookup, LookupAccess, Path, Source, Step, estimate};
use crate::{
    algebra::positions::{Positions, all, alternatives},
    expr::{Condition, Scalar, beside, typing::Type},
    query::shape::Access,
    store::{IndexSpec, Snapshot, TableId},
};
use std::{cmp::Reverse, sync::Arc};
use tidegate_wire::model::{ColumnType, Order};

/// How many rows an operator is taken to have where all of them are read.
const NODE_ROWS: f64 = 1_000.0;

/// Inner joins, filters and projections taken apart: conditions over the inputs' columns, one after the other.
pub(super) struct Pieces {
    inputs: Vec<Piece>,
    pub(super) conditions: Vec<Condition>,
    /// The columns' types.
    pub(super) types: Vec<ColumnType>,
}

struct Piece {
    source: Origin,
    width: usize,
}

enum Origin {
    Table(TableId),
    Node(usize),
}

impl Pieces {
    pub(super) fn of_table(table: TableId, types: Vec<ColumnType>) -> Self {
        Self::of(Origin::Table(table), types)
    }

    pub(super) fn of_node(node: usize, types: Vec<ColumnType>) -> Self {
        Self::of(Origin::Node(node), types)
    }

    fn of(source: Origin, types: Vec<ColumnType>) -> Self {
        Self { inputs: vec![Piece { source, width: types.len() }], conditions: Vec::new(), types }
    }

    /// Puts others behind, whose columns are renumbered.
    pub(super) fn append(&mut self, other: Self) {
        self.conditions.extend(other.conditions.moved(self.types.len()));
        self.inputs.extend(other.inputs);
        self.types.extend(other.types);
    }

    /// Per column, the number of its input.
    fn input_of(&self) -> Vec<usize> {
        let inputs = self.inputs.iter().enumerate();
        inputs.flat_map(|(number, piece)| std::iter::repeat_n(number, piece.width)).collect()
    }

    /// The tables that others are equal to by what is computed of their rows, and by no column: no index finds those rows.
    /// `asks` says of an operator whether its rows are to find them.
    pub(super) fn found_by_computing(&self, asks: impl Fn(usize) -> bool) -> Vec<usize> {
        let input_of = self.input_of();
        let reads = |scalar: &Scalar| scalar.positions().first().map(|&at| input_of[at]);
        let (mut by_column, mut by_computing) = (Vec::new(), Vec::new());
        for condition in &self.conditions {
            let Some(Equality { left, right, .. }) = equality(condition, &self.types, &|at| input_of[at])
            else {
                continue;
            };
            for (own, other) in [(&left, &right), (&right, &left)] {
                let pair = (reads(own), reads(other));
                let is_column = matches!(own, Scalar::Column(_));
                (if is_column { &mut by_column } else { &mut by_computing }).push(pair);
            }
        }
        by_computing.retain(|pair| !by_column.contains(pair));
        let is_found = |number: &usize| {
            by_computing.iter().any(|(own, other)| {
                *own == Some(*number)
                    && other.is_some_and(|other| match self.inputs[other].source {
                        Origin::Table(_) => true,
                        Origin::Node(node) => asks(node),
                    })
            })
        };
        let is_table = |number: &usize| matches!(self.inputs[*number].source, Origin::Table(_));
        (0..self.inputs.len()).filter(is_table).filter(is_found).collect()
    }

    /// Takes out what an input is, with the conditions on it alone, for an operator that it is then replaced by.
    pub(super) fn take_out(&mut self, number: usize, node: usize) -> Self {
        let input_of = self.input_of();
        let start = input_of.iter().position(|input| *input == number).unwrap_or(0);
        let width = self.inputs[number].width;
        let is_own = |condition: &mut Condition| {
            let positions = condition.positions();
            !positions.is_empty() && positions.iter().all(|&at| input_of[at] == number)
        };
        let conditions: Vec<Condition> = self.conditions.extract_if(.., is_own).collect();
        let source = std::mem::replace(&mut self.inputs[number].source, Origin::Node(node));
        Self {
            inputs: vec![Piece { source, width }],
            conditions: conditions.map(&mut |at| Scalar::Column(at - start)),
            types: self.types[start..start + width].to_vec(),
        }
    }

    /// The table, when that is all.
    pub(super) fn only_table(&self) -> Option<TableId> {
        match self.inputs.as_slice() {
            [Piece { source: Origin::Table(table), .. }] => Some(*table),
            _ => None,
        }
    }
}

/// Two values, of different inputs, that must be equal.
#[derive(Clone)]
pub(super) struct Equality {
    pub(super) left: Scalar,
    pub(super) right: Scalar,
    pub(super) null_agrees: bool,
}

/// The equality that a condition is, when its sides read different inputs and have one type, or can be brought to one
/// without loss; the side that reads the earlier input is its left.
pub(super) fn equality(
    condition: &Condition,
    types: &[ColumnType],
    input_of: &dyn Fn(usize) -> usize,
) -> Option<Equality> {
    let (a, b, null_agrees) = condition.as_equality()?;
    let only = |scalar: &Scalar| -> Option<usize> {
        let mut inputs = Vec::new();
        scalar.read(&mut |at| inputs.push(input_of(at)));
        inputs.dedup();
        if let [input] = inputs.as_slice() { Some(*input) } else { None }
    };
    let (on_a, on_b) = (only(a)?, only(b)?);
    if on_a == on_b {
        return None;
    }
    let numeric =
        |scalar: &Scalar| Scalar::Convert(Type::Column(ColumnType::Numeric), Box::new(scalar.clone()));
    let (a, b) = match (a.column_type(types)?, b.column_type(types)?) {
        (on_a, on_b) if on_a == on_b => (a.clone(), b.clone()),
        (ColumnType::Int8, ColumnType::Numeric) => (numeric(a), b.clone()),
        (ColumnType::Numeric, ColumnType::Int8) => (a.clone(), numeric(b)),
        _ => return None,
    };
    let (left, right) = if on_a < on_b { (a, b) } else { (b, a) };
    Some(Equality { left, right, null_agrees })
}

/// What every alternative of an OR demands of one input alone, whose columns `is_own` knows; `None` when one demands
/// nothing of it.
fn demanded(condition: &Condition, is_own: &dyn Fn(usize) -> bool) -> Option<Condition> {
    let Condition::Or(operands) = condition else { return None };
    let of_input = |mut demands: Vec<Condition>| {
        demands.retain(|demand| {
            let (mut reads, mut reads_others) = (false, false);
            demand.read(&mut |at| *(if is_own(at) { &mut reads } else { &mut reads_others }) = true);
            reads && !reads_others
        });
        (!demands.is_empty()).then(|| all(demands))
    };
    let demands: Option<Vec<Condition>> = alternatives(operands).into_iter().map(of_input).collect();
    demands.map(Condition::Or)
}

/// In which order the columns of a table are looked up by, as numbers of `columns`, and how: by the primary key where
/// they begin it, else by an index.
pub(super) fn table_access(table: TableId, columns: &[usize], snapshot: &Snapshot) -> (Vec<usize>, Access) {
    let key = snapshot.table(table).map_or(&[][..], |relation| &relation.schema().primary_key);
    let mut distinct: Vec<usize> = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        if !distinct.iter().any(|&known| columns[known] == *column) {
            distinct.push(at);
        }
    }
    let begins_key = distinct.len() <= key.len()
        && key[..distinct.len()].iter().all(|part| distinct.iter().any(|&at| columns[at] == *part));
    if begins_key {
        distinct.sort_unstable_by_key(|&at| key.iter().position(|part| *part == columns[at]));
        return (distinct, Access::Primary);
    }
    let columns = distinct.iter().map(|&at| (columns[at], Order::ASC)).collect();
    (distinct, Access::Index(Arc::new(IndexSpec { table, columns })))
}

/// A join of such inputs with such columns.
pub(super) fn join(pieces: Pieces, columns: Vec<Scalar>, snapshot: &Snapshot) -> Join {
    Joiner::new(pieces, columns, snapshot).join()
}

struct Joiner<'s> {
    snapshot: &'s Snapshot,
    inputs: Vec<Input>,
    /// Where each input's columns begin.
    starts: Vec<usize>,
    /// The input of each column.
    input_of: Vec<usize>,
    equalities: Vec<Equality>,
    /// Conditions over several inputs that are not equalities.
    rest: Vec<Condition>,
    columns: Vec<Scalar>,
}

impl<'s> Joiner<'s> {
    fn new(pieces: Pieces, columns: Vec<Scalar>, snapshot: &'s Snapshot) -> Self {
        let input_of = pieces.input_of();
        let mut starts = vec![0];
        starts.extend(pieces.inputs.iter().scan(0, |end, piece| {
            *end += piece.width;
            Some(*end)
        }));
        let mut filters: Vec<Vec<Condition>> = pieces.inputs.iter().map(|_| Vec::new()).collect();
        let (mut equalities, mut rest) = (Vec::new(), Vec::new());
        for condition in &pieces.conditions {
            let mut inputs = Vec::new();
            condition.read(&mut |at| inputs.push(input_of[at]));
            inputs.sort_unstable();
            inputs.dedup();
            match inputs.as_slice() {
                [] => filters[0].push(condition.clone()),
                [input] => {
                    let start = starts[*input];
                    filters[*input].push(condition.map(&mut |at| Scalar::Column(at - start)));
                }
                _ => match equality(condition, &pieces.types, &|at| input_of[at]) {
                    Some(equality) => equalities.push(equality),
                    None => {
                        for &input in &inputs {
                            let is_own = |at: usize| input_of[at] == input;
                            if let Some(demanded) = demanded(condition, &is_own) {
                                let start = starts[input];
                                filters[input].push(demanded.map(&mut |at| Scalar::Column(at - start)));
                            }
                        }
                        rest.push(condition.clone());
                    }
                },
            }
        }
        // What of each input is read, by which a change that touches none of it is told to be nothing.
        let mut used: Vec<Vec<usize>> = pieces.inputs.iter().map(|_| Vec::new()).collect();
        let mut note = |at: usize| used[input_of[at]].push(at - starts[input_of[at]]);
        columns.read(&mut note);
        pieces.conditions.read(&mut note);
        let inputs = pieces
            .inputs
            .into_iter()
            .zip(filters)
            .zip(used)
            .map(|((piece, filters), mut used)| {
                used.sort_unstable();
                used.dedup();
                let source = match piece.source {
                    Origin::Table(table) => Source::Table { table, used },
                    Origin::Node(node) => Source::Node(node),
                };
                let filter = all(filters);
                let share = match &source {
                    Source::Table { table, .. } => {
                        snapshot.table(*table).map_or(1.0, |relation| estimate::share(&filter, relation))
                    }
                    Source::Node(_) => 1.0,
                };
                Input { source, filter, share: Estimate(share), width: piece.width, arrangements: Vec::new() }
            })
            .collect();
        Self { snapshot, inputs, starts, input_of, equalities, rest, columns }
    }

    fn join(mut self) -> Join {
        let paths = (0..self.inputs.len()).map(|start| self.path(start)).collect();
        Join { inputs: self.inputs, paths }
    }

    fn path(&mut self, start: usize) -> Path {
        // Where each column is in the rows so far.
        let mut at: Vec<Option<usize>> = vec![None; self.input_of.len()];
        let mut visited = vec![false; self.inputs.len()];
        let mut held = vec![false; self.rest.len()];
        let mut met = vec![false; self.equalities.len()];
        let (mut steps, mut seen) = (Vec::new(), 0);
        let mut next = start;
        loop {
            let (from, own) = (self.starts[next], self.inputs[next].width);
            let found = self.found(next, &visited);
            let lookup = (next != start).then(|| self.lookup(next, &at, &mut met));
            for column in 0..own {
                at[from + column] = Some(beside(seen, column));
            }
            visited[next] = true;
            seen += 1;
            if let Some(by) = lookup {
                let condition = self.now_known(&at, &visited, &mut held, &mut met);
                steps.push(Step { input: next, by, condition, found: Estimate(found) });
            }
            match self.nearest(&visited) {
                Some(input) => next = input,
                None => break,
            }
        }
        let place = |column: usize| Scalar::Column(at[column].expect("every input is visited"));
        Path { steps, columns: self.columns.map(&mut { place }) }
    }

    /// The input that is best looked up next: the one of which the fewest rows are found, then the one with the most
    /// equalities, then the smallest.
    fn nearest(&self, visited: &[bool]) -> Option<usize> {
        let unvisited: Vec<usize> = (0..self.inputs.len()).filter(|input| !visited[*input]).collect();
        if let [only] = unvisited[..] {
            return Some(only);
        }
        let rank = |input: usize| {
            let equalities = self.known_columns(input, visited).len();
            (self.found(input, visited), Reverse(equalities), self.size(input))
        };
        unvisited
            .into_iter()
            .map(|input| (rank(input), input))
            .min_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2))))
            .map(|(_, input)| input)
    }

    /// How many rows of an input a look-up from visited ones finds that pass its filter, about.
    fn found(&self, input: usize, visited: &[bool]) -> f64 {
        let columns = self.known_columns(input, visited);
        match &self.inputs[input].source {
            Source::Table { table, .. } => self.snapshot.table(*table).map_or(0.0, |relation| {
                let columns: Vec<usize> = columns.into_iter().flatten().collect();
                estimate::found(relation, &columns) * self.inputs[input].share.0
            }),
            // Nothing is known of how many there are.
            Source::Node(_) if columns.is_empty() => NODE_ROWS,
            Source::Node(_) => 1.0,
        }
    }

    /// The columns of an input that equalities with visited ones give; `None` for other scalars of an operator's rows.
    fn known_columns(&self, input: usize, visited: &[bool]) -> Vec<Option<usize>> {
        let sides = self.equalities.iter().flat_map(|it| [(&it.left, &it.right), (&it.right, &it.left)]);
        sides
            .filter(|(own, other)| {
                self.reads(own) == Some(input) && self.reads(other).is_some_and(|it| visited[it])
            })
            .filter_map(|(own, _)| match own {
                Scalar::Column(at) => Some(Some(at - self.starts[input])),
                _ => self.is_node(input).then_some(None),
            })
            .collect()
    }

    fn is_node(&self, input: usize) -> bool {
        matches!(self.inputs[input].source, Source::Node(_))
    }

    fn size(&self, input: usize) -> usize {
        match &self.inputs[input].source {
            Source::Table { table, .. } => {
                self.snapshot.table(*table).map_or(0, |relation| relation.rows().len())
            }
            // Nothing is known of it; mostly it is smaller than what it is made of.
            Source::Node(_) => 1,
        }
    }

    /// The input that a scalar reads.
    fn reads(&self, scalar: &Scalar) -> Option<usize> {
        let mut input = None;
        scalar.read(&mut |at| input = Some(self.input_of[at]));
        input
    }

    /// How an input's rows are looked up from what is known.
    fn lookup(&mut self, input: usize, at: &[Option<usize>], met: &mut [bool]) -> Lookup {
        let start = self.starts[input];
        let is_node = self.is_node(input);
        let (mut own, mut keys, mut null_agrees, mut numbers) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (number, equality) in self.equalities.iter().enumerate() {
            for (side, other) in [(&equality.left, &equality.right), (&equality.right, &equality.left)] {
                let is_known = self.reads(other).is_some_and(|input| at[self.starts[input]].is_some());
                let can_be_key = is_node || matches!(side, Scalar::Column(_));
                if self.reads(side) == Some(input) && is_known && can_be_key {
                    own.push(side.map(&mut |column| Scalar::Column(column - start)));
                    keys.push(other.map(&mut |column| Scalar::Column(at[column].unwrap_or(0))));
                    null_agrees.push(equality.null_agrees);
                    numbers.push(number);
                }
            }
        }
        let (order, access) = match &self.inputs[input].source {
            Source::Table { table, .. } => {
                let columns: Vec<usize> = own
                    .iter()
                    .map(|key| match key {
                        Scalar::Column(column) => *column,
                        _ => unreachable!("a table is looked up by its columns"),
                    })
                    .collect();
                let (order, access) = table_access(*table, &columns, self.snapshot);
                (order, LookupAccess::Table(access))
            }
            Source::Node(_) => {
                let arrangements = &mut self.inputs[input].arrangements;
                let number = arrangements.iter().position(|keys| *keys == own).unwrap_or_else(|| {
                    arrangements.push(own.clone());
                    arrangements.len() - 1
                });
                ((0..own.len()).collect(), LookupAccess::Arrangement(number))
            }
        };
        for &key in &order {
            met[numbers[key]] = true;
        }
        Lookup {
            keys: order.iter().map(|&key| keys[key].clone()).collect(),
            null_agrees: order.iter().map(|&key| null_agrees[key]).collect(),
            access,
        }
    }

    /// The conditions that can be tested for the first time.
    fn now_known(
        &self,
        at: &[Option<usize>],
        visited: &[bool],
        held: &mut [bool],
        met: &mut [bool],
    ) -> Condition {
        let place = |column: usize| Scalar::Column(at[column].unwrap_or(0));
        let mut conditions = Vec::new();
        for (condition, held) in self.rest.iter().zip(held) {
            let mut is_known = true;
            condition.read(&mut |column| is_known &= visited[self.input_of[column]]);
            if is_known && !std::mem::replace(held, true) {
                conditions.push(condition.map(&mut { place }));
            }
        }
        for (equality, met) in self.equalities.iter().zip(met) {
            let known = |scalar: &Scalar| self.reads(scalar).is_some_and(|input| visited[input]);
            if known(&equality.left) && known(&equality.right) && !std::mem::replace(met, true) {
                let (left, right) = (equality.left.map(&mut { place }), equality.right.map(&mut { place }));
                conditions.push(Condition::equal(left, right, equality.null_agrees));
            }
        }
        all(conditions)
    }
}
