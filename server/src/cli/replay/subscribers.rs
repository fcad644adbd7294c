//! Many subscribers of one query in one process: each a WebSocket and a few words of state. They decode a message's
//! head and skip its rows.

use super::{
    latency::{Latencies, Summary},
    sends::Sends,
};
use crate::cli::{Failure, client::ServerUrl};
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{self, TryStreamExt as _},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tidegate_client::Query;
use tidegate_wire::{
    codec::Codec,
    model::{Cv, Seq, SubId},
    protocol::{
        client::{ClientMessage, Hello, Subscribe, Unsubscribe},
        server::{ErrorMessage, Faulted, Goaway, Progress},
    },
};
use tokio::{net::TcpStream, sync::watch, task::JoinHandle};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async_with_config,
    tungstenite::{
        self, Message,
        client::IntoClientRequest as _,
        http::{HeaderValue, header::SEC_WEBSOCKET_PROTOCOL},
    },
};

const CODEC: Codec = Codec::MessagePack;

/// The subscription that is measured.
const WATCHED: SubId = SubId(1);

/// Connections that are being made at a time.
const CONNECTING_MAX: usize = 32;

/// How long one connection may take, its snapshot included.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(60);

/// How long the subscribers may take, after the last commit, to get everything.
const CATCH_UP_TIME_MAX: Duration = Duration::from_secs(120);

/// Before a barrier that came too early is put up again.
const BARRIER_PAUSE: Duration = Duration::from_millis(20);

/// What is read of a message.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Frame {
    Welcome(IgnoredAny),
    Subscribed(IgnoredAny),
    Batch(BatchHead),
    Progress(Progress),
    Faulted(Faulted),
    Error(ErrorMessage),
    PushResult(IgnoredAny),
    Goaway(Goaway),
    Pong(IgnoredAny),
}

#[derive(Debug, Deserialize)]
struct BatchHead {
    sub: SubId,
    seq: Seq,
    cv: Cv,
}

