//! Where the store thread puts its records: the commit log, or in tests one that fails on demand.

use super::{CommitError, CommitProblem};
use crate::commit_log::{AppendError, CommitLog};
use std::error::Error;

/// Keeps records in order.
pub(super) trait Journal: Send {
    /// Buffers a record; its sequence.
    fn append(&mut self, payload: &[u8]) -> Result<u64, CommitError>;
    /// Makes the buffered records durable. On failure they are dropped and their sequences used again.
    fn sync(&mut self) -> Result<(), CommitError>;
    /// The last durable sequence.
    fn durable_sequence(&self) -> u64;
    /// Bytes kept.
    fn bytes(&self) -> u64;
}

impl Journal for CommitLog {
    fn append(&mut self, payload: &[u8]) -> Result<u64, CommitError> {
        CommitLog::append(self, payload).map_err(|error| match error {
            AppendError::TooLarge { bytes, bytes_max } => {
                CommitProblem::RecordTooLarge { bytes, bytes_max }.into()
            }
            AppendError::BatchFull { .. } | AppendError::Poisoned => unwritable(&error),
        })
    }

    fn sync(&mut self) -> Result<(), CommitError> {
        CommitLog::sync(self).map_err(|error| unwritable(&error))
    }

    fn durable_sequence(&self) -> u64 {
        CommitLog::durable_sequence(self)
    }

    fn bytes(&self) -> u64 {
        CommitLog::bytes(self)
    }
}

/// The refusal for a log that cannot be written; it names the file and what the operating system said.
pub(super) fn unwritable(error: &dyn Error) -> CommitError {
    let text = match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    CommitProblem::LogUnwritable(text).into()
}
