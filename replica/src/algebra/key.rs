//! The key of a query's rows: columns by which each row differs from all others, carried along where the query does not
//! show them, so that a changed row is told as an edit.

use super::{
    Column, JoinKind, SetKind,
    flat::Flat,
    positions::{Positions, conjuncts},
};
use crate::expr::{Compare, Condition, Scalar};
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
            let Keyed { rel: input, key } = keyed(input)?;
            Some(Keyed { rel: Arc::new(Flat::Filter { input, condition: condition.clone() }), key })
        }
        Flat::Project { input, columns } => {
            let Keyed { rel: input, key } = keyed(input)?;
            let types = input.types();
            let mut columns = columns.clone();
            let key = key.into_iter().map(|at| find_or_add(&mut columns, at, types[at])).collect();
            Some(Keyed { rel: Arc::new(Flat::Project { input, columns }), key })
        }
        Flat::Join { kind, left, right, condition } => {
            let (left_len, right_len) = (left.types().len(), right.types().len());
            let (left, right) = (keyed(left)?, keyed(right)?);
            // A row of either side without a partner has NULLs for the other's key. The two can be told apart only if one
            // side's key is never NULL itself.
            let is_solid = |side: &Keyed| side.key.iter().any(|&column| is_never_null(&side.rel, column));
            if *kind == JoinKind::Full && !is_solid(&left) && !is_solid(&right) {
                return None;
            }
            let (left_types, right_types) = (left.rel.types(), right.rel.types());
            let condition = condition.map(&mut |position| {
                let moved = if position < left_len { 0 } else { left_types.len() - left_len };
                Scalar::Column(position + moved)
            });
            let types = [left_types.clone(), right_types.clone()].concat();
            let mut conditions = Vec::new();
            conjuncts(&condition, &mut conditions);
            let border = left_types.len();
            let right_key: Vec<usize> = right.key.iter().map(|at| border + at).collect();
            let order: Vec<usize> = (0..left_len)
                .chain(left_types.len()..left_types.len() + right_len)
                .chain(left_len..left_types.len())
                .chain(left_types.len() + right_len..types.len())
                .collect();
            // A row that finds at most one partner has its own key.
            let key = if *kind != JoinKind::Full
                && finds_one(&conditions, &right_key, &types, border..types.len())
            {
                left.key
            } else if *kind == JoinKind::Inner && finds_one(&conditions, &left.key, &types, 0..border) {
                right_key
            } else {
                [left.key, right_key].concat()
            };
            let pair = Flat::Join { kind: *kind, left: left.rel, right: right.rel, condition };
            reordered(pair, &types, &order, key.into_iter())
        }
        Flat::Mark { left, right, on, condition, is_two_valued } => {
            let left_len = left.types().len();
            let Keyed { rel: left, key } = keyed(left)?;
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
            let Keyed { rel: input, key } = keyed(input)?;
            let (partition, order) = (partition.clone(), order.clone());
            let rel = Flat::Top { input, partition, order, offset: *offset, limit: *limit };
            Some(Keyed { rel: Arc::new(rel), key })
        }
        Flat::Window { input, partition, order, functions } => {
            let own = input.types().len();
            let Keyed { rel: input, key } = keyed(input)?;
            let (partition, order) = (partition.clone(), order.clone());
            let rel =
                Flat::Window { input: Arc::clone(&input), partition, order, functions: functions.clone() };
            let (all, types) = (input.types().len(), rel.types());
            let order: Vec<usize> = (0..own).chain(all..types.len()).chain(own..all).collect();
            reordered(rel, &types, &order, key.into_iter())
        }
    }
}

/// Whether conditions over pairs of rows let a row find at most one partner: each column of the partners' key is to equal
/// something that is not of the partner. `types` are the columns' of the pairs, `partner` those of the partner.
pub(super) fn finds_one(
    conditions: &[Condition],
    key: &[usize],
    types: &[ColumnType],
    partner: Range<usize>,
) -> bool {
    let is_equal = |column: usize, own: &Scalar, other: &Scalar| {
        *own == Scalar::Column(column)
            && !other.positions().iter().any(|position| partner.contains(position))
            && other.column_type(types) == Some(types[column])
    };
    key.iter().all(|&column| {
        conditions.iter().any(|condition| {
            let (a, b) = match condition {
                Condition::Compare(Compare::Equal, a, b) => (a, b),
                Condition::Not(inner) => match &**inner {
                    Condition::IsDistinct(a, b) => (a, b),
                    _ => return false,
                },
                _ => return false,
            };
            is_equal(column, a, b) || is_equal(column, b, a)
        })
    })
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
