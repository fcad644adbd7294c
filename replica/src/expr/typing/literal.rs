//! Literals and type names of SQL text.

use super::{INT8, NUMERIC, Operand, Type, TypingError};
use crate::expr::{Scalar, cast};
use std::sync::Arc;
use tidegate_wire::model::{ColumnType, Numeric, Value};

/// The operand that a numeric literal of SQL text, with a minus sign or without, stands for: an integer of 32 bits, else an
/// int8, else a numeric, as PostgreSQL decides. `None` when the text is not a number.
#[must_use]
pub fn number(text: &str) -> Option<Operand> {
    let text = text.trim();
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        if let Ok(value) = text.parse::<i32>() {
            return Some(Operand::typed(Scalar::Constant(Value::Int8(value.into())), Type::Int4));
        }
        if let Ok(value) = text.parse::<i64>() {
            return Some(Operand::typed(Scalar::Constant(Value::Int8(value)), INT8));
        }
    }
    match text.parse() {
        Ok(value @ Numeric::Finite(_)) => {
            Some(Operand::typed(Scalar::Constant(Value::Numeric(Arc::new(value))), NUMERIC))
        }
        _ => None,
    }
}

/// The type of a SQL type name in lower case, or `None` for one that is not supported.
#[must_use]
pub fn type_by_name(name: &str) -> Option<Type> {
    Some(match name {
        "int" | "int4" | "integer" | "int2" | "smallint" => Type::Int4,
        "interval" => Type::Interval,
        name => Type::Column(ColumnType::from_name(name)?),
    })
}

/// The value of a quoted literal that takes a type.
pub(super) fn value(text: &str, ty: Type) -> Result<Value, TypingError> {
    cast::from_text(text, ty).map_err(|error| TypingError::Mismatch(error.to_string()))
}
