//! Explicit casts.

use super::{BOOL, DATE, JSON, NUMERIC, Operand, TEXT, TIMESTAMPTZ, Type, Typed, TypingError, called, fold};
use crate::expr::{Function, Scalar};
use tidegate_wire::model::Value;

/// Most digits that `numeric(precision, scale)` may have.
const PRECISION_MAX: u32 = 1_000;

/// `cast(operand as ty)`.
///
/// # Errors
/// When PostgreSQL has no such cast, or a literal is not of the type.
pub fn cast(operand: Operand, ty: Type) -> Result<Typed, TypingError> {
    let typed = match operand {
        Operand::Typed(typed) => typed,
        unknown => return unknown.settle_as(ty),
    };
    let from = typed.ty;
    if from == ty {
        return Ok(typed);
    }
    if from == Type::Interval && ty == TEXT {
        return Ok(called(Function::IntervalText, vec![typed.scalar], ty));
    }
    if !is_castable(from, ty) {
        return Err(TypingError::Mismatch(format!(
            "cannot cast type {} to {}",
            from.postgres_name(),
            ty.postgres_name()
        )));
    }
    if typed.ty.converts_to(ty) {
        return typed.implicitly(ty);
    }
    Ok(Typed { scalar: fold(Scalar::Convert(ty, Box::new(typed.scalar))), ty })
}

/// The operand as the value of a column of `ty` that it is written to.
///
/// # Errors
/// When PostgreSQL does not convert it by itself there, or a literal is not of the type.
pub fn assign(operand: Operand, ty: Type) -> Result<Typed, TypingError> {
    let Some(from) = operand.ty() else { return operand.settle_as(ty) };
    let converts = from.converts_to(ty)
        || (from.is_number() && ty.is_number())
        || ty == TEXT
        || (from == TIMESTAMPTZ && ty == DATE);
    if converts {
        return cast(operand, ty);
    }
    Err(TypingError::Mismatch(format!(
        "the column is of type {} but the expression is of type {}",
        ty.postgres_name(),
        from.postgres_name()
    )))
}

/// Whether PostgreSQL casts between two different types.
fn is_castable(from: Type, to: Type) -> bool {
    match (from, to) {
        (TEXT, _) | (_, TEXT) => true,
        (BOOL, Type::Int4) | (Type::Int4, BOOL) | (DATE, TIMESTAMPTZ) | (TIMESTAMPTZ, DATE) => true,
        (JSON, to) => to == BOOL || to.is_number(),
        (from, to) => from.is_number() && to.is_number(),
    }
}

/// `cast(operand as numeric(precision, scale))`.
///
/// # Errors
/// As of [`cast`], and a precision or scale that PostgreSQL does not take.
pub fn cast_numeric(operand: Operand, precision: u32, scale: i32) -> Result<Typed, TypingError> {
    if !(1..=PRECISION_MAX).contains(&precision) || scale.unsigned_abs() > PRECISION_MAX {
        return Err(TypingError::Mismatch(format!(
            "numeric({precision},{scale}): the precision is from 1 to 1000, the scale from -1000 to 1000"
        )));
    }
    let number = cast(operand, NUMERIC)?;
    let constant = |value: i64| Scalar::Constant(Value::Int8(value));
    let arguments = vec![number.scalar, constant(precision.into()), constant(scale.into())];
    Ok(called(Function::Precision, arguments, NUMERIC))
}
