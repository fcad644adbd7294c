//! The two ways the oracle says no. Codes are those of the wire protocol; texts are for people.

use std::fmt;

/// Why a commit was refused. The database is as it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `conflict`, `type_mismatch`, `unknown_table`, `unknown_column` or `bad_message`.
    pub code: &'static str,
    /// What is wrong, naming table, key and column where there are any.
    pub message: String,
    /// Which operation of the commit, counted from 0; `None` where the fault is not in one operation.
    pub op: Option<usize>,
}

impl Refusal {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Refusal { code, message: message.into(), op: None }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.op {
            Some(op) => write!(f, "{}: operation {op}: {}", self.code, self.message),
            None => write!(f, "{}: {}", self.code, self.message),
        }
    }
}

impl std::error::Error for Refusal {}

/// Why a query has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    /// `bad_query`, `unknown_table`, `unknown_column`, `type_mismatch`, `bad_args`, `forbidden`, or `query_faulted`
    /// for an error that only the rows bring about.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
}

impl QueryError {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        QueryError { code, message: message.into() }
    }

    pub(super) fn bad_query(message: impl Into<String>) -> Self {
        Self::new("bad_query", message)
    }

    pub(super) fn type_mismatch(message: impl Into<String>) -> Self {
        Self::new("type_mismatch", message)
    }

    pub(super) fn faulted(message: impl Into<String>) -> Self {
        Self::new("query_faulted", message)
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for QueryError {}