/// Why a subscriber has ended.
#[derive(Debug, thiserror::Error)]
pub enum SubscriberError {
    /// The network or the WebSocket failed.
    #[error("the connection failed: {0}")]
    WebSocket(#[from] tungstenite::Error),
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// The server refused something, ended the query or sent the subscriber away.
    #[error("the server said: {message} ({code})")]
    Refused {
        /// The protocol's code.
        code: String,
        /// The text.
        message: String,
    },
    /// A message cannot be decoded.
    #[error("a message cannot be decoded: {0}")]
    Decode(#[from] tidegate_wire::codec::DecodeError),
    /// Something took too long.
    #[error("it took longer than {} s", .0.as_secs())]
    TooLong(Duration),
}

/// What ends the measuring: all up to this commit version must have come.
#[derive(Clone, Debug)]
struct End {
    cv: Cv,
    /// A table that exists, for the barrier's query.
    table: Option<String>,
}

/// See the module's description.
pub struct Subscribers {
    tasks: Vec<JoinHandle<Result<(), SubscriberError>>>,
    end: watch::Sender<Option<End>>,
    latencies: Arc<Latencies>,
}

/// What came of the subscribers.
#[derive(Debug)]
pub struct Finished {
    /// How many there were.
    pub subscribers: usize,
    /// Why some lost their connection.
    pub lost: Vec<SubscriberError>,
    /// From sending to release.
    pub latency: Summary,
    /// How long it took from the call until all had everything.
    pub caught_up: Duration,
}

impl Subscribers {
    /// Connects them, a few at a time, and waits until each has its snapshot.
    ///
    /// # Errors
    /// When one cannot be connected, or the query is refused.
    pub async fn connect(
        url: &ServerUrl,
        query: Query,
        count: usize,
        sends: Arc<Sends>,
    ) -> Result<Self, Failure> {
        let latencies = Arc::new(Latencies::new());
        let (end, ended) = watch::channel(None);
        let address = url.sync();
        let subscribe = query.to_subscribe(WATCHED);
        let (address, subscribe, latencies_of_all) = (&address, &subscribe, &latencies);
        let tasks = stream::iter(0..count)
            .map(|_| {
                let (sends, latencies) = (Arc::clone(&sends), Arc::clone(latencies_of_all));
                let ended = ended.clone();
                async move {
                    let connecting = Subscriber::connect(address, subscribe.clone(), sends, latencies);
                    match tokio::time::timeout(CONNECT_TIME_MAX, connecting).await {
                        // From now on it must read, also while others are still connecting.
                        Ok(connected) => Ok(tokio::spawn(connected?.run(ended))),
                        Err(_) => Err(SubscriberError::TooLong(CONNECT_TIME_MAX)),
                    }
                }
            })
            .buffer_unordered(CONNECTING_MAX)
            .try_collect()
            .await
            .map_err(|error| {
                let many =
                    if count > 1_000 { "; with many subscribers, see `ulimit -n` on both sides" } else { "" };
                Failure::Failed(format!("cannot subscribe at {url}: {error}{many}"))
            })?;
        Ok(Self { tasks, end, latencies })
    }

    /// Waits until all have everything up to a commit version. `table` is one that exists.
    ///
    /// # Errors
    /// When that takes too long.
    pub async fn finish(self, cv: Cv, table: Option<String>) -> Result<Finished, Failure> {
        let began = Instant::now();
        self.end.send_replace(Some(End { cv, table }));
        let subscribers = self.tasks.len();
        let mut lost = Vec::new();
        let all = async {
            for task in self.tasks {
                if let Ok(Err(error)) = task.await {
                    lost.push(error);
                }
            }
        };
        if tokio::time::timeout(CATCH_UP_TIME_MAX, all).await.is_err() {
            return Err(Failure::Failed(format!(
                "subscribers did not get commit {cv} within {} s; the server is overloaded: lower --rate or --subscribers",
                CATCH_UP_TIME_MAX.as_secs()
            )));
        }
        let caught_up = began.elapsed();
        Ok(Finished { subscribers, lost, latency: self.latencies.summary(), caught_up })
    }
}

/// One subscriber.
struct Subscriber {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// Batches of the watched query that are not released.
    owed: Vec<Cv>,
    released: Option<Cv>,
    /// The subscription that is a barrier, and whether its snapshot has come.
    barrier: Option<(SubId, Option<Cv>)>,
    sends: Arc<Sends>,
    latencies: Arc<Latencies>,
}

impl Subscriber {
    /// Connects, subscribes, and returns when the snapshot is released.
    async fn connect(
        address: &str,
        subscribe: Subscribe,
        sends: Arc<Sends>,
        latencies: Arc<Latencies>,
    ) -> Result<Self, SubscriberError> {
        let mut request = address.into_client_request()?;
        request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(CODEC.subprotocol()));
        let (socket, _) = connect_async_with_config(request, None, true).await?;
        let mut subscriber =
            Self { socket, owed: Vec::new(), released: None, barrier: None, sends, latencies };
        subscriber.send(&ClientMessage::Hello(Hello::default())).await?;
        subscriber.send(&ClientMessage::Subscribe(Box::new(subscribe))).await?;
        while subscriber.released.is_none() {
            subscriber.read().await?;
        }
        Ok(subscriber)
    }

    /// Reads until everything up to the end has come.
    async fn run(mut self, mut ended: watch::Receiver<Option<End>>) -> Result<(), SubscriberError> {
        let end = loop {
            tokio::select! {
                read = self.read() => read?,
                // Without a sender the whole replay has failed.
                end = ended.wait_for(Option::is_some) => match end {
                    Ok(end) => break end.clone(),
                    Err(_) => return Ok(()),
                },
            }
        };
        let Some(End { cv, table: Some(table) }) = end else { return Ok(()) };
        let mut sub = WATCHED.0;
        while self.released < Some(cv) {
            // A commit that changes nothing of a subscriber's sends it nothing. A further small query does: its
            // snapshot is newer than the end, and is released only behind everything that is older.
            if self.barrier.is_none() {
                sub += 1;
                let query = json!({ "table": table, "limit": 1 });
                let subscribe = Subscribe { sub: SubId(sub), query: Some(query), ..Subscribe::default() };
                self.send(&ClientMessage::Subscribe(Box::new(subscribe))).await?;
                self.barrier = Some((SubId(sub), None));
            }
            self.read().await?;
            // The snapshot of a query that others watch too stands where its worker does, which may be behind.
            if let Some((_, Some(at))) = self.barrier
                && self.released >= Some(at)
                && self.released < Some(cv)
            {
                self.barrier = None;
                self.send(&ClientMessage::Unsubscribe(Unsubscribe { sub: SubId(sub) })).await?;
                tokio::time::sleep(BARRIER_PAUSE).await;
            }
        }
        // What follows does not matter, nor whether the server still hears the farewell.
        let _ = self.socket.close(None).await;
        Ok(())
    }

    async fn send(&mut self, message: &ClientMessage) -> Result<(), SubscriberError> {
        let mut bytes = Vec::new();
        CODEC.encode(message, &mut bytes);
        Ok(self.socket.send(Message::Binary(bytes.into())).await?)
    }

    /// Takes one WebSocket message. May be cancelled without losing one.
    async fn read(&mut self) -> Result<(), SubscriberError> {
        let bytes = match self.socket.next().await {
            Some(Ok(Message::Binary(bytes))) => bytes,
            Some(Ok(Message::Close(_))) | None => return Err(SubscriberError::Closed),
            Some(Ok(_)) => return Ok(()),
            Some(Err(error)) => return Err(error.into()),
        };
        let now = Instant::now();
        let mut refused = None;
        CODEC.decode(&bytes, |frame: Frame| {
            let refusal = match frame {
                Frame::Batch(batch) => return self.take(&batch),
                Frame::Progress(progress) => return self.release(progress.cv_min, now),
                Frame::Faulted(Faulted { code, message, .. }) => (code, message),
                Frame::Error(ErrorMessage { code, message, .. }) => (code, message),
                Frame::Goaway(Goaway { code, message, .. }) => (code, message),
                Frame::Welcome(_) | Frame::Subscribed(_) | Frame::PushResult(_) | Frame::Pong(_) => return,
            };
            refused.get_or_insert(refusal);
        })?;
        match refused {
            None => Ok(()),
            Some((code, message)) => Err(SubscriberError::Refused { code: code.to_string(), message }),
        }
    }

    fn take(&mut self, batch: &BatchHead) {
        match &mut self.barrier {
            Some((sub, at)) if *sub == batch.sub => *at = Some(batch.cv),
            // Seq 0 is a snapshot.
            _ if batch.sub == WATCHED && batch.seq != Seq(0) => self.owed.push(batch.cv),
            _ => {}
        }
    }

    fn release(&mut self, cv_min: Cv, now: Instant) {
        self.released = Some(cv_min);
        self.owed.retain(|cv| {
            if *cv > cv_min {
                return true;
            }
            if let Some(sent_at) = self.sends.sent_at(*cv) {
                self.latencies.record(now.saturating_duration_since(sent_at));
            }
            false
        });
    }
}
