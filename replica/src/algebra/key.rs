//! The key of a query's rows: columns by which each row differs from all others, carried along where the query does not
//! show them, so that a changed row is told as an edit.

use super::{
    Column, JoinKind, SetKind,
    flat::Flat,
    positions::{Positions, conjuncts},
};
use crate::expr::{Condition, Scalar};
use std::{ops::Range, sync::Arc};
use tidegate_wire::model::ColumnType;

/// Rows with their key's columns among theirs: those the query had first, further ones behind.
pub struct Keyed {
    /// The rows.
    pub rel: Arc<Flat>,
    /// The key's columns; none when there is at most one row.
    pub key: Vec<usize>,
}

/// The rows with a key, or `None` when rows can be equal.
#[must_use]
pub fn keyed(rel: &Arc<Flat>) -> Option<Keyed> {
    keyed_where(rel, Vec::new())
}

/// The rows with a key of those for which all that is `given` is true.
fn keyed_where(rel: &Arc<Flat>, mut given: Vec<Condition>) -> Option<Keyed> {
    let unchanged = |key: Vec<usize>| Some(Keyed { rel: Arc::clone(rel), key });
    match &**rel {
        Flat::Parameters { types } => unchanged((0..types.len()).collect()),
        Flat::Table { key, .. } => unchanged(key.clone()),
        Flat::Values { rows, .. } if rows.len() < 2 => unchanged(Vec::new()),
        Flat::Values { .. } | Flat::Concat { .. } | Flat::Working { .. } => None,
        Flat::Recursive { all, base, .. } => {
            if *all {
                return None;
            }
            unchanged((0..base.types().len()).collect())
        }
        Flat::Filter { input, condition } => {
            conjuncts(condition, &mut given);
            let Keyed { rel: input, key } = keyed_where(input, given)?;
            Some(Keyed { rel: Arc::new(Flat::Filter { input, condition: condition.clone() }), key })
        }
        Flat::Project { input, columns } => {
            let given = given.map(&mut |position| columns[position].scalar.clone());
            let Keyed { rel: input, key } = keyed_where(input, given)?;
            let types = input.types();
            let mut columns = columns.clone();
            let key = key.into_iter().map(|at| find_or_add(&mut columns, at, types[at])).collect();
            Some(Keyed { rel: Arc::new(Flat::Project { input, columns }), key })
        }
        Flat::Join { kind, left, right, condition } => {
            let (left_len, right_len) = (left.types().len(), right.types().len());
            // Whatever is given of pairs is given of each side, but for rows that a join pads.
            let mut of_left = if *kind == JoinKind::Full { Vec::new() } else { given.clone() };
            let mut of_right = of_left.clone();
            if *kind == JoinKind::Inner {
                conjuncts(condition, &mut of_left);
            }
            if *kind != JoinKind::Full {
                conjuncts(condition, &mut of_right);
            }
            let left = keyed_where(left, within(of_left, 0..left_len))?;
            let right = keyed_where(right, within(of_right, left_len..left_len + right_len))?;
            // A row of either side without a partner has NULLs for the other's key. The two can be told apart only if one
            // side's key is never NULL itself.
            let is_solid = |side: &Keyed| side.key.iter().any(|&column| is_never_null(&side.rel, column));
            if *kind == JoinKind::Full && !is_solid(&left) && !is_solid(&right) {
                return None;
            }
            let (left_types, right_types) = (left.rel.types(), right.rel.types());
            let mut behind_hidden = |position| {
                let moved = if position < left_len { 0 } else { left_types.len() - left_len };
                Scalar::Column(position + moved)
            };
            let condition = condition.map(&mut behind_hidden);
            let mut conditions = given.map(&mut behind_hidden);
            conjuncts(&condition, &mut conditions);
            let types = [left_types.clone(), right_types.clone()].concat();
            let border = left_types.len();
            let right_key: Vec<usize> = right.key.iter().map(|at| border + at).collect();
            let order: Vec<usize> = (0..left_len)
                .chain(left_types.len()..left_types.len() + right_len)
                .chain(left_len..left_types.len())
                .chain(left_types.len() + right_len..types.len())
                .collect();
            // What a partner is found by is known with the row that finds it.
            let found_right = match kind {
                JoinKind::Full => right_key.clone(),
                JoinKind::Inner | JoinKind::Left => {
                    undetermined(&right_key, &conditions, &types, border..types.len())
                }
            };
            let key = if *kind == JoinKind::Inner
                && right_key.len() < left.key.len() + found_right.len()
                && undetermined(&left.key, &conditions, &types, 0..border).is_empty()
            {
                right_key
            } else {
                [left.key, found_right].concat()
            };
            let pair = Flat::Join { kind: *kind, left: left.rel, right: right.rel, condition };
            reordered(pair, &types, &order, key.into_iter())
        }
        Flat::Mark { left, right, on, condition, is_two_valued } => {
            let left_len = left.types().len();
            let Keyed { rel: left, key } = keyed_where(left, within(given, 0..left_len))?;
            let types = [left.types(), vec![ColumnType::Bool]].concat();
            let by = types.len() - 1 - left_len;
            let condition = condition.map(&mut |position| {
                Scalar::Column(if position < left_len { position } else { position + by })
            });
            let (right, on, is_two_valued) = (Arc::clone(right), on.clone(), *is_two_valued);
            let order: Vec<usize> =
                (0..left_len).chain([types.len() - 1]).chain(left_len..types.len() - 1).collect();
            reordered(
                Flat::Mark { left, right, on, condition, is_two_valued },
                &types,
                &order,
                key.into_iter(),
            )
        }
        Flat::Single { keys, .. } => unchanged((0..*keys).collect()),
        Flat::Aggregate { keys, .. } => unchanged((0..keys.len()).collect()),
        Flat::SetOperation { kind, all, left, .. } => {
            if *all {
                return None;
            }
            debug_assert!(matches!(kind, SetKind::Except | SetKind::Intersect));
            unchanged((0..left.types().len()).collect())
        }
        Flat::Top { input, partition, order, offset, limit } => {
            let Keyed { rel: input, key } = keyed_where(input, given)?;
            let (partition, order) = (partition.clone(), order.clone());
            let rel = Flat::Top { input, partition, order, offset: *offset, limit: *limit };
            Some(Keyed { rel: Arc::new(rel), key })
        }
        Flat::Window { input, partition, order, functions } => {
            let own = input.types().len();
            let Keyed { rel: input, key } = keyed_where(input, within(given, 0..own))?;
            let (partition, order) = (partition.clone(), order.clone());
            let rel =
                Flat::Window { input: Arc::clone(&input), partition, order, functions: functions.clone() };
            let (all, types) = (input.types().len(), rel.types());
            let order: Vec<usize> = (0..own).chain(all..types.len()).chain(own..all).collect();
            reordered(rel, &types, &order, key.into_iter())
        }
    }
}

