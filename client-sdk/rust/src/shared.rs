//! What the client's handles, its views and the connection task share: the state machine and the views' slots,
//! behind one lock that nobody holds across an await.
//!
//! A release fills the slots of all views under that one lock, so that no reader sees part of a commit.

use crate::{
    client::Status,
    error::{ConnectError, Fault, MutationError, SubscribeError},
    options::ClientOptions,
    state::{Changes, Effect, Release, Rows, State, StateOptions, Violation},
    transport::Frame,
    view::{Update, ViewStatus},
};
use parking_lot::Mutex;
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};
use tidegate_wire::{
    codec::Codec,
    model::{Cv, SubId},
    protocol::{
        ClientMessage, ErrorCode, ServerMessage,
        client::{Ack, Ping},
    },
};
use tokio::{
    sync::{Notify, oneshot, watch},
    time::Instant,
};

/// See the module.
pub(crate) struct Shared {
    pub(crate) options: ClientOptions,
    pub(crate) core: Mutex<Core>,
    /// Wakes the writer: there is something to send, or the client is closing.
    pub(crate) wake: Notify,
    pub(crate) status: watch::Sender<Status>,
    /// Whether the application has closed the client.
    pub(crate) closing: watch::Sender<bool>,
}

/// What the lock guards.
pub(crate) struct Core {
    pub(crate) state: State,
    /// Messages for the present connection, oldest first; at most `send_queue_max`.
    outgoing: VecDeque<ClientMessage>,
    pub(crate) slots: HashMap<SubId, Slot>,
    pub(crate) mutations: HashMap<u64, oneshot::Sender<Result<Cv, MutationError>>>,
    connection: Option<Connection>,
    /// The last release's cv that the server was told of.
    acked: Cv,
    /// Whether the connection task is done.
    pub(crate) closed: bool,
    scratch: Vec<Effect>,
}

/// The clocks of the present connection.
struct Connection {
    started: Instant,
    welcomed: Option<Instant>,
    heard: Instant,
    pinged: Instant,
}

/// One view's side of the lock.
pub(crate) struct Slot {
    pub(crate) status: ViewStatus,
    pub(crate) cv: Cv,
    pub(crate) rows: Rows,
    /// Whether the server took the subscription.
    accepted: bool,
    /// What the view was not given yet; everything since is merged into it.
    unread: Option<Unread>,
    /// Nothing follows what is unread.
    ended: bool,
    pub(crate) notify: Arc<Notify>,
}

#[derive(Default)]
struct Unread {
    changes: Changes,
    releases: u64,
    lagged: bool,
}

/// Why a connection ended, and how long the server asks the client to stay away.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) error: ConnectError,
    pub(crate) after: Duration,
}

impl From<ConnectError> for Ending {
    fn from(error: ConnectError) -> Self {
        Self { error, after: Duration::ZERO }
    }
}

impl Shared {
    pub(crate) fn new(options: ClientOptions) -> Self {
        let state = State::new(StateOptions {
            client_id: options.client_id.clone(),
            mutations_max: options.mutations_max,
            waiting_ops_max: options.waiting_ops_max,
        });
        let core = Core {
            state,
            outgoing: VecDeque::new(),
            slots: HashMap::new(),
            mutations: HashMap::new(),
            connection: None,
            acked: Cv(0),
            closed: false,
            scratch: Vec::new(),
        };
        Self {
            options,
            core: Mutex::new(core),
            wake: Notify::new(),
            status: watch::Sender::new(Status::Connecting),
            closing: watch::Sender::new(false),
        }
    }

    /// Calls the state machine on behalf of the application, and sends what it wants sent.
    pub(crate) fn call<T>(&self, call: impl FnOnce(&mut Core, &mut Vec<Effect>) -> T) -> T {
        let mut core = self.core.lock();
        let mut effects = std::mem::take(&mut core.scratch);
        let result = call(&mut core, &mut effects);
        if let Some(ending) = core.dispatch(&mut effects, self) {
            // Calls only release what was received already; the next frame finds the same fault again.
            tracing::debug!(error = %ending.error, "a call met a fault of the connection");
        }
        core.scratch = effects;
        drop(core);
        self.wake.notify_one();
        result
    }

