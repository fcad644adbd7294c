//! What a replica can be told at start.

use std::{path::PathBuf, time::Duration};

/// Each has a default, a unit and a bound.
#[derive(Clone, Debug)]
pub struct ReplicaOptions {
    /// Where the log lives; `None` keeps everything in memory only.
    pub data_dir: Option<PathBuf>,
    /// Whether a commit is on stable storage before it is acknowledged (default), or only written to the file, which
    /// survives the process but not the machine.
    pub fsync: bool,
    /// Worker threads; default cores − 1, at least 1.
    pub workers: usize,
    /// Deltas that may wait at one worker; default 1,024.
    pub worker_queue_max: usize,
    /// Events and controls that may wait at the drain; default 4,096.
    pub drain_queue_max: usize,
    /// Snapshots kept for resuming clients; default 1,024.
    pub snapshots_kept_max: usize,
    /// Longest one advance or hydration of one query may take; default 30 s.
    pub deadline: Duration,
    /// How long a query that nobody subscribes to is kept; default 30 s.
    pub idle_ttl: Duration,
    /// Most operations in one commit; default 1,000,000.
    pub commit_ops_max: usize,
    /// Most families at once; default 10,000.
    pub families_max: usize,
    /// How often an idle connection is told `cv_min`; default 30 s.
    pub keep_alive: Duration,
    /// Row bytes in one batch, in the store's encoding; default and at most 256 KiB.
    pub batch_bytes_max: usize,
}

impl Default for ReplicaOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            data_dir: None,
            fsync: true,
            workers: cores.saturating_sub(1).max(1),
            worker_queue_max: 1_024,
            drain_queue_max: 4_096,
            snapshots_kept_max: 1_024,
            deadline: Duration::from_secs(30),
            idle_ttl: Duration::from_secs(30),
            commit_ops_max: 1_000_000,
            families_max: 10_000,
            keep_alive: Duration::from_secs(30),
            batch_bytes_max: crate::drain::limits::BATCH_ROW_BYTES_MAX,
        }
    }
}
