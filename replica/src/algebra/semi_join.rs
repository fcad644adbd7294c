//! Filters by what a subquery's rows say: where at most one of them can agree with an outer row, a join finds the same
//! outer rows, and leaves it to the planner where to begin.

use super::{
    Column, JoinKind,
    flat::{Flat, On},
    key::{Keyed, keyed, undetermined},
    positions::{Positions, all, conjuncts},
};
use crate::expr::{Condition, Scalar};
use std::sync::Arc;
use tidegate_wire::model::{ColumnType, Value};

/// The rows for which a condition is true.
pub(super) fn filtered(input: &Arc<Flat>, condition: Condition) -> Flat {
    let mut conditions = Vec::new();
    conjuncts(&condition, &mut conditions);
    let Some(joined) = joined(input, &mut conditions) else {
        return Flat::Filter { input: Arc::clone(input), condition };
    };
    if conditions.is_empty() {
        return joined;
    }
    Flat::Filter { input: Arc::new(joined), condition: all(conditions) }
}

/// Marked rows whose mark is true, which is then no condition any more.
fn joined(input: &Flat, conditions: &mut Vec<Condition>) -> Option<Flat> {
    let Flat::Mark { left, right, on, condition, .. } = input else { return None };
    let left_types = left.types();
    let border = left_types.len();
    let is_mark = |condition: &Condition| *condition == Condition::Truth(Scalar::Column(border));
    if !conditions.iter().any(is_mark) {
        return None;
    }
    let agree = |On { left, right, null_agrees }: &On| {
        Condition::equal(left.scalar.clone(), right.scalar.moved(border), *null_agrees)
    };
    let mut compared: Vec<Condition> = on.iter().map(agree).collect();
    conjuncts(condition, &mut compared);
    let types = [left_types.clone(), right.types()].concat();
    let Keyed { key, .. } = keyed(right)?;
    let key: Vec<usize> = key.into_iter().map(|column| border + column).collect();
    let is_shown = key.iter().all(|column| *column < types.len());
    if !is_shown || !undetermined(&key, &compared, &types, border..types.len()).is_empty() {
        return None;
    }
    conditions.retain(|condition| !is_mark(condition));
    let pair = Flat::Join {
        kind: JoinKind::Inner,
        left: Arc::clone(left),
        right: Arc::clone(right),
        condition: all(compared),
    };
    let mark = Column { scalar: Scalar::Constant(Value::Bool(true)), ty: ColumnType::Bool };
    let columns = [Flat::identity(&left_types), vec![mark]].concat();
    Some(Flat::Project { input: Arc::new(pair), columns })
}
