//! Scalar functions.

use super::{Operand, TEXT, Type, Typed, TypingError, fold, unify};
use crate::expr::{Function, Scalar, function::Signature};
use tidegate_wire::model::ColumnType;

/// A scalar function's call; the name is in lower case.
///
/// # Errors
/// A function that is not supported, or arguments it does not take.
pub fn call(name: &str, arguments: Vec<Operand>) -> Result<Typed, TypingError> {
    let Some(function) = Function::from_name(name) else {
        return Err(TypingError::Unsupported(format!("function {name} is not supported")));
    };
    let arity =
        || TypingError::Mismatch(format!("function {name} does not take {} arguments", arguments.len()));
    let (scalars, ty) = match function.signature() {
        Signature::Fixed { types, optional, result } => {
            if !(types.len() - usize::from(optional)..=types.len()).contains(&arguments.len()) {
                return Err(arity());
            }
            let mut scalars = Vec::with_capacity(arguments.len());
            for (argument, ty) in arguments.into_iter().zip(types) {
                scalars.push(argument.settle_as(Type::Column(*ty))?.scalar);
            }
            (scalars, Type::Column(result))
        }
        Signature::Number => {
            let [argument] = <[Operand; 1]>::try_from(arguments)
                .map_err(|_| TypingError::Mismatch(format!("function {name} takes one argument")))?;
            let typed = match argument.ty() {
                None => argument.settle_as(Type::Column(ColumnType::Float8))?,
                Some(ty) if ty.is_number() => argument.settle(),
                Some(ty) => return Err(TypingError::Mismatch(format!("function {name} does not take {ty}"))),
            };
            (vec![typed.scalar], typed.ty)
        }
        Signature::Any => (arguments.into_iter().map(|argument| argument.settle().scalar).collect(), TEXT),
        Signature::Same { min, max } => {
            if !(min..=max).contains(&arguments.len()) {
                return Err(arity());
            }
            unify(arguments)?
        }
    };
    Ok(Typed { scalar: fold(Scalar::Call(function, scalars)), ty })
}

/// `extract(field from value)`: a numeric.
///
/// # Errors
/// A field that the value's type does not have.
pub fn extract(field: &str, from: Operand) -> Result<Typed, TypingError> {
    let _ = from;
    Err(TypingError::Unsupported(format!("extract({field} …) is not supported")))
}
