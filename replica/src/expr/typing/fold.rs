//! Simpler forms of scalars, as PostgreSQL's planner makes them: constants are computed, and what a constant NULL, true or
//! false decides is decided. What fails stays, and fails when a row meets it.

use super::{Type, Typed};
use crate::expr::{Condition, Function, NoExists, Scalar};
use tidegate_wire::model::{Row, Value};

/// A function's call.
pub(super) fn called(function: Function, arguments: Vec<Scalar>, ty: Type) -> Typed {
    Typed { scalar: fold(Scalar::Call(function, arguments)), ty }
}

fn is_null(scalar: &Scalar) -> bool {
    matches!(scalar, Scalar::Constant(Value::Null))
}

/// The scalar in its simplest form. Its operands have theirs already.
pub(super) fn fold(scalar: Scalar) -> Scalar {
    let decided = match &scalar {
        Scalar::Constant(_) | Scalar::Column(_) => return scalar,
        Scalar::Arithmetic(_, left, right) => is_null(left) || is_null(right),
        Scalar::Convert(_, operand) => is_null(operand),
        Scalar::Call(function, arguments) => function.is_strict() && arguments.iter().any(is_null),
        Scalar::Case(..) | Scalar::Coalesce(_) | Scalar::Condition(_) => false,
    };
    if decided {
        return Scalar::Constant(Value::Null);
    }
    let scalar = match scalar {
        Scalar::Condition(condition) => match simplified(*condition) {
            Condition::Constant(truth) => return Scalar::Constant(truth.map_or(Value::Null, Value::Bool)),
            Condition::Truth(scalar) => return scalar,
            condition => Scalar::Condition(Box::new(condition)),
        },
        Scalar::Case(branches, otherwise) => case(branches, *otherwise),
        Scalar::Coalesce(operands) => coalesce(operands),
        scalar => scalar,
    };
    if matches!(scalar, Scalar::Constant(_)) || !scalar.is_constant() {
        return scalar;
    }
    let row = Row::from_values(&[]);
    let value = scalar.value(&row, &NoExists).map(|computed| computed.as_ref().to_value());
    value.map_or(scalar, Scalar::Constant)
}

fn case(branches: Vec<(Condition, Scalar)>, mut otherwise: Scalar) -> Scalar {
    let mut kept = Vec::with_capacity(branches.len());
    for (condition, result) in branches {
        match condition {
            Condition::Constant(Some(true)) => {
                otherwise = result;
                break;
            }
            Condition::Constant(_) => {}
            condition => kept.push((condition, result)),
        }
    }
    if kept.is_empty() { alone(otherwise) } else { Scalar::Case(kept, Box::new(otherwise)) }
}

/// What an expression comes to, told from what is written so itself: group by holds the two to be different.
fn alone(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::Constant(_) | Scalar::Coalesce(_) => scalar,
        scalar => Scalar::Coalesce(vec![scalar]),
    }
}

fn coalesce(operands: Vec<Scalar>) -> Scalar {
    let mut kept = Vec::with_capacity(operands.len());
    for operand in operands.into_iter().filter(|operand| !is_null(operand)) {
        let is_last = matches!(operand, Scalar::Constant(_));
        kept.push(operand);
        if is_last {
            break;
        }
    }
    match kept.len() {
        0 => Scalar::Constant(Value::Null),
        1 => alone(kept.remove(0)),
        _ => Scalar::Coalesce(kept),
    }
}

fn simplified(condition: Condition) -> Condition {
    let unknown = match &condition {
        Condition::Compare(_, a, b)
        | Condition::MatchesComputed(a, b, _)
        | Condition::RegexComputed(a, b, _) => is_null(a) || is_null(b),
        Condition::In(value, members) => {
            !members.is_empty() && (is_null(value) || members.iter().all(is_null))
        }
        Condition::Matches(a, _) | Condition::Regex(a, _) => is_null(a),
        _ => false,
    };
    if unknown {
        return Condition::Constant(None);
    }
    match condition {
        Condition::And(operands) => list(operands, false),
        Condition::Or(operands) => list(operands, true),
        Condition::Not(operand) => match *operand {
            Condition::Constant(truth) => Condition::Constant(truth.map(|truth| !truth)),
            operand => Condition::Not(Box::new(operand)),
        },
        condition => condition,
    }
}

/// The operands of `and` or, when `decisive` is true, of `or`.
fn list(mut operands: Vec<Condition>, decisive: bool) -> Condition {
    if operands.contains(&Condition::Constant(Some(decisive))) {
        return Condition::Constant(Some(decisive));
    }
    operands.retain(|operand| *operand != Condition::Constant(Some(!decisive)));
    match operands.len() {
        0 => Condition::Constant(Some(!decisive)),
        1 => operands.remove(0),
        _ if decisive => Condition::Or(operands),
        _ => Condition::And(operands),
    }
}
