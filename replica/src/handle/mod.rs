//! The replica as the server sees it: one object that owns the store, the workers and the drain.
//!
//! Every method may be called from any thread. Those marked `async` may be awaited from any Tokio task; the others
//! marked "blocking" belong on a blocking thread.

mod check;
mod durable_file;
mod epochs;
mod explain;
mod fresh;
mod live;
mod named;
pub mod options;
mod owner;
mod prepare;
mod registry;
pub mod request;
pub mod sql;
mod start;
pub mod status;
mod subscribe;
mod view;
mod write;

pub use options::ReplicaOptions;
pub use request::{
    CommitOutcome, CommitRefusal, CommitRefusalKind, IdempotencyEntry, MutationOutcome, NamedQuery,
    PreparedQuery, QueryRequest, QuerySource, ResumePoint, Rows,
};
pub use sql::{Answer, StatementAnswer, StatementsError, Table};
pub use start::StartError;
pub use status::{CheckReport, Difference, LiveQuery, QueryStatus, Status, WorkerStatus};

use crate::{
    drain::{ConnId, Control, DrainHandle, Sink},
    query::{QueryError, QueryErrorKind, nest::nest},
    store::{CommitError, CommitLimits, Commits, Draft, Snapshot, Store},
    worker::WorkerHandle,
};
use crossbeam_channel::Sender;
use named::NamedFile;
use parking_lot::Mutex;
use registry::Registry;
use serde_json::{Map, Value as Json};
use std::{
    collections::HashMap,
    sync::{Arc, atomic::AtomicU64},
    thread::JoinHandle,
};
use tidegate_wire::model::{Cv, Epoch, SubId, TableSchema, commit::RowOp};

/// See the module's description. Cloning shares it.
#[derive(Clone)]
pub struct Replica {
    inner: Arc<Inner>,
}

struct Inner {
    options: ReplicaOptions,
    store: Store,
    drain: DrainHandle,
    workers: Vec<WorkerHandle>,
    /// Taken by [`Inner::registry`] only.
    registry: Mutex<Registry>,
    faults: Arc<owner::OwnerFaults>,
    /// Wakes the owner's thread.
    wake_owner: Sender<()>,
    named_file: NamedFile,
    next_query: AtomicU64,
    next_binding: AtomicU64,
    epochs: epochs::Epochs,
    view_retry: view::Retry,
    /// Held by a transaction in SQL that has been overtaken once, so that those take turns.
    sql_turn: Mutex<()>,
    /// The threads to join at shutdown, workers before the drain.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Replica {
    /// Opens the store (replaying its log, with progress in bytes read of bytes in all), starts workers and drain.
    ///
    /// # Errors
    /// When the data folder cannot be read or its log is corrupt.
    pub fn start(
        options: ReplicaOptions,
        sink: Box<dyn Sink + Send>,
        on_progress: impl FnMut(u64, u64),
    ) -> Result<Self, StartError> {
        Ok(Self { inner: start::start(options, sink, on_progress)? })
    }

    /// Stops taking work, lets the drain deliver what is under way, joins all threads. Blocking.
    pub fn shutdown(&self) {
        self.inner.shutdown();
    }

    /// The newest commit version.
    #[must_use]
    pub fn cv(&self) -> Cv {
        self.inner.store.snapshot().cv()
    }

