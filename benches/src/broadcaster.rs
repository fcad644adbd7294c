//! What the fan-out is measured against: an axum server that sends every message to every WebSocket and does nothing
//! else. The bytes are shared. It writes in one of two ways: as one would at first, a `send` for each message; or as is
//! best for axum, each connection takes what waits, up to 64 messages, feeds them all and flushes once.

use axum::{
    Router,
    body::Bytes,
    extract::{
        State,
        ws::{Message, WebSocket, WebSocketUpgrade},
    },
    response::Response,
    routing::get,
    serve::ListenerExt as _,
};
use futures_util::{SinkExt as _, StreamExt as _};
use std::net::SocketAddr;
use tokio::{
    net::TcpListener,
    runtime::Runtime,
    sync::broadcast::{self, Sender, error::RecvError},
};

/// Messages that may wait for the slowest connection; one that falls further behind is closed.
const QUEUE_MAX: usize = 1 << 16;
/// Messages taken at once by [`Writes::Gathered`].
const GATHERED_MAX: usize = 64;

/// The path of its WebSocket.
pub(crate) const PATH: &str = "/bare";

/// How it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    /// Each message by itself.
    Single,
    /// What waits together.
    Gathered,
}

/// See the module's description.
pub(crate) struct Broadcaster {
    /// Where it listens.
    pub(crate) addr: SocketAddr,
    sender: Sender<Bytes>,
    runtime: Runtime,
}

impl Broadcaster {
    /// Starts on a runtime of its own.
    pub(crate) fn start(writes: Writes) -> anyhow::Result<Self> {
        let runtime = Runtime::new()?;
        let (sender, _) = broadcast::channel(QUEUE_MAX);
        let router = Router::new().route(PATH, get(upgrade)).with_state((sender.clone(), writes));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let addr = listener.local_addr()?;
        let listener = listener.tap_io(|stream| {
            // As the server does; without it the two are not alike.
            let _ = stream.set_nodelay(true);
        });
        runtime.spawn(async move { axum::serve(listener, router).await });
        Ok(Self { addr, sender, runtime })
    }

    /// How many connections listen.
    pub(crate) fn listeners(&self) -> usize {
        self.sender.receiver_count()
    }

    /// Sends to all.
    pub(crate) fn send(&self, message: Bytes) {
        // Fails when nobody listens any more, which the readers then report.
        let _ = self.sender.send(message);
    }

    /// Stops.
    pub(crate) fn stop(self) {
        self.runtime.shutdown_background();
    }
}

async fn upgrade(
    State((sender, writes)): State<(Sender<Bytes>, Writes)>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let taken_max = if writes == Writes::Single { 1 } else { GATHERED_MAX };
    upgrade
        .read_buffer_size(4 << 10)
        .write_buffer_size(16 << 10)
        .on_upgrade(move |socket| serve(socket, sender, taken_max))
}

async fn serve(socket: WebSocket, sender: Sender<Bytes>, taken_max: usize) {
    let mut messages = sender.subscribe();
    drop(sender);
    let (mut sink, mut stream) = socket.split();
    let mut reading = tokio::spawn(async move { while let Some(Ok(_)) = stream.next().await {} });
    'open: loop {
        let received = tokio::select! {
            received = messages.recv() => received,
            _ = &mut reading => break,
        };
        let first = match received {
            Ok(first) => first,
            Err(RecvError::Lagged(_) | RecvError::Closed) => break,
        };
        let mut next = Some(first);
        let mut taken = 0;
        while let Some(message) = next.take() {
            if sink.feed(Message::Binary(message)).await.is_err() {
                break 'open;
            }
            taken += 1;
            if taken < taken_max {
                next = messages.try_recv().ok();
            }
        }
        if sink.flush().await.is_err() {
            break;
        }
    }
    reading.abort();
}
