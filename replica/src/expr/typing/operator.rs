//! The operators.

use super::{
    BOOL, BYTEA, DATE, FLOAT8, INT8, JSON, NUMERIC, Operand, TEXT, TIMESTAMPTZ, Type, Typed, TypingError,
    called, cast, fold, predicate,
};
use crate::expr::{Compare, Condition, Function, Scalar, json_path, scalar::Arithmetic};

/// Applies a binary operator, given in lower case.
///
/// # Errors
/// An operator that is not supported, or operands it does not take.
pub fn binary(op: &str, left: Operand, right: Operand) -> Result<Typed, TypingError> {
    Ok(match op {
        "and" | "or" => {
            let (left, right) = (left.settle_as(BOOL)?.condition()?, right.settle_as(BOOL)?.condition()?);
            // `a and b and c` is one list, whichever way it is nested.
            let mut operands = Vec::with_capacity(2);
            for operand in [left, right] {
                match (op, operand) {
                    ("and", Condition::And(inner)) | ("or", Condition::Or(inner)) => operands.extend(inner),
                    (_, operand) => operands.push(operand),
                }
            }
            Typed::of(if op == "and" { Condition::And(operands) } else { Condition::Or(operands) })
        }
        "=" | "<>" | "!=" | "<" | "<=" | ">" | ">=" => {
            let (left, right) = comparable(op, left, right)?;
            Typed::of(Condition::Compare(comparison(op), left, right))
        }
        "is distinct from" => {
            let (left, right) = comparable(op, left, right)?;
            Typed::of(Condition::IsDistinct(left, right))
        }
        "is not distinct from" => negated(binary("is distinct from", left, right)?)?,
        "+" => computed(Arithmetic::Add, op, left, right)?,
        "-" => computed(Arithmetic::Subtract, op, left, right)?,
        "*" => computed(Arithmetic::Multiply, op, left, right)?,
        "/" => computed(Arithmetic::Divide, op, left, right)?,
        "%" => computed(Arithmetic::Remainder, op, left, right)?,
        "||" => append(left, right)?,
        "~" | "~*" => predicate::regex(left, right, op == "~*")?,
        "!~" => negated(predicate::regex(left, right, false)?)?,
        "!~*" => negated(predicate::regex(left, right, true)?)?,
        "->" | "->>" => {
            let json = left.settle_as(JSON)?.scalar;
            let key = match right.ty() {
                Some(ty) if ty.is_number() => right.settle_as(INT8)?,
                _ => right.settle_as(TEXT)?,
            };
            if op == "->" {
                called(Function::JsonMember, vec![json, key.scalar], JSON)
            } else {
                called(Function::JsonMemberText, vec![json, key.scalar], TEXT)
            }
        }
        "#>" | "#>>"
            if let Operand::Unknown(Some(path)) = &right
                && let Err(error) = json_path::array_items(path) =>
        {
            return Err(TypingError::Mismatch(error.to_string()));
        }
        "#>" => document_function(Function::JsonPath, left, right, TEXT, JSON)?,
        "#>>" => document_function(Function::JsonPathText, left, right, TEXT, TEXT)?,
        "?" => document_function(Function::JsonHasKey, left, right, TEXT, BOOL)?,
        "@>" => document_function(Function::JsonContains, left, right, JSON, BOOL)?,
        "<@" => document_function(Function::JsonContains, right, left, JSON, BOOL)?,
        _ => return Err(TypingError::Unsupported(format!("operator {op} is not supported"))),
    })
}

/// Applies a unary operator, given in lower case.
///
/// # Errors
/// An operator that is not supported, or an operand it does not take.
pub fn unary(op: &str, operand: Operand) -> Result<Typed, TypingError> {
    let truth = |operand: Operand, truth: Option<bool>| -> Result<Typed, TypingError> {
        Ok(Typed::of(Condition::Is(Box::new(operand.settle_as(BOOL)?.condition()?), truth)))
    };
    match op {
        "+" | "-" => {
            let typed = match operand.ty() {
                None => operand.settle_as(FLOAT8)?,
                Some(_) => operand.settle(),
            };
            match (op, typed.ty) {
                ("+", ty) if ty.is_number() => Ok(typed),
                ("-", Type::Int4) => {
                    Ok(within_int4(called(Function::Negate, vec![typed.scalar], Type::Int4)))
                }
                ("-", ty) if ty.is_number() => Ok(called(Function::Negate, vec![typed.scalar], ty)),
                ("-", Type::Interval) => {
                    Ok(called(Function::NegateInterval, vec![typed.scalar], Type::Interval))
                }
                (op, ty) => Err(TypingError::Mismatch(format!("operator {op} does not take {ty}"))),
            }
        }
        "not" => negated(operand.settle_as(BOOL)?),
        "is null" => Ok(Typed::of(Condition::IsNull(operand.settle().scalar))),
        "is not null" => negated(unary("is null", operand)?),
        "is true" => truth(operand, Some(true)),
        "is false" => truth(operand, Some(false)),
        "is unknown" => truth(operand, None),
        "is not true" => negated(truth(operand, Some(true))?),
        "is not false" => negated(truth(operand, Some(false))?),
        "is not unknown" => negated(truth(operand, None)?),
        _ => Err(TypingError::Unsupported(format!("operator {op} is not supported"))),
    }
}

