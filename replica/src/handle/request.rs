//! What goes into a replica and what comes back.

use crate::{
    query::{Output, Resolved},
    store::{CommitError, CommitErrorKind, StoreClosed},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tidegate_wire::model::{ColumnType, Cv, Epoch, Fingerprint};

/// What is remembered of a body.
#[derive(Clone, Debug, PartialEq)]
pub struct IdempotencyEntry {
    /// Hash of the body.
    pub body_hash: u128,
    /// How many of its commits are applied.
    pub applied: u64,
    /// The commit version of the last.
    pub cv: Cv,
    /// The refusal it ended with.
    pub refused: Option<CommitRefusal>,
    /// The line that was refused, when it is one that holds no commit.
    pub refused_line: Option<u64>,
}

/// How far a list of commits got.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitOutcome {
    /// How many were applied.
    pub applied: usize,
    /// The commit version of the last applied, or the newest when none was.
    pub cv: Cv,
    /// Why the next one was refused.
    pub refused: Option<CommitRefusal>,
}

/// Kinds of refusal; one to one with the protocol's error codes of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitRefusalKind {
    /// Malformed: a key column in `set`, an incomplete key, too many operations.
    BadMessage,
    /// A table that does not exist.
    UnknownTable,
    /// A column that does not exist.
    UnknownColumn,
    /// A value of the wrong type, or NULL in a non-null column.
    TypeMismatch,
    /// The write contradicts what is there.
    Conflict,
    /// A line that is too long.
    MessageTooLarge,
    /// A table that only the server writes.
    Forbidden,
    /// A table was altered or dropped while the commit was under way.
    SchemaChanged,
    /// The source of commits is elsewhere.
    ReadOnly,
    /// The log cannot be written now.
    NotReady,
    /// A defect of the server's own.
    Internal,
}

impl From<CommitErrorKind> for CommitRefusalKind {
    fn from(kind: CommitErrorKind) -> Self {
        match kind {
            CommitErrorKind::UnknownTable => Self::UnknownTable,
            CommitErrorKind::UnknownColumn => Self::UnknownColumn,
            CommitErrorKind::TypeMismatch => Self::TypeMismatch,
            CommitErrorKind::Conflict => Self::Conflict,
            CommitErrorKind::BadMessage => Self::BadMessage,
            CommitErrorKind::MessageTooLarge => Self::MessageTooLarge,
            CommitErrorKind::Forbidden => Self::Forbidden,
            CommitErrorKind::SchemaChanged => Self::SchemaChanged,
            CommitErrorKind::NotReady => Self::NotReady,
            CommitErrorKind::Internal => Self::Internal,
        }
    }
}

impl From<&CommitError> for CommitRefusal {
    fn from(error: &CommitError) -> Self {
        Self { kind: error.code().into(), message: error.to_string() }
    }
}

impl From<StoreClosed> for CommitRefusal {
    fn from(closed: StoreClosed) -> Self {
        Self { kind: CommitRefusalKind::NotReady, message: closed.to_string() }
    }
}

/// Why a commit was refused. It changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct CommitRefusal {
    /// What kind of fault.
    pub kind: CommitRefusalKind,
    /// Names the table, key and column at fault.
    pub message: String,
}

/// What became of a mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutationOutcome {
    /// The newest commit version it is part of.
    pub cv: Cv,
    /// Why it was refused; its id counts as used all the same, except after a gap.
    pub refused: Option<CommitRefusal>,
}

/// A query and its arguments, as a client gives them.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryRequest {
    /// The query.
    pub source: QuerySource,
    /// Parameters by name.
    pub args: Map<String, Json>,
}

/// The three ways to give a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuerySource {
    /// As JSON.
    Query(Json),
    /// As SQL text.
    Sql(String),
    /// The name of a named query.
    Name(String),
}

impl QuerySource {
    /// The source of the one that is given; `None` when there is neither or both.
    #[must_use]
    pub fn one_of(query: Option<Json>, sql: Option<String>) -> Option<Self> {
        match (query, sql) {
            (Some(query), None) => Some(Self::Query(query)),
            (None, Some(sql)) => Some(Self::Sql(sql)),
            _ => None,
        }
    }
}

/// A query whose names, types and arguments are checked, ready to run or to subscribe to. Cheap to clone.
#[derive(Clone)]
pub struct PreparedQuery {
    /// What of its rows travels.
    pub output: Arc<Output>,
    pub(super) resolved: Resolved,
    pub(super) by_name: Option<ByName>,
    pub(super) idle_ttl: Option<Duration>,
}

/// How a prepared query was asked for by name, so that it can be prepared again when the name is given to another.
#[derive(Clone)]
pub(super) struct ByName {
    pub(super) name: String,
    /// Which of the name's definitions it was prepared from.
    pub(super) definition: DefinitionId,
    /// See [`super::named::NamedState::defined_at`].
    pub(super) defined_at: Cv,
    pub(super) args: Map<String, Json>,
    pub(super) claims: Map<String, Json>,
}

impl ByName {
    pub(super) fn id(&self) -> DefinitionId {
        self.definition
    }
}

/// Names one definition of a named query for as long as the process lives; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DefinitionId(pub(super) u64);

/// What a client still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumePoint {
    /// The epoch they were sent in, which tells the history that `cv` belongs to. Without one, the client answers for
    /// its being this server's.
    pub epoch: Option<Epoch>,
    /// The commit version its rows stand at.
    pub cv: Cv,
    /// The fingerprint they were sent under.
    pub fp: Fingerprint,
}

/// A registered query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedQuery {
    /// Its name.
    pub name: String,
    /// The query; never [`QuerySource::Name`].
    pub source: QuerySource,
    /// Its parameters' types.
    pub args: BTreeMap<String, ColumnType>,
    /// Whether it is kept fresh without subscribers (only without parameters).
    pub pin: bool,
    /// How long a binding is kept without subscribers, milliseconds; `None` is the server's default.
    pub idle_ttl_ms: Option<u64>,
}

/// A result.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// The commit version it stands at.
    pub cv: Cv,
    /// The ordered, nested rows.
    pub rows: Vec<Json>,
}
