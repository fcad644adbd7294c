//! The replica as the server sees it: one object that owns the store, the workers and the drain.
//!
//! Every method may be called from any thread. Those marked `async` may be awaited from any Tokio task; the others
//! marked "blocking" belong on a blocking thread.

pub mod options;
pub mod request;
pub mod status;

pub use options::ReplicaOptions;
pub use request::{
    CommitOutcome, CommitRefusal, CommitRefusalKind, Idempotency, IdempotencyEntry, MutationOutcome,
    NamedQuery, PreparedQuery, QueryRequest, QuerySource, ResumePoint, Rows,
};
pub use status::{CheckReport, Difference, QueryStatus, Status, WorkerStatus};

use crate::{
    drain::{ConnId, Sink},
    query::QueryError,
    store::Snapshot,
};
use serde_json::{Map, Value as Json};
use std::sync::Arc;
use tidegate_wire::model::{
    Cv, Epoch, SubId, TableSchema,
    commit::{CommitLine, RowOp},
};

/// Why a replica cannot start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(pub String);

/// See the module's description. Cloning shares it.
#[derive(Clone)]
pub struct Replica {}

#[allow(missing_docs, unused_variables, clippy::unused_async, clippy::unimplemented)]
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
        unimplemented!()
    }

    /// Stops taking work, lets the drain deliver what is under way, joins all threads. Blocking.
    pub fn shutdown(&self) {
        unimplemented!()
    }

    /// The newest commit version.
    #[must_use]
    pub fn cv(&self) -> Cv {
        unimplemented!()
    }

    /// All tables at the newest commit version.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        unimplemented!()
    }

    /// Applies commits in order up to the first that is refused; returns when those applied are durable.
    pub async fn commit(&self, lines: &[CommitLine], idempotency: Option<Idempotency>) -> CommitOutcome {
        unimplemented!()
    }

    /// Creates the tables that are missing (one commit version if there are any).
    ///
    /// # Errors
    /// `conflict` when a table exists with other columns or another key; then nothing changes.
    pub async fn create_tables(&self, tables: Vec<TableSchema>) -> Result<Cv, CommitRefusal> {
        unimplemented!()
    }

    /// What is remembered of an idempotency key.
    #[must_use]
    pub fn idempotency(&self, key: &str) -> Option<IdempotencyEntry> {
        unimplemented!()
    }

    /// Applies one mutation of a client, exactly once and in order.
    pub async fn mutate(&self, client_id: &str, id: u64, ops: &[RowOp]) -> MutationOutcome {
        unimplemented!()
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
        unimplemented!()
    }

    /// Announces a connection; the sink must know it already.
    pub async fn connect(&self, conn: ConnId) {
        unimplemented!()
    }

    /// Forgets a connection and its subscriptions.
    pub async fn disconnect(&self, conn: ConnId) {
        unimplemented!()
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
        unimplemented!()
    }

    /// Ends a subscription.
    pub async fn unsubscribe(&self, conn: ConnId, sub: SubId) {
        unimplemented!()
    }

    /// Registers or replaces a named query. A replaced query's subscribers are told `query_removed`.
    ///
    /// # Errors
    /// As [`Replica::prepare`]; then the old one stays.
    pub async fn put_query(&self, query: NamedQuery) -> Result<(), QueryError> {
        unimplemented!()
    }

    /// Removes a named query; whether there was one.
    pub async fn delete_query(&self, name: &str) -> bool {
        unimplemented!()
    }

    /// A named query's definition and state.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<(NamedQuery, QueryStatus)> {
        unimplemented!()
    }

    /// All named queries, by name.
    #[must_use]
    pub fn queries(&self) -> Vec<(NamedQuery, QueryStatus)> {
        unimplemented!()
    }

    /// A query's result at the newest commit version, computed from scratch, ordered and nested. Blocking.
    ///
    /// # Errors
    /// `query_faulted` when evaluating it fails.
    pub fn rows(&self, query: &PreparedQuery) -> Result<Rows, QueryError> {
        unimplemented!()
    }

    /// Compares every maintained result with the query run from scratch at the same commit version. Blocking.
    #[must_use]
    pub fn check(&self) -> CheckReport {
        unimplemented!()
    }

    /// Positions, queues and counts.
    #[must_use]
    pub fn status(&self) -> Status {
        unimplemented!()
    }
}
