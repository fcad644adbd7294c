//! Marks of which it does not matter whether they are false or NULL: those can be looked up by key.

use super::{flat::Flat, positions::Positions};
use crate::expr::{Condition, Scalar};
use std::sync::Arc;

/// Filters and marks below an operator that reads some columns: the marks need not tell false from NULL where neither the
/// operator nor a comparison reads them, and filters take false as well as NULL. Those can be looked up by key.
pub(super) fn with_lax_marks(input: &Arc<Flat>, mut strict: Vec<usize>) -> Arc<Flat> {
    Arc::new(match &**input {
        Flat::Filter { input, condition } => {
            strict_columns(condition, false, &mut strict);
            Flat::Filter { input: with_lax_marks(input, strict), condition: condition.clone() }
        }
        Flat::Mark { left, right, on, condition, is_two_valued } => {
            let own = left.types().len();
            let is_strict = strict.contains(&own);
            // Behind the left row's columns stand the right row's.
            strict.extend(condition.positions().into_iter().filter(|position| *position < own));
            on.iter().for_each(|on| on.left.read(&mut |position| strict.push(position)));
            Flat::Mark {
                left: with_lax_marks(left, strict),
                right: Arc::clone(right),
                on: on.clone(),
                condition: condition.clone(),
                is_two_valued: *is_two_valued || !is_strict,
            }
        }
        _ => return Arc::clone(input),
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
