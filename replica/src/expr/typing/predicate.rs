//! Predicates with a syntax of their own, `case`, and the common type of several operands.

use super::{BOOL, FLOAT8, NUMERIC, Operand, TEXT, Type, Typed, TypingError, binary, called, fold, operator};
use crate::expr::{Condition, EvalError, Function, Pattern, Regex, Scalar};
use tidegate_wire::model::Value;

/// `value like pattern [escape …]`; `fold_case` makes it `ilike`.
///
/// # Errors
/// When an operand is not text.
pub fn like(
    value: Operand,
    pattern: Operand,
    escape: Option<Operand>,
    fold_case: bool,
) -> Result<Typed, TypingError> {
    let (value, mut pattern) = (value.settle_as(TEXT)?.scalar, pattern.settle_as(TEXT)?.scalar);
    if let Some(escape) = escape {
        let escape = escape.settle_as(TEXT)?.scalar;
        pattern = called(Function::LikeEscape, vec![pattern, escape], TEXT).scalar;
    }
    if let Scalar::Constant(Value::Text(text)) = &pattern
        && let Ok(pattern) = Pattern::compile(text, fold_case)
    {
        return Ok(Typed::of(Condition::Matches(value, pattern)));
    }
    // A bad pattern faults the query when a row meets it, as in PostgreSQL.
    Ok(Typed::of(Condition::MatchesComputed(value, pattern, fold_case)))
}

/// `value ~ pattern`; `fold_case` makes it `~*`. What the pattern must not use is refused here where it is known.
pub(super) fn regex(value: Operand, pattern: Operand, fold_case: bool) -> Result<Typed, TypingError> {
    let (value, pattern) = (value.settle_as(TEXT)?.scalar, pattern.settle_as(TEXT)?.scalar);
    if let Scalar::Constant(Value::Text(text)) = &pattern {
        match Regex::compile(text, fold_case) {
            Ok(regex) => return Ok(Typed::of(Condition::Regex(value, regex))),
            Err(error @ EvalError::RegexFeature(_)) => {
                return Err(TypingError::Unsupported(error.to_string()));
            }
            // What is no regular expression at all faults the query when a row meets it.
            Err(_) => {}
        }
    }
    Ok(Typed::of(Condition::RegexComputed(value, pattern, fold_case)))
}

/// `value between low and high`.
///
/// # Errors
/// When the operands do not compare.
pub fn between(value: Operand, low: Operand, high: Operand) -> Result<Typed, TypingError> {
    let low = binary(">=", value.clone(), low)?;
    let high = binary("<=", value, high)?;
    binary("and", Operand::Typed(low), Operand::Typed(high))
}

/// `value in (members…)`.
///
/// # Errors
/// When the operands do not compare.
pub fn in_list(value: Operand, members: Vec<Operand>) -> Result<Typed, TypingError> {
    let types = || std::iter::once(&value).chain(&members).filter_map(Operand::ty);
    // Exact numbers keep their types, as the comparison does not need one for all.
    if types().next().is_some() && types().all(|ty| ty.is_number() && ty != FLOAT8) {
        let ty = if types().any(|ty| ty == NUMERIC) { NUMERIC } else { types().next().unwrap_or(NUMERIC) };
        let settle = |operand: Operand| match operand {
            Operand::Typed(typed) => Ok(typed.scalar),
            literal => literal.settle_as(ty).map(|typed| typed.scalar),
        };
        let value = settle(value)?;
        let members = members.into_iter().map(settle).collect::<Result<_, _>>()?;
        return Ok(Typed::of(Condition::In(value, members)));
    }
    let (mut scalars, ty) = unify(std::iter::once(value).chain(members).collect())?;
    if ty == Type::Interval {
        scalars = scalars.into_iter().map(operator::interval_order).collect();
    }
    let value = scalars.remove(0);
    Ok(Typed::of(Condition::In(value, scalars)))
}

/// `case [operand] when … then … else … end`.
///
/// # Errors
/// When a condition is not boolean, or the results have no common type.
pub fn case(
    operand: Option<Operand>,
    branches: Vec<(Operand, Operand)>,
    otherwise: Option<Operand>,
) -> Result<Typed, TypingError> {
    // A literal that is the operand is text, whatever it is compared with.
    let operand = operand.map(|operand| Operand::Typed(operand.settle()));
    let (mut conditions, mut results) =
        (Vec::with_capacity(branches.len()), Vec::with_capacity(branches.len() + 1));
    for (when, then) in branches {
        conditions.push(match &operand {
            Some(operand) => binary("=", operand.clone(), when)?.condition()?,
            None => when.settle_as(BOOL)?.condition()?,
        });
        results.push(then);
    }
    results.push(otherwise.unwrap_or(Operand::Unknown(None)));
    let (mut scalars, ty) = unify(results)?;
    let otherwise = scalars.pop().unwrap_or(Scalar::Constant(Value::Null));
    let branches = conditions.into_iter().zip(scalars).collect();
    Ok(Typed { scalar: fold(Scalar::Case(branches, Box::new(otherwise))), ty })
}

/// The operands in their common type: the first that all others convert to.
///
/// # Errors
/// When there is none.
pub fn unify(operands: Vec<Operand>) -> Result<(Vec<Scalar>, Type), TypingError> {
    let ty = common_type(operands.iter().filter_map(Operand::ty))?.unwrap_or(TEXT);
    let scalars = operands
        .into_iter()
        .map(|operand| operand.settle_as(ty).map(|typed| typed.scalar))
        .collect::<Result<_, _>>()?;
    Ok((scalars, ty))
}

/// The type that all convert to; `None` of none.
fn common_type(types: impl Iterator<Item = Type>) -> Result<Option<Type>, TypingError> {
    let mut common: Option<Type> = None;
    for ty in types {
        common = Some(match common {
            None => ty,
            Some(common) if ty.converts_to(common) => common,
            Some(common) if common.converts_to(ty) => ty,
            Some(common) => {
                return Err(TypingError::Mismatch(format!("types {common} and {ty} cannot be matched")));
            }
        });
    }
    Ok(common)
}
