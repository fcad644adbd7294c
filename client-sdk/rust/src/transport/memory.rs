//! A transport within the process, for tests: each connection is handed to the test, which plays the server.

use super::{Frame, FrameSink, FrameStream, Transport, TransportError};
use futures_util::{SinkExt, StreamExt, future::BoxFuture, sink, stream};
use std::sync::Arc;
use tidegate_wire::{
    codec::Codec,
    protocol::{ClientMessage, ServerMessage},
};
use tokio::sync::mpsc;

/// Frames that fit in each direction before the sender waits.
const FRAMES_MAX: usize = 64;

/// The client's side; make one with [`pair`].
#[derive(Clone, Debug)]
pub struct MemoryTransport {
    connections: mpsc::Sender<MemoryConnection>,
}

/// The server's side: the connections that clients make.
#[derive(Debug)]
pub struct MemoryServer {
    connections: mpsc::Receiver<MemoryConnection>,
}

/// The server's side of one connection. Dropping it closes the connection.
#[derive(Debug)]
pub struct MemoryConnection {
    codec: Codec,
    sender: mpsc::Sender<Frame>,
    receiver: mpsc::Receiver<Frame>,
}

/// Both sides of a transport. Without a [`MemoryServer`] connections fail.
#[must_use]
pub fn pair() -> (MemoryTransport, MemoryServer) {
    let (sender, receiver) = mpsc::channel(1);
    (MemoryTransport { connections: sender }, MemoryServer { connections: receiver })
}

impl MemoryServer {
    /// The next connection; `None` when no client can make one any more.
    pub async fn accept(&mut self) -> Option<MemoryConnection> {
        self.connections.recv().await
    }
}

impl MemoryConnection {
    /// The connection's codec.
    #[must_use]
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Sends one message; whether the client still listens.
    pub async fn send(&self, message: &ServerMessage) -> bool {
        let mut bytes = Vec::new();
        self.codec.encode(message, &mut bytes);
        self.send_frame(Frame::of(self.codec, bytes)).await
    }

    /// Sends a frame as it is; whether the client still listens.
    pub async fn send_frame(&self, frame: Frame) -> bool {
        self.sender.send(frame).await.is_ok()
    }

    /// The next message; `None` when the client has closed the connection.
    ///
    /// # Panics
    /// When the client sends what cannot be decoded, or several messages in a frame.
    pub async fn receive(&mut self) -> Option<ClientMessage> {
        let (Frame::Text(bytes) | Frame::Binary(bytes)) = self.receiver.recv().await? else {
            panic!("a client sends messages only")
        };
        let mut message = None;
        let decoded = self.codec.decode(&bytes, |m| assert!(message.replace(m).is_none(), "one at a time"));
        decoded.expect("a client's messages decode");
        message
    }
}

impl Transport for MemoryTransport {
    fn connect<'a>(
        &'a self,
        _: &'a str,
        codec: Codec,
    ) -> BoxFuture<'a, Result<(FrameSink, FrameStream), TransportError>> {
        Box::pin(async move {
            let (to_server, from_client) = mpsc::channel(FRAMES_MAX);
            let (to_client, from_server) = mpsc::channel(FRAMES_MAX);
            let connection = MemoryConnection { codec, sender: to_client, receiver: from_client };
            self.connections.send(connection).await.map_err(|_| TransportError::Closed)?;
            let sink = sink::unfold(to_server, |sender, frame| async move {
                sender.send(frame).await.map_err(|_| TransportError::Closed)?;
                Ok(sender)
            });
            let stream = stream::unfold(from_server, |mut receiver| async move {
                receiver.recv().await.map(|frame| (Ok(frame), receiver))
            });
            let sink: FrameSink = Box::pin(sink.sink_map_err(|error: TransportError| error));
            Ok((sink, stream.boxed()))
        })
    }
}

impl MemoryTransport {
    /// The transport as the client takes it.
    #[must_use]
    pub fn shared(self) -> Arc<dyn Transport> {
        Arc::new(self)
    }
}
