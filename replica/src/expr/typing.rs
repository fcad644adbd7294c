//! From operands with types to typed scalars: PostgreSQL's rules for operators, functions, casts and literals without a
//! type of their own. Shared by queries in SQL and in JSON.

mod cast;
mod fold;
mod function;
mod literal;
mod operator;
mod predicate;
#[cfg(test)]
mod tests;

pub use cast::{assign, cast, cast_numeric};
pub use function::{call, extract, is_function};
pub use literal::{number, type_by_name};
pub use operator::{binary, unary};
pub use predicate::{between, case, in_list, like, unify};

use self::fold::{called, fold};
use super::{Condition, Scalar};
use std::fmt;
use tidegate_wire::model::{ColumnType, Value};

const BOOL: Type = Type::Column(ColumnType::Bool);
const INT8: Type = Type::Column(ColumnType::Int8);
const FLOAT8: Type = Type::Column(ColumnType::Float8);
const NUMERIC: Type = Type::Column(ColumnType::Numeric);
const TEXT: Type = Type::Column(ColumnType::Text);
const BYTEA: Type = Type::Column(ColumnType::Bytea);
const DATE: Type = Type::Column(ColumnType::Date);
const TIMESTAMPTZ: Type = Type::Column(ColumnType::Timestamptz);
const JSON: Type = Type::Column(ColumnType::Json);

/// A type as expressions know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A column type.
    Column(ColumnType),
    /// An integer literal, a cast to `integer`, a function such as `length`, or what is computed of such alone: stored as
    /// int8, but within 32 bits, and `sum` of it is int8, not numeric.
    Int4,
    /// An interval; exists only inside expressions.
    Interval,
}

/// A scalar whose type is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Typed {
    /// The scalar.
    pub scalar: Scalar,
    /// Its type.
    pub ty: Type,
}

/// What an operator or function is given.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A scalar of a known type.
    Typed(Typed),
    /// A quoted literal, which takes the type of what it meets; `None` is NULL.
    Unknown(Option<String>),
}

/// Why operands do not go together. Says nothing of the place, which the caller adds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypingError {
    /// No such function or operator.
    #[error("{0}")]
    Unsupported(String),
    /// Types that do not go together, or a literal that is not of the type it meets.
    #[error("{0}")]
    Mismatch(String),
}

impl Operand {
    /// An operand of a known type.
    #[must_use]
    pub fn typed(scalar: Scalar, ty: Type) -> Self {
        Self::Typed(Typed { scalar, ty })
    }

    /// The operand where nothing says what it should be: a literal is text.
    #[must_use]
    pub fn settle(self) -> Typed {
        match self {
            Self::Typed(typed) => typed,
            Self::Unknown(literal) => Typed {
                scalar: Scalar::Constant(literal.map_or(Value::Null, |text| Value::Text(text.into()))),
                ty: TEXT,
            },
        }
    }

    /// The operand where a value of `ty` is wanted: a literal takes the type, a typed operand is converted where
    /// PostgreSQL converts by itself.
    ///
    /// # Errors
    /// When the literal is not one of the type, or the operand's type is not converted to it.
    pub fn settle_as(self, ty: Type) -> Result<Typed, TypingError> {
        match self {
            Self::Typed(typed) => typed.implicitly(ty),
            Self::Unknown(None) => Ok(Typed { scalar: Scalar::Constant(Value::Null), ty }),
            Self::Unknown(Some(text)) => {
                Ok(Typed { scalar: Scalar::Constant(literal::value(&text, ty)?), ty })
            }
        }
    }

    /// The type, or `None` for a literal without one.
    #[must_use]
    pub fn ty(&self) -> Option<Type> {
        match self {
            Self::Typed(typed) => Some(typed.ty),
            Self::Unknown(_) => None,
        }
    }
}

impl Typed {
    /// The scalar as a condition.
    ///
    /// # Errors
    /// When it is not boolean.
    pub fn condition(self) -> Result<Condition, TypingError> {
        if self.ty != BOOL {
            return Err(TypingError::Mismatch(format!("expected bool, found {}", self.ty)));
        }
        Ok(match self.scalar {
            Scalar::Constant(Value::Bool(truth)) => Condition::Constant(Some(truth)),
            Scalar::Constant(Value::Null) => Condition::Constant(None),
            Scalar::Condition(condition) => *condition,
            scalar => Condition::Truth(scalar),
        })
    }

    /// The type a column of these values has.
    ///
    /// # Errors
    /// For an interval, which no column holds.
    pub fn column_type(&self) -> Result<ColumnType, TypingError> {
        match self.ty {
            Type::Column(ty) => Ok(ty),
            Type::Int4 => Ok(ColumnType::Int8),
            Type::Interval => Err(TypingError::Unsupported(
                "an interval cannot be a column of a result; use extract(epoch from …) or a cast to text"
                    .to_owned(),
            )),
        }
    }

    /// The scalar as one of `ty`, where PostgreSQL converts by itself.
    fn implicitly(self, ty: Type) -> Result<Self, TypingError> {
        if self.ty == ty {
            return Ok(self);
        }
        if !self.ty.converts_to(ty) {
            return Err(TypingError::Mismatch(format!("expected {ty}, found {}", self.ty)));
        }
        let scalar = match (self.ty, ty) {
            (Type::Int4, INT8) => self.scalar,
            _ => fold(Scalar::Convert(ty, Box::new(self.scalar))),
        };
        Ok(Self { scalar, ty })
    }

    fn of(condition: Condition) -> Self {
        Self { scalar: fold(Scalar::Condition(Box::new(condition))), ty: BOOL }
    }
}

impl Type {
    /// Whether PostgreSQL converts values of this type to `other` by itself.
    #[must_use]
    pub fn converts_to(self, other: Self) -> bool {
        match (self.number_rank(), other.number_rank()) {
            (Some(own), Some(wanted)) => own <= wanted,
            _ => self == other || (self == DATE && other == TIMESTAMPTZ),
        }
    }

    fn number_rank(self) -> Option<u8> {
        match self {
            Self::Int4 => Some(0),
            INT8 => Some(1),
            NUMERIC => Some(2),
            FLOAT8 => Some(3),
            _ => None,
        }
    }

    /// The name that PostgreSQL's messages give it.
    #[must_use]
    pub fn postgres_name(self) -> &'static str {
        match self {
            Self::Column(ColumnType::Bool) => "boolean",
            Self::Column(ColumnType::Int8) => "bigint",
            Self::Column(ColumnType::Float8) => "double precision",
            Self::Column(ColumnType::Timestamptz) => "timestamp with time zone",
            Self::Column(ty) => ty.name(),
            Self::Int4 => "integer",
            Self::Interval => "interval",
        }
    }

    /// Whether its values are numbers.
    #[must_use]
    pub fn is_number(self) -> bool {
        self.number_rank().is_some()
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(ty) => ty.fmt(f),
            Self::Int4 => f.write_str("integer"),
            Self::Interval => f.write_str("interval"),
        }
    }
}
