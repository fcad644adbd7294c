//! A real socket: the handshake, both codecs, and a reconnect to the same address.

use crate::server::{issues, within};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value as Json, json};
use tidegate_client::{Client, ClientOptions, Codec, ConnectError, ErrorCode, Query};
use tidegate_wire::{
    model::Layout,
    protocol::{ClientMessage, ServerMessage},
};
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async,
    tungstenite::{
        Message,
        handshake::server::{Request, Response},
    },
};

struct Socket(WebSocketStream<TcpStream>, Codec);

impl Socket {
    async fn accept(listener: &TcpListener, codec: Codec) -> Self {
        let (stream, _) = within(listener.accept()).await.expect("accepts");
        #[allow(clippy::result_large_err)] // the library's own type
        let negotiate = |request: &Request, mut response: Response| {
            assert_eq!(request.uri().path(), "/v1/sync");
            let protocol = request.headers()["sec-websocket-protocol"].clone();
            assert_eq!(protocol, codec.subprotocol());
            response.headers_mut().insert("sec-websocket-protocol", protocol);
            Ok(response)
        };
        Self(within(accept_hdr_async(stream, negotiate)).await.expect("a handshake"), codec)
    }

    async fn send(&mut self, messages: &[Json]) {
        let mut frames = Vec::new();
        for message in messages {
            let message: ServerMessage = serde_json::from_value(message.clone()).expect("a server message");
            let mut bytes = Vec::new();
            self.1.encode(&message, &mut bytes);
            frames.push(bytes);
        }
        // Binary frames may hold several messages.
        let frames: Vec<Message> = match self.1 {
            Codec::MessagePack => vec![Message::Binary(frames.concat().into())],
            Codec::Json => {
                frames.into_iter().map(|f| Message::text(String::from_utf8(f).expect("UTF-8"))).collect()
            }
        };
        for frame in frames {
            self.0.send(frame).await.expect("sends");
        }
    }

    async fn receive(&mut self) -> Json {
        loop {
            let message = within(self.0.next()).await.expect("open").expect("reads");
            assert_eq!(message.is_binary(), self.1 == Codec::MessagePack);
            let mut decoded = None;
            self.1.decode(&message.into_data(), |m: ClientMessage| decoded = Some(m)).expect("decodes");
            let decoded = decoded.expect("a message");
            if !matches!(decoded, ClientMessage::Ack(_)) {
                return serde_json::to_value(decoded).expect("serializes");
            }
        }
    }
}

#[tokio::test]
async fn round_trip_and_reconnect() {
    for codec in Codec::ALL {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let connecting =
            tokio::spawn(
                async move { Client::connect_with(&url, ClientOptions::default().codec(codec)).await },
            );
        let welcome = json!({"welcome": {"protocol": 1, "server": "t", "conn": "1", "cv": 1, "limits": {}}});
        let Layout { tables, places } = issues();
        let fp = issues().fingerprint(b"");
        let subscribed = |epoch: u64, resumed: bool| {
            json!({"subscribed": {"sub": 1, "epoch": epoch, "fp": fp, "tables": tables, "places": places,
                "resumed": resumed}})
        };
        let batch = |epoch: u64, seq: u64, cv: u64, ops: Json| json!({"batch": {"sub": 1, "epoch": epoch, "seq": seq, "cv": cv, "fp": fp, "ops": ops}});
        let progress = |cv: u64| json!({"progress": {"cv_min": cv}});

        let mut socket = Socket::accept(&listener, codec).await;
        assert_eq!(socket.receive().await, json!({"hello": {}}));
        socket.send(std::slice::from_ref(&welcome)).await;
        let client = within(connecting).await.expect("no panic").expect("welcomed");
        let subscribing = tokio::spawn({
            let client = client.clone();
            async move { client.subscribe(Query::named("issues")).await }
        });
        assert_eq!(socket.receive().await, json!({"subscribe": {"sub": 1, "name": "issues"}}));
        let add = json!([["+", 0, 1, [1, "é"]]]);
        socket.send(&[subscribed(1, false), batch(1, 0, 5, add), progress(5)]).await;
        let mut view = within(subscribing).await.expect("no panic").expect("taken");
        let update = within(view.next()).await.expect("the snapshot");
        assert_eq!(update.rows.to_json(), json!([{"id": 1, "title": "é"}]));

        // The socket breaks without a word.
        drop(socket);
        let mut socket = Socket::accept(&listener, codec).await;
        socket.receive().await;
        socket.send(&[welcome]).await;
        assert_eq!(socket.receive().await["subscribe"]["resume"]["cv"], 5);
        let edit = json!([["~", 0, 1, [1, "f"]]]);
        socket.send(&[subscribed(2, true), batch(2, 0, 6, edit), progress(6)]).await;
        let update = within(view.next()).await.expect("the difference");
        assert_eq!(update.rows.to_json(), json!([{"id": 1, "title": "f"}]));

        client.close().await;
        // Perhaps behind a last acknowledgement.
        let mut last = None;
        while let Some(Ok(message)) = within(socket.0.next()).await {
            last = Some(message);
        }
        assert!(matches!(last, Some(Message::Close(_))), "{last:?}");
    }
}

#[tokio::test]
async fn nobody_there_is_an_error_of_connect() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let error = Client::connect(&url).await.expect_err("nobody listens");
    assert!(matches!(error, ConnectError::Transport(_)), "{error:?}");
    assert!(matches!(Client::connect("localhost").await, Err(ConnectError::Url { .. })));
}

#[tokio::test]
async fn a_refused_handshake_gives_the_servers_reason() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let connecting = tokio::spawn(async move { Client::connect(&url).await });
    let (mut stream, _) = within(listener.accept()).await.expect("accepts");
    let body = r#"{"error":{"code":"not_ready","message":"the log is being replayed"}}"#;
    let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length:";
    let answer = format!("{head} {}\r\n\r\n{body}", body.len());
    stream.write_all(answer.as_bytes()).await.expect("writes");
    let error = within(connecting).await.expect("no panic").expect_err("refused");
    let ConnectError::Refused { code, message } = error else { panic!("{error}") };
    assert_eq!((code, message.as_str()), (ErrorCode::NotReady, "the log is being replayed"));
}
