//! Why a query is refused when it is registered.

/// What kind of fault; one to one with the protocol's error codes of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueryErrorKind {
    /// Syntax, an unsupported construct, or a limit on the query's size.
    BadQuery,
    /// A table that does not exist.
    UnknownTable,
    /// A column that does not exist.
    UnknownColumn,
    /// A named query that does not exist.
    UnknownName,
    /// Operands or a literal of the wrong type.
    TypeMismatch,
    /// A missing, superfluous or wrong parameter.
    BadArgs,
    /// A parameter that only the token may give.
    Forbidden,
    /// The server cannot take the query now.
    NotReady,
    /// Evaluating it failed.
    QueryFaulted,
    /// A table was altered or dropped since the query was prepared.
    SchemaChanged,
    /// A write that contradicts what is there.
    Conflict,
    /// A defect.
    Internal,
}

/// A refusal, with a message that names what is at fault and where in the query it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct QueryError {
    /// What kind of fault.
    pub kind: QueryErrorKind,
    /// What is at fault, for people.
    pub message: String,
}

impl QueryError {
    /// A refusal of a kind.
    #[must_use]
    pub fn new(kind: QueryErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}