    /// All tables at the newest commit version.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.inner.store.snapshot()
    }

    /// Parses one line of a commit stream against the tables there are now.
    ///
    /// # Errors
    /// Every refusal that does not depend on which rows exist.
    pub fn draft(&self, line: &[u8]) -> Result<Draft, CommitError> {
        Draft::parse(line, &self.inner.store.snapshot(), &self.inner.limits())
    }

    /// Applies drafted commits in order up to the first that is refused; returns when those applied are durable.
    pub async fn commit(&self, commits: Commits) -> CommitOutcome {
        self.inner.commit(commits).await
    }

    /// Creates the tables that are missing (one commit version if there are any).
    ///
    /// # Errors
    /// `conflict` when a table exists with other columns or another key; then nothing changes.
    pub async fn create_tables(&self, tables: Vec<TableSchema>) -> Result<Cv, CommitRefusal> {
        let outcome = self.inner.store.create_tables(tables).await?;
        outcome.map(|created| created.cv).map_err(|error| CommitRefusal::from(&error))
    }

    /// What is remembered of an idempotency key.
    #[must_use]
    pub fn idempotency(&self, key: &str) -> Option<IdempotencyEntry> {
        let entry = self.inner.store.idempotency_entry(key)?;
        Some(IdempotencyEntry {
            body_hash: entry.body_hash,
            applied: entry.applied,
            cv: entry.cv,
            refused: entry.refused.as_ref().map(CommitRefusal::from),
            refused_line: entry.refused.as_ref().and_then(|refused| refused.place.line),
        })
    }

    /// Applies one mutation of a client, exactly once and in order.
    pub async fn mutate(&self, client_id: &str, id: u64, ops: &[RowOp]) -> MutationOutcome {
        self.inner.mutate(client_id, id, ops).await
    }

    /// Looks up names and checks types and arguments; `claims` are those of the connection's token.
    ///
    /// # Errors
    /// With the kind and the place of the fault.
    pub fn prepare(
        &self,
        request: &QueryRequest,
        claims: &Map<String, Json>,
    ) -> Result<PreparedQuery, QueryError> {
        self.inner.prepare(request, claims)
    }

    /// Announces a connection; the sink must know it already.
    #[expect(clippy::unused_async, reason = "callers await every step of a connection's life alike")]
    pub async fn connect(&self, conn: ConnId) {
        // After shutdown the drain is gone, and nobody connects any more.
        let _ = self.inner.drain.control(Control::Connect { conn });
    }

    /// Forgets a connection and its subscriptions.
    #[expect(clippy::unused_async, reason = "callers await every step of a connection's life alike")]
    pub async fn disconnect(&self, conn: ConnId) {
        self.inner.disconnect(conn);
    }

    /// Starts a subscription; the drain then calls the sink's `subscribed` with the epoch returned here, followed
    /// by its batches. Calls for one connection must be made one after the other.
    ///
    /// # Errors
    /// When the query cannot be taken now.
    pub async fn subscribe(
        &self,
        conn: ConnId,
        sub: SubId,
        query: &PreparedQuery,
        resume: Option<ResumePoint>,
    ) -> Result<Epoch, QueryError> {
        self.inner.subscribe(conn, sub, query, resume).await
    }

    /// Ends a subscription.
    #[expect(clippy::unused_async, reason = "callers await every step of a connection's life alike")]
    pub async fn unsubscribe(&self, conn: ConnId, sub: SubId) {
        self.inner.unsubscribe(conn, sub);
    }

    /// Registers or replaces a named query. A replaced query's subscribers are told `query_removed`. One that is to be
    /// pinned is run once: what that fails with, if it does, is returned, and pinning it is tried again later.
    ///
    /// # Errors
    /// As [`Replica::prepare`]; then the old one stays.
    pub async fn put_query(&self, query: NamedQuery) -> Result<Option<QueryError>, QueryError> {
        self.inner.put_query(query, None).await
    }

    /// Removes a named query; whether there was one.
    #[expect(clippy::unused_async, reason = "the counterpart of `put_query`")]
    pub async fn delete_query(&self, name: &str) -> bool {
        self.inner.delete_query(name)
    }

    /// A named query's definition and state.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<(NamedQuery, QueryStatus)> {
        self.inner.query(name)
    }

    /// All named queries, by name.
    #[must_use]
    pub fn queries(&self) -> Vec<(NamedQuery, QueryStatus)> {
        self.inner.queries()
    }

    /// The shapes that are live, those with the most subscribers first, at most `count_max`; and how many there are.
    #[must_use]
    pub fn live_queries(&self, count_max: usize) -> (Vec<LiveQuery>, usize) {
        self.inner.live_queries(count_max)
    }

    /// How many subscriptions each of these connections has.
    #[must_use]
    pub fn subscriptions_of(&self, connections: &[ConnId]) -> Vec<usize> {
        let registry = self.inner.registry();
        let count = |conn| registry.connections.get(conn).map_or(0, HashMap::len);
        connections.iter().map(count).collect()
    }

    /// A query's result at the newest commit version, computed from scratch, ordered and nested. Blocking.
    ///
    /// # Errors
    /// `query_faulted` when evaluating it fails.
    pub fn rows(&self, query: &PreparedQuery) -> Result<Rows, QueryError> {
        let snapshot = self.inner.store.snapshot();
        let standing = fresh::standing_rows(&query.resolved, &snapshot, self.inner.options.deadline)?;
        let rows = nest(&query.output, standing.iter().map(|row| (row.table, row.places, &row.row)));
        Ok(Rows { cv: snapshot.cv(), rows })
    }

    /// How a query is maintained, one line a fact: its shape, its parameters, its operators with their indexes. With
    /// `analyze` also what they hold, and for a live one what they did in its last advances; one that is not live is
    /// computed once. Blocking.
    ///
    /// # Errors
    /// `query_faulted` when computing it fails.
    pub fn explain(&self, query: &PreparedQuery, analyze: bool) -> Result<Vec<String>, QueryError> {
        self.inner.explain(&query.resolved, &self.inner.store.snapshot(), analyze)
    }

    /// The refusal of a name that no query and no view has.
    #[must_use]
    pub fn unknown_query(&self, name: &str) -> QueryError {
        self.inner.unknown_query(name)
    }

    /// Runs a text of statements, one after the other; together they may show `rows_max` rows. What stands between `begin`
    /// and `commit` is one commit, every other statement that writes is one of its own. Blocking.
    ///
    /// # Errors
    /// At the first statement that fails, whose number the message says: as [`Replica::prepare`], `query_faulted` when
    /// evaluating it fails, `conflict` when what it writes contradicts what is there. What those before it did stands.
    pub fn sql(
        &self,
        text: &str,
        args: &Map<String, Json>,
        claims: &Map<String, Json>,
        rows_max: usize,
    ) -> Result<Answer, StatementsError> {
        self.inner.sql(text, args, claims, rows_max)
    }

    /// Compares every maintained result with the query run from scratch at the same commit version. Blocking.
    #[must_use]
    pub fn check(&self) -> CheckReport {
        self.inner.check()
    }

    /// Positions, queues and counts.
    #[must_use]
    pub fn status(&self) -> Status {
        self.inner.status()
    }
}

impl Inner {
    fn limits(&self) -> CommitLimits {
        CommitLimits { ops_max: self.options.commit_ops_max, ..CommitLimits::default() }
    }
}

fn not_ready(error: impl std::fmt::Display) -> QueryError {
    QueryError::new(QueryErrorKind::NotReady, error.to_string())
}
