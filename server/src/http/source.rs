//! A request's body as it streams in: decoded, and with its pauses bounded.

use super::{
    encoding::{Decoder, compression_of},
    error::ApiError,
};
use crate::state::Shared;
use axum::{
    body::{Body, BodyDataStream},
    http::StatusCode,
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use std::{io, time::Duration};
use tidegate_wire::protocol::ErrorCode;

/// After a refusal the rest of the body is read and dropped up to this many bytes, since closing a connection with
/// unread input could destroy the answer.
const DISCARD_BYTES_MAX: usize = 16 << 20;
/// And for so long.
const DISCARD_TIME_MAX: Duration = Duration::from_secs(2);

/// Where a body comes from, decoded.
pub struct Source {
    stream: Option<BodyDataStream>,
    decoder: Option<Decoder>,
    ready: Option<Bytes>,
    /// Whether nothing was read yet.
    at_start: bool,
    idle_max: Duration,
    decoded_max: usize,
}

/// Why a body could not be read to its end.
#[derive(Debug)]
pub struct SourceFault {
    /// What kind of fault.
    pub code: ErrorCode,
    /// What is at fault.
    pub message: String,
    /// Another status than the code's.
    pub status: Option<StatusCode>,
}

impl SourceFault {
    fn bad(message: impl Into<String>) -> Self {
        Self { code: ErrorCode::BadMessage, message: message.into(), status: None }
    }
}

impl From<io::Error> for SourceFault {
    fn from(error: io::Error) -> Self {
        Self::bad(format!("the body is not in the encoding it claims: {error}"))
    }
}

impl Source {
    /// A request's body.
    #[must_use]
    pub fn new(body: Body, decoder: Decoder, shared: &Shared) -> Self {
        Self {
            stream: Some(body.into_data_stream()),
            decoder: Some(decoder),
            ready: None,
            at_start: true,
            idle_max: shared.config.server.body_idle_timeout_ms,
            decoded_max: shared.config.limits.line_bytes_max,
        }
    }

    /// A body that is here already.
    #[must_use]
    pub fn buffered(body: Vec<u8>) -> Self {
        Self {
            stream: None,
            decoder: None,
            ready: Some(body.into()),
            at_start: false,
            idle_max: Duration::ZERO,
            decoded_max: 0,
        }
    }

    /// The next bytes; `None` at the end. Cancel-safe: what was read is decoded at once.
    ///
    /// # Errors
    /// When the client pauses too long or goes away, or the encoding is not the one it claims.
    pub async fn next(&mut self) -> Result<Option<Bytes>, SourceFault> {
        if let Some(bytes) = self.ready.take() {
            return Ok(Some(bytes));
        }
        let Some(stream) = &mut self.stream else { return Ok(None) };
        match tokio::time::timeout(self.idle_max, stream.next()).await {
            Err(_elapsed) => Err(SourceFault {
                code: ErrorCode::BadMessage,
                message: format!("nothing more of the body came for {} ms", self.idle_max.as_millis()),
                status: Some(StatusCode::REQUEST_TIMEOUT),
            }),
            Ok(Some(Err(error))) => Err(SourceFault::bad(format!("the body ended early: {error}"))),
            Ok(Some(Ok(bytes))) => match &mut self.decoder {
                None | Some(Decoder::Identity) => match compression_of(&bytes) {
                    Some(name) if std::mem::take(&mut self.at_start) => Err(SourceFault {
                        code: ErrorCode::BadMessage,
                        message: format!(
                            "the body looks {name}-compressed; add the header Content-Encoding: {name}"
                        ),
                        status: Some(StatusCode::UNSUPPORTED_MEDIA_TYPE),
                    }),
                    _ => {
                        self.at_start = false;
                        Ok(Some(bytes))
                    }
                },
                Some(decoder) => {
                    let (mut out, max) = (Vec::new(), self.decoded_max);
                    decoder.decode(&bytes, |part| {
                        out.extend_from_slice(part);
                        if out.len() <= max {
                            Ok(())
                        } else {
                            Err(SourceFault::bad("the body expands too much"))
                        }
                    })?;
                    Ok(Some(out.into()))
                }
            },
            Ok(None) => match self.decoder.take() {
                None => Ok(None),
                Some(decoder) => Ok(Some(decoder.finish()?.into())),
            },
        }
    }

    /// The whole body.
    ///
    /// # Errors
    /// As [`Source::next`], and when it is longer than `bytes_max`.
    pub async fn whole(&mut self, bytes_max: usize) -> Result<Vec<u8>, ApiError> {
        let mut body = Vec::new();
        loop {
            match self.next().await {
                Ok(None) => return Ok(body),
                Ok(Some(bytes)) if body.len() + bytes.len() <= bytes_max => body.extend_from_slice(&bytes),
                Ok(Some(_)) => {
                    self.discard().await;
                    return Err(ApiError::new(
                        ErrorCode::MessageTooLarge,
                        format!(
                            "a body with an Idempotency-Key may have {bytes_max} bytes (limits.body_bytes_max)"
                        ),
                    ));
                }
                Err(fault) => {
                    let error = ApiError::new(fault.code, fault.message);
                    return Err(match fault.status {
                        Some(status) => error.with_status(status),
                        None => error,
                    });
                }
            }
        }
    }

    /// Reads and drops what is left, within bounds.
    pub async fn discard(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        let read_on = async {
            let mut left = DISCARD_BYTES_MAX;
            while let Some(Ok(bytes)) = stream.next().await {
                match left.checked_sub(bytes.len()) {
                    Some(rest) => left = rest,
                    None => return,
                }
            }
        };
        let _ = tokio::time::timeout(DISCARD_TIME_MAX, read_on).await;
    }
}
