//! What a query reads of its domain, and whether that is only compared for equality.

use super::{
    Column, JoinKind, Rel, Test, domain_column,
    positions::{Positions, all, conjuncts},
};
use crate::expr::{Compare, Condition, Scalar};
use std::sync::Arc;

/// Pairs of a domain's column and a query's column that must be equal.
pub(super) type Pairs = Vec<(usize, usize)>;

/// A subquery that compares what it reads of outer rows for equality alone, without these comparisons: its rows with
/// further columns behind its own, and pairs of domain column and column that must be equal. `None` for others, and where
/// a pair is not of one type: it is found by the bytes of keys, which are the same for equal values of one type only.
/// `outer` is what the domain's columns are.
pub(super) fn equalities(rel: &Arc<Rel>, outer: &[Column]) -> Option<(Arc<Rel>, Pairs)> {
    if !reads_domain(rel) {
        return Some((Arc::clone(rel), Vec::new()));
    }
    match &**rel {
        Rel::Filter { input, condition } => {
            let (mut input, mut pairs) = equalities(input, outer)?;
            let types = input.types();
            let (mut operands, mut kept) = (Vec::new(), Vec::new());
            conjuncts(condition, &mut operands);
            for operand in operands {
                if operand.reads_domain() {
                    let (column, at) = equality(&operand)?;
                    if outer[column].ty != types[at] {
                        return None;
                    }
                    pairs.push((column, at));
                } else {
                    kept.push(operand);
                }
            }
            if !kept.is_empty() {
                input = Arc::new(Rel::Filter { input, condition: all(kept) });
            }
            Some((input, pairs))
        }
        Rel::Project { input, columns } if !columns.reads_domain() => {
            let (input, pairs) = equalities(input, outer)?;
            let types = input.types();
            let mut columns = columns.clone();
            let pairs = pairs.into_iter().map(|(outer, at)| {
                columns.push(Column { scalar: Scalar::Column(at), ty: types[at] });
                (outer, columns.len() - 1)
            });
            let pairs = pairs.collect();
            Some((Arc::new(Rel::Project { input, columns }), pairs))
        }
        Rel::Join { kind: JoinKind::Inner, left, right, condition } if !condition.reads_domain() => {
            let (left_len, right_len) = (left.types().len(), right.types().len());
            let ((left, left_pairs), (right, right_pairs)) =
                (equalities(left, outer)?, equalities(right, outer)?);
            let types = [left.types(), right.types()].concat();
            let (left_all, right_all) = (left.types().len(), right.types().len());
            let condition = condition.map(&mut |position| {
                Scalar::Column(if position < left_len { position } else { left_all + position - left_len })
            });
            let order: Vec<usize> = (0..left_len)
                .chain(left_all..left_all + right_len)
                .chain(left_len..left_all)
                .chain(left_all + right_len..left_all + right_all)
                .collect();
            let now_at = |old: usize| order.iter().position(|&at| at == old).expect("every column is kept");
            let pairs = left_pairs
                .into_iter()
                .map(|(outer, at)| (outer, now_at(at)))
                .chain(right_pairs.into_iter().map(|(outer, at)| (outer, now_at(left_all + at))))
                .collect();
            let columns =
                order.iter().map(|&at| Column { scalar: Scalar::Column(at), ty: types[at] }).collect();
            let input = Arc::new(Rel::Join { kind: JoinKind::Inner, left, right, condition });
            Some((Arc::new(Rel::Project { input, columns }), pairs))
        }
        Rel::Distinct { input } => {
            let (input, pairs) = equalities(input, outer)?;
            Some((Arc::new(Rel::Distinct { input }), pairs))
        }
        _ => None,
    }
}

/// A domain column and the column it is compared with for equality.
fn equality(condition: &Condition) -> Option<(usize, usize)> {
    let Condition::Compare(Compare::Equal, Scalar::Column(a), Scalar::Column(b)) = condition else {
        return None;
    };
    match (domain_column(*a), domain_column(*b)) {
        (Some(column), None) => Some((column, *b)),
        (None, Some(column)) => Some((column, *a)),
        _ => None,
    }
}

/// Whether a query reads its domain. What a subquery inside reads of its own is not that.
pub(super) fn reads_domain(rel: &Rel) -> bool {
    match rel {
        Rel::Table { .. } | Rel::Working { .. } => false,
        Rel::Recursive { base, step, .. } => reads_domain(base) || reads_domain(step),
        Rel::Values { rows, .. } => rows.iter().any(Positions::reads_domain),
        Rel::Filter { input, condition } => condition.reads_domain() || reads_domain(input),
        Rel::Project { input, columns } => columns.reads_domain() || reads_domain(input),
        Rel::Join { left, right, condition, .. } => {
            condition.reads_domain() || reads_domain(left) || reads_domain(right)
        }
        Rel::Mark { input, subquery, test } => {
            let tested = matches!(test, Test::Any(condition) if condition.reads_domain());
            tested || subquery.domain.reads_domain() || reads_domain(input)
        }
        Rel::Lookup { input, subquery } => subquery.domain.reads_domain() || reads_domain(input),
        Rel::Lateral { input, subquery, condition, .. } => {
            condition.reads_domain() || subquery.domain.reads_domain() || reads_domain(input)
        }
        Rel::Aggregate { input, keys, aggregates } => {
            keys.reads_domain() || aggregates.reads_domain() || reads_domain(input)
        }
        Rel::Distinct { input } => reads_domain(input),
        Rel::Concat { inputs } => inputs.iter().any(|input| reads_domain(input)),
        Rel::SetOperation { left, right, .. } => reads_domain(left) || reads_domain(right),
        Rel::Top { input, partition, order, .. } => {
            partition.reads_domain() || order.reads_domain() || reads_domain(input)
        }
        Rel::Window { input, partition, order, functions } => {
            partition.reads_domain()
                || order.reads_domain()
                || functions.reads_domain()
                || reads_domain(input)
        }
    }
}
