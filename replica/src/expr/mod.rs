//! The typed expression language: conditions with three-valued logic and the scalars they compare. Names are
//! resolved and types checked when a query is registered, so evaluation fails only on values: division by zero,
//! overflow, a malformed pattern.

pub mod arithmetic;
pub mod condition;
pub mod function;
pub mod like;
pub mod scalar;
pub mod typing;

pub use condition::{Compare, Condition, ExistsProbe};
pub use function::Function;
pub use like::Pattern;
pub use scalar::Scalar;

/// Why an expression has no value for a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// A division or remainder by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A result outside its type's range.
    #[error("{0} out of range")]
    OutOfRange(&'static str),
    /// A pattern that ends in its escape character.
    #[error("LIKE pattern must not end with escape character")]
    LikeEscape,
    /// An argument a function does not accept.
    #[error("{function}: {problem}")]
    Argument {
        /// The function's name.
        function: &'static str,
        /// What is wrong.
        problem: &'static str,
    },
    /// Reading took longer than the deadline.
    #[error("deadline passed")]
    Deadline,
    /// An index that the plan reads is not in the snapshot.
    #[error("the snapshot lacks an index that the query reads")]
    MissingIndex,
    /// Reading took more rows than it was given.
    #[error("more rows than the reader was given")]
    RowLimit,
}

impl EvalError {
    /// Whether the error is of the whole step, not of the row or binding that it met.
    #[must_use]
    pub fn is_of_step(&self) -> bool {
        matches!(self, Self::Deadline | Self::MissingIndex | Self::RowLimit)
    }
}
