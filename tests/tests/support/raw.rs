//! A WebSocket as it is: frames out, messages in, with nothing hidden and nothing repaired.

use super::{laws::Laws, server::within};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value as Json, json};
use std::{collections::VecDeque, net::SocketAddr};
use tidegate_client::Codec;
use tidegate_wire::protocol::{ErrorCode, ServerMessage, server::Op};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async_with_config,
    tungstenite::{
        self, Message,
        client::IntoClientRequest as _,
        http::header::SEC_WEBSOCKET_PROTOCOL,
        protocol::{CloseFrame, WebSocketConfig},
    },
};

/// One connection. Every message received is held against the [`Laws`].
pub(crate) struct Raw {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    codec: Codec,
    waiting: VecDeque<ServerMessage>,
    /// What the server's messages have come to.
    pub(crate) laws: Laws,
}

/// What came next.
#[derive(Debug)]
pub(crate) enum Next {
    /// A message.
    Message(ServerMessage),
    /// The server closed, with this code.
    Closed(Option<u16>),
}

impl Raw {
    /// Connects without a `hello`.
    pub(crate) async fn connect(addr: SocketAddr, codec: Codec) -> Self {
        Self::try_connect(addr, codec).await.expect("the server takes sockets")
    }

    /// As [`Raw::connect`], when the server may be gone.
    async fn try_connect(addr: SocketAddr, codec: Codec) -> Result<Self, tungstenite::Error> {
        let mut request = format!("ws://{addr}/v1/sync").into_client_request().expect("a request");
        let protocol = codec.subprotocol().parse().expect("a header");
        request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let connecting = connect_async_with_config(request, Some(config), true);
        let (socket, response) = within("a WebSocket", connecting).await?;
        let agreed = response.headers().get(SEC_WEBSOCKET_PROTOCOL).expect("a subprotocol");
        assert_eq!(agreed, codec.subprotocol());
        Ok(Self { socket, codec, waiting: VecDeque::new(), laws: Laws::default() })
    }

    /// Connects and says hello.
    pub(crate) async fn hello(addr: SocketAddr, codec: Codec, hello: Json) -> Self {
        Self::try_hello(addr, codec, hello).await.expect("the server takes sockets and hello")
    }

    /// As [`Raw::hello`], when the server may be gone; `None` when it is.
    pub(crate) async fn try_hello(addr: SocketAddr, codec: Codec, hello: Json) -> Option<Self> {
        let mut raw = Self::try_connect(addr, codec).await.ok()?;
        raw.try_send(&json!({ "hello": hello })).await.ok()?;
        match raw.next().await {
            Next::Message(ServerMessage::Welcome(_)) => Some(raw),
            Next::Message(other) => panic!("{other:?}"),
            Next::Closed(_) => None,
        }
    }

    /// Sends one message, given in its JSON form.
    pub(crate) async fn send(&mut self, message: &Json) {
        self.try_send(message).await.expect("the server reads");
    }

    /// As [`Raw::send`], when the server may be gone.
    pub(crate) async fn try_send(&mut self, message: &Json) -> Result<(), tungstenite::Error> {
        let frame = match self.codec {
            Codec::Json => Message::text(message.to_string()),
            Codec::MessagePack => {
                Message::binary(rmp_serde::to_vec_named(message).expect("JSON values have an encoding"))
            }
        };
        within("room in the socket", self.socket.send(frame)).await
    }

    /// Sends any bytes as a frame of the codec's kind; text has to be UTF-8.
    pub(crate) async fn send_bytes(&mut self, bytes: impl Into<Bytes>) -> Result<(), tungstenite::Error> {
        let bytes = bytes.into();
        let frame = match self.codec {
            Codec::Json => Message::text(String::from_utf8(bytes.to_vec()).expect("UTF-8")),
            Codec::MessagePack => Message::binary(bytes),
        };
        self.send_frame(frame).await
    }

