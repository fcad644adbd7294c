//! Marks of which it does not matter whether they are false or NULL: those can be looked up by key.

use super::{flat::Flat, positions::Positions};
use crate::expr::{Condition, Scalar};
use std::sync::Arc;

/// A filter below an operator that reads some columns only, with marks that need not tell false from NULL, where the
/// operator does not read them and the filter takes false as well as NULL: those can be looked up by key.
pub(super) fn with_lax_marks(input: &Arc<Flat>, mut strict: Vec<usize>) -> Arc<Flat> {
    let Flat::Filter { input: filtered, condition } = &**input else { return Arc::clone(input) };
    strict_columns(condition, false, &mut strict);
    let relaxed = relax(filtered, &strict);
    Arc::new(Flat::Filter { input: relaxed, condition: condition.clone() })
}

fn relax(input: &Arc<Flat>, strict: &[usize]) -> Arc<Flat> {
    let Flat::Mark { left, right, on, condition, is_two_valued } = &**input else {
        return Arc::clone(input);
    };
    let own = left.types().len();
    let is_strict = strict.contains(&own);
    let mut strict = strict.to_vec();
    // A mark further down is read by this one's comparisons, too. Behind the left row's columns stand the right row's.
    strict.extend(condition.positions().into_iter().filter(|position| *position < own));
    on.iter().for_each(|on| on.left.read(&mut |position| strict.push(position)));
    Arc::new(Flat::Mark {
        left: relax(left, &strict),
        right: Arc::clone(right),
        on: on.clone(),
        condition: condition.clone(),
        is_two_valued: *is_two_valued || !is_strict,
    })
}

/// The columns of a condition that are read otherwise than as truths under AND and OR.
fn strict_columns(condition: &Condition, inside_not: bool, out: &mut Vec<usize>) {
    match condition {
        Condition::And(operands) | Condition::Or(operands) if !inside_not => {
            operands.iter().for_each(|operand| strict_columns(operand, false, out));
        }
        Condition::Truth(Scalar::Column(_)) if !inside_not => {}
        other => other.read(&mut |position| out.push(position)),
    }
}
