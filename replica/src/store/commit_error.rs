//! Why a commit is refused. Made where a line is parsed, where names and types are looked up, and on the store
//! thread; shown to whoever wrote the commit, and kept in the log as the outcome of an idempotent body.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Most characters of a client's text (a name, a key) that an error repeats.
pub const QUOTED_CHARS_MAX: usize = 200;

/// The stable kind of a [`CommitError`]. The names are those of the protocol's error codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitErrorKind {
    /// A table that does not exist.
    UnknownTable,
    /// A column that does not exist.
    UnknownColumn,
    /// A value of the wrong type, or NULL where it is not allowed.
    TypeMismatch,
    /// The write contradicts what is there.
    Conflict,
    /// Not a commit, or beyond a limit.
    BadMessage,
    /// A line longer than the reader of the body takes.
    MessageTooLarge,
    /// A table that only the store writes.
    Forbidden,
    /// A table that was altered or dropped while the write was under way; the same commit may succeed later.
    SchemaChanged,
    /// The log cannot be written at present; the same commit may succeed later.
    NotReady,
    /// A defect.
    Internal,
}

impl CommitErrorKind {
    /// The name, as the protocol's error code.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownTable => "unknown_table",
            Self::UnknownColumn => "unknown_column",
            Self::TypeMismatch => "type_mismatch",
            Self::Conflict => "conflict",
            Self::BadMessage => "bad_message",
            Self::MessageTooLarge => "message_too_large",
            Self::Forbidden => "forbidden",
            Self::SchemaChanged => "schema_changed",
            Self::NotReady => "not_ready",
            Self::Internal => "internal",
        }
    }
}