/// The conditions that read such columns alone, of which the first is then the column 0.
fn within(conditions: Vec<Condition>, columns: Range<usize>) -> Vec<Condition> {
    let is_within =
        |condition: &Condition| condition.positions().iter().all(|position| columns.contains(position));
    let own = conditions.into_iter().filter(is_within).collect::<Vec<_>>();
    own.map(&mut |position| Scalar::Column(position - columns.start))
}

/// The columns of a partner's key that conditions over pairs of rows do not equate with anything of the other row: what is
/// left to tell the partners of one row apart. `types` are the columns' of the pairs, `partner` those of the partner.
pub(super) fn undetermined(
    key: &[usize],
    conditions: &[Condition],
    types: &[ColumnType],
    partner: Range<usize>,
) -> Vec<usize> {
    let is_equated = |column: usize, own: &Scalar, other: &Scalar| {
        *own == Scalar::Column(column)
            && !other.positions().iter().any(|position| partner.contains(position))
            && other.column_type(types) == Some(types[column])
    };
    let equates = |condition: &Condition, column: usize| {
        condition.as_equality().is_some_and(|(a, b, _)| is_equated(column, a, b) || is_equated(column, b, a))
    };
    let is_open = |column: &usize| !conditions.iter().any(|condition| equates(condition, *column));
    key.iter().copied().filter(is_open).collect()
}

/// Whether a column is known to hold no NULL: it is a table's key column that no outer join pads.
fn is_never_null(rel: &Flat, column: usize) -> bool {
    match rel {
        Flat::Table { table, key, .. } => !table.is_view() && key.contains(&column),
        Flat::Filter { input, .. } | Flat::Single { input, .. } | Flat::Top { input, .. } => {
            is_never_null(input, column)
        }
        Flat::Project { input, columns } => {
            matches!(columns[column].scalar, Scalar::Column(from) if is_never_null(input, from))
        }
        Flat::Join { kind, left, right, .. } => match (kind, column.checked_sub(left.types().len())) {
            (JoinKind::Inner | JoinKind::Left, None) => is_never_null(left, column),
            (JoinKind::Inner, Some(column)) => is_never_null(right, column),
            _ => false,
        },
        Flat::Mark { left, .. } => column < left.types().len() && is_never_null(left, column),
        Flat::Window { input, .. } => column < input.types().len() && is_never_null(input, column),
        Flat::Aggregate { input, keys, .. } => keys
            .get(column)
            .is_some_and(|key| matches!(key.scalar, Scalar::Column(from) if is_never_null(input, from))),
        Flat::Parameters { .. } => true,
        Flat::Values { .. }
        | Flat::Concat { .. }
        | Flat::SetOperation { .. }
        | Flat::Recursive { .. }
        | Flat::Working { .. } => false,
    }
}

/// The rows with their columns in another order, which `key` is told in as they were.
fn reordered(
    rel: Flat,
    types: &[ColumnType],
    order: &[usize],
    key: impl Iterator<Item = usize>,
) -> Option<Keyed> {
    let columns = order.iter().map(|&at| Column { scalar: Scalar::Column(at), ty: types[at] }).collect();
    let key = key.filter_map(|old| order.iter().position(|&at| at == old)).collect();
    Some(Keyed { rel: Arc::new(Flat::Project { input: Arc::new(rel), columns }), key })
}

/// Where a column of the input is among projected ones, added behind them if it is not.
fn find_or_add(columns: &mut Vec<Column>, at: usize, ty: ColumnType) -> usize {
    let found = columns.iter().position(|column| column.scalar == Scalar::Column(at));
    found.unwrap_or_else(|| {
        columns.push(Column { scalar: Scalar::Column(at), ty });
        columns.len() - 1
    })
}