    /// Sends any frame.
    pub(crate) async fn send_frame(&mut self, frame: Message) -> Result<(), tungstenite::Error> {
        within("room in the socket", self.socket.send(frame)).await
    }

    /// The next message, or the end.
    ///
    /// # Panics
    /// When the message breaks one of the [`Laws`], or nothing comes.
    pub(crate) async fn next(&mut self) -> Next {
        // Pings are no news: the server sends them also when it has forgotten what is waited for.
        within("a message", self.next_news()).await
    }

    async fn next_news(&mut self) -> Next {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                if let Err(broken) = self.laws.see(&message) {
                    panic!("{broken}");
                }
                return Next::Message(message);
            }
            let frame = self.socket.next().await;
            let bytes: Bytes = match (frame, self.codec) {
                (Some(Ok(Message::Text(text))), Codec::Json) => text.into(),
                (Some(Ok(Message::Binary(bytes))), Codec::MessagePack) => bytes,
                (Some(Ok(Message::Ping(_) | Message::Pong(_))), _) => continue,
                (Some(Ok(Message::Close(frame))), _) => {
                    return Next::Closed(frame.map(|CloseFrame { code, .. }| code.into()));
                }
                (None | Some(Err(_)), _) => return Next::Closed(None),
                (Some(Ok(frame)), _) => panic!("a frame of the wrong kind: {frame:?}"),
            };
            let waiting = &mut self.waiting;
            self.codec.decode(&bytes, |message| waiting.push_back(message)).expect("messages decode");
        }
    }

    /// The next message.
    ///
    /// # Panics
    /// When the server closes instead.
    pub(crate) async fn message(&mut self) -> ServerMessage {
        match self.next().await {
            Next::Message(message) => message,
            Next::Closed(code) => panic!("closed with {code:?}"),
        }
    }

    /// The next error that is sent, whatever data comes before it: its code, subscription and text.
    pub(crate) async fn error(&mut self) -> (ErrorCode, Option<u64>, String) {
        loop {
            if let ServerMessage::Error(error) = self.message().await {
                return (error.code, error.sub.map(|sub| sub.0), error.message);
            }
        }
    }

    /// Reads on to the end; the close code.
    pub(crate) async fn closed(&mut self) -> Option<u16> {
        let reading = async {
            loop {
                if let Next::Closed(code) = self.next().await {
                    return code;
                }
            }
        };
        within("the close", reading).await
    }

    /// Subscribes to a query in JSON.
    pub(crate) async fn subscribe(&mut self, sub: u64, query: Json) {
        self.send(&json!({"subscribe": {"sub": sub, "query": query}})).await;
    }

    /// Reads up to the end of a subscription's first snapshot; its operations.
    ///
    /// # Panics
    /// When the subscription is refused or ends.
    pub(crate) async fn snapshot(&mut self, sub: u64) -> Vec<Op> {
        let mut ops = Vec::new();
        loop {
            match self.message().await {
                ServerMessage::Batch(batch) if batch.sub.0 == sub => {
                    ops.extend(batch.ops);
                    if !batch.more {
                        return ops;
                    }
                }
                ServerMessage::Faulted(faulted) if faulted.sub.0 == sub => panic!("{faulted:?}"),
                ServerMessage::Error(error) => panic!("{error:?}"),
                _ => {}
            }
        }
    }

    /// Reads up to a release of at least that cv; all messages on the way.
    pub(crate) async fn released(&mut self, cv: u64) -> Vec<ServerMessage> {
        let mut seen = Vec::new();
        while self.laws.released().is_none_or(|released| released < cv) {
            seen.push(self.message().await);
        }
        seen
    }

    /// A ping and its pong: everything sent before has been dealt with. What came in between.
    pub(crate) async fn round_trip(&mut self) -> Vec<ServerMessage> {
        self.send(&json!({"ping": {"t": "round trip"}})).await;
        let mut seen = Vec::new();
        loop {
            match self.message().await {
                ServerMessage::Pong(pong) if pong.t == "round trip" => return seen,
                other => seen.push(other),
            }
        }
    }
}
