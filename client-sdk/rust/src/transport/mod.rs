//! How frames reach the server. The connection is written against [`Transport`], so that tests drive it without a
//! socket.

pub mod memory;
pub mod websocket;

use bytes::Bytes;
use futures_util::{Sink, Stream, future::BoxFuture};
use std::pin::Pin;
use tidegate_wire::{codec::Codec, protocol::ErrorCode};

/// One WebSocket message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// UTF-8 text: one message of the JSON codec.
    Text(Bytes),
    /// One or more messages of the MessagePack codec.
    Binary(Bytes),
    /// A sign of life without content.
    Alive,
}

impl Frame {
    /// A frame of a codec's kind.
    #[must_use]
    pub fn of(codec: Codec, bytes: Vec<u8>) -> Self {
        match codec {
            Codec::Json => Self::Text(bytes.into()),
            Codec::MessagePack => Self::Binary(bytes.into()),
        }
    }
}

/// Where a connection's frames go. Closing it closes the connection.
pub type FrameSink = Pin<Box<dyn Sink<Frame, Error = TransportError> + Send>>;
/// Where a connection's frames come from; ends when the server closes it.
pub type FrameStream = Pin<Box<dyn Stream<Item = Result<Frame, TransportError>> + Send>>;

/// Why frames do not travel.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TransportError {
    /// The socket failed.
    #[error("{0}")]
    Io(std::sync::Arc<std::io::Error>),
    /// The WebSocket protocol failed.
    #[error("{0}")]
    WebSocket(String),
    /// The server answered the handshake with an HTTP error.
    #[error("the server answered {status}: {message}")]
    Http {
        /// The status.
        status: u16,
        /// The protocol's code, when the answer has one.
        code: Option<ErrorCode>,
        /// The server's reason, or what there is of the answer.
        message: String,
    },
    /// There is nobody at the other end.
    #[error("the connection is closed")]
    Closed,
}

/// Makes connections.
pub trait Transport: Send + Sync + 'static {
    /// Connects to the WebSocket at `url`, with the subprotocol of `codec`.
    fn connect<'a>(
        &'a self,
        url: &'a str,
        codec: Codec,
    ) -> BoxFuture<'a, Result<(FrameSink, FrameStream), TransportError>>;
}
