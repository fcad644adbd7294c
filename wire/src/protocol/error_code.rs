//! Stable error codes; messages may change, codes do not.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $status:literal;)*) => {
        /// What kind of fault an error is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum ErrorCode { $($(#[$doc])* $name,)* }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The code as it travels.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The HTTP status that goes with it.
            #[must_use]
            pub fn http_status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }
        }
    };
}

codes! {
    /// Not decodable, out of turn, or of the wrong form.
    BadMessage = "bad_message", 400;
    /// A query's syntax, an unsupported construct, or a limit on its size.
    BadQuery = "bad_query", 400;
    /// A table that does not exist.
    UnknownTable = "unknown_table", 404;
    /// A column that does not exist.
    UnknownColumn = "unknown_column", 400;
    /// A named query that does not exist.
    UnknownName = "unknown_name", 404;
    /// A value of the wrong type, or NULL where it is not allowed.
    TypeMismatch = "type_mismatch", 400;
    /// A missing, superfluous or wrong parameter.
    BadArgs = "bad_args", 400;
    /// The write contradicts what is there.
    Conflict = "conflict", 409;
    /// Not permitted.
    Forbidden = "forbidden", 403;
    /// No valid token.
    Unauthenticated = "unauthenticated", 401;
    /// More subscriptions than a connection may have.
    TooManySubscriptions = "too_many_subscriptions", 429;
    /// A message above the size limit.
    MessageTooLarge = "message_too_large", 413;
    /// The query failed while it was evaluated.
    QueryFaulted = "query_faulted", 422;
    /// The named query was removed.
    QueryRemoved = "query_removed", 410;
    /// A table the query reads has changed.
    SchemaChanged = "schema_changed", 409;
    /// The client read too slowly.
    SlowClient = "slow_client", 503;
    /// The server is stopping.
    ShuttingDown = "shutting_down", 503;
    /// The server is not caught up yet, or has too much to do.
    NotReady = "not_ready", 503;
    /// The source of commits is elsewhere.
    ReadOnly = "read_only", 403;
    /// A fault of the server's own.
    Internal = "internal", 500;
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_serde_writes() {
        for code in ErrorCode::ALL {
            assert_eq!(serde_json::to_value(code).expect("serializes"), code.name());
        }
    }
}
