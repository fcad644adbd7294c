//! What a worker tells of itself and its families while it works, read from any thread.

use metrics::Histogram;
use std::{
    sync::{
        LazyLock,
        atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

/// Time per advance that found something to do. Looked up once: the recorder is installed before any worker runs.
static ADVANCE_SECONDS: LazyLock<Histogram> =
    LazyLock::new(|| metrics::histogram!("tidegate_query_advance_seconds"));
/// Time per hydration.
static HYDRATE_SECONDS: LazyLock<Histogram> =
    LazyLock::new(|| metrics::histogram!("tidegate_hydrate_seconds"));

/// One worker's.
#[derive(Debug, Default)]
pub struct WorkerGauges {
    /// The commit version it has reached.
    pub cv: AtomicU64,
    /// Families it hosts.
    pub families: AtomicUsize,
}

/// One family's.
#[derive(Debug, Default)]
pub struct QueryGauges {
    /// Rows at places, over all bindings.
    pub rows: AtomicI64,
    /// How long the last advance that found something to do took, nanoseconds.
    pub last_advance_ns: AtomicU64,
}

impl QueryGauges {
    pub(super) fn advanced(&self, took: Duration) {
        self.last_advance_ns.store(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        ADVANCE_SECONDS.record(took);
    }

    pub(super) fn hydrated(took: Duration) {
        HYDRATE_SECONDS.record(took);
    }
}
