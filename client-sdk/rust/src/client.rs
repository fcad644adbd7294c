//! The client's handle.

use crate::{
    address::sync_url,
    connection,
    error::{ConnectError, MutationError, SubscribeError},
    mutation::MutationHandle,
    options::ClientOptions,
    query::Query,
    shared::{Shared, Slot},
    state::Rows,
    transport::{Transport, websocket::WebSocketTransport},
    view::View,
};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tidegate_wire::model::{Cv, SubId, commit::RowOp};
use tokio::sync::{oneshot, watch};

/// A connection to a server that makes itself anew when it is lost. Cloning gives another handle to the same one;
/// it closes with its last handle and view.
#[derive(Clone)]
pub struct Client {
    handle: Arc<Handle>,
}

/// Closes the client when the last handle and view are gone.
pub(crate) struct Handle(pub(crate) Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handle")
    }
}

/// Where the connection stands.
#[derive(Clone, Debug)]
pub enum Status {
    /// A connection is being made.
    Connecting,
    /// The server has welcomed the client.
    Connected,
    /// There is no connection; results stand at their last release.
    Waiting {
        /// How long until the next attempt.
        retry_in: Duration,
        /// Connections that failed in a row.
        failures: u32,
        /// Why the last one ended.
        error: ConnectError,
    },
    /// The client is closed.
    Closed,
}

/// The results of all views at one commit.
#[derive(Clone, Debug)]
pub struct Snapshot {
    cv: Cv,
    rows: HashMap<SubId, Rows>,
}

impl Snapshot {
    /// The commit version that everything here stands at.
    #[must_use]
    pub fn cv(&self) -> Cv {
        self.cv
    }

    /// A view's result; empty when it had none yet.
    #[must_use]
    pub fn rows(&self, view: &View) -> Rows {
        self.rows.get(&view.sub()).cloned().unwrap_or_default()
    }
}

impl Client {
    /// Connects with the default options and waits for the server's welcome.
    ///
    /// # Errors
    /// When the first connection fails. Later ones are made again for as long as it takes.
    pub async fn connect(url: &str) -> Result<Self, ConnectError> {
        Self::connect_with(url, ClientOptions::default()).await
    }

    /// Connects and waits for the server's welcome.
    ///
    /// # Errors
    /// When the first connection fails. Later ones are made again for as long as it takes.
    pub async fn connect_with(url: &str, options: ClientOptions) -> Result<Self, ConnectError> {
        let client = Self::start(url, options, Arc::new(WebSocketTransport))?;
        client.connected().await?;
        Ok(client)
    }

    /// Starts a client over any transport without waiting for a connection. Must be called within a tokio runtime,
    /// which runs the connection.
    ///
    /// # Errors
    /// When the address is not one.
    pub fn start(
        url: &str,
        options: ClientOptions,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, ConnectError> {
        let url = sync_url(url)?;
        let shared = Arc::new(Shared::new(options));
        tokio::spawn(connection::run(Arc::clone(&shared), transport, url));
        Ok(Self { handle: Arc::new(Handle(shared)) })
    }

    /// Waits until there is a connection.
    ///
    /// # Errors
    /// When the attempt at hand fails (the next one is made all the same), or the client is closed.
    pub async fn connected(&self) -> Result<(), ConnectError> {
        let mut status = self.status_changes();
        let settled = status.wait_for(|status| !matches!(status, Status::Connecting)).await;
        match settled.as_deref() {
            Ok(Status::Connected) => Ok(()),
            Ok(Status::Waiting { error, .. }) => Err(error.clone()),
            Ok(Status::Connecting | Status::Closed) | Err(_) => Err(ConnectError::Closed),
        }
    }

    /// Subscribes and waits for the server to take the query; without a connection it waits for one.
    ///
    /// # Errors
    /// When the server refuses the query, or the client is closed.
    pub async fn subscribe(&self, query: Query) -> Result<View, SubscribeError> {
        let mut view = self.open(query);
        view.accepted().await?;
        Ok(view)
    }

    /// Subscribes without waiting; a refusal shows in [`View::status`].
    #[must_use]
    pub fn open(&self, query: Query) -> View {
        let (sub, notify) = self.handle.0.call(|core, effects| {
            let sub = core.state.subscribe(query, effects);
            let mut slot = Slot::new();
            if core.closed {
                slot.end();
            }
            let notify = Arc::clone(&slot.notify);
            core.slots.insert(sub, slot);
            (sub, notify)
        });
        View::new(Arc::clone(&self.handle), sub, notify)
    }

    /// Queues a mutation: operations that become one commit. Returns at once; mutations are applied in the order of
    /// their pushes, each exactly once, across lost connections too.
    ///
    /// # Errors
    /// Without a `client_id`, when the queue is full, or the client is closed.
    pub async fn push(&self, ops: Vec<RowOp>) -> Result<MutationHandle, MutationError> {
        let (sender, receiver) = oneshot::channel();
        let ticket = self.handle.0.call(|core, effects| {
            if core.closed || *self.handle.0.closing.borrow() {
                return Err(MutationError::Closed);
            }
            let ticket = core.state.push(ops, effects)?;
            core.mutations.insert(ticket, sender);
            Ok(ticket)
        })?;
        Ok(MutationHandle::new(Arc::clone(&self.handle), ticket, receiver))
    }

    /// Replaces the token of the present connection; later ones ask the token provider.
    pub fn authenticate(&self, token: impl Into<String>) {
        self.handle.0.call(|core, effects| core.state.authenticate(token.into(), effects));
    }

    /// The results of all views at one commit.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let core = self.handle.0.core.lock();
        let rows = core.slots.iter().map(|(sub, slot)| (*sub, slot.rows.clone())).collect();
        Snapshot { cv: core.state.released(), rows }
    }

    /// The commit version that all results stand at.
    #[must_use]
    pub fn cv(&self) -> Cv {
        self.handle.0.core.lock().state.released()
    }

    /// Rows held for all views, each counted once however many views show it.
    #[must_use]
    pub fn rows_held(&self) -> usize {
        self.handle.0.core.lock().state.rows_held()
    }

    /// Where the connection stands.
    #[must_use]
    pub fn status(&self) -> Status {
        self.handle.0.status.borrow().clone()
    }

    /// Where the connection stands, to wait on.
    #[must_use]
    pub fn status_changes(&self) -> watch::Receiver<Status> {
        self.handle.0.status.subscribe()
    }

    /// Sends what waits to be sent, closes the connection and ends every view.
    pub async fn close(&self) {
        let mut status = self.status_changes();
        self.handle.0.close();
        // Only a runtime that is shutting down ends the task without this status.
        let _ = status.wait_for(|status| matches!(status, Status::Closed)).await;
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("status", &self.status())
            .field("cv", &self.cv())
            .finish_non_exhaustive()
    }
}
