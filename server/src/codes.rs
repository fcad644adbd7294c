//! The replica's kinds of error as the protocol's codes.

use tidegate_replica::{handle::CommitRefusalKind, query::QueryErrorKind, store::CommitErrorKind};
use tidegate_wire::protocol::ErrorCode;

/// The code of a refused query.
#[must_use]
pub fn query_error(kind: QueryErrorKind) -> ErrorCode {
    match kind {
        QueryErrorKind::BadQuery => ErrorCode::BadQuery,
        QueryErrorKind::UnknownTable => ErrorCode::UnknownTable,
        QueryErrorKind::UnknownColumn => ErrorCode::UnknownColumn,
        QueryErrorKind::UnknownName => ErrorCode::UnknownName,
        QueryErrorKind::TypeMismatch => ErrorCode::TypeMismatch,
        QueryErrorKind::BadArgs => ErrorCode::BadArgs,
        QueryErrorKind::Forbidden => ErrorCode::Forbidden,
        QueryErrorKind::NotReady => ErrorCode::NotReady,
        QueryErrorKind::QueryFaulted => ErrorCode::QueryFaulted,
        QueryErrorKind::SchemaChanged => ErrorCode::SchemaChanged,
        QueryErrorKind::Conflict => ErrorCode::Conflict,
        QueryErrorKind::Internal => ErrorCode::Internal,
    }
}

/// The code of a refused commit.
#[must_use]
pub fn commit_refusal(kind: CommitRefusalKind) -> ErrorCode {
    match kind {
        CommitRefusalKind::BadMessage => ErrorCode::BadMessage,
        CommitRefusalKind::UnknownTable => ErrorCode::UnknownTable,
        CommitRefusalKind::UnknownColumn => ErrorCode::UnknownColumn,
        CommitRefusalKind::TypeMismatch => ErrorCode::TypeMismatch,
        CommitRefusalKind::Conflict => ErrorCode::Conflict,
        CommitRefusalKind::MessageTooLarge => ErrorCode::MessageTooLarge,
        CommitRefusalKind::Forbidden => ErrorCode::Forbidden,
        CommitRefusalKind::SchemaChanged => ErrorCode::SchemaChanged,
        CommitRefusalKind::ReadOnly => ErrorCode::ReadOnly,
        CommitRefusalKind::NotReady => ErrorCode::NotReady,
        CommitRefusalKind::Internal => ErrorCode::Internal,
    }
}

/// The kind under which a line's refusal is remembered with its body; `None` when the same line may be taken later.
#[must_use]
pub fn remembered_refusal(code: ErrorCode) -> Option<CommitErrorKind> {
    match code {
        ErrorCode::BadMessage => Some(CommitErrorKind::BadMessage),
        ErrorCode::MessageTooLarge => Some(CommitErrorKind::MessageTooLarge),
        ErrorCode::UnknownTable => Some(CommitErrorKind::UnknownTable),
        ErrorCode::UnknownColumn => Some(CommitErrorKind::UnknownColumn),
        ErrorCode::TypeMismatch => Some(CommitErrorKind::TypeMismatch),
        ErrorCode::Conflict => Some(CommitErrorKind::Conflict),
        ErrorCode::Forbidden => Some(CommitErrorKind::Forbidden),
        _ => None,
    }
}

/// What a client may not give, whichever way its query came: arguments that only the token may give.
///
/// # Errors
/// With the code and a message.
pub fn check_args(mut args: impl Iterator<Item = impl AsRef<str>>) -> Result<(), (ErrorCode, String)> {
    match args.find(|name| name.as_ref() == "auth" || name.as_ref().starts_with("auth.")) {
        Some(name) => Err((
            ErrorCode::Forbidden,
            format!("argument {} can only come from the connection's token", name.as_ref()),
        )),
        None => Ok(()),
    }
}
