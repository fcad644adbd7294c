//! A whole server inside the test's process, and the runtime it runs in.

use std::{future::Future, net::SocketAddr, time::Duration};
use tidegate_server::{Config, RunningServer, Server, runtime};

/// Time within which anything that is awaited has to come, on the busiest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test on a runtime like the binary's.
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    // Two, however many cores there are: a race between them is to show.
    runtime::start(2).expect("a runtime").block_on(test)
}

/// Waits for something that has to come.
///
/// # Panics
/// When it does not come within [`PATIENCE`].
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} in vain: {what}"),
    }
}

/// Waits until a condition holds that nothing announces.
///
/// # Panics
/// When it does not hold within [`PATIENCE`].
pub(crate) async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let poll = async {
        // Nothing announces the condition, so it is looked at again and again; the test goes on as soon as it holds.
        let mut looks = tokio::time::interval(Duration::from_millis(2));
        while !condition().await {
            looks.tick().await;
        }
    };
    within(what, poll).await;
}

/// A configuration for tests: any free port, two workers, nothing on disk.
pub(crate) fn memory() -> Config {
    let mut config = Config::default();
    config.server.addr = "127.0.0.1:0".to_owned();
    config.server.shutdown_timeout_ms = Duration::from_millis(200);
    config.server.close_timeout_ms = Duration::from_millis(200);
    config.store.data_dir = String::new();
    config.workers.count = 2;
    config
}

/// A running server.
pub(crate) struct TestServer {
    running: RunningServer,
}

impl TestServer {
    /// Starts a server.
    ///
    /// # Panics
    /// When it does not start.
    pub(crate) async fn start(config: Config) -> Self {
        let running = within("the server's start", Server::start(config)).await;
        Self { running: running.unwrap_or_else(|error| panic!("{error}")) }
    }

    /// Where it listens.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.running.addr
    }

    /// Its address as clients of the SDK take it.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.running.addr)
    }

    /// The replica, for its check.
    pub(crate) fn replica(&self) -> tidegate_replica::handle::Replica {
        self.running.replica().clone()
    }

    /// Stops it in order.
    pub(crate) async fn stop(self) {
        within("the server's shutdown", self.running.shutdown()).await;
    }
}
