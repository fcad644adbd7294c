//! Errors, one type per operation. Codes are the server's and stable; texts are for people and may change.

use crate::{state::Violation, transport::TransportError};
pub use tidegate_wire::protocol::ErrorCode;

/// Why the server ended a subscription, refused one, or refused a mutation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Fault {
    /// What kind of fault.
    pub code: ErrorCode,
    /// What is at fault and what to do.
    pub message: String,
    /// Whether asking again may succeed without the query or the data being changed.
    pub retry: bool,
}

/// Why there is no connection.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is not one of a server.
    #[error("{url} is not an address such as http://127.0.0.1:7300: {what}")]
    Url {
        /// The address.
        url: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The network or the WebSocket failed.
    #[error("cannot reach the server: {0}")]
    Transport(#[source] TransportError),
    /// The server did not answer `hello` in time, or has been silent for too long.
    #[error("the server is silent")]
    Silent,
    /// The server closed the connection.
    #[error("the server closed the connection")]
    ServerClosed,
    /// The server refused the connection or sent it away.
    #[error("the server says: {message} ({code})")]
    Refused {
        /// What kind of error.
        code: ErrorCode,
        /// The error, for people.
        message: String,
    },
    /// The server broke the protocol.
    #[error("the server broke the protocol: {0}")]
    Violation(#[from] Violation),
    /// The server does not read what the client sends.
    #[error("more than {max} messages wait to be sent")]
    SendQueueFull {
        /// The limit, messages.
        max: usize,
    },
    /// The client was closed by the application.
    #[error("the client is closed")]
    Closed,
}

impl From<TransportError> for ConnectError {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::Http { code: Some(code), message, .. } => Self::Refused { code, message },
            error => Self::Transport(error),
        }
    }
}

/// Why there is no subscription.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SubscribeError {
    /// The server refused it.
    #[error(transparent)]
    Refused(#[from] Fault),
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
}

/// Why a mutation was not taken.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MutationError {
    /// Mutations need a name for the client (`ClientOptions::client_id`).
    #[error("mutations need a client_id")]
    NoClientId,
    /// Too many mutations wait for their confirmation.
    #[error("{max} mutations wait for their confirmation; push again when some have it")]
    QueueFull {
        /// The limit, mutations.
        max: usize,
    },
    /// The server refused it; nothing of it was applied.
    #[error(transparent)]
    Refused(#[from] Fault),
    /// The client was closed before the outcome was known.
    #[error("the client is closed")]
    Closed,
}