/// What is wrong, without the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitProblem {
    /// The line is not JSON, or not of a commit's form; says what was expected.
    #[error("not a commit: {0}")]
    Malformed(String),
    /// More operations than one commit may have.
    #[error("{ops} operations are more than the {ops_max} that one commit may have; split it")]
    TooManyOps {
        /// How many there are.
        ops: usize,
        /// The limit.
        ops_max: usize,
    },
    /// A row over the size limit.
    #[error("the row takes {bytes} bytes and the limit is {bytes_max}")]
    RowTooLarge {
        /// Its encoded size.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A key over the size limit.
    #[error("the key takes {bytes} bytes and the limit is {bytes_max}")]
    KeyTooLarge {
        /// Its encoded size.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A commit whose record the log does not take.
    #[error("the commit takes {bytes} bytes and the limit is {bytes_max}; split it")]
    RecordTooLarge {
        /// Its size in the log.
        bytes: usize,
        /// The limit.
        bytes_max: u32,
    },
    /// No such table.
    #[error("there is no such table{instead}")]
    UnknownTable {
        /// What to write instead.
        instead: String,
    },
    /// A table that only the store writes.
    #[error("the table is maintained by the server and cannot be written")]
    ReservedTable,
    /// No such column.
    #[error("the table has no such column{instead}")]
    UnknownColumn {
        /// What to write instead.
        instead: String,
    },
    /// A value of another type.
    #[error("expected {expected}, found {found}")]
    TypeMismatch {
        /// What the column takes.
        expected: String,
        /// The JSON that was given, shortened.
        found: String,
    },
    /// NULL, or nothing, for a column that is not nullable.
    #[error("null is not allowed in this column")]
    NullNotAllowed,
    /// A key column among the columns to change.
    #[error("a key column cannot be changed; delete the row and insert it under its new key")]
    KeyColumnInSet,
    /// A key without one of the key's columns.
    #[error("the key lacks this column")]
    KeyColumnMissing,
    /// A key with a column that is not the key's.
    #[error("the column is not part of the primary key")]
    NotAKeyColumn,
    /// Insert of an existing key.
    #[error("a row with this key exists already")]
    RowExists,
    /// Update or delete of a missing key.
    #[error("no row has this key")]
    RowMissing,
    /// Values that stand in another row already.
    #[error("another row has the same values, which unique constraint {rule} forbids")]
    NotUnique {
        /// The constraint's name.
        rule: String,
    },
    /// A row that a check constraint forbids; the text names it.
    #[error("{0}")]
    CheckFailed(String),
    /// A row that refers to one that is not there.
    #[error("foreign key {rule}: table {parent} has no row {key}")]
    NoParent {
        /// The constraint's name.
        rule: String,
        /// The table it refers to.
        parent: String,
        /// The values that no row of that has, as a JSON object.
        key: String,
    },
    /// A row that others refer to and that cannot go or change its key.
    #[error("foreign key {rule}: rows of table {child} refer to {key}")]
    StillReferred {
        /// The constraint's name.
        rule: String,
        /// The table whose rows refer.
        child: String,
        /// The values they refer to, as a JSON object.
        key: String,
    },
    /// A table that cannot be altered or dropped because of another one; the text names it.
    #[error("{0}")]
    Depended(String),
    /// A table that was altered or dropped since the write was resolved.
    #[error("a table it is about was altered or dropped meanwhile; send it again")]
    TableChanged,
    /// A transaction that met others each time it was tried.
    #[error("other writes changed what it read, {tries} times; send it again")]
    Contended {
        /// How often it was tried.
        tries: usize,
    },
    /// A table declared otherwise than it is.
    #[error("the table exists and differs: {difference}")]
    TableDiffers {
        /// The first difference.
        difference: String,
    },
    /// A table that cannot be.
    #[error("the table cannot be created: {0}")]
    BadSchema(String),
    /// A mutation id that does not follow the last one.
    #[error("mutation id {found} leaves a gap: the next one is {expected}")]
    MutationGap {
        /// The id that comes next.
        expected: u64,
        /// The id given.
        found: u64,
    },
    /// Mutation ids begin at 1.
    #[error("mutation ids begin at 1")]
    MutationIdZero,
    /// A client id that cannot be stored.
    #[error("a client id has 1 to {bytes_max} bytes and no NUL character")]
    BadClientId {
        /// The limit.
        bytes_max: usize,
    },
    /// An idempotency key that was used with another body.
    #[error("the idempotency key was used with another body; use a new key for a new body")]
    OtherBody,
    /// An idempotency key that cannot be kept.
    #[error("an idempotency key has 1 to {bytes_max} bytes")]
    BadIdempotencyKey {
        /// The limit.
        bytes_max: usize,
    },
    /// Part of a body whose earlier part is not recorded, because storing it failed or it is too long ago.
    #[error(
        "{recorded} commits of the body are recorded, so number {ordinal} cannot come next; send it again"
    )]
    BodyGap {
        /// How many are recorded.
        recorded: u64,
        /// The ordinal of the first commit given.
        ordinal: u64,
    },
    /// The log could not be written; nothing of the commit remains.
    #[error("the commit log cannot be written and commits are refused until there is space: {0}")]
    LogUnwritable(String),
    /// A draft that was resolved against another store.
    #[error("the draft does not fit the store's tables")]
    ForeignDraft,
    /// An error read back from the log, or found by the reader of the body and to be kept there.
    #[error("{text}")]
    Recorded {
        /// Its kind.
        kind: CommitErrorKind,
        /// What it said, without the place.
        text: String,
    },
}

impl CommitProblem {
    /// The problem's kind.
    #[must_use]
    pub fn kind(&self) -> CommitErrorKind {
        match self {
            Self::UnknownTable { .. } => CommitErrorKind::UnknownTable,
            Self::UnknownColumn { .. } => CommitErrorKind::UnknownColumn,
            Self::TypeMismatch { .. } | Self::NullNotAllowed => CommitErrorKind::TypeMismatch,
            Self::RowExists
            | Self::RowMissing
            | Self::TableDiffers { .. }
            | Self::NotUnique { .. }
            | Self::CheckFailed(_)
            | Self::Depended(_)
            | Self::NoParent { .. }
            | Self::StillReferred { .. }
            | Self::Contended { .. }
            | Self::MutationGap { .. }
            | Self::OtherBody => CommitErrorKind::Conflict,
            Self::Malformed(_)
            | Self::TooManyOps { .. }
            | Self::RowTooLarge { .. }
            | Self::KeyTooLarge { .. }
            | Self::RecordTooLarge { .. }
            | Self::KeyColumnInSet
            | Self::KeyColumnMissing
            | Self::NotAKeyColumn
            | Self::BadSchema(_)
            | Self::MutationIdZero
            | Self::BadClientId { .. }
            | Self::BadIdempotencyKey { .. } => CommitErrorKind::BadMessage,
            Self::ReservedTable => CommitErrorKind::Forbidden,
            Self::LogUnwritable(_) | Self::BodyGap { .. } => CommitErrorKind::NotReady,
            Self::TableChanged => CommitErrorKind::SchemaChanged,
            Self::ForeignDraft => CommitErrorKind::Internal,
            Self::Recorded { kind, .. } => *kind,
        }
    }
}

