//! Explicit casts.

use super::{Operand, Type, Typed, TypingError, fold};
use crate::expr::Scalar;

/// `cast(operand as ty)`.
///
/// # Errors
/// When PostgreSQL has no such cast, or a literal is not of the type.
pub fn cast(operand: Operand, ty: Type) -> Result<Typed, TypingError> {
    let typed = match operand {
        Operand::Typed(typed) => typed,
        unknown => return unknown.settle_as(ty),
    };
    if typed.ty.is_number()
        && ty.is_number()
        && let Type::Column(column) = ty
    {
        return Ok(Typed { scalar: fold(Scalar::Convert(column, Box::new(typed.scalar))), ty });
    }
    typed.implicitly(ty)
}

/// `cast(operand as numeric(precision, scale))`.
///
/// # Errors
/// As of [`cast`], and a precision or scale that PostgreSQL does not take.
pub fn cast_numeric(operand: Operand, precision: u32, scale: i32) -> Result<Typed, TypingError> {
    let _ = (operand, precision, scale);
    Err(TypingError::Unsupported("numeric with a precision is not supported".to_owned()))
}
