//! The WebSocket transport, by tokio-tungstenite.

use super::{Frame, FrameSink, FrameStream, Transport, TransportError};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, future, future::BoxFuture};
use serde_json::Value as Json;
use std::sync::Arc;
use tidegate_wire::codec::Codec;
use tokio_tungstenite::{
    connect_async_with_config,
    tungstenite::{
        self, Message, Utf8Bytes,
        client::IntoClientRequest,
        http::{self, HeaderValue, header::SEC_WEBSOCKET_PROTOCOL},
        protocol::WebSocketConfig,
    },
};

/// Largest message that is taken, bytes. Servers split snapshots at 1 MiB; one large row may go beyond.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct WebSocketTransport;

impl Transport for WebSocketTransport {
    fn connect<'a>(
        &'a self,
        url: &'a str,
        codec: Codec,
    ) -> BoxFuture<'a, Result<(FrameSink, FrameStream), TransportError>> {
        Box::pin(async move {
            let mut request = url.into_client_request()?;
            let protocol = HeaderValue::from_static(codec.subprotocol());
            request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, protocol);
            let config = WebSocketConfig::default()
                .max_message_size(Some(MESSAGE_BYTES_MAX))
                .max_frame_size(Some(MESSAGE_BYTES_MAX));
            // Nagle's algorithm is off: a message waits for nobody.
            let (socket, _) = connect_async_with_config(request, Some(config), true).await?;
            let (sink, stream) = socket.split();
            let sink = sink.sink_map_err(TransportError::from).with(|frame| future::ready(message(frame)));
            let stream = stream.take_while(|item| future::ready(!matches!(item, Ok(Message::Close(_)))));
            let stream = stream.map(|item| item.map(frame).map_err(TransportError::from));
            Ok((Box::pin(sink) as FrameSink, stream.boxed()))
        })
    }
}

fn message(frame: Frame) -> Result<Message, TransportError> {
    Ok(match frame {
        Frame::Text(bytes) => Message::Text(
            Utf8Bytes::try_from(bytes).map_err(|error| TransportError::WebSocket(error.to_string()))?,
        ),
        Frame::Binary(bytes) => Message::Binary(bytes),
        Frame::Alive => Message::Ping(Bytes::new()),
    })
}

fn frame(message: Message) -> Frame {
    match message {
        Message::Text(text) => Frame::Text(text.into()),
        Message::Binary(bytes) => Frame::Binary(bytes),
        // Pings are answered by the library.
        Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => Frame::Alive,
    }
}

/// An HTTP answer in place of the upgrade. The server's own have their reason in the body; of what a proxy says, only
/// the status is of use.
fn refusal(response: http::Response<Option<Vec<u8>>>) -> TransportError {
    let status = response.status();
    let body: Json = serde_json::from_slice(&response.into_body().unwrap_or_default()).unwrap_or_default();
    let error = &body["error"];
    let code = serde_json::from_value(error["code"].clone()).ok();
    let reason = error["message"].as_str().or(status.canonical_reason());
    let message = reason.unwrap_or("no reason given").to_owned();
    TransportError::Http { status: status.as_u16(), code, message }
}

impl From<tungstenite::Error> for TransportError {
    fn from(error: tungstenite::Error) -> Self {
        match error {
            tungstenite::Error::Io(error) => Self::Io(Arc::new(error)),
            tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed => Self::Closed,
            tungstenite::Error::Http(response) => refusal(*response),
            other => Self::WebSocket(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_wire::protocol::ErrorCode;

    #[test]
    fn an_answer_in_place_of_the_upgrade_says_why() {
        let read = |status: u16, body: Option<&str>| {
            let response = http::Response::builder().status(status).body(body.map(|body| body.into()));
            match refusal(response.expect("an answer")) {
                TransportError::Http { status, code, message } => (status, code, message),
                other => panic!("{other}"),
            }
        };
        let body = r#"{"error":{"code":"not_ready","message":"the log is being replayed","more":1}}"#;
        assert_eq!(
            read(503, Some(body)),
            (503, Some(ErrorCode::NotReady), "the log is being replayed".to_owned())
        );
        assert_eq!(read(502, Some("<html>")), (502, None, "Bad Gateway".to_owned()));
        assert_eq!(read(404, None), (404, None, "Not Found".to_owned()));
    }
}
