//! What the drain counts.

use super::BatchOps;

/// Counters since the start, and gauges of the present. Plain numbers: the thread publishes copies of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Batches, each counted once however many subscriptions it went to.
    pub batches: u64,
    /// Batches counted once per subscription they went to.
    pub deliveries: u64,
    /// Row operations, counted once per batch.
    pub ops: u64,
    /// Changes folded into footprints, those of hydrations included.
    pub changes: u64,
    /// Progress frames.
    pub progress: u64,
    /// Faults of families and bindings told to their owner.
    pub faults: u64,
    /// Subscriptions told of a fault.
    pub faulted_subscriptions: u64,
    /// Events and changes without a binding to go to: late, or of an unbound binding.
    pub dropped: u64,
    /// Connections.
    pub connections: usize,
    /// Subscriptions.
    pub subscriptions: usize,
    /// Families.
    pub families: usize,
    /// Bindings.
    pub bindings: usize,
    /// Rows in all footprints.
    pub footprint_rows: usize,
}

impl Statistics {
    pub(super) fn count(&mut self, batches: &[BatchOps], recipients: usize) {
        self.batches += batches.len() as u64;
        self.deliveries += (batches.len() * recipients) as u64;
        self.ops += batches.iter().map(|batch| batch.ops.len() as u64).sum::<u64>();
    }
}
