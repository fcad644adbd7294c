//! The typed expression language: conditions with three-valued logic and the scalars they compare. Names are
//! resolved and types checked when a query is registered, so evaluation fails only on values: division by zero,
//! overflow, a malformed pattern.

pub mod arithmetic;
pub mod calendar;
pub mod cast;
mod cells;
pub mod condition;
pub mod datetime;
pub mod decimal;
pub mod format;
pub mod function;
pub mod interval;
pub mod json_path;
mod json_text;
pub mod like;
pub mod regex;
mod result_type;
pub mod scalar;
pub mod text;
pub mod typing;

pub use cells::{Beside, Cells, beside, row_and_column};
pub use condition::{Compare, Condition, ExistsProbe, NoExists};
pub use function::Function;
pub use interval::Interval;
pub use like::Pattern;
pub use regex::Regex;
pub use scalar::Scalar;

use tidegate_wire::model::DOCUMENT_LEVELS_MAX;

/// Why an expression has no value for a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// A division or remainder by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A result outside its type's range.
    #[error("{0} out of range")]
    OutOfRange(&'static str),
    /// A date or moment outside the years that columns can hold.
    #[error("{what} out of range: {text} is not in the years 0000 (1 BC) to 9999")]
    OutsideYears {
        /// What it would be.
        what: &'static str,
        /// It, as PostgreSQL writes it.
        text: String,
    },
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
    /// More rows between operators than a step may have.
    #[error("an intermediate result has more than {0} rows; narrow the query")]
    TooManyRows(u64),
    /// A scalar subquery that yields several rows.
    #[error("more than one row returned by a subquery used as an expression")]
    ManyRows,
    /// A numeric beyond its limit of digits.
    #[error("value overflows numeric format")]
    NumericOverflow,
    /// A numeric that does not fit its declared precision.
    #[error("numeric field overflow: precision {precision}, scale {scale}")]
    NumericField {
        /// Digits.
        precision: u32,
        /// Of these after the point.
        scale: i32,
    },
    /// A text that is not one of a type.
    #[error("invalid input syntax for type {ty}: \"{text}\"")]
    InvalidText {
        /// The type's name in PostgreSQL.
        ty: &'static str,
        /// The text.
        text: String,
    },
    /// A text that is a JSON document of too many levels.
    #[error("json has at most {DOCUMENT_LEVELS_MAX} levels of arrays and objects")]
    JsonLevels,
    /// A text whose number is outside its type's range.
    #[error("value \"{text}\" is out of range for type {ty}")]
    TextOutOfRange {
        /// The type's name in PostgreSQL.
        ty: &'static str,
        /// The text.
        text: String,
    },
    /// A text that has the form of a date, time or interval, but not its values.
    #[error("{what} field value out of range: \"{text}\"")]
    FieldOutOfRange {
        /// What it should be.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// A unit or field that a type of date or time does not have.
    #[error("unit \"{unit}\" not supported for type {ty}")]
    Unit {
        /// The unit.
        unit: String,
        /// The type's name in PostgreSQL.
        ty: &'static str,
    },
    /// A JSON document of another kind than the type it is cast to.
    #[error("cannot cast jsonb {kind} to type {ty}")]
    CastOfJson {
        /// The document's kind.
        kind: &'static str,
        /// The type's name in PostgreSQL.
        ty: &'static str,
    },
    /// A regular expression that cannot be used.
    #[error("invalid regular expression: {0}")]
    Regex(String),
    /// What PostgreSQL's regular expressions have and those here do not.
    #[error("{0} not supported in regular expressions")]
    RegexFeature(&'static str),
    /// A format that `to_char`, `to_date` and the like do not know.
    #[error("unsupported format: {0}")]
    Format(String),
    /// Reading took longer than the deadline.
    #[error("it took longer than workers.deadline_ms allows; narrow the query, or raise that")]
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
        matches!(self, Self::Deadline | Self::MissingIndex | Self::RowLimit | Self::TooManyRows(_))
    }
}