    /// A connection is there.
    pub(crate) fn begin(&self, token: Option<String>) {
        let now = Instant::now();
        let connection = Connection { started: now, welcomed: None, heard: now, pinged: now };
        let codec = self.options.codec;
        self.call(|core, effects| {
            core.connection = Some(connection);
            // What was released before is told by the resumes.
            core.acked = core.state.released();
            core.state.connect(codec, token, effects);
        });
    }

    /// The connection is gone. Returns how long it was welcome.
    pub(crate) fn end(&self) -> Duration {
        let mut core = self.core.lock();
        core.state.disconnect();
        core.outgoing.clear();
        let connection = core.connection.take();
        connection.and_then(|c| c.welcomed).map_or(Duration::ZERO, |welcomed| welcomed.elapsed())
    }

    /// Takes a frame in.
    pub(crate) fn receive(&self, frame: &Frame) -> Result<(), Ending> {
        let codec = self.options.codec;
        let mut messages: Vec<ServerMessage> = Vec::new();
        let malformed =
            |what: String| Ending::from(ConnectError::from(Violation::MessagesAreWellFormed(what)));
        let decoded = match (frame, codec) {
            (Frame::Alive, _) => Ok(()),
            (Frame::Binary(bytes), Codec::MessagePack) | (Frame::Text(bytes), Codec::Json) => {
                codec.decode(bytes, |message| messages.push(message)).map_err(|e| malformed(e.to_string()))
            }
            _ => Err(malformed("a frame of the other codec's kind".to_owned())),
        };
        let mut core = self.core.lock();
        if let Some(connection) = &mut core.connection {
            connection.heard = Instant::now();
        }
        let mut effects = std::mem::take(&mut core.scratch);
        let mut ending = None;
        for message in messages {
            core.state.receive(message, &mut effects);
            ending = core.dispatch(&mut effects, self);
            if ending.is_some() {
                break;
            }
        }
        core.scratch = effects;
        let send = !core.outgoing.is_empty();
        drop(core);
        if send {
            self.wake.notify_one();
        }
        ending.map_or(decoded, Err)
    }

