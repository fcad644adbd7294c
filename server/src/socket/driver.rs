//! Drives one WebSocket: reads its messages, lets the [`Session`] decide, and carries the effects out one after the
//! other. Since the next message is read only when the last is dealt with, a client that floods is slowed down by its
//! own TCP connection.

use super::{
    session::{Effect, Session, SessionLimits, close_code},
    writer::{self, WriterLimits},
};
use crate::{
    codes,
    connection::Connected,
    hub::{Frame, Outbox, Pushed, Registration, Share},
    state::Shared,
};
use axum::extract::ws::{Message, WebSocket};
use futures_util::{Stream, StreamExt as _};
use serde_json::{Map, Value as Json};
use std::{
    future,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};
use tidegate_replica::handle::Replica;
use tidegate_wire::{
    codec::Codec,
    model::SubId,
    protocol::{
        ErrorCode, PROTOCOL_VERSION, ServerMessage,
        server::{ErrorMessage, Faulted, PushError, PushResult, Welcome},
    },
};
use tokio_tungstenite::tungstenite;

/// Serves a connection until it ends; the replica has forgotten it soon after.
pub async fn run(socket: WebSocket, registration: Registration, replica: Replica, shared: Arc<Shared>) {
    let outbox = Arc::clone(&registration.outbox);
    let config = &shared.config;
    let limits = WriterLimits {
        frame_bytes_target: config.limits.frame_bytes_target,
        write_timeout: config.server.write_timeout_ms,
        close_timeout: config.server.close_timeout_ms,
    };
    let (sink, mut stream) = socket.split();
    let mut writer =
        shared.tasks.spawn(writer::run(sink, Arc::clone(&outbox), limits, Arc::clone(&shared.hub)));
    let session = Session::new(session_limits(&shared), Instant::now());
    let mut driver = Driver {
        codec: outbox.codec(),
        connected: Connected::new(replica, registration),
        outbox,
        session,
        shared: Arc::clone(&shared),
    };
    let is_readable = driver.converse(&mut stream).await;
    let outbox = Arc::clone(&driver.outbox);
    drop(driver);
    // The peer gets time to read the last messages and to answer the close frame. Reading on matters: to close a
    // socket with unread input resets it, which would destroy what the peer has not read yet.
    let lingering = async {
        let read_on = async {
            while let Some(Ok(_)) = stream.next().await {}
            if !is_readable {
                // What is left of a broken frame cannot be read past, so the socket just stays open for a while.
                future::pending::<()>().await;
            }
        };
        tokio::join!(read_on, async { (&mut writer).await.ok() });
    };
    if tokio::time::timeout(shared.config.server.close_timeout_ms, lingering).await.is_err()
        && !writer.is_finished()
    {
        tracing::debug!(bytes = outbox.bytes(), "connection dropped with messages unread");
        writer.abort();
    }
}

fn session_limits(shared: &Shared) -> SessionLimits {
    let (server, limits) = (&shared.config.server, &shared.config.limits);
    SessionLimits {
        subscriptions_max: limits.subscriptions_max,
        message_bytes_max: limits.message_bytes_max,
        mutations_max: limits.mutations_max,
        client_id_bytes_max: limits.client_id_bytes_max,
        hello_timeout: server.hello_timeout_ms,
        ping_interval: server.ping_interval_ms,
        silence_max: server.silence_max_ms,
    }
}

struct Driver {
    codec: Codec,
    connected: Connected,
    outbox: Arc<Outbox>,
    session: Session,
    shared: Arc<Shared>,
}

/// Whatever ends the conversation, a panic too, ends the writer, and the socket with it; only the first close counts.
impl Drop for Driver {
    fn drop(&mut self) {
        let code = if std::thread::panicking() { close_code::INTERNAL } else { close_code::AWAY };
        self.outbox.close(None, code, "");
    }
}

impl Driver {
    /// Reads until the session, the outbox or the socket closes. Whether the stream can be read further.
    async fn converse(
        &mut self,
        stream: &mut (impl Stream<Item = Result<Message, axum::Error>> + Unpin),
    ) -> bool {
        let mut is_readable = true;
        let outbox = Arc::clone(&self.outbox);
        while !self.session.is_closed() {
            let tick = tokio::time::sleep_until(shared_tick(self.session.next_tick()).into());
            let effects = tokio::select! {
                biased;
                () = outbox.closing() => return is_readable,
                message = stream.next() => {
                    self.session.heard(Instant::now());
                    match message {
                        None | Some(Ok(Message::Close(_))) => return is_readable,
                        Some(Err(error)) => {
                            is_readable = false;
                            if is_too_large(&error) {
                                self.session.too_large()
                            } else if let Some(why) = protocol_violation(&error) {
                                self.session.undecodable(why)
                            } else {
                                return true;
                            }
                        }
                        Some(Ok(message)) => {
                            self.receive(message).await;
                            continue;
                        }
                    }
                }
                () = tick => self.session.tick(Instant::now()),
            };
            self.carry_out(effects).await;
        }
        is_readable
    }

