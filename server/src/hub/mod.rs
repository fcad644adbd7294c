//! The hub: takes what the drain delivers to the outboxes of the connections it is for.
//!
//! Connections register here before the replica hears of them, and leave here after it has forgotten them. The hub
//! belongs to no thread: the drain calls its [`sink`], sessions and HTTP handlers push their own answers.

pub mod arrivals;
pub mod frame;
pub mod outbox;
pub mod sink;

pub use arrivals::Arrivals;
pub use frame::{Frame, FrameKind};
pub use outbox::{Closing, Outbox, OutboxLimits, OutboxPosition, Pushed, Share, Taken};
pub use sink::HubSink;

use crate::metrics::HubMetrics;
use dashmap::DashMap;
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};
use tidegate_replica::drain::ConnId;
use tidegate_wire::{codec::Codec, model::Cv, protocol::ErrorCode};

/// See the module's description. Shared by `Arc`.
#[derive(Debug)]
pub struct Hub {
    connections: DashMap<ConnId, Entry>,
    /// Connections registered or being registered; ahead of `connections.len()` for a moment.
    count: AtomicUsize,
    connections_max: usize,
    next: AtomicU64,
    limits: OutboxLimits,
    stopping: AtomicBool,
    metrics: HubMetrics,
    /// When writes arrived, for the latency that clients see.
    pub arrivals: Arrivals,
}

/// What the hub keeps of a connection.
#[derive(Debug)]
struct Entry {
    outbox: Arc<Outbox>,
    since: Instant,
    client_id: OnceLock<Arc<str>>,
}

/// A connection as operators see it.
#[derive(Clone, Debug)]
pub struct ConnectionView {
    /// Its id.
    pub conn: ConnId,
    /// The name that its client gave itself.
    pub client_id: Option<Arc<str>>,
    /// Its codec.
    pub codec: Codec,
    /// Since when it is there.
    pub since: Instant,
    /// How far it is.
    pub position: OutboxPosition,
}

/// Why a connection is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// `limits.connections_max` is reached.
    #[error("the server has as many connections as limits.connections_max allows; try again later")]
    TooMany,
    /// The server is stopping.
    #[error("the server is shutting down")]
    Stopping,
}

impl Hub {
    /// A hub without connections.
    #[must_use]
    pub fn new(connections_max: usize, limits: OutboxLimits, metrics: HubMetrics) -> Arc<Self> {
        Arc::new(Self {
            connections: DashMap::new(),
            count: AtomicUsize::new(0),
            connections_max,
            next: AtomicU64::new(1),
            limits,
            stopping: AtomicBool::new(false),
            metrics,
            arrivals: Arrivals::new(),
        })
    }

    /// What the drain delivers to.
    #[must_use]
    pub fn sink(self: &Arc<Self>) -> HubSink {
        HubSink::new(Arc::clone(self))
    }

    /// Adds a connection. It leaves when the guard is dropped.
    ///
    /// # Errors
    /// When there are too many, or the server is stopping.
    pub fn register(self: &Arc<Self>, codec: Codec) -> Result<Registration, Refused> {
        if self.stopping.load(Ordering::SeqCst) {
            return Err(Refused::Stopping);
        }
        if self.count.fetch_add(1, Ordering::SeqCst) >= self.connections_max {
            self.count.fetch_sub(1, Ordering::SeqCst);
            return Err(Refused::TooMany);
        }
        let conn = ConnId(self.next.fetch_add(1, Ordering::Relaxed));
        let outbox = Arc::new(Outbox::new(codec, self.limits));
        let entry = Entry { outbox: Arc::clone(&outbox), since: Instant::now(), client_id: OnceLock::new() };
        self.connections.insert(conn, entry);
        let registration = Registration { hub: Arc::clone(self), conn, outbox };
        // A shutdown that began in between has not seen this connection.
        if self.stopping.load(Ordering::SeqCst) {
            return Err(Refused::Stopping);
        }
        Ok(registration)
    }

    /// Connections at present.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Bytes waiting in all outboxes. Looks at every connection.
    #[must_use]
    pub fn outbox_bytes(&self) -> usize {
        self.connections.iter().map(|entry| entry.outbox.bytes()).sum()
    }