    /// Looks at the clocks.
    pub(crate) fn tick(&self) -> Result<(), Ending> {
        let (now, options) = (Instant::now(), &self.options);
        let mut core = self.core.lock();
        let (released, acked) = (core.state.released(), core.acked);
        let Some(connection) = &mut core.connection else { return Ok(()) };
        let silence = now - connection.heard;
        match connection.welcomed {
            None if now - connection.started >= options.connect_timeout => {
                return Err(ConnectError::Silent.into());
            }
            None => {}
            Some(_) if silence >= options.idle_timeout => return Err(ConnectError::Silent.into()),
            Some(_) => {
                let ping = silence >= options.ping_interval
                    && now - connection.pinged >= options.ping_interval.min(options.idle_timeout / 2);
                if ping {
                    connection.pinged = now;
                    core.outgoing.push_back(ClientMessage::Ping(Ping { t: serde_json::Value::Null }));
                }
                if released != acked {
                    core.acked = released;
                    core.outgoing.push_back(ClientMessage::Ack(Ack { cv: released }));
                }
            }
        }
        let waiting = core.outgoing.len();
        drop(core);
        let max = options.send_queue_max;
        if waiting > max {
            return Err(ConnectError::SendQueueFull { max }.into());
        }
        if waiting > 0 {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Takes all messages that wait to be sent.
    pub(crate) fn outgoing(&self) -> VecDeque<ClientMessage> {
        std::mem::take(&mut self.core.lock().outgoing)
    }

    /// Ends the client: no connection follows.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
        self.wake.notify_one();
    }

    /// The connection task is done: tells everybody who waits.
    pub(crate) fn closed(&self) {
        let mut core = self.core.lock();
        core.closed = true;
        core.mutations.clear();
        for slot in core.slots.values_mut() {
            slot.ended = true;
            slot.notify.notify_one();
        }
        drop(core);
        self.status.send_replace(Status::Closed);
    }
}

impl Core {
    /// Carries effects out; the connection's end, when they bring it.
    fn dispatch(&mut self, effects: &mut Vec<Effect>, shared: &Shared) -> Option<Ending> {
        let mut ending = None;
        for effect in effects.drain(..) {
            match effect {
                Effect::Send(message) => {
                    // Beyond the limit nothing more is kept: the next tick ends the connection, and the one after
                    // starts from the state, which has forgotten nothing.
                    if self.outgoing.len() <= shared.options.send_queue_max {
                        self.outgoing.push_back(message);
                    }
                }
                Effect::Welcomed => {
                    if let Some(connection) = &mut self.connection {
                        connection.welcomed = Some(Instant::now());
                    }
                    shared.status.send_replace(Status::Connected);
                }
                Effect::Subscribed(sub) => {
                    if let Some(slot) = self.slots.get_mut(&sub) {
                        slot.accepted = true;
                        slot.notify.notify_one();
                    }
                }
                Effect::Released(release) => self.release(release, shared.options.view_changes_max),
                Effect::Ended { sub, fault } => {
                    if let Some(slot) = self.slots.get_mut(&sub) {
                        slot.status = ViewStatus::Error(fault);
                        slot.ended = true;
                        slot.notify.notify_one();
                    }
                }
                Effect::Confirmed { ticket, cv } => {
                    if let Some(waiter) = self.mutations.remove(&ticket) {
                        // A handle that was dropped does not want to know.
                        let _ = waiter.send(Ok(cv));
                    }
                }
                Effect::Refused { ticket, fault } => {
                    if let Some(waiter) = self.mutations.remove(&ticket) {
                        let _ = waiter.send(Err(fault.into()));
                    }
                }
                Effect::ServerError { code, message } => {
                    let welcomed = self.connection.as_ref().is_some_and(|c| c.welcomed.is_some());
                    if !welcomed || code == ErrorCode::Unauthenticated {
                        ending.get_or_insert(Ending::from(ConnectError::Refused { code, message }));
                    } else {
                        tracing::warn!(%code, message, "the server refused a message");
                    }
                }
                Effect::Reconnect { code, message, after_ms } => {
                    let after = Duration::from_millis(after_ms);
                    ending.get_or_insert(Ending { error: ConnectError::Refused { code, message }, after });
                }
                Effect::Violation(violation) => {
                    ending.get_or_insert(Ending::from(ConnectError::from(violation)));
                }
            }
        }
        ending
    }

    fn release(&mut self, release: Release, changes_max: usize) {
        for result in release.results {
            let Some(slot) = self.slots.get_mut(&result.sub) else { continue };
            slot.rows = result.rows;
            slot.status = ViewStatus::Complete;
            slot.cv = release.cv;
            let unread = slot.unread.get_or_insert_default();
            unread.releases += 1;
            // The first snapshot is given whole however large it is: it holds nothing that the rows do not.
            let first = unread.releases == 1;
            if !unread.lagged && (first || unread.changes.len() + result.changes.len() <= changes_max) {
                unread.changes.merge(result.changes);
            } else {
                unread.changes = Changes::default();
                unread.lagged = true;
            }
            slot.notify.notify_one();
        }
    }
}

impl Slot {
    pub(crate) fn new() -> Self {
        Self {
            status: ViewStatus::Connecting,
            cv: Cv(0),
            rows: Rows::default(),
            accepted: false,
            unread: None,
            ended: false,
            notify: Arc::new(Notify::new()),
        }
    }

    /// Nothing will follow.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// What is unread, merged; `None` when nothing is.
    pub(crate) fn take(&mut self) -> Option<Update> {
        let Unread { changes, releases, lagged } = self.unread.take()?;
        let changes = changes.into_sorted();
        Some(Update { cv: self.cv, rows: self.rows.clone(), changes, releases, lagged })
    }

    /// Whether nothing follows.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// The server's answer to the subscription, once it is there.
    pub(crate) fn answer(&self) -> Option<Result<(), SubscribeError>> {
        match &self.status {
            ViewStatus::Error(fault) => Some(Err(Fault::clone(fault).into())),
            _ if self.accepted => Some(Ok(())),
            _ if self.ended => Some(Err(SubscribeError::Closed)),
            _ => None,
        }
    }
}
