//! What all handlers share.

use crate::{config::Config, http::error::ApiError, http::idempotency::KeyLocks, hub::Hub};
use metrics_exporter_prometheus::PrometheusHandle;
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};
use tidegate_replica::handle::Replica;
use tidegate_wire::protocol::ErrorCode;
use tokio_util::task::TaskTracker;

/// Which page `GET /` shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Page {
    /// The operator's console.
    #[default]
    Console,
    /// The live departure board of `tidegate demo`.
    Board,
}

/// One server's shared state.
pub struct Shared {
    /// The configuration.
    pub config: Config,
    /// The connections.
    pub hub: Arc<Hub>,
    /// What `GET /` shows.
    pub page: Page,
    /// Present once the log is replayed.
    replica: OnceLock<Replica>,
    stopping: AtomicBool,
    /// When the server started.
    pub started_at: Instant,
    /// Bodies under way by idempotency key.
    pub key_locks: KeyLocks,
    /// The metrics.
    pub prometheus: &'static PrometheusHandle,
    /// Connections' tasks; a shutdown waits for them.
    pub tasks: TaskTracker,
}

impl Shared {
    /// State of a server whose replica is yet to start.
    #[must_use]
    pub fn new(
        config: Config,
        page: Page,
        hub: Arc<Hub>,
        prometheus: &'static PrometheusHandle,
    ) -> Arc<Self> {
        Arc::new(Self {
            config,
            hub,
            page,
            replica: OnceLock::new(),
            stopping: AtomicBool::new(false),
            started_at: Instant::now(),
            key_locks: KeyLocks::default(),
            prometheus,
            tasks: TaskTracker::new(),
        })
    }

    /// The log is replayed: from now on requests are served. Only the first call counts.
    pub fn set_replica(&self, replica: Replica) {
        let _ = self.replica.set(replica);
    }

    /// The server is stopping: it is no longer ready.
    pub fn set_stopping(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    /// Whether the server is stopping.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// The replica.
    ///
    /// # Errors
    /// `not_ready` while the log is replayed.
    pub fn replica(&self) -> Result<&Replica, ApiError> {
        self.replica.get().ok_or_else(|| {
            ApiError::new(ErrorCode::NotReady, "the commit log is still being replayed; try again later")
        })
    }
}
