//! The operators.

use super::{BOOL, DATE, FLOAT8, INT8, NUMERIC, Operand, TEXT, TIMESTAMPTZ, Type, Typed, TypingError, fold};
use crate::expr::{Compare, Condition, Function, Scalar, scalar::Arithmetic};
use tidegate_wire::model::Value;

/// Applies a binary operator, given in lower case.
///
/// # Errors
/// An operator that is not supported, or operands it does not take.
pub fn binary(op: &str, left: Operand, right: Operand) -> Result<Typed, TypingError> {
    Ok(match op {
        "and" | "or" => {
            let operands = vec![left.settle_as(BOOL)?.condition()?, right.settle_as(BOOL)?.condition()?];
            Typed::of(if op == "and" { Condition::And(operands) } else { Condition::Or(operands) })
        }
        "=" | "<>" | "!=" | "<" | "<=" | ">" | ">=" => {
            let (left, right) = comparable(op, left, right)?;
            Typed::of(Condition::Compare(comparison(op), left, right))
        }
        "is distinct from" | "is not distinct from" => {
            let (left, right) = comparable(op, left, right)?;
            let distinct = Condition::IsDistinct(left, right);
            Typed::of(if op == "is distinct from" { distinct } else { Condition::Not(Box::new(distinct)) })
        }
        "+" => arithmetic(Arithmetic::Add, op, left, right)?,
        "-" => arithmetic(Arithmetic::Subtract, op, left, right)?,
        "*" => arithmetic(Arithmetic::Multiply, op, left, right)?,
        "/" => arithmetic(Arithmetic::Divide, op, left, right)?,
        "%" => arithmetic(Arithmetic::Remainder, op, left, right)?,
        "||" => {
            let arguments = vec![left.settle_as(TEXT)?.scalar, right.settle_as(TEXT)?.scalar];
            Typed { scalar: fold(Scalar::Call(Function::Append, arguments)), ty: TEXT }
        }
        _ => return Err(TypingError::Unsupported(format!("operator {op} is not supported"))),
    })
}

/// Applies a unary operator, given in lower case.
///
/// # Errors
/// An operator that is not supported, or an operand it does not take.
pub fn unary(op: &str, operand: Operand) -> Result<Typed, TypingError> {
    Ok(match op {
        "+" => operand.settle_as(FLOAT8)?,
        "-" => arithmetic(
            Arithmetic::Subtract,
            op,
            Operand::typed(Scalar::Constant(Value::Int8(0)), Type::Int4),
            operand,
        )?,
        "not" => Typed::of(Condition::Not(Box::new(operand.settle_as(BOOL)?.condition()?))),
        "is null" => Typed::of(Condition::IsNull(operand.settle().scalar)),
        "is not null" => Typed::of(Condition::Not(Box::new(Condition::IsNull(operand.settle().scalar)))),
        _ => return Err(TypingError::Unsupported(format!("operator {op} is not supported"))),
    })
}

fn comparison(op: &str) -> Compare {
    match op {
        "=" => Compare::Equal,
        "<" => Compare::Less,
        "<=" => Compare::LessOrEqual,
        ">" => Compare::Greater,
        ">=" => Compare::GreaterOrEqual,
        _ => Compare::NotEqual,
    }
}

/// Both sides as they are compared.
fn comparable(op: &str, left: Operand, right: Operand) -> Result<(Scalar, Scalar), TypingError> {
    let (left, right) = match (left.ty(), right.ty()) {
        (Some(_), Some(_)) => (left.settle(), right.settle()),
        (Some(ty), None) => (left.settle(), right.settle_as(widened(ty))?),
        (None, Some(ty)) => (left.settle_as(widened(ty))?, right.settle()),
        (None, None) => (left.settle(), right.settle()),
    };
    let moment = |ty| ty == DATE || ty == TIMESTAMPTZ;
    let (a, b) = (left.ty, right.ty);
    if a != b && !(a.is_number() && b.is_number()) && !(moment(a) && moment(b)) {
        return Err(TypingError::Mismatch(format!("operator {op} does not compare {a} with {b}")));
    }
    Ok((left.scalar, right.scalar))
}

/// A literal beside an integer of 32 bits may have 64.
fn widened(ty: Type) -> Type {
    if ty == Type::Int4 { INT8 } else { ty }
}

fn arithmetic(op: Arithmetic, name: &str, left: Operand, right: Operand) -> Result<Typed, TypingError> {
    let (left, right) = match (left.ty(), right.ty()) {
        (Some(ty), None) => (left.settle(), right.settle_as(ty)?),
        (None, Some(ty)) => (left.settle_as(ty)?, right.settle()),
        _ => (left.settle(), right.settle()),
    };
    let ty = [Type::Int4, INT8, NUMERIC, FLOAT8]
        .into_iter()
        .find(|ty| left.ty.converts_to(*ty) && right.ty.converts_to(*ty))
        .ok_or_else(|| {
            TypingError::Mismatch(format!("operator {name} does not take {} and {}", left.ty, right.ty))
        })?;
    let (left, right) = (left.implicitly(ty)?.scalar, right.implicitly(ty)?.scalar);
    Ok(Typed { scalar: fold(Scalar::Arithmetic(op, Box::new(left), Box::new(right))), ty })
}