fn negated(typed: Typed) -> Result<Typed, TypingError> {
    Ok(Typed::of(Condition::Not(Box::new(typed.condition()?))))
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
pub(super) fn comparable(op: &str, left: Operand, right: Operand) -> Result<(Scalar, Scalar), TypingError> {
    let (left, right) = settled(left, right)?;
    let moment = |ty| ty == DATE || ty == TIMESTAMPTZ;
    let (a, b) = (left.ty, right.ty);
    if a == Type::Interval && b == Type::Interval {
        return Ok((interval_order(left.scalar), interval_order(right.scalar)));
    }
    // Beside a double a numeric is one too; integers are compared with doubles by their exact values.
    if (a, b) == (NUMERIC, FLOAT8) || (a, b) == (FLOAT8, NUMERIC) {
        return Ok((left.implicitly(FLOAT8)?.scalar, right.implicitly(FLOAT8)?.scalar));
    }
    if a != b && !(a.is_number() && b.is_number()) && !(moment(a) && moment(b)) {
        return Err(TypingError::Mismatch(format!("operator {op} does not compare {a} with {b}")));
    }
    Ok((left.scalar, right.scalar))
}

/// What an interval compares by.
pub(super) fn interval_order(interval: Scalar) -> Scalar {
    fold(Scalar::Call(Function::IntervalOrder, vec![interval]))
}

/// Both operands, where a literal takes the other's type.
fn settled(left: Operand, right: Operand) -> Result<(Typed, Typed), TypingError> {
    Ok(match (left.ty(), right.ty()) {
        (Some(ty), None) => (left.settle(), right.settle_as(ty)?),
        (None, Some(ty)) => (left.settle_as(ty)?, right.settle()),
        _ => (left.settle(), right.settle()),
    })
}

fn document_function(
    function: Function,
    json: Operand,
    argument: Operand,
    ty: Type,
    result: Type,
) -> Result<Typed, TypingError> {
    let arguments = vec![json.settle_as(JSON)?.scalar, argument.settle_as(ty)?.scalar];
    Ok(called(function, arguments, result))
}

/// `left || right`: of bytes, or of texts, where one side is a text.
fn append(left: Operand, right: Operand) -> Result<Typed, TypingError> {
    let (a, b) = (left.ty(), right.ty());
    if a == Some(BYTEA) && (b.is_none() || b == a) || b == Some(BYTEA) && a.is_none() {
        let arguments = vec![left.settle_as(BYTEA)?.scalar, right.settle_as(BYTEA)?.scalar];
        return Ok(called(Function::Append, arguments, BYTEA));
    }
    if a == Some(JSON) && b != Some(TEXT) || b == Some(JSON) && a != Some(TEXT) {
        return Err(TypingError::Unsupported("operator || of json is not supported".to_owned()));
    }
    let is_text = |ty: Option<Type>| ty.is_none() || ty == Some(TEXT);
    if !is_text(a) && !is_text(b) {
        let (left, right) = (left.settle().ty, right.settle().ty);
        return Err(TypingError::Mismatch(format!("operator || does not take {left} and {right}")));
    }
    let text = |operand: Operand| match operand.ty() {
        None => operand.settle_as(TEXT),
        Some(_) => cast(operand, TEXT),
    };
    let arguments = vec![text(left)?.scalar, text(right)?.scalar];
    Ok(called(Function::Append, arguments, TEXT))
}

/// An integer that must fit 32 bits.
pub(super) fn within_int4(typed: Typed) -> Typed {
    called(Function::Int4, vec![typed.scalar], Type::Int4)
}

fn computed(op: Arithmetic, name: &str, left: Operand, right: Operand) -> Result<Typed, TypingError> {
    if let Some(typed) = of_moments(op, &left, &right) {
        return typed;
    }
    let (left, right) = settled(left, right)?;
    let ty = [Type::Int4, INT8, NUMERIC, FLOAT8]
        .into_iter()
        .find(|ty| left.ty.converts_to(*ty) && right.ty.converts_to(*ty))
        .ok_or_else(|| {
            TypingError::Mismatch(format!("operator {name} does not take {} and {}", left.ty, right.ty))
        })?;
    if ty == FLOAT8 && op == Arithmetic::Remainder {
        return Err(TypingError::Mismatch("% works on integers and numeric, not on float8".to_owned()));
    }
    let (left, right) = (left.implicitly(ty)?.scalar, right.implicitly(ty)?.scalar);
    let scalar = fold(Scalar::Arithmetic(op, Box::new(left), Box::new(right)));
    let typed = Typed { scalar, ty };
    Ok(if ty == Type::Int4 { within_int4(typed) } else { typed })
}

/// Arithmetic with dates, moments and intervals; `None` when neither operand is one.
fn of_moments(op: Arithmetic, left: &Operand, right: &Operand) -> Option<Result<Typed, TypingError>> {
    use Arithmetic::{Add, Divide, Multiply, Subtract};
    use Type::Interval;
    let temporal = |ty: Option<Type>| matches!(ty, Some(DATE | TIMESTAMPTZ | Interval));
    let (a, b) = (left.ty(), right.ty());
    if !temporal(a) && !temporal(b) {
        return None;
    }
    let is_integer = |ty: Option<Type>| matches!(ty, Some(Type::Int4 | INT8));
    let is_number = |ty: Option<Type>| ty.is_some_and(Type::is_number);
    // The function, the types it takes, its result, and whether the operands change places.
    let (function, takes, result, swapped) = match (op, a, b) {
        (Add, Some(DATE), b) if is_integer(b) => (Function::AddDays, (DATE, INT8), DATE, false),
        (Add, a, Some(DATE)) if is_integer(a) => (Function::AddDays, (DATE, INT8), DATE, true),
        (Subtract, Some(DATE), b) if is_integer(b) => (Function::SubtractDays, (DATE, INT8), DATE, false),
        (Subtract, Some(DATE), Some(DATE) | None) | (Subtract, None, Some(DATE)) => {
            (Function::DaysBetween, (DATE, DATE), Type::Int4, false)
        }
        (Add, Some(DATE | TIMESTAMPTZ), Some(Interval)) | (Add, Some(TIMESTAMPTZ), None) => {
            (Function::AddInterval, (TIMESTAMPTZ, Interval), TIMESTAMPTZ, false)
        }
        (Add, Some(Interval), Some(DATE | TIMESTAMPTZ)) | (Add, None, Some(TIMESTAMPTZ)) => {
            (Function::AddInterval, (TIMESTAMPTZ, Interval), TIMESTAMPTZ, true)
        }
        (Subtract, Some(DATE | TIMESTAMPTZ), Some(Interval)) => {
            (Function::SubtractInterval, (TIMESTAMPTZ, Interval), TIMESTAMPTZ, false)
        }
        (Subtract, Some(DATE | TIMESTAMPTZ) | None, Some(TIMESTAMPTZ))
        | (Subtract, Some(TIMESTAMPTZ), Some(DATE) | None) => {
            (Function::Elapsed, (TIMESTAMPTZ, TIMESTAMPTZ), Interval, false)
        }
        (Add, Some(Interval), Some(Interval) | None) | (Add, None, Some(Interval)) => {
            (Function::AddIntervals, (Interval, Interval), Interval, false)
        }
        (Subtract, Some(Interval), Some(Interval) | None) | (Subtract, None, Some(Interval)) => {
            (Function::SubtractIntervals, (Interval, Interval), Interval, false)
        }
        (Multiply, Some(Interval), b) if is_number(b) || b.is_none() => {
            (Function::MultiplyInterval, (Interval, FLOAT8), Interval, false)
        }
        (Multiply, a, Some(Interval)) if is_number(a) || a.is_none() => {
            (Function::MultiplyInterval, (Interval, FLOAT8), Interval, true)
        }
        (Divide, Some(Interval), b) if is_number(b) || b.is_none() => {
            (Function::DivideInterval, (Interval, FLOAT8), Interval, false)
        }
        _ => {
            let name = |ty: Option<Type>| ty.map_or_else(|| "a literal".to_owned(), |ty| ty.to_string());
            let problem = format!("no such operation of {} and {}", name(a), name(b));
            return Some(Err(TypingError::Mismatch(problem)));
        }
    };
    let (first, second) = if swapped { (right, left) } else { (left, right) };
    Some(first.clone().settle_as(takes.0).and_then(|first| {
        let second = second.clone().settle_as(takes.1)?;
        Ok(called(function, vec![first.scalar, second.scalar], result))
    }))
}