    async fn receive(&mut self, message: Message) {
        let bytes = match (message, self.codec) {
            (Message::Ping(_) | Message::Pong(_) | Message::Close(_), _) => return,
            (Message::Text(text), Codec::Json) => text.into(),
            (Message::Binary(bytes), Codec::MessagePack) => bytes,
            (Message::Text(_), Codec::MessagePack) => {
                let effects = self.session.wrong_frame_type("binary");
                return self.carry_out(effects).await;
            }
            (Message::Binary(_), Codec::Json) => {
                let effects = self.session.wrong_frame_type("text");
                return self.carry_out(effects).await;
            }
        };
        if bytes.len() > self.shared.config.limits.message_bytes_max {
            let effects = self.session.too_large();
            return self.carry_out(effects).await;
        }
        let mut messages = Vec::new();
        let decoded = self.codec.decode(&bytes, |message| messages.push(message));
        drop(bytes);
        for message in messages {
            for sub in self.outbox.take_ended() {
                self.session.ended(sub);
            }
            let effects = self.session.receive(message);
            self.carry_out(effects).await;
            if self.outbox.is_closing() {
                return;
            }
        }
        if let Err(error) = decoded {
            let effects = self.session.undecodable(error.to_string());
            self.carry_out(effects).await;
        }
    }

    async fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(message) => self.send(&message),
                Effect::Welcome => {
                    if let Some(client_id) = self.session.client_id() {
                        self.connected.set_client_id(Arc::clone(client_id));
                    }
                    self.send(&self.welcome());
                    self.connected.announce().await;
                }
                Effect::Subscribe { sub, request, resume } => {
                    let replica = self.connected.replica();
                    let started = match replica.prepare(&request, self.session.claims()) {
                        Ok(query) => replica.subscribe(self.connected.conn(), sub, &query, resume).await,
                        Err(error) => Err(error),
                    };
                    match started {
                        Ok(_) => self.session.subscribed(sub),
                        Err(error) => self.refuse(sub, codes::query_error(error.kind), error.message),
                    }
                }
                Effect::Unsubscribe(sub) => {
                    self.connected.replica().unsubscribe(self.connected.conn(), sub).await;
                    self.outbox.forget_snapshot(sub);
                }
                Effect::Mutate { client_id, id, ops } => {
                    let arrived_at = Instant::now();
                    let outcome = self.connected.replica().mutate(&client_id, id, &ops).await;
                    self.shared.hub.arrivals.note(outcome.cv, 1, arrived_at);
                    let error = outcome.refused.map(|refusal| PushError {
                        code: codes::commit_refusal(refusal.kind),
                        message: refusal.message,
                    });
                    self.send(&ServerMessage::PushResult(PushResult { id, error }));
                }
                Effect::Ping => self.outbox.ping(),
                Effect::Close { code, reason } => self.outbox.close(None, code, reason),
            }
        }
    }

    /// A subscription that did not start. One that failed while it was evaluated is over like a started one, and so is
    /// the client's own row, which the client has not asked for; any other leaves its number free.
    fn refuse(&mut self, sub: SubId, code: ErrorCode, message: String) {
        if code == ErrorCode::QueryFaulted || sub == SubId(0) {
            self.session.subscribed(sub);
            self.session.ended(sub);
            let retry = sub == SubId(0);
            self.send(&ServerMessage::Faulted(Faulted { sub, code, message, retry }));
        } else {
            self.session.refused(sub);
            self.send(&ServerMessage::Error(ErrorMessage { code, message, sub: Some(sub) }));
        }
    }

    fn send(&self, message: &ServerMessage) {
        let frame = Frame::message(self.codec, message, Instant::now());
        if self.outbox.push(frame, Share::Live) == Pushed::Evicted {
            self.shared.hub.count_eviction("outbox_full");
        }
    }

    fn welcome(&self) -> ServerMessage {
        ServerMessage::Welcome(Welcome {
            protocol: PROTOCOL_VERSION,
            server: crate::SERVER.to_owned(),
            conn: self.connected.conn().0.to_string(),
            cv: self.connected.replica().cv(),
            limits: announced_limits(&self.shared),
        })
    }
}

/// Sessions tick together, at whole multiples of this: thousands of idle connections, each woken by a timer of its own,
/// would wake the processor as often.
const TICK: Duration = Duration::from_millis(100);

/// The first common tick at or after a moment.
fn shared_tick(due: Instant) -> Instant {
    static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let since = due.saturating_duration_since(*ORIGIN).as_nanos();
    let ticks = since.div_ceil(TICK.as_nanos());
    *ORIGIN + TICK * u32::try_from(ticks).unwrap_or(u32::MAX)
}

/// The limits a client can run into, by their setting's key.
fn announced_limits(shared: &Shared) -> Map<String, Json> {
    let limits = &shared.config.limits;
    let server = &shared.config.server;
    let number = |value: usize| Json::from(value);
    Map::from_iter(
        [
            ("message_bytes_max", number(limits.message_bytes_max)),
            ("frame_bytes_target", number(limits.frame_bytes_target)),
            ("subscriptions_max", number(limits.subscriptions_max)),
            ("mutations_max", number(limits.mutations_max)),
            ("commit_ops_max", number(limits.commit_ops_max)),
            ("client_id_bytes_max", number(limits.client_id_bytes_max)),
            ("outbox_bytes_max", number(limits.outbox_bytes_max)),
            ("silence_max_ms", number(server.silence_max_ms.as_millis() as usize)),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    )
}

/// The library's own error inside axum's.
fn cause(error: &axum::Error) -> Option<&tungstenite::Error> {
    std::error::Error::source(error)?.downcast_ref()
}

fn is_too_large(error: &axum::Error) -> bool {
    matches!(cause(error), Some(tungstenite::Error::Capacity(_)))
}

/// What a client did that no WebSocket client may do, as opposed to a connection that merely ended.
fn protocol_violation(error: &axum::Error) -> Option<String> {
    use tungstenite::error::ProtocolError::ResetWithoutClosingHandshake;
    match cause(error)? {
        tungstenite::Error::Protocol(ResetWithoutClosingHandshake) => None,
        error @ (tungstenite::Error::Utf8(_) | tungstenite::Error::Protocol(_)) => Some(error.to_string()),
        _ => None,
    }
}