    /// The connections that are furthest behind, at most `count_max`: those whose first due release is the oldest, then
    /// those that are there for longest. Looks at every connection.
    #[must_use]
    pub fn furthest_behind(&self, count_max: usize) -> Vec<ConnectionView> {
        let mut all: Vec<(Cv, ConnId)> = self
            .connections
            .iter()
            .map(|entry| (entry.outbox.position().due.unwrap_or(Cv(u64::MAX)), *entry.key()))
            .collect();
        all.sort_unstable();
        let view = |(_, conn): (Cv, ConnId)| {
            let entry = self.connections.get(&conn)?;
            Some(ConnectionView {
                conn,
                client_id: entry.client_id.get().cloned(),
                codec: entry.outbox.codec(),
                since: entry.since,
                position: entry.outbox.position(),
            })
        };
        all.into_iter().filter_map(view).take(count_max).collect()
    }

    /// Takes no further connections and tells all present ones that the server is stopping.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        let message =
            frame::goaway(ErrorCode::ShuttingDown, "the server is shutting down", self.limits.retry_after);
        let now = Instant::now();
        for entry in &self.connections {
            let outbox = &entry.outbox;
            outbox.close(Some(Frame::message(outbox.codec(), &message, now)), 1001, "shutting_down");
        }
    }

    /// Counts an eviction.
    pub fn count_eviction(&self, reason: &'static str) {
        self.metrics.evicted(reason);
    }

    /// Records that frames were written to a socket.
    pub fn count_written(&self, frames: &[Frame]) {
        if let Some((cv, queued_at)) = outbox::newest_release(frames) {
            let committed = self.arrivals.get(cv).map(|at| at.elapsed());
            self.metrics.released(queued_at.elapsed(), committed);
        }
    }

    fn outbox(&self, conn: ConnId) -> Option<Arc<Outbox>> {
        self.connections.get(&conn).map(|entry| Arc::clone(&entry.outbox))
    }
}

/// A connection's place in the hub.
#[derive(Debug)]
pub struct Registration {
    hub: Arc<Hub>,
    /// The connection's id.
    pub conn: ConnId,
    /// Its outbox.
    pub outbox: Arc<Outbox>,
}

impl Registration {
    /// The connection's client has told its name. Only the first call counts.
    pub fn set_client_id(&self, client_id: Arc<str>) {
        if let Some(entry) = self.hub.connections.get(&self.conn) {
            let _ = entry.client_id.set(client_id);
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.hub.connections.remove(&self.conn);
        self.hub.count.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tidegate_wire::{
        model::SubId,
        protocol::{ServerMessage, server::Progress},
    };

    #[test]
    fn those_furthest_behind_are_listed_first_and_no_more_than_asked_for() {
        let limits =
            OutboxLimits { bytes_max: 1_000, snapshot_bytes_max: 1_000, retry_after: Duration::ZERO };
        let hub = Hub::new(10, limits, HubMetrics::new());
        let all: Vec<_> = (0..4).map(|_| hub.register(Codec::Json).expect("taken")).collect();
        let owe = |registration: &Registration, cv| {
            let progress = ServerMessage::Progress(Progress { cv_min: Cv(cv) });
            let progress = Frame::message(Codec::Json, &progress, Instant::now());
            let batch = Frame { kind: FrameKind::Batch(Cv(cv)), ..progress.clone() };
            registration.outbox.push_batch(batch, SubId(1), false, false);
            registration.outbox.push(progress, Share::Live);
        };
        owe(&all[1], 9);
        owe(&all[3], 5);
        all[1].set_client_id("named".into());
        let listed = hub.furthest_behind(3);
        let ids: Vec<_> = listed.iter().map(|view| view.conn).collect();
        assert_eq!(ids, [all[3].conn, all[1].conn, all[0].conn]);
        assert_eq!(listed[1].client_id.as_deref(), Some("named"));
        let due: Vec<_> = listed.iter().map(|view| view.position.due).collect();
        assert_eq!(due, [Some(Cv(5)), Some(Cv(9)), None]);
        drop(all);
        assert!(hub.furthest_behind(3).is_empty());
    }
}