/// A refusal: what is wrong, and where. Displays as `ops[1]: table flights, key {"id":1}, column status: …`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(from = "ErrorForm", into = "ErrorForm")]
pub struct CommitError {
    /// What is wrong.
    pub problem: CommitProblem,
    /// Where; boxed, for most results are not errors.
    pub place: Box<CommitPlace>,
}

/// The part of a commit that an error is about, as far as it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitPlace {
    /// The line of the body, from 1, when the error is of one that holds no commit.
    pub line: Option<u64>,
    /// The operation at fault, counted from 0 within its commit.
    pub op: Option<usize>,
    /// The table's name, shortened.
    pub table: Option<String>,
    /// The row's key as a JSON object, shortened.
    pub key: Option<String>,
    /// The column's name, shortened.
    pub column: Option<String>,
}

impl CommitError {
    /// An error of a whole commit.
    #[must_use]
    pub fn new(problem: CommitProblem) -> Self {
        Self { problem, place: Box::default() }
    }

    /// The kind, which is stable; the message may change.
    #[must_use]
    pub fn code(&self) -> CommitErrorKind {
        self.problem.kind()
    }

    /// Names the line of a body.
    #[must_use]
    pub fn at_line(mut self, line: u64) -> Self {
        self.place.line = Some(line);
        self
    }

    /// Names the operation.
    #[must_use]
    pub fn at_op(mut self, op: usize) -> Self {
        self.place.op = Some(op);
        self
    }

    /// Names the table.
    #[must_use]
    pub fn in_table(mut self, table: &str) -> Self {
        self.place.table = Some(shorten(table));
        self
    }

    /// Names the row by its key's JSON text.
    #[must_use]
    pub fn of_key(mut self, key: &str) -> Self {
        self.place.key = Some(shorten(key));
        self
    }

    /// Names the column.
    #[must_use]
    pub fn of_column(mut self, column: &str) -> Self {
        self.place.column = Some(shorten(column));
        self
    }
}

impl From<CommitProblem> for CommitError {
    fn from(problem: CommitProblem) -> Self {
        Self::new(problem)
    }
}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The line is told by whoever knows the other commits' too.
        let CommitPlace { line: _, op, table, key, column } = &*self.place;
        if let Some(op) = op {
            write!(f, "ops[{op}]: ")?;
        }
        let places = [("table", table), ("key", key), ("column", column)];
        let mut named = false;
        for (what, name) in places {
            if let Some(name) = name {
                write!(f, "{}{what} {name}", if named { ", " } else { "" })?;
                named = true;
            }
        }
        write!(f, "{}{}", if named { ": " } else { "" }, self.problem)
    }
}

/// How an error is kept: the kind and the text, so that a log outlives the list of problems.
#[derive(Serialize, Deserialize)]
struct ErrorForm {
    kind: CommitErrorKind,
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    op: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    table: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    column: Option<String>,
}

impl From<ErrorForm> for CommitError {
    fn from(form: ErrorForm) -> Self {
        let ErrorForm { kind, text, line, op, table, key, column } = form;
        let place = Box::new(CommitPlace { line, op, table, key, column });
        Self { problem: CommitProblem::Recorded { kind, text }, place }
    }
}

impl From<CommitError> for ErrorForm {
    fn from(error: CommitError) -> Self {
        let (kind, text) = (error.code(), error.problem.to_string());
        let CommitPlace { line, op, table, key, column } = *error.place;
        Self { kind, text, line, op, table, key, column }
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}
