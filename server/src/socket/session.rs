//! A connection's conversation as a pure state machine: messages and time in, effects out. It does no I/O, knows no
//! replica and reads no clock, so tests drive it directly. The driver carries its effects out in order, one message
//! after the other, and tells it what became of subscriptions.

use super::sub_numbers::SubNumbers;
use crate::codes::check_args;
use serde_json::{Map, Value as Json, json};
use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};
use tidegate_replica::handle::{QueryRequest, QuerySource, ResumePoint};
use tidegate_wire::{
    model::{SubId, commit::RowOp},
    protocol::{
        ClientMessage, ErrorCode, ServerMessage,
        client::{Hello, Push, Subscribe},
        server::{ErrorMessage, Pong, PushError, PushResult},
    },
};

/// WebSocket close codes the session uses.
pub mod close_code {
    /// The client broke the protocol.
    pub const POLICY: u16 = 1008;
    /// The client's message was too large.
    pub const TOO_LARGE: u16 = 1009;
    /// The client is not heard any more.
    pub const AWAY: u16 = 1001;
    /// The server cannot go on.
    pub const INTERNAL: u16 = 1011;
}

/// What a session may ask for and how long it may take.
#[derive(Clone, Debug)]
pub struct SessionLimits {
    /// Subscriptions at once.
    pub subscriptions_max: usize,
    /// Bytes of one message from the client.
    pub message_bytes_max: usize,
    /// Mutations in one push.
    pub mutations_max: usize,
    /// Longest client id, bytes.
    pub client_id_bytes_max: usize,
    /// Time until `hello`.
    pub hello_timeout: Duration,
    /// Silence after which the client is pinged.
    pub ping_interval: Duration,
    /// Silence after which the client counts as gone.
    pub silence_max: Duration,
}

/// What the driver is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send a message.
    Send(ServerMessage),
    /// Send `welcome` and announce the connection to the replica.
    Welcome,
    /// Start a subscription, then call [`Session::refused`] or [`Session::ended`] if it does not live.
    Subscribe {
        /// The client's number for it; 0 is its own mutation row.
        sub: SubId,
        /// The query.
        request: QueryRequest,
        /// Where to go on from.
        resume: Option<ResumePoint>,
    },
    /// End a subscription.
    Unsubscribe(SubId),
    /// Apply a mutation and send its `push_result`.
    Mutate {
        /// Whose it is.
        client_id: Arc<str>,
        /// Its number.
        id: u64,
        /// What it writes.
        ops: Vec<RowOp>,
    },
    /// Ping the client.
    Ping,
    /// Close once what was sent before has gone out. Nothing follows.
    Close {
        /// WebSocket close code.
        code: u16,
        /// Why, for people.
        reason: &'static str,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    AwaitingHello,
    Open,
    Closed,
}

/// See the module's description.
#[derive(Debug)]
pub struct Session {
    limits: SessionLimits,
    phase: Phase,
    client_id: Option<Arc<str>>,
    claims: Map<String, Json>,
    live: HashSet<SubId>,
    used: SubNumbers,
    opened_at: Instant,
    heard_at: Instant,
    pinged_at: Option<Instant>,
}

impl Session {
    /// A connection that has just been made.
    #[must_use]
    pub fn new(limits: SessionLimits, now: Instant) -> Self {
        Self {
            limits,
            phase: Phase::AwaitingHello,
            client_id: None,
            claims: Map::new(),
            live: HashSet::new(),
            used: SubNumbers::default(),
            opened_at: now,
            heard_at: now,
            pinged_at: None,
        }
    }

    /// The claims of the connection's token. Empty as long as no way to check tokens is configured.
    #[must_use]
    pub fn claims(&self) -> &Map<String, Json> {
        &self.claims
    }

    /// The name that the client gave itself.
    #[must_use]
    pub fn client_id(&self) -> Option<&Arc<str>> {
        self.client_id.as_ref()
    }

    /// Whether the session asked to close.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Something came from the client, be it a pong.
    pub fn heard(&mut self, now: Instant) {
        self.heard_at = now;
        self.pinged_at = None;
    }

