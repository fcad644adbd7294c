//! One server: a replica, a hub and a listener, started and stopped together.

use crate::{
    config::Config,
    http::{self, allowed_hosts::AllowedHosts, listener},
    hub::{Hub, OutboxLimits},
    metrics::{self, HubMetrics},
    state::{Page, Shared},
};
use std::{future, io, net::SocketAddr, sync::Arc};
use tidegate_replica::handle::{Replica, ReplicaOptions};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// Why the preparation given to [`Server::start_with`] failed: the preparation's own error.
pub type PrepareError = Box<dyn std::error::Error + Send + Sync>;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A source of commits this build cannot follow.
    #[error("source.url is {0}, but this build follows only its own store: use --source embedded")]
    UnsupportedSource(String),
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}: {cause}; choose another address with --addr")]
    Listen {
        /// The address asked for.
        addr: String,
        /// Why.
        cause: io::Error,
    },
    /// The replica does not start.
    #[error("cannot open the store: {0}")]
    Replica(#[from] tidegate_replica::handle::StartError),
    /// What the command does before the server is ready has failed.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The thread that opens the store panicked.
    #[error("opening the store failed; see the log above")]
    Panicked,
}

/// Starts servers.
#[derive(Clone, Copy, Debug)]
pub struct Server;

/// A server that serves. Dropping it leaves it running; stop it with [`RunningServer::shutdown`].
pub struct RunningServer {
    /// The address it listens on, with the port that was picked.
    pub addr: SocketAddr,
    /// Its state.
    pub shared: Arc<Shared>,
    replica: Replica,
    stop: CancellationToken,
    acceptor: JoinHandle<()>,
}

impl Server {
    /// Starts a server and returns when it is ready.
    ///
    /// # Errors
    /// When the address is taken or the store cannot be opened.
    pub async fn start(config: Config) -> Result<RunningServer, StartError> {
        Self::start_with(config, Page::Console, |_, _| (), |_| future::ready(Ok(()))).await
    }

    /// As [`Server::start`], with the page that `GET /` shows, and told while the log is replayed how many of how many
    /// bytes are read, and with what is done to the replica before clients see it. The address answers from the
    /// beginning: `/healthz` well, everything else `not_ready`.
    ///
    /// # Errors
    /// When the address is taken, the store cannot be opened, or `prepare` fails.
    pub async fn start_with<F>(
        config: Config,
        page: Page,
        on_progress: impl FnMut(u64, u64) + Send + 'static,
        prepare: impl FnOnce(Replica) -> F,
    ) -> Result<RunningServer, StartError>
    where
        F: Future<Output = Result<(), PrepareError>>,
    {
        if config.source.url != "embedded" {
            return Err(StartError::UnsupportedSource(config.source.url));
        }
        let listen_error = |cause| StartError::Listen { addr: config.server.addr.clone(), cause };
        let listener = TcpListener::bind(&config.server.addr).await.map_err(listen_error)?;
        let addr = listener.local_addr().map_err(listen_error)?;
        let prometheus = metrics::install();
        let outbox = OutboxLimits {
            bytes_max: config.limits.outbox_bytes_max,
            snapshot_bytes_max: config.limits.snapshot_backlog_bytes_max,
            retry_after: config.server.retry_after_ms,
        };
        let hub = Hub::new(config.limits.connections_max, outbox, HubMetrics::new());
        let options = replica_options(&config);
        let hosts = AllowedHosts::new(&config.server.allowed_hosts, addr.ip());
        let header_timeout = config.server.header_timeout_ms;
        let shared = Shared::new(config, page, Arc::clone(&hub), prometheus);
        let stop = CancellationToken::new();
        let router = http::router(Arc::clone(&shared), hosts);
        let acceptor = tokio::spawn(listener::serve(
            listener,
            router,
            header_timeout,
            stop.clone(),
            shared.tasks.clone(),
        ));
        let sink = Box::new(hub.sink());
        let started = tokio::task::spawn_blocking(move || Replica::start(options, sink, on_progress)).await;
        let replica = match started {
            Ok(Ok(replica)) => replica,
            failed => {
                stop.cancel();
                let _ = acceptor.await;
                return Err(failed.map_or(StartError::Panicked, |result| match result {
                    Err(error) => StartError::Replica(error),
                    Ok(_) => unreachable!("a started replica was handled above"),
                }));
            }
        };
        if let Err(error) = prepare(replica.clone()).await {
            stop.cancel();
            let _ = acceptor.await;
            let _ = tokio::task::spawn_blocking(move || replica.shutdown()).await;
            return Err(error.into());
        }
        shared.set_replica(replica.clone());
        tracing::info!(%addr, cv = replica.cv().0, "ready");
        Ok(RunningServer { addr, shared, replica, stop, acceptor })
    }
}

impl RunningServer {
    /// The replica, for commands that feed it from inside the process.
    #[must_use]
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Stops in order: no further connections, `goaway` to every client, what is queued for them within
    /// `server.shutdown_timeout_ms`, then the replica.
    pub async fn shutdown(self) {
        let Self { shared, replica, stop, acceptor, .. } = self;
        tracing::info!(connections = shared.hub.connections(), "shutting down");
        shared.set_stopping();
        stop.cancel();
        let _ = acceptor.await;
        shared.hub.stop();
        shared.tasks.close();
        let limit = shared.config.server.shutdown_timeout_ms;
        if tokio::time::timeout(limit, shared.tasks.wait()).await.is_err() {
            tracing::warn!(tasks = shared.tasks.len(), "clients did not take their last messages in time");
        }
        if tokio::task::spawn_blocking(move || replica.shutdown()).await.is_err() {
            tracing::error!("the replica did not shut down in order");
        }
    }
}

fn replica_options(config: &Config) -> ReplicaOptions {
    let defaults = ReplicaOptions::default();
    let Config { store, workers, drain, limits, .. } = config;
    ReplicaOptions {
        data_dir: (!store.data_dir.is_empty()).then(|| store.data_dir.clone().into()),
        fsync: store.fsync,
        workers: if workers.count == 0 { defaults.workers } else { workers.count },
        worker_queue_max: workers.queue_max,
        drain_queue_max: drain.queue_max,
        snapshots_kept_max: store.snapshots_kept_max,
        deadline: workers.deadline_ms,
        idle_ttl: workers.idle_ttl_ms,
        commit_ops_max: limits.commit_ops_max,
        families_max: limits.families_max,
        keep_alive: drain.keep_alive_ms,
        // A row's JSON is up to about four times as long as the store's encoding.
        batch_bytes_max: (limits.frame_bytes_target / 4).clamp(1, defaults.batch_bytes_max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_configuration_and_default_options_agree() {
        let options = replica_options(&Config::default());
        let defaults = ReplicaOptions { data_dir: options.data_dir.clone(), ..ReplicaOptions::default() };
        assert_eq!(format!("{options:?}"), format!("{defaults:?}"));
        let mut config = Config::default();
        config.store.data_dir = String::new();
        assert_eq!(replica_options(&config).data_dir, None);
    }

    #[tokio::test]
    async fn other_sources_are_refused_before_anything_starts() {
        let mut config = Config::default();
        config.source.url = "postgres://localhost/db".to_owned();
        let Err(error) = Server::start(config).await else { panic!("refused") };
        assert!(error.to_string().contains("--source embedded"), "{error}");
    }
}
