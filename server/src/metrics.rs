//! The server's metrics: names, help texts and handles. Rendered by `GET /metrics`.

use metrics::{
    Counter, Histogram, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::{sync::OnceLock, time::Duration};
use tidegate_replica::{handle::Status, worker::FaultCause};

/// Upper bounds of the latency histograms, seconds.
const LATENCY_BUCKETS: &[f64] = &[
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Why the server gives a connection up: its outbox is full, or a write to it takes too long.
const EVICTION_REASONS: &[&str] = &["outbox_full", "write_timeout"];

const FAULT_CAUSES: [FaultCause; 6] = [
    FaultCause::Derive,
    FaultCause::Deadline,
    FaultCause::WorkerLost,
    FaultCause::Removed,
    FaultCause::Replaced,
    FaultCause::SchemaChanged,
];

pub(crate) fn cause_name(cause: FaultCause) -> &'static str {
    match cause {
        FaultCause::Derive => "derive",
        FaultCause::Deadline => "deadline",
        FaultCause::WorkerLost => "worker_lost",
        FaultCause::Removed => "removed",
        FaultCause::Replaced => "replaced",
        FaultCause::SchemaChanged => "schema_changed",
    }
}

/// Installs the recorder, once per process; servers started in one process share it. When the process has a recorder
/// of its own, that one gets the metrics and the text here stays empty.
pub fn install() -> &'static PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE.get_or_init(|| {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), LATENCY_BUCKETS)
            .expect("there are buckets")
            .build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("the process has a metrics recorder already; /metrics stays empty");
        }
        describe();
        // Counters that are rarely touched stand at 0 from the beginning, so that a first increase is seen as one.
        for reason in EVICTION_REASONS {
            counter!("tidegate_evicted_total", "reason" => *reason).increment(0);
        }
        for cause in FAULT_CAUSES {
            counter!("tidegate_faults_total", "cause" => cause_name(cause)).increment(0);
        }
        handle
    })
}

fn describe() {
    describe_counter!("tidegate_commits_total", "commits in the log");
    describe_gauge!("tidegate_commit_version", "newest commit version");
    describe_gauge!("tidegate_source_lag_seconds", "how far the store is behind the source");
    describe_gauge!("tidegate_worker_commit_version", "commit version a worker has reached");
    describe_gauge!("tidegate_worker_queue_length", "messages waiting at a worker");
    describe_gauge!("tidegate_drain_queue_length", "messages waiting at the drain");
    describe_counter!("tidegate_batches_total", "batches put into outboxes");
    describe_counter!("tidegate_ops_total", "row operations put into outboxes");
    describe_counter!("tidegate_progress_total", "progress frames put into outboxes");
    describe_gauge!("tidegate_connections", "connections");
    describe_gauge!("tidegate_subscriptions", "subscriptions");
    describe_gauge!("tidegate_queries", "query shapes maintained");
    describe_gauge!("tidegate_outbox_bytes", "bytes waiting in all outboxes");
    describe_counter!("tidegate_evicted_total", "connections the server gave up, by reason");
    describe_counter!("tidegate_faults_total", "queries stopped by an error, by cause");
    describe_histogram!(
        "tidegate_query_advance_seconds",
        "time per advance of a query that found something to do"
    );
    describe_histogram!("tidegate_hydrate_seconds", "time per hydration of a query");
    describe_histogram!(
        "tidegate_commit_to_socket_seconds",
        "from a write's arrival to the writing of the progress frame that releases it"
    );
    describe_histogram!("tidegate_outbox_seconds", "from the drain to the socket");
    describe_gauge!("tidegate_store_rows", "rows by table");
    describe_gauge!("tidegate_store_bytes", "encoded bytes of the newest snapshot's rows");
    describe_gauge!("tidegate_log_bytes", "bytes of the log");
    describe_counter!("tidegate_resumes_total", "subscriptions started, by kind: difference or snapshot");
    describe_gauge!("tidegate_memory_bytes", "resident memory of the process");
}

/// Handles the hub and the writers use for every batch.
pub struct HubMetrics {
    batches: Counter,
    ops: Counter,
    progress: Counter,
    resumed: Counter,
    snapshots: Counter,
    outbox_seconds: Histogram,
    commit_to_socket_seconds: Histogram,
}

impl std::fmt::Debug for HubMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HubMetrics")
    }
}

impl HubMetrics {
    /// Handles on the recorder installed by now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            batches: counter!("tidegate_batches_total"),
            ops: counter!("tidegate_ops_total"),
            progress: counter!("tidegate_progress_total"),
            resumed: counter!("tidegate_resumes_total", "kind" => "difference"),
            snapshots: counter!("tidegate_resumes_total", "kind" => "snapshot"),
            outbox_seconds: histogram!("tidegate_outbox_seconds"),
            commit_to_socket_seconds: histogram!("tidegate_commit_to_socket_seconds"),
        }
    }

    pub(crate) fn batches(&self, batches: u64, ops: u64) {
        self.batches.increment(batches);
        self.ops.increment(ops);
    }

    pub(crate) fn progress(&self) {
        self.progress.increment(1);
    }

    pub(crate) fn resumes(&self, resumed: bool) {
        if resumed { &self.resumed } else { &self.snapshots }.increment(1);
    }

    pub(crate) fn evicted(&self, reason: &'static str) {
        counter!("tidegate_evicted_total", "reason" => reason).increment(1);
    }

    pub(crate) fn fault(&self, cause: FaultCause) {
        counter!("tidegate_faults_total", "cause" => cause_name(cause)).increment(1);
    }

    /// A progress frame reached the socket, `queued` after the drain made it and, when that is known, `committed`
    /// after the write it releases arrived.
    pub(crate) fn released(&self, queued: Duration, committed: Option<Duration>) {
        self.outbox_seconds.record(queued);
        if let Some(committed) = committed {
            self.commit_to_socket_seconds.record(committed);
        }
    }
}

impl Default for HubMetrics {
    fn default() -> Self {
        Self::new()
    }
}

/// Sets the gauges that are read rather than counted.
pub fn observe(status: &Status, connections: usize, outbox_bytes: usize) {
    #[allow(clippy::cast_precision_loss)]
    fn set(name: &'static str, value: u64) {
        gauge!(name).set(value as f64);
    }
    counter!("tidegate_commits_total").absolute(status.cv.0);
    set("tidegate_commit_version", status.cv.0);
    // The embedded store is its own source.
    set("tidegate_source_lag_seconds", 0);
    for worker in &status.workers {
        let label = worker.worker.to_string();
        #[allow(clippy::cast_precision_loss)]
        gauge!("tidegate_worker_commit_version", "worker" => label.clone()).set(worker.cv.0 as f64);
        #[allow(clippy::cast_precision_loss)]
        gauge!("tidegate_worker_queue_length", "worker" => label).set(worker.queue as f64);
    }
    for (table, rows) in &status.table_rows {
        #[allow(clippy::cast_precision_loss)]
        gauge!("tidegate_store_rows", "table" => table.clone()).set(*rows as f64);
    }
    set("tidegate_drain_queue_length", status.drain_queue as u64);
    set("tidegate_connections", connections as u64);
    set("tidegate_subscriptions", status.subscriptions as u64);
    set("tidegate_queries", status.families as u64);
    set("tidegate_outbox_bytes", outbox_bytes as u64);
    set("tidegate_store_bytes", status.store_bytes);
    set("tidegate_log_bytes", status.log_bytes);
    set("tidegate_memory_bytes", memory_bytes().unwrap_or(0));
}

/// Resident memory of this process, where the system tells.
#[must_use]
pub fn memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024)
}
