//! What a replica tells of itself.

use serde::Serialize;
use serde_json::Value as Json;
use tidegate_wire::model::Cv;

/// One worker's position.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WorkerStatus {
    /// Its number.
    pub worker: u16,
    /// The commit version it has reached.
    pub cv: Cv,
    /// Messages waiting at it.
    pub queue: usize,
    /// Families it hosts.
    pub families: usize,
}

/// One family's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueryStatus {
    /// The family's id; 0 when it is not running.
    pub query: u64,
    /// Bound parameter tuples.
    pub bindings: usize,
    /// Rows in the results.
    pub rows: u64,
    /// Subscriptions.
    pub subscribers: usize,
    /// How long the last advance that changed something took, microseconds.
    pub last_advance_us: u64,
    /// Why a query that is to be pinned is not, at present, or why one that nobody uses does not fit the tables.
    pub fault: Option<String>,
}

/// A shape that is live, whoever asked for it.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveQuery {
    /// The family's state.
    pub status: QueryStatus,
    /// The worker that hosts it.
    pub worker: u16,
    /// How it is maintained, one line a fact.
    pub plan: Vec<String>,
}

/// The whole replica's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Status {
    /// The newest commit version.
    pub cv: Cv,
    /// The workers.
    pub workers: Vec<WorkerStatus>,
    /// Messages waiting at the drain.
    pub drain_queue: usize,
    /// Families.
    pub families: usize,
    /// Bindings.
    pub bindings: usize,
    /// Subscriptions.
    pub subscriptions: usize,
    /// Rows by table name.
    pub table_rows: Vec<(String, u64)>,
    /// Encoded bytes of the newest snapshot's rows.
    pub store_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
}

/// One maintained result that differs from the query run from scratch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The query's shape, as text.
    pub query: String,
    /// The binding's values.
    pub args: Json,
    /// What differs.
    pub detail: String,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CheckReport {
    /// Results compared.
    pub checked: usize,
    /// Those that differ, or that could not be compared.
    pub differences: Vec<Difference>,
}
