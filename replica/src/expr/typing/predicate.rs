//! Predicates with a syntax of their own, and the common type of several operands.

use super::{Operand, TEXT, Type, Typed, TypingError, binary};
use crate::expr::{Condition, Pattern, Scalar};
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
    if escape.is_some() {
        return Err(TypingError::Unsupported("escape is not supported".to_owned()));
    }
    let (value, pattern) = (value.settle_as(TEXT)?.scalar, pattern.settle_as(TEXT)?.scalar);
    Ok(Typed::of(match pattern {
        Scalar::Constant(Value::Text(text)) => match Pattern::compile(&text, fold_case) {
            Ok(pattern) => Condition::Matches(value, pattern),
            Err(_) => Condition::MatchesComputed(value, Scalar::Constant(Value::Text(text)), fold_case),
        },
        pattern => Condition::MatchesComputed(value, pattern, fold_case),
    }))
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
    let (mut scalars, _) = unify(std::iter::once(value).chain(members).collect())?;
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
    let _ = (operand, branches, otherwise);
    Err(TypingError::Unsupported("case is not supported".to_owned()))
}

/// The operands in their common type: the first that all others convert to.
///
/// # Errors
/// When there is none.
pub fn unify(operands: Vec<Operand>) -> Result<(Vec<Scalar>, Type), TypingError> {
    let mut common: Option<Type> = None;
    for ty in operands.iter().filter_map(Operand::ty) {
        common = Some(match common {
            None => ty,
            Some(common) if ty.converts_to(common) => common,
            Some(common) if common.converts_to(ty) => ty,
            Some(common) => {
                return Err(TypingError::Mismatch(format!("types {common} and {ty} cannot be matched")));
            }
        });
    }
    let ty = common.unwrap_or(TEXT);
    let scalars = operands
        .into_iter()
        .map(|operand| operand.settle_as(ty).map(|typed| typed.scalar))
        .collect::<Result<_, _>>()?;
    Ok((scalars, ty))
}
