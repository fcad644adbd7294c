//! What a worker tells of itself and its families while it works, read from any thread.

use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

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
    /// Bindings.
    pub bindings: AtomicUsize,
    /// Groups held: the state's size in keys.
    pub groups: AtomicUsize,
    /// Advances that found something to do.
    pub advances: AtomicU64,
    /// How long the last of them took, nanoseconds.
    pub last_advance_ns: AtomicU64,
    /// How long all of them took together, nanoseconds.
    pub advance_ns: AtomicU64,
    /// How long hydrations took together, nanoseconds.
    pub hydrate_ns: AtomicU64,
    /// Hydrations.
    pub hydrations: AtomicU64,
}

impl QueryGauges {
    pub(super) fn advanced(&self, nanos: u64) {
        self.advances.fetch_add(1, Relaxed);
        self.last_advance_ns.store(nanos, Relaxed);
        self.advance_ns.fetch_add(nanos, Relaxed);
    }

    pub(super) fn hydrated(&self, nanos: u64) {
        self.hydrations.fetch_add(1, Relaxed);
        self.hydrate_ns.fetch_add(nanos, Relaxed);
    }
}
