//! A server in this process, on a runtime of its own, with its store in a temporary folder.

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value as Json, json};
use std::time::Duration;
use tempfile::TempDir;
use tidegate_replica::{
    handle::{QueryRequest, QuerySource, Replica},
    store::{Commits, Draft},
};
use tidegate_server::{Config, RunningServer, Server};
use tidegate_wire::model::{Cv, TableSchema};
use tokio::runtime::Runtime;

/// Whether commits wait for stable storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fsync {
    /// They do.
    On,
    /// They are only written.
    Off,
}

/// See the module's description.
pub(crate) struct Serving {
    /// The runtime that the server's sockets run on.
    pub(crate) runtime: Runtime,
    server: RunningServer,
    _data_dir: TempDir,
}

impl Serving {
    /// Starts a server with such tables.
    pub(crate) fn start(fsync: Fsync, tables: &Json) -> anyhow::Result<Self> {
        let runtime = tidegate_server::runtime::start(0)?;
        let data_dir = tempfile::tempdir()?;
        let mut config = Config::default();
        config.server.addr = "127.0.0.1:0".to_owned();
        // The light readers answer no ping.
        config.server.silence_max_ms = Duration::from_secs(3_600);
        config.store.data_dir = data_dir.path().to_str().context("the temporary folder's name")?.to_owned();
        config.store.fsync = fsync == Fsync::On;
        let server = runtime.block_on(Server::start(config))?;
        let serving = Self { runtime, server, _data_dir: data_dir };
        let tables: Vec<TableSchema> = serde_json::from_value(tables.clone())?;
        serving.runtime.block_on(serving.replica().create_tables(tables))?;
        Ok(serving)
    }

    /// The replica inside.
    pub(crate) fn replica(&self) -> &Replica {
        self.server.replica()
    }

    /// Host and port.
    pub(crate) fn addr(&self) -> String {
        self.server.addr.to_string()
    }

    /// The URL for clients.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.addr)
    }

    /// A commit of operations in their JSON form.
    pub(crate) fn draft(&self, ops: &Json) -> anyhow::Result<Draft> {
        let line = json!({"ops": ops}).to_string();
        Ok(self.replica().draft(line.as_bytes())?)
    }

    /// Applies commits.
    pub(crate) fn commit(&self, drafts: Vec<Draft>) -> anyhow::Result<Cv> {
        self.runtime.block_on(commit(self.replica(), drafts))
    }

    /// A query's result, computed from scratch.
    pub(crate) fn fresh(&self, query: &Json) -> anyhow::Result<Json> {
        let request = QueryRequest { source: QuerySource::Query(query.clone()), args: Map::new() };
        let prepared = self.replica().prepare(&request, &Map::new());
        let prepared = prepared.map_err(|error| anyhow::anyhow!("{}", error.message))?;
        let rows = self.replica().rows(&prepared).map_err(|error| anyhow::anyhow!("{}", error.message))?;
        Ok(Json::Array(rows.rows))
    }

    /// Compares every maintained result with a fresh one.
    ///
    /// # Errors
    /// When one differs, or fewer than `at_least` are maintained.
    pub(crate) fn check(&self, at_least: usize) -> anyhow::Result<()> {
        let report = self.replica().check();
        ensure!(report.differences.is_empty(), "maintained results are wrong: {:?}", report.differences);
        ensure!(report.checked >= at_least, "only {} results are maintained", report.checked);
        Ok(())
    }

    /// Stops the server.
    pub(crate) fn stop(self) {
        let Self { runtime, server, _data_dir } = self;
        runtime.block_on(server.shutdown());
        runtime.shutdown_timeout(Duration::from_secs(5));
    }
}

/// Applies commits.
///
/// # Errors
/// When one is refused.
pub(crate) async fn commit(replica: &Replica, drafts: Vec<Draft>) -> anyhow::Result<Cv> {
    let outcome = replica.commit(Commits { drafts, ..Commits::default() }).await;
    ensure!(outcome.refused.is_none(), "a commit was refused: {:?}", outcome.refused);
    Ok(outcome.cv)
}

/// Waits for a client's next release.
pub(crate) async fn released(view: &mut tidegate_client::View) -> anyhow::Result<tidegate_client::Update> {
    let update = tokio::time::timeout(Duration::from_secs(30), view.next());
    update.await.context("no release within 30 s")?.context("the subscription ended")
}

/// Waits until a client stands at a commit version, as far as its views are concerned, and compares a view's result
/// with a fresh one.
pub(crate) async fn agrees(view: &tidegate_client::View, fresh: &Json) -> anyhow::Result<()> {
    for _ in 0..3_000 {
        if view.rows().to_json() == *fresh {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    anyhow::bail!("a client's result differs from a fresh one")
}
