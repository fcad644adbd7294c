//! From operands with types to typed scalars: PostgreSQL's rules for operators, functions, casts and literals without a
//! type of their own. Shared by queries in SQL and in JSON.

use super::{Condition, Scalar};
use tidegate_wire::model::ColumnType;

/// A type as expressions know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A column type.
    Column(ColumnType),
    /// An integer literal or what is computed of such alone: stored as int8, but `sum` of it is int8, not numeric.
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
