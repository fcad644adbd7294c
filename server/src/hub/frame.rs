//! What waits in an outbox: one protocol message, encoded.

use bytes::Bytes;
use smallvec::SmallVec;
use std::time::Instant;
use tidegate_wire::{
    codec::Codec,
    model::Cv,
    protocol::{ErrorCode, ServerMessage},
};

/// Bytes of a batch's head that fit without an allocation; the longest head (five numbers of 20 digits in JSON)
/// is shorter.
const HEAD_BYTES_INLINE: usize = 208;

/// Which message a frame holds, where a reader must know without decoding it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A batch of a commit version.
    Batch(Cv),
    /// Progress up to a commit version.
    Progress(Cv),
    /// Any other, by its key on the wire; `last` when nothing of use follows it on a single subscription.
    Other {
        /// The message's key.
        name: &'static str,
        /// Whether it ends the subscription or the connection.
        last: bool,
    },
}

impl FrameKind {
    /// The message's key on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Batch(_) => "batch",
            Self::Progress(_) => "progress",
            Self::Other { name, .. } => name,
        }
    }
}

/// One encoded message: `head` followed by `body`. The body of a batch is shared by all its recipients.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Each recipient's own bytes; empty for messages that are encoded whole.
    pub head: SmallVec<[u8; HEAD_BYTES_INLINE]>,
    /// The rest.
    pub body: Bytes,
    /// Which message it is.
    pub kind: FrameKind,
    /// When the drain handed it over.
    pub at: Instant,
    /// Whether it is a progress frame that releases what a commit changed; the outbox finds out. Others release
    /// snapshots or nothing: how old the commit is says nothing about how fast it travels.
    pub releases_change: bool,
}

impl Frame {
    /// Encodes a message that is not a batch.
    #[must_use]
    pub fn message(codec: Codec, message: &ServerMessage, at: Instant) -> Self {
        let mut body = Vec::with_capacity(128);
        codec.encode(message, &mut body);
        let other = |name, last| FrameKind::Other { name, last };
        let kind = match message {
            ServerMessage::Batch(batch) => FrameKind::Batch(batch.cv),
            ServerMessage::Progress(progress) => FrameKind::Progress(progress.cv_min),
            ServerMessage::Welcome(_) => other("welcome", false),
            ServerMessage::Subscribed(_) => other("subscribed", false),
            ServerMessage::Faulted(_) => other("faulted", true),
            ServerMessage::Error(_) => other("error", false),
            ServerMessage::PushResult(_) => other("push_result", false),
            ServerMessage::Goaway(_) => other("goaway", true),
            ServerMessage::Pong(_) => other("pong", false),
        };
        Self { head: SmallVec::new(), body: body.into(), kind, at, releases_change: false }
    }

    /// The message's length, bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// Whether the message is empty, which none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The `goaway` message.
#[must_use]
pub fn goaway(code: ErrorCode, message: &str, retry_after: std::time::Duration) -> ServerMessage {
    ServerMessage::Goaway(tidegate_wire::protocol::server::Goaway {
        code,
        message: message.to_owned(),
        retry_after_ms: u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX),
    })
}
