//! What an operator holds and did.

use std::time::Duration;

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperatorProfile {
    /// Keys it holds.
    pub keys: usize,
    /// Advances so far.
    pub advances: u64,
    /// Rows that it passed on in all of them.
    pub rows: u64,
    /// The time they took.
    pub time: Duration,
    /// Rows that it passed on in the last one.
    pub last_rows: u64,
    /// The time that took.
    pub last_time: Duration,
}

impl OperatorProfile {
    /// Notes one more advance.
    pub(crate) fn note(&mut self, rows: usize, time: Duration) {
        self.advances += 1;
        self.rows += rows as u64;
        self.time += time;
        (self.last_rows, self.last_time) = (rows as u64, time);
    }
}