    /// A decoded message.
    pub fn receive(&mut self, message: ClientMessage) -> Vec<Effect> {
        if self.phase == Phase::Closed {
            return Vec::new();
        }
        if self.phase == Phase::AwaitingHello {
            return match message {
                ClientMessage::Hello(hello) => self.hello(hello),
                ClientMessage::Subscribe(subscribe) => {
                    vec![error(ErrorCode::BadMessage, "the first message must be hello", Some(subscribe.sub))]
                }
                _ => vec![error(ErrorCode::BadMessage, "the first message must be hello", None)],
            };
        }
        match message {
            ClientMessage::Hello(_) => {
                vec![error(
                    ErrorCode::BadMessage,
                    "hello was said already; it comes once per connection",
                    None,
                )]
            }
            ClientMessage::Subscribe(subscribe) => self.subscribe(*subscribe),
            ClientMessage::Unsubscribe(message) if message.sub == SubId(0) => {
                let text = "sub 0 is the client's own mutation row and stays";
                vec![error(ErrorCode::BadMessage, text, Some(message.sub))]
            }
            ClientMessage::Unsubscribe(message) => {
                // A subscription that is gone, or never was, is none now either: there is nothing to say.
                if self.live.remove(&message.sub) {
                    vec![Effect::Unsubscribe(message.sub)]
                } else {
                    Vec::new()
                }
            }
            ClientMessage::Push(push) => self.push(push),
            ClientMessage::Ping(ping) => vec![Effect::Send(ServerMessage::Pong(Pong { t: ping.t }))],
            ClientMessage::Auth(_) | ClientMessage::Ack(_) => Vec::new(),
        }
    }

    fn hello(&mut self, hello: Hello) -> Vec<Effect> {
        let max = self.limits.client_id_bytes_max;
        if let Some(client_id) = &hello.client_id
            && (client_id.is_empty() || client_id.len() > max || client_id.contains('\0'))
        {
            let text = format!("client_id must have 1 to {max} bytes, none of them 0");
            return vec![error(ErrorCode::BadMessage, text, None)];
        }
        self.phase = Phase::Open;
        let mut effects = vec![Effect::Welcome];
        if let Some(client_id) = hello.client_id {
            let query = json!({
                "table": "tidegate_client_mutations",
                "where": {"op": "=", "args": [{"col": "client_id"}, client_id]},
            });
            let request = QueryRequest { source: QuerySource::Query(query), args: Map::new() };
            effects.push(Effect::Subscribe { sub: SubId(0), request, resume: None });
            self.client_id = Some(client_id.into());
        }
        effects
    }

    fn subscribe(&mut self, message: Subscribe) -> Vec<Effect> {
        let Subscribe { sub, query, sql, name, args, resume } = message;
        let refuse = |code, text: String| vec![error(code, text, Some(sub))];
        if sub == SubId(0) {
            return refuse(ErrorCode::BadMessage, "sub must be 1 or more".to_owned());
        }
        if self.used.contains(sub) {
            return refuse(ErrorCode::BadMessage, format!("sub {sub} was used already on this connection"));
        }
        let source = match (query, sql, name) {
            (Some(query), None, None) => QuerySource::Query(query),
            (None, Some(sql), None) => QuerySource::Sql(sql),
            (None, None, Some(name)) => QuerySource::Name(name),
            _ => {
                let text = "give exactly one of query, sql and name";
                return refuse(ErrorCode::BadMessage, text.to_owned());
            }
        };
        if self.live.len() >= self.limits.subscriptions_max {
            let text = format!(
                "this connection has {} subscriptions, which is limits.subscriptions_max; end one first",
                self.live.len()
            );
            return refuse(ErrorCode::TooManySubscriptions, text);
        }
        if self.used.is_full() {
            let text = "too many scattered sub numbers were used; count up, or reconnect";
            return refuse(ErrorCode::TooManySubscriptions, text.to_owned());
        }
        if let Err((code, text)) = check_args(args.keys()) {
            return refuse(code, text);
        }
        let request = QueryRequest { source, args };
        let resume =
            resume.map(|resume| ResumePoint { epoch: Some(resume.epoch), cv: resume.cv, fp: resume.fp });
        // Counted from here on; `refused` takes it back. Messages are handled one after the other, so that no other
        // subscribe can come in between.
        self.live.insert(sub);
        vec![Effect::Subscribe { sub, request, resume }]
    }

