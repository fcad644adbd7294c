//! WebSocket connections: `GET /v1/sync`.

pub mod driver;
pub mod session;
pub mod sub_numbers;
pub mod writer;

use crate::{http::error::ApiError, hub::Refused, state::Shared};
use axum::{
    extract::{
        State,
        ws::{WebSocketUpgrade, rejection::WebSocketUpgradeRejection},
    },
    http::{HeaderMap, header::SEC_WEBSOCKET_PROTOCOL},
    response::Response,
};
use std::sync::Arc;
use tidegate_wire::{codec::Codec, protocol::ErrorCode};

/// Read buffer of one socket, bytes. With the library's default an idle connection costs ten times the memory.
const READ_BUFFER_BYTES: usize = 4 << 10;
/// Write buffer of one socket, bytes.
const WRITE_BUFFER_BYTES: usize = 16 << 10;
/// A message is read to its end up to this many times the configured limit, so that its sender can be told; a larger
/// one is given up in the midst.
const OVERSIZE_FACTOR: usize = 4;

/// Upgrades a request to a WebSocket.
pub async fn upgrade(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|rejection| {
        let status = rejection.status();
        ApiError::new(
            ErrorCode::BadMessage,
            format!("this is a WebSocket endpoint: {}", rejection.body_text()),
        )
        .with_status(status)
    })?;
    let codec = negotiate(&headers)?;
    let replica = shared.replica()?.clone();
    let registration = shared.hub.register(codec).map_err(|refused| {
        let code = match refused {
            Refused::TooMany => ErrorCode::NotReady,
            Refused::Stopping => ErrorCode::ShuttingDown,
        };
        ApiError::new(code, refused.to_string())
    })?;
    let limits = &shared.config.limits;
    let read_max = limits.message_bytes_max.saturating_mul(OVERSIZE_FACTOR);
    let shared = Arc::clone(&shared);
    let response = upgrade
        .protocols(Codec::ALL.map(Codec::subprotocol))
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_message_size(read_max)
        .max_frame_size(read_max)
        .on_upgrade(move |socket| {
            // Tracked, so that a shutdown lets the closing handshake finish.
            let tasks = shared.tasks.clone();
            tasks.track_future(driver::run(socket, registration, replica, shared))
        });
    Ok(response)
}

/// The codec of the offered subprotocols, the server's preference first; the default when none is offered.
fn negotiate(headers: &HeaderMap) -> Result<Codec, ApiError> {
    let offered: Vec<&str> = headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    if offered.is_empty() {
        return Ok(Codec::ALL[0]);
    }
    Codec::ALL.into_iter().find(|codec| offered.contains(&codec.subprotocol())).ok_or_else(|| {
        let known = Codec::ALL.map(Codec::subprotocol).join(" or ");
        ApiError::new(ErrorCode::BadMessage, format!("no offered subprotocol is known; offer {known}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subprotocols_are_negotiated() {
        let codec = |offered: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in offered {
                headers.append(SEC_WEBSOCKET_PROTOCOL, value.parse().expect("a header value"));
            }
            negotiate(&headers).ok()
        };
        assert_eq!(codec(&[]), Some(Codec::MessagePack));
        assert_eq!(codec(&["tidegate.v1+json"]), Some(Codec::Json));
        assert_eq!(codec(&["other, tidegate.v1+json"]), Some(Codec::Json));
        assert_eq!(codec(&["tidegate.v1+json", "tidegate.v1+msgpack"]), Some(Codec::MessagePack));
        assert_eq!(codec(&["other"]), None);
    }
}