    /// A subscription was started: its number is used up.
    pub fn subscribed(&mut self, sub: SubId) {
        if sub != SubId(0) {
            self.used.insert(sub);
        }
    }

    /// A subscription was refused; its number stays free.
    pub fn refused(&mut self, sub: SubId) {
        self.live.remove(&sub);
    }

    /// A started subscription ended by itself.
    pub fn ended(&mut self, sub: SubId) {
        self.live.remove(&sub);
    }

    fn push(&mut self, push: Push) -> Vec<Effect> {
        let max = self.limits.mutations_max;
        if push.mutations.len() > max {
            let text =
                format!("a push may hold {max} mutations, this one holds {}; split it", push.mutations.len());
            return vec![error(ErrorCode::BadMessage, text, None)];
        }
        let Some(client_id) = &self.client_id else {
            let refuse = |id| {
                let message = "mutations need a client_id in hello".to_owned();
                let error = Some(PushError { code: ErrorCode::BadMessage, message });
                Effect::Send(ServerMessage::PushResult(PushResult { id, error }))
            };
            return push.mutations.iter().map(|mutation| refuse(mutation.id)).collect();
        };
        push.mutations
            .into_iter()
            .map(|mutation| Effect::Mutate {
                client_id: Arc::clone(client_id),
                id: mutation.id,
                ops: if push.json_cells {
                    mutation.ops.into_iter().map(RowOp::in_json_form).collect()
                } else {
                    mutation.ops
                },
            })
            .collect()
    }

    /// A frame that is not a message.
    pub fn undecodable(&mut self, why: impl Into<String>) -> Vec<Effect> {
        self.fail(ErrorCode::BadMessage, why.into(), close_code::POLICY, "bad_message")
    }

    /// A text frame where binary ones are agreed on, or the other way round.
    pub fn wrong_frame_type(&mut self, expected: &str) -> Vec<Effect> {
        let text = format!("the agreed subprotocol uses {expected} frames");
        self.fail(ErrorCode::BadMessage, text, close_code::POLICY, "bad_message")
    }

    /// A message beyond the limit.
    pub fn too_large(&mut self) -> Vec<Effect> {
        let text = format!("a message may have {} bytes", self.limits.message_bytes_max);
        self.fail(ErrorCode::MessageTooLarge, text, close_code::TOO_LARGE, "message_too_large")
    }

    fn fail(&mut self, code: ErrorCode, text: String, close: u16, reason: &'static str) -> Vec<Effect> {
        if self.phase == Phase::Closed {
            return Vec::new();
        }
        self.phase = Phase::Closed;
        vec![error(code, text, None), Effect::Close { code: close, reason }]
    }

    /// When [`Session::tick`] is next due.
    #[must_use]
    pub fn next_tick(&self) -> Instant {
        let silent = self.heard_at + self.limits.silence_max;
        let next = match self.pinged_at {
            None => silent.min(self.heard_at + self.limits.ping_interval),
            Some(pinged_at) => silent.min(pinged_at + self.limits.ping_interval),
        };
        match self.phase {
            Phase::AwaitingHello => next.min(self.opened_at + self.limits.hello_timeout),
            Phase::Open | Phase::Closed => next,
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Instant) -> Vec<Effect> {
        if self.phase == Phase::Closed {
            return Vec::new();
        }
        if self.phase == Phase::AwaitingHello && now >= self.opened_at + self.limits.hello_timeout {
            let text = format!("no hello came within {} ms", self.limits.hello_timeout.as_millis());
            return self.fail(ErrorCode::BadMessage, text, close_code::POLICY, "no hello");
        }
        if now >= self.heard_at + self.limits.silence_max {
            self.phase = Phase::Closed;
            return vec![Effect::Close { code: close_code::AWAY, reason: "no sign of life" }];
        }
        if now >= self.pinged_at.unwrap_or(self.heard_at) + self.limits.ping_interval {
            self.pinged_at = Some(now);
            return vec![Effect::Ping];
        }
        Vec::new()
    }
}

fn error(code: ErrorCode, message: impl Into<String>, sub: Option<SubId>) -> Effect {
    Effect::Send(ServerMessage::Error(ErrorMessage { code, message: message.into(), sub }))
}

#[cfg(test)]
mod tests;
